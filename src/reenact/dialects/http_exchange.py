"""The spans that carriers of whole HTTP exchanges and of message lists are read into (`foreign.exchanges`).

They are spelled as our own evidence is (docs/schema.md), with `reenact.carrier` naming the file they came from. What
the carrier lost of a call, and which of its bodies were built from what it says, stands beside it and reaches the
verdict.
"""

from __future__ import annotations

from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.values import typed
from reenact.values.call import Call, CallKind, FunctionCall, HttpRequest, Outcome
from reenact.values.evidence import outcome_from_attributes, request_from_attributes
from reenact.values.json import Json, parsed_or_none
from reenact.values.run import CARRIER, OURS
from reenact.values.span import SpanRecord

_KINDS: Final = frozenset(CallKind)
_EVIDENCE: Final = (
    "input.",
    "output.",
    "http.",
    "url.full",
    "openinference.span.kind",
    OURS,
    "reenact.boundary",
    "reenact.shape",
    "reenact.function",
    "reenact.outcome",
    "reenact.order.",
    "reenact.http.",
    "reenact.stream.",
    "reenact.exception",
    "reenact.run.root",
)

_LISTS: Final = ("reenact.lost", "reenact.rebuilt")
"""Notes that stand as JSON text where a carrier has no lists."""


def _recognises(span: SpanRecord) -> float:
    return 1.0 if CARRIER in span.attributes else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    kind_name = span.attributes.get("openinference.span.kind")
    kind = CallKind(kind_name) if isinstance(kind_name, str) and kind_name in _KINDS else CallKind.UNKNOWN
    request = request_from_attributes(span.attributes) or FunctionCall(function="", arguments={})
    attributes: dict[str, Json] = {
        name: typed.encode(value) for name, value in span.attributes.items() if not name.startswith(_EVIDENCE)
    }
    for name in _LISTS:
        if isinstance(text := attributes.get(name), str):
            attributes[name] = parsed_or_none(text)
    if isinstance(request, HttpRequest) or kind is CallKind.TOOL:
        attributes["reenact.dialect"] = DIALECT.name
    call = Call(kind=kind, name=span.name, request=request, attributes=attributes)
    return call, outcome_from_attributes(span.attributes)


DIALECT = Dialect(
    name="http-exchange",
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=(CARRIER,)),
    most=1.0,
)
