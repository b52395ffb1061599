"""Loops that wait for others by the clock: where nothing in a recording says how often they go around.

A replay counts: code goes on behind a pause in its recorded place among the answers. Where what the code waited for was
computed, and no answer came in the meantime, there is no such place, and one round more or less is as likely. Looks
whose findings were kept, such as those whether another process has ended, find the same again: they say how often.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from reenact.values.call import Streamed
from reenact.values.json import Json, parsed_or_none
from reenact.values.lane import sequence
from reenact.values.lenient import as_list, as_object
from reenact.values.run import PAUSES, UNPAUSED, Node, Reason, Run

_LAST: Final = 2
"""So many rounds lie around the end of what a loop waits for."""


class _Pause(NamedTuple):
    began: int
    ended: int
    loop: int
    beside: bool
    is_look: bool


def wait_reasons(run: Run) -> Iterator[Reason]:
    """Name each lane that waited by the clock for what others computed."""
    pauses = {place: waits for node in run.nodes for place, waits in _pauses(node)}
    releases = sorted({*_releases(run), *((each.ended, *place) for place, waits in pauses.items() for each in waits)})
    for (numbers, lane), waits in pauses.items():
        begins = sorted(node.start_order for node in run.nodes if node.lane == lane and not node.call.is_structure)
        others = [order for order, of, on in releases if of == numbers and on != lane]
        looks = {later.began for look, later in pairwise(sorted(waits)) if look.is_look}
        loops = [rounds for rounds in _loops(waits, begins) if rounds[-1].began not in looks]
        if any(_is_by_the_clock(rounds, others) for rounds in loops):
            lost = f"how often {lane} looked again: it waited by the clock for what other code computed"
            fix = "let it wait for a threading.Event, or for the end of the thread or task"
            yield Reason(call="run", field="pauses", lost=lost, fix=fix)
    more = sum(count for node in run.nodes if isinstance(count := node.span.attributes.get(UNPAUSED), int))
    if more and len(pauses) > 1:
        lost = f"who went on first, {more} times: threads waited for each other more often than is kept"
        yield Reason(call="run", field="pauses", lost=lost, fix="hand over more at once, or let one thread do it")


def _is_by_the_clock(rounds: list[_Pause], others: list[int]) -> bool:
    """Tell whether no release of another lane lies within the last round, and others computed then or just before.

    What others computed earlier than the last round but one the loop has looked at since, and has gone on.
    """
    for each in rounds[: -_LAST - 1 : -1]:
        if not each.ended or bisect_right(others, each.ended) > bisect_right(others, each.began):
            return False
        if each.beside:
            return True
    return False


def _loops(pauses: list[_Pause], begins: list[int]) -> Iterator[list[_Pause]]:
    """Part the pauses of a lane by place in a loop and by its calls. One that calls in each round goes by its calls."""
    groups: dict[tuple[int, int], list[_Pause]] = defaultdict(list)
    for each in pauses:
        groups[each.loop, bisect_right(begins, each.began)].append(each)
    for (loop, _), rounds in groups.items():
        if loop and (len(rounds) > 1 or not begins):
            yield rounds


def _pauses(root: Node) -> Iterator[tuple[tuple[str, str], list[_Pause]]]:
    text = root.span.attributes.get(PAUSES)
    lanes = as_object(parsed_or_none(text) if isinstance(text, str) else None)
    for lane, listed in lanes.items():
        yield (sequence(lane, _process(root)), lane), [each for one in as_list(listed) for each in _pause(one)]


def _pause(listed: Json) -> Iterator[_Pause]:
    match listed:
        case [int(began), int(ended), int(), *rest]:
            loop = rest[-1] if rest and isinstance(rest[-1], int) else 0
            yield _Pause(began, ended, abs(loop), loop > 0, any(isinstance(each, list) for each in rest))
        case _:
            return


def _releases(run: Run) -> Iterator[tuple[int, str, str]]:
    """Give when an answer, a piece of one, or the end of a pool's job reached the agent: order, sequence, lane."""
    for node in run.nodes:
        pieces = [piece.order for piece in node.outcome.chunks] if isinstance(node.outcome, Streamed) else []
        for order in (node.head_order, *pieces, node.end_order):
            if order:
                yield order, sequence(node.lane, _process(node)), node.lane
        text = node.span.attributes.get("reenact.lane.ends")
        for lane, end in as_object(parsed_or_none(text) if isinstance(text, str) else None).items():
            if (ended := as_list(end)) and isinstance(ended[0], int):
                yield ended[0], sequence(lane, _process(node)), lane


def _process(node: Node) -> str:
    return str(node.span.resource.attributes.get("reenact.process.id") or "")
