"""Two runs held against each other: what differs, the first difference first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from reenact.boundary.reading import frames
from reenact.compare.content import blind, gist
from reenact.compare.ending import ending_differences, is_root, of_run, was_cut_off
from reenact.compare.fields import is_structural, outcome_differences, question_differences
from reenact.compare.foreign import differing_questions, kept_outcomes
from reenact.compare.pairing import Item, Pairs, paired
from reenact.compare.sequences import aligned
from reenact.values.call import CallKind
from reenact.values.difference import ABSENT, Divergence, FieldDifference
from reenact.values.json import Json
from reenact.values.judgement import Comparison
from reenact.values.lenient import as_list, as_text
from reenact.values.run import OUTPUT, WRITTEN, Node, Run

__all__ = ["Comparison", "compare"]

_Place = tuple[int, int, int]
"""Number in a, behind it or not, number in b."""


def compare(a: Run, b: Run) -> Comparison:
    """Compare two runs by what their calls asked and what came of it.

    Times, ids that a provider gave out, token counts and identity noise never count. A call whose text changed is a
    divergence that is not structural; any other change is structural. Structure (agents, chains) is looked at only
    where every call is the same.
    """
    left, right = _calls(a, _covered(a, b)), _calls(b, _covered(b, a))
    pairing = paired(left, right, blind=(a.salt, a.key_id) != (b.salt, b.key_id))
    placed: list[tuple[_Place, Divergence]] = []
    more: dict[str, tuple[Divergence, ...]] = {}
    for x, y in pairing.pairs:
        if x.raw == y.raw or x.whole == y.whole:
            continue
        first, rest = _changed(x, y)
        placed += [((x.node.number, 0, step), divergence) for step, divergence in enumerate(first)]
        if rest:
            more[x.node.id] = tuple(rest)
    placed += [((x.node.number, 0, 0), _reordered(x, y)) for x, y in pairing.reordered]
    placed += [((x.node.number, 0, 0), _alone(x.node, "missing")) for x in pairing.only_a]
    placed += _extra(pairing)
    divergences = [divergence for _, divergence in sorted(placed, key=lambda each: each[0])]
    divergences += [] if divergences else _structure(a, b)
    divergences += ending_differences(a, b)
    divergences += _writes(a, b)
    divergences += _printed(a, b)
    return Comparison(
        same=not divergences,
        same_path=not any(each.structural for each in (*divergences, *(d for rest in more.values() for d in rest))),
        divergences=tuple(divergences),
        more=more,
        calls_a=len(left),
        calls_b=len(right),
    )


def _covered(a: Run, b: Run) -> set[str]:
    """Find the calls of a that b, a replay of it, had no need to make: those below a call that was answered."""
    answered = {str(node.span.attributes.get("reenact.replay.answered_by")) for node in b.nodes}
    if answered == {"None"}:
        return set()
    covered: set[str] = set()
    inside = answered - frames(a.nodes)
    for node in a.nodes:  # parents come before children
        if node.parent is not None and (node.parent in inside or node.parent in covered):
            covered.add(node.id)
    return covered


def _calls(run: Run, covered: set[str]) -> list[Node]:
    """Give the calls to be compared: no structure, no root, no function that only frames a recorded model call."""
    left_out = frames(run.nodes) | covered
    return [
        node for node in run.nodes if not node.call.is_structure and node.id not in left_out and not is_root(node, run)
    ]


def _changed(x: Item, y: Item) -> tuple[list[Divergence], list[Divergence]]:
    """Give the first difference of the question and the first of the outcome, and then the rest of them."""
    before, after = x.content(), y.content()
    first: list[Divergence] = []
    rest: list[Divergence] = []
    questions = differing_questions(x.node, y.node)
    if questions is None:
        questions = question_differences(before, after)
    for differences in (questions, kept_outcomes(outcome_differences(before, after), x.node, y.node)):
        divergences = [_field(each, x.node, y.node) for each in differences]
        divergences.sort(key=lambda each: not each.structural)  # stable: the first structural one leads, then in order
        first += divergences[:1]
        rest += divergences[1:]
    return first, rest


def _field(difference: FieldDifference, a: Node, b: Node) -> Divergence:
    return Divergence(
        kind="changed",
        call=a.label,
        field=difference.path,
        a=difference.a,
        b=difference.b,
        structural=is_structural(difference, a.kind),
        node_a=a.id,
        node_b=b.id,
    )


def _reordered(x: Item, y: Item) -> Divergence:
    return Divergence(
        kind="reordered",
        call=x.node.label,
        field="order",
        a=x.node.number,
        b=y.node.number,
        structural=True,
        node_a=x.node.id,
        node_b=y.node.id,
    )


def _alone(node: Node, kind: str) -> Divergence:
    in_a = kind == "missing"
    return Divergence(
        kind=kind,
        call=node.label,
        field="call",
        a=gist(node) if in_a else ABSENT,
        b=ABSENT if in_a else gist(node),
        structural=True,
        node_a=node.id if in_a else None,
        node_b=None if in_a else node.id,
    )


def _extra(pairing: Pairs) -> Iterator[tuple[_Place, Divergence]]:
    """Place each call that only b has behind the call of a that it came after."""
    only = {id(item): item for item in pairing.only_b}
    if not only:
        return
    partner = {id(y): x.node.number for x, y in [*pairing.pairs, *pairing.reordered]}
    everything = [*pairing.only_b, *(y for _, y in [*pairing.pairs, *pairing.reordered])]
    latest: dict[str, int] = {}
    last = 0
    for item in sorted(everything, key=lambda item: item.node.number):
        if id(item) in only:
            yield (latest.get(item.lane, last), 1, item.node.number), _alone(item.node, "extra")
        else:
            last = latest[item.lane] = partner[id(item)]


def _writes(a: Run, b: Run) -> list[Divergence]:
    """Compare what two runs wrote, where both say it and have an end."""
    if was_cut_off(a) or was_cut_off(b) or not all(any(WRITTEN in n.span.attributes for n in r.nodes) for r in (a, b)):
        return []
    from reenact.values.file_writes import writes_of

    writes = writes_of(a), writes_of(b)
    if writes[0] is None or writes[1] is None:
        return []
    if not (writes[0].files or writes[1].files):
        return []
    from reenact.compare.file_writes import compare_writes

    foreign = (a.salt, a.key_id) != (b.salt, b.key_id)
    comparison = compare_writes(writes[0], writes[1], blind if foreign else lambda _a, _b: False)
    divergences = [_of_file(each, a, b) for each in comparison.divergences]
    for one, other in comparison.undecided:
        sizes = [f"{(each.after or {}).get('size')} bytes" for each in (one, other)]
        divergences.append(of_run(a, b, f"wrote {writes[0].named(one.path)}", sizes[0], f"{sizes[1]}, others"))
    return divergences


def _printed(a: Run, b: Run) -> list[Divergence]:
    """Compare what two runs printed, where both say it and have an end."""
    if was_cut_off(a) or was_cut_off(b) or not all(any(OUTPUT in n.span.attributes for n in r.nodes) for r in (a, b)):
        return []
    from reenact.compare.console_text import compare_printed
    from reenact.values.output import outputs

    foreign = (a.salt, a.key_id) != (b.salt, b.key_id)
    comparison = compare_printed(outputs([a]), outputs([b]), blind if foreign else lambda _a, _b: False)
    return [_of_file(each, a, b) for each in comparison.divergences]


def _of_file(difference: dict[str, Json], a: Run, b: Run) -> Divergence:
    absent = as_list(difference.get("absent"))
    left, right = (ABSENT if side in absent else difference.get(side) for side in ("a", "b"))
    kind = as_text(difference.get("kind"))
    return of_run(a, b, as_text(difference.get("field")), left, right, kind=kind, text=kind == "changed")


_SHOWN_STRUCTURE = frozenset({CallKind.AGENT, CallKind.CHAIN, CallKind.PROMPT})


def _structure(a: Run, b: Run) -> list[Divergence]:
    """Compare what calls hang below, by kind and name."""
    left, right = _frames_of(a), _frames_of(b)
    pairs = aligned([_kind_and_name(node) for node in left], [_kind_and_name(node) for node in right])
    taken_a, taken_b = {i for i, _ in pairs}, {j for _, j in pairs}
    waiting: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for place, node in enumerate(right):
        if place not in taken_b:
            waiting[_kind_and_name(node)].append(node)
    missing_nodes: list[Node] = []
    for place, node in enumerate(left):
        if place not in taken_a and waiting[_kind_and_name(node)]:
            waiting[_kind_and_name(node)].pop(0)  # lanes interleave anyhow
        elif place not in taken_a:
            missing_nodes.append(node)
    new = sorted((node for nodes in waiting.values() for node in nodes), key=lambda node: node.number)
    return [_alone(node, "missing") for node in missing_nodes] + [_alone(node, "extra") for node in new]


def _frames_of(run: Run) -> list[Node]:
    return [node for node in run.nodes if node.kind in _SHOWN_STRUCTURE and not is_root(node, run)]


def _kind_and_name(node: Node) -> tuple[str, str]:
    return node.kind.value, node.call.name
