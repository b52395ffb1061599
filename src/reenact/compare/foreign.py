"""Two calls of which another emitter wrote down at least one: only what both kept can differ.

A difference in what one of the two never held (a parameter without an attribute, why a reply ended, the body of a
refusal) says something of the emitters and nothing of the program.
"""

from __future__ import annotations

from collections.abc import Iterable

from reenact.boundary.reading import asked
from reenact.foreign.partial_question import (
    Compared,
    compared,
    equal,
    is_partial,
    read_partial_question,
    rebuilt_parts,
)
from reenact.values.call import HttpReply, HttpRequest, Returned, Streamed
from reenact.values.difference import ABSENT, FieldDifference
from reenact.values.json import parsed_or_none
from reenact.values.run import OURS, Node

_SAID_OF_REPLY = ("reply.model", "reply.finish_reasons")
_REFUSED = 400


def differing_questions(a: Node, b: Node) -> list[FieldDifference] | None:
    """List in what two model calls differ as far as both were kept; None where both are exact evidence."""
    if not (is_partial(a) or is_partial(b)):
        return None
    there, back = _comparison(a, b), _comparison(b, a)
    if there is not None and back is not None:
        unkept = {difference.path for difference in back.ignored}
        return [difference for difference in there.differs if difference.path not in unkept]
    if there is not None:
        return there.differs
    return [FieldDifference(path=d.path, a=d.b, b=d.a) for d in back.differs] if back is not None else None


def _comparison(of: Node, against: Node) -> Compared | None:
    kept_query, request = read_partial_question(of), against.call.request
    query = asked(against)
    if kept_query is None or query is None or not isinstance(request, HttpRequest):
        return None
    return compared(kept_query, query, request.shape)


def kept_outcomes(differences: Iterable[FieldDifference], a: Node, b: Node) -> list[FieldDifference]:
    """Leave out the differences of two outcomes that come of what one emitter did not keep."""
    differences = [*differences]
    if any(OURS not in node.span.attributes for node in (a, b)):
        differences = [each for each in differences if not (each.path == "returned" and _is_one_text(each))]
    if not (is_partial(a) or is_partial(b)):
        return differences
    parts = {*rebuilt_parts(a), *rebuilt_parts(b)}
    if "failure" in parts and _status(a) == _status(b) >= _REFUSED:
        return []
    return [difference for difference in differences if not _is_unkept(difference, parts)]


def _is_one_text(difference: FieldDifference) -> bool:
    """Tell a result from the JSON text of it: a model was told the text, and not what the tool gave for it."""
    a, b = difference.a, difference.b
    text, value = (a, b) if isinstance(a, str) else (b, a)
    return isinstance(text, str) and isinstance(value, dict | list) and equal(parsed_or_none(text), value)


def _is_unkept(difference: FieldDifference, parts: set[str]) -> bool:
    if not difference.path.startswith(_SAID_OF_REPLY):
        return False
    one_side = difference.a is ABSENT or difference.b is ABSENT
    return one_side or ("finish_reason" in parts and difference.path.startswith("reply.finish_reasons"))


def _status(node: Node) -> int:
    match node.outcome:
        case Returned(payload=HttpReply(status=status)) | Streamed(status=status):
            return status
        case _:
            return 0
