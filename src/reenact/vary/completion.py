"""Parallel calls complete in another order: what was asked side by side is answered the other way round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

from reenact.contracts.perturbation import Perturbation
from reenact.values.call import FunctionCall, Streamed, Unfinished
from reenact.values.discovered_tools import run_again
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lane import sequence
from reenact.values.lenient import as_count, as_list, as_object
from reenact.values.run import LANDINGS, PAUSES, Node, Run
from reenact.values.variation import Edit, Group, Variation

_MOST = 40
_ENDS = "reenact.lane.ends"


def _vary(run: Run, chance: Random) -> Iterator[Variation]:
    for group in _parallel(run):
        pairs = [(one, other) for one, other in pairwise(group) if _overlap((one, other))]
        chance.shuffle(pairs)
        swaps = tuple(_ordered(run, pair, pair[::-1], 2) for pair in pairs[:8])
        if len(group) > 2 and _overlap(group):
            shuffled = [*group]
            chance.shuffle(shuffled)
            for order in (group[::-1], shuffled):
                if order != group:
                    yield replace(_ordered(run, group, order, len(group)), smaller=swaps)
        yield from swaps


def _parallel(run: Run) -> Iterator[list[Node]]:
    """Give calls of one process that were under way together, in the order in which they were answered."""
    again = run_again(run.nodes)
    by_sequence: dict[str, list[Node]] = defaultdict(list)
    for node in run.nodes:
        plain = not node.call.is_structure and not isinstance(node.outcome, Unfinished | Streamed)
        if plain and node.end_order > 0 and node.start_order > 0 and node.id not in again and _is_answered(node):
            process = str(node.span.resource.attributes.get("reenact.process.id") or "")
            by_sequence[sequence(node.lane, process)].append(node)
    for nodes in by_sequence.values():
        group: list[Node] = []
        for node in sorted(nodes, key=lambda node: node.start_order):
            if (group and min(each.end_order for each in group) < node.start_order) or len(group) >= _MOST:
                yield from _worth(group)
                group = []
            group.append(node)
        yield from _worth(group)


def _is_answered(node: Node) -> bool:
    return not (isinstance(node.call.request, FunctionCall) and node.span.attributes.get("reenact.run.root"))


def _worth(group: list[Node]) -> Iterator[list[Node]]:
    if len(group) > 1:
        yield sorted(group, key=lambda node: node.end_order)


def _overlap(group: Sequence[Node]) -> bool:
    """Tell whether each of these was asked before any was answered: only then may they be answered in any order."""
    return max(node.start_order for node in group) < min(node.end_order for node in group)


def _ordered(run: Run, group: Sequence[Node], order: Sequence[Node], size: int) -> Variation:
    """Release the answers of `group` in `order`, at the places and times where answers of the group were released.

    Where a call was the last thing that a job of a pool did, the end of that job goes with it.
    """
    ends = _job_ends(run, group)
    numbers = sorted([node.end_order for node in group] + [end.order for end in ends.values()])
    edits: list[Edit] = [*_waits_that_see(run, numbers[0], numbers[-1])]
    times: dict[int, Json] = {node.end_order: node.span.end_ns for node in group}
    times |= {end.order: end.ns for end in ends.values()}
    moved: dict[str, dict[str, Json]] = {}
    for node in order:
        place = numbers.pop(0)
        edits.append(Edit(node=node.id, end_order=place, end_ns=as_count(times.get(place))))
        if (end := ends.get(node.id)) is not None:
            at = numbers.pop(0)
            moved.setdefault(end.root, {})[end.lane] = [at, times.get(at, end.ns)]
    edits += [_with_ends(run, root, changed) for root, changed in moved.items()]
    labels = ", ".join(f"#{node.number}" for node in order[:6])
    return Variation(
        kind="completion",
        group=Group.TIMING,
        call=" and ".join(node.label for node in group[:2]) + (" …" if len(group) > 2 else ""),
        description=f"answered in the order {labels}{' …' if len(order) > 6 else ''}",
        size=size,
        edits=tuple(edits),
    )


def _waits_that_see(run: Run, first: int, last: int) -> Iterator[Edit]:
    """Forget which of several a wait found done where it may have lasted into the numbers from `first` to `last`.

    A wait that was woken has no number of its own end. What it finds now is what is done by then. Nor does any end of a
    job come close behind another because it did so when recorded.
    """
    for node in run.nodes:
        text, attributes = node.span.attributes.get(PAUSES), dict[str, str]()
        lanes = as_object(parsed_or_none(text) if isinstance(text, str) else None)
        blind: dict[str, Json] = {
            lane: [_blind(each, first, last) for each in as_list(pauses)] for lane, pauses in lanes.items()
        }
        if blind != lanes:
            attributes[PAUSES] = compact(blind)
        if LANDINGS in node.span.attributes:
            attributes[LANDINGS] = "{}"
        if attributes:
            yield Edit(node=node.id, attributes=attributes)


def _blind(pause: Json, first: int, last: int) -> Json:
    match pause:
        case [int(began), int(ended), after_us, list(), *rest] if began < last and (not ended or ended > first):
            return [began, ended, after_us, *rest]
        case _:
            return pause


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a pool's job: where it is told, on which lane, its place in the sequence, when."""

    root: str
    lane: str
    order: int
    ns: Json


def _job_ends(run: Run, group: Sequence[Node]) -> dict[str, _End]:
    """Find the jobs that ended right after a call of the group, by the id of the call."""
    ends_by_call: dict[str, _End] = {}
    lanes = {node.lane for node in group}
    last: dict[str, Node] = {}
    for node in run.nodes:
        if node.call.is_structure:  # the root of a run stands on the lane of its first call
            continue
        if node.lane in lanes and (node.lane not in last or last[node.lane].end_order < node.end_order):
            last[node.lane] = node
    ids = {node.id for node in group}
    for root in run.nodes:
        text = root.span.attributes.get(_ENDS)
        ends = as_object(parsed_or_none(text) if isinstance(text, str) else None)
        for lane in lanes & ends.keys():
            order, node = as_count(next(iter(as_list(ends[lane])), None)), last[lane]
            if order is not None and node.id in ids and node.end_order < order:
                ends_by_call[node.id] = _End(root.id, lane, order, as_list(ends[lane])[-1])
    return ends_by_call


def _with_ends(run: Run, root: str, changed: dict[str, Json]) -> Edit:
    text = next(node.span.attributes.get(_ENDS) for node in run.nodes if node.id == root)
    ends = as_object(parsed_or_none(text) if isinstance(text, str) else None)
    return Edit(node=root, attributes={_ENDS: compact({**ends, **changed})})


COMPLETION = Perturbation(
    name="completion",
    groups=frozenset({Group.TIMING}),
    does="parallel calls complete in another order",
    of_run=_vary,
)
