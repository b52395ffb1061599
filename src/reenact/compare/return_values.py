"""What the agents and chains of a run returned or raised, held against what they do in a replay.

They are the agent's own functions (`@agent`, `@chain`): structure that no recording answers, so that what comes of them
is the program's doing. Texts in their values may differ by nature as printed ones may (`compare.volatile`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from reenact.compare.content import content
from reenact.compare.ending import is_root
from reenact.compare.fields import field_differences
from reenact.compare.volatile import Side, Volatile
from reenact.values.call import CallKind, FunctionCall, Raised, Returned, Streamed, Unfinished, Value
from reenact.values.difference import Divergence
from reenact.values.json import Json
from reenact.values.run import OURS, Node, Run

_COMPARED = frozenset({CallKind.AGENT, CallKind.CHAIN})
_Key = tuple[str, str, str, int]
"""Kind, name, lane, and number among those."""


def returned_differences(
    a: Run, b: Run, is_alike: Callable[[str, str], bool] = lambda _a, _b: False
) -> Iterator[Divergence]:
    """Yield the first difference of each agent or chain that both runs hold; `is_alike` forgives texts."""
    left, right = _functions(a), _functions(b)
    volatile = Volatile(_side(a), _side(b))
    for key, node in left.items():
        other = right.get(key)
        if other is None:
            continue
        before, now = content(node).outcome, content(other).outcome
        for each in field_differences(before, now):
            texts = each.a, each.b
            if _are_alike(texts, volatile, is_alike):
                continue
            yield Divergence(
                kind="changed",
                call=node.label,
                field=each.path,
                a=each.a,
                b=each.b,
                structural=True,
                node_a=node.id,
                node_b=other.id,
            )
            break


def _are_alike(texts: tuple[object, object], volatile: Volatile, is_alike: Callable[[str, str], bool]) -> bool:
    match texts:
        case str(one), str(other):
            return volatile.alike(one, other) is not None or is_alike(one, other)
        case _:
            return False


def _functions(run: Run) -> dict[_Key, Node]:
    count: Counter[tuple[str, str, str]] = Counter()
    functions: dict[_Key, Node] = {}
    for node in run.nodes:
        if node.kind not in _COMPARED or is_root(node, run) or not isinstance(node.call.request, FunctionCall):
            continue
        if OURS not in node.span.attributes or not _is_told(node):
            continue
        key = (node.kind.value, node.call.name, node.lane)
        count[key] += 1
        functions[*key, count[key]] = node
    return functions


def _is_told(node: Node) -> bool:
    """Tell whether what came of it is known."""
    match node.outcome:
        case Returned(payload=Value(json=value)):
            return not _is_unstable(value)
        case Raised() | Streamed():
            return True
        case Unfinished() | _:
            return False


def _is_unstable(value: Json) -> bool:
    """Tell whether a value holds what could not be written down."""
    if isinstance(value, dict):
        return "$unstable" in value or any(map(_is_unstable, value.values()))
    return isinstance(value, list) and any(map(_is_unstable, value))


def _side(run: Run) -> Side:
    begins = [node.span.start_ns for node in run.nodes if node.span.start_ns]
    ends = [node.span.end_ns for node in run.nodes if node.span.end_ns]
    return Side(began_ns=min(begins, default=0) - 1_000_000_000, ended_ns=max(ends, default=0) + 1_000_000_000)
