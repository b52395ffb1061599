"""The recorded pauses of a recording's lanes, given to the code that waits again, each in its turn.

A pause is known by its lane and by the calls that the lane made before it, so that a loop that waits more or less
often before one call shifts nothing behind it. What stands behind a lane that went on without it nobody waits for, nor
for the pauses inside a call that is answered from the recording: its code does not run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from reenact.boundary import lanes
from reenact.boundary.cancelled import was_cancelled
from reenact.boundary.lanes import Lane
from reenact.boundary.pauses import Landing, Turn
from reenact.replay.pace import alarm_clock, in_next_turn
from reenact.replay.release import Expected, Gate
from reenact.values import locks
from reenact.values.json import Json, parsed_or_none
from reenact.values.lane import MARK, in_unit, sequence
from reenact.values.lenient import as_list, as_object
from reenact.values.run import LANDINGS, PAUSES, PROCESS_ROOT, Node

_ALONE: Final = Landing()
Place = tuple[str, str]
"""A sequence, and a lane."""


class RecordedPause(NamedTuple):
    """A recorded pause."""

    began: int
    ended: int
    at_s: float
    call: str = ""
    """The call in which it was; empty where it stood in the run itself."""
    done: tuple[int, ...] | None = None
    """Which of several that were waited for had ended."""


class Pauses:
    """Hands out recorded pauses. Thread-safe."""

    def __init__(self, nodes: Collection[Node], units: Collection[str]) -> None:
        self._lock = locks.lock()
        self._queues: dict[Place, deque[RecordedPause]] = defaultdict(deque)
        self._calls: dict[Place, list[int]] = defaultdict(list)
        """The begins of the recorded calls of a lane that has pauses."""
        self._at: dict[Place, int] = defaultdict(int)
        for node in sorted(nodes, key=lambda node: node.span.start_ns):
            for place, pause in sorted(_of(node, units), key=lambda each: each[1].began):  # not as they ended
                self._queues[place].append(pause)
        for node in nodes:
            is_placed = not (_is_root(node) or node.call.is_handshake)
            if is_placed and (place := _place(node, node.lane, units)) in self._queues:
                self._calls[place].append(node.start_order)
        for queue in self._calls.values():
            queue.sort()
        self.landings = dict(_landings(nodes, units))
        """When event loops heard of the ends of jobs."""
        self.of_jobs = {lane: (numbers, lane) for numbers, lane in self._queues if f"/{MARK}" in lane}
        """Where the jobs of pools of processes waited, by lane alone: they run in whatever process is free."""
        self._inside = frozenset(each.call for queue in self._queues.values() for each in queue)
        """The calls in which there were pauses."""
        self.orders = frozenset(each.ended for queue in self._queues.values() for each in queue if each.ended)
        """The numbers of pauses, among those of answers."""

    def expected(self) -> Iterator[tuple[str, list[Expected]]]:
        """Give when pauses ended, by sequence."""
        for (numbers, _), queue in self._queues.items():
            yield numbers, [Expected(each.ended, each.at_s, each.at_s) for each in queue if each.ended]

    def take(self, place: Place, *, handing_over: bool = False) -> Turn | None:
        """Give the next pause of a lane; None where the recording has no more before the lane's next call.

        A job that is handed over has begun and ended its turn at once, as no wait has.
        """
        with self._lock:
            queue = self._queues.get(place)
            if not queue or (handing_over and queue[0].began != queue[0].ended):
                return None
            calls = self._calls.get(place, [])
            behind = bisect_right(calls, self._at[place])
            if behind < len(calls) and queue[0].began > calls[behind]:
                return None
            first = queue.popleft()
            return Turn(first.ended, first.done)

    def calls_behind(self, place: Place, order: int) -> bool:
        """Tell whether a lane makes a call next, and does not wait before that."""
        with self._lock:
            queue, calls = self._queues.get(place), self._calls.get(place, [])
            behind = bisect_right(calls, order)
            return behind < len(calls) and not (queue and queue[0].began < calls[behind])

    def covered(self, calls: Collection[str]) -> dict[str, list[int]]:
        """Hear that the code inside recorded calls does not run; gives what it will not wait for, by sequence."""
        dropped: dict[str, list[int]] = defaultdict(list)
        if self._inside.isdisjoint(calls):
            return dropped
        with self._lock:
            for (numbers, _), queue in self._queues.items():
                for each in [each for each in queue if each.call in calls]:
                    queue.remove(each)
                    dropped[numbers] += [each.ended] if each.ended else []
        return dropped

    def crossed(self, place: Place, order: int) -> list[int]:
        """Hear that a lane made the call again that had begun at `order`; gives what it will not wait for."""
        with self._lock:
            self._at[place] = max(self._at[place], order)
        return self._drop(place, order)

    def ended(self, place: Place) -> list[int]:
        """Hear that a lane ended; gives what it will not wait for."""
        return self._drop(place, 1 << 62)

    def _drop(self, place: Place, before: int) -> list[int]:
        with self._lock:
            queue, dropped = self._queues.get(place), list[int]()
            while queue and queue[0].began < before:
                dropped.append(queue.popleft().ended)
        return [order for order in dropped if order]


def _place(node: Node, lane: str, units: Collection[str]) -> Place:
    process = str(node.span.resource.attributes.get("reenact.process.id") or "")
    return sequence(lane, process), in_unit(node.trace_id if node.trace_id in units else "", lane)


def _is_root(node: Node) -> bool:
    """Tell whether a node stands for a run or a process, which nobody calls again."""
    return any(node.span.attributes.get(name) is True for name in ("reenact.run.root", PROCESS_ROOT))


def _of(root: Node, units: Collection[str]) -> Iterator[tuple[Place, RecordedPause]]:
    pauses_json = root.span.attributes.get(PAUSES)
    lanes = as_object(parsed_or_none(pauses_json) if isinstance(pauses_json, str) else None)
    for lane, listed in lanes.items():
        place = _place(root, lane, units)
        yield from ((place, each) for each in _read_pauses(listed, root))


def _read_pauses(listed: Json, root: Node) -> Iterable[RecordedPause]:
    began_s = root.span.start_ns / 1e9
    for each in as_list(listed):
        match each:
            case [int(began), int(ended), int(after_us), list(finish_places), *call]:
                places = tuple(at for at in finish_places if isinstance(at, int))
                yield RecordedPause(began, ended, began_s + after_us / 1e6, _call(call), places)
            case [int(began), int(ended), int(after_us), *call]:
                yield RecordedPause(began, ended, began_s + after_us / 1e6, _call(call))
            case _:
                continue


def _landings(nodes: Collection[Node], units: Collection[str]) -> Iterator[tuple[Place, Landing]]:
    """Read when event loops heard of the ends of jobs that came close behind others, and of these."""
    for root in nodes:
        text = root.span.attributes.get(LANDINGS)
        by_lane = as_object(parsed_or_none(text) if isinstance(text, str) else None)
        followers = {
            before: (lane, turns)
            for lane, landing in by_lane.items()
            for before, turns in [_read_landing(landing)]
            if before
        }
        for lane in {*by_lane, *followers}:
            before, turns = _read_landing(by_lane.get(lane))
            yield _place(root, lane, units), Landing(before, turns, followers.get(lane, ("", 0))[0])


def _read_landing(landing: Json) -> tuple[str, int]:
    match landing:
        case [str(before), int(turns)]:
            return before, turns
        case _:
            return "", 0


def _call(rest: list[Json]) -> str:
    return rest[0] if rest and isinstance(rest[0], str) else ""


class Pacing:
    """Finds the recorded pause of code that waits, and the gate that lets it on."""

    def __init__(self, pauses: Pauses, gate: Callable[[str], Gate], process: Callable[[], str]) -> None:
        """`gate` gives that of a sequence, `process` says which recorded process this one is again."""
        self._pauses, self._gate, self._process = pauses, gate, process

    def _place(self, lane: Lane) -> Place:
        at = in_unit(lane.reel.again, lane.path)
        return self._pauses.of_jobs.get(at) or (sequence(lane.path, self._process()), at)

    def turn(self, lane: Lane) -> Turn | None:
        """Hear that code of a lane waits; gives when it went on when recorded."""
        place = self._place(lane)
        self._gate(place[0]).settled(place[1])
        return None if lane.reel.unit else self._pauses.take(place)

    def wait(self, turn: Turn, lane: Lane) -> None:
        """Block until code of a lane may go on."""
        numbers, at = self._place(lane)
        self._gate(numbers).wait(turn.order, at)

    async def wait_async(self, turn: Turn, lane: Lane) -> None:
        """Wait likewise, without blocking the loop. What the task does until it waits again, or calls, is its work."""
        numbers, at = self._place(lane)
        gate = self._gate(numbers)
        await gate.wait_async(turn.order, at)
        if not self._pauses.calls_behind((numbers, at), turn.order):
            in_next_turn(gate.settled, at)

    def end_job(self, lane: Lane) -> None:
        """Block until a pool job that made no call may end."""
        if lane.is_work and (turn := self.turn(lane)) is not None:
            self.wait(turn, lane)

    def landing(self, lane: Lane) -> Landing:
        """Say when an event loop heard of the end of a job when recorded."""
        return self._pauses.landings.get(self._place(lane), _ALONE)

    def hands_over(self, lane: Lane) -> Turn | None:
        """Hear that a lane is about to hand a job to a pool; gives when it did so when recorded."""
        numbers, at = place = self._place(lane)
        self._gate(numbers).settled(at)
        return None if lane.reel.unit else self._pauses.take(place, handing_over=True)

    def handed_over(self, lane: Lane) -> None:
        """Hear that it has done so."""
        numbers, at = self._place(lane)
        self._gate(numbers).spawned(at)

    def runs(self, turn: Turn, lane: Lane) -> None:
        """Hear that what is waited for runs again, and takes the time that it takes."""
        self._gate(self._place(lane)[0]).running(turn.order)

    def blocks(self, lane: Lane) -> None:
        """Hear that a lane waits for somebody, with no end."""
        numbers, at = self._place(lane)
        self._gate(numbers).settled(at)

    def given_up(self, turn: Turn, lane: Lane) -> None:
        """Hear that code will not come back from a pause that was over when recorded."""
        self._drop(self._place(lane), [turn.order])

    def crossed(self, lane: Lane, node: Node) -> None:
        """Hear that a lane made a recorded call again: nobody waits for pauses that stood before it.

        Nor for the call itself, where answers waited until it was asked.
        """
        alarm_clock.stand(node.span.start_ns / 1e9)
        if node.call.is_handshake:  # nobody knows when a replay connects
            return
        if was_cancelled(node.outcome):
            self._gate(_place(node, node.lane, ())[0]).drop([node.start_order])
        place = self._place(lane)
        self._drop(place, self._pauses.crossed(place, node.start_order))

    def finish(self) -> None:
        """Wait at the end of a program for the pauses of its daemon threads that were over before its recorded end."""
        if not self._pauses.orders:
            return
        numbers, at = self._place(lanes.current())
        gate = self._gate(numbers)
        gate.settled(at)
        gate.finish(lambda orders: not self.answers(orders))

    def ended(self, lane: Lane) -> None:
        """Hear that a lane ended."""
        place = self._place(lane)
        self._drop(place, self._pauses.ended(place))

    def _drop(self, place: Place, dropped: Iterable[int]) -> None:
        if dropped:
            self._gate(place[0]).drop(dropped)

    def answers(self, numbers: Iterable[int]) -> list[int]:
        """Give those of the numbers that are of answers."""
        return [order for order in numbers if order not in self._pauses.orders]
