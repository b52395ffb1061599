"""The earlier units on which a unit stands, followed from one to the next, and what of them is not there.

A unit's root names the units of its process that changed state which it may read (`boundary.unit_dependencies`). Those
stand on earlier ones in turn. A replay delivers them all in the order in which they came in, each answered from its own
recording; it can do so where each is kept, says how it was asked for, and is itself recorded whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from reenact.values import unit
from reenact.values.call import Streamed
from reenact.values.history import MOST, History
from reenact.values.lenient import as_count, as_list, as_text
from reenact.values.run import CAME_IN, PROCESS_ROOT, RECEIVED, REPLIED, Run

NOTHING = History()
_NAMED = 3
_KNOWN = 256
"""Runs that are held to follow what others stand on."""


class StoredRuns:
    """The runs that are kept where a unit was found, and which of them are recorded whole."""

    def __init__(self, read: Callable[[str], Run | None]) -> None:
        self._reader = read
        self._runs_by_id: dict[str, Run | None] = {}
        self._reasons: dict[str, str] = {}
        self.missed: dict[str, set[str]] = {}
        """By the id of a run that is not kept, or not yet: who stands on it."""

    def run(self, wanted: str) -> Run | None:
        """Give the run of an id; None where it is not kept."""
        if wanted in self._runs_by_id:
            return self._runs_by_id[wanted]
        run = self._reader(wanted)
        if len(self._runs_by_id) >= _KNOWN:
            oldest_id = next(iter(self._runs_by_id))
            self._runs_by_id.pop(oldest_id)
            self._reasons.pop(oldest_id, None)
        if run is not None and run.root is not None and run.root.span.end_ns:  # else it may come, or go on
            self._runs_by_id[wanted] = run
        return run

    def partial(self, run: Run) -> str:
        """Say why a unit by itself cannot be done again whole; empty where it can."""
        if run.id not in self._reasons:
            from reenact.graph.verdict import judge

            reason = next(iter(judge(run, NOTHING).reasons), None)
            self._reasons[run.id] = f"{reason.call}: {reason.field}: {reason.lost}" if reason is not None else ""
        return self._reasons[run.id]


def _nothing(_: str) -> Run | None:
    return None


NONE = StoredRuns(_nothing)
"""Where no other run is kept."""


def history(
    run: Run, store: StoredRuns, around: Sequence[Run] = (), most: int = MOST, also: Sequence[str] = ()
) -> History:
    """Follow what a unit stands on, and what `also` is to be delivered before it, at `most` so many units.

    `around` is the run of its process.
    """
    if not (unit.stands_on(run) or also):
        return NOTHING
    earlier_runs, missing = _followed(run, store, most, also)
    if len(earlier_runs) > most:
        many = _count(run, len(earlier_runs))
        loss = f"{many} earlier units, and no more than {most} are delivered: --history-max delivers more"
        return History(lost=(loss,))
    units = tuple(sorted(earlier_runs.values(), key=_came_in))
    overlap = _overlap((*units, run))
    lost = [
        *missing,
        *_unnamed((*units, run)),
        *_partial(units, store),
        *_undeliverable(units, run, around, overlap=overlap),
    ]
    return History(units=units, lost=tuple(dict.fromkeys(lost)), overlap=overlap)


def _followed(run: Run, store: StoredRuns, most: int, also: Sequence[str]) -> tuple[dict[str, Run], list[str]]:
    """Read the units on which a unit stands, and those on which they do, until there are more than `most`."""
    earlier_runs: dict[str, Run] = {}
    missing: list[str] = []
    left = [*((each, _state(run)) for each in _unit_ids(run)), *((each, None) for each in also)]
    seen_ids, last = {run.id}, _ended(run)
    while left and len(earlier_runs) <= most:
        wanted, state = left.pop(0)
        if wanted in seen_ids:
            continue
        earlier = store.run(wanted)
        leaves = unit.leaves(earlier) if earlier is not None and state is not None else None
        if leaves is not None and state is not None and state.isdisjoint(map(as_text, leaves)):
            continue  # it was under way when another one changed that
        seen_ids.add(wanted)
        if earlier is None or not _belongs(earlier, run):
            missing.append(wanted)
            store.missed.setdefault(wanted, set()).add(run.id)
        elif _came_in(earlier) < last:
            earlier_runs[wanted] = earlier
            left += [(each, _state(earlier)) for each in _unit_ids(earlier)]
    if not missing:
        return earlier_runs, []
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    unit_names = ", ".join(each[:12] for each in missing[:_NAMED])
    return earlier_runs, [f"unit {unit_names}{more}, which {'is' if len(missing) == 1 else 'are'} not kept"]


def _unit_ids(run: Run) -> list[str]:
    return [as_text(each) for each in as_list(unit.stands_on(run).get("units"))]


def _state(run: Run) -> frozenset[str]:
    return frozenset(as_text(each) for each in as_list(unit.stands_on(run).get("state")))


def _belongs(earlier: Run, run: Run) -> bool:
    """Tell whether a run is a unit of the same process, and no stranger's where that one is the user's own."""
    same = unit.inbound(earlier) is not None and earlier.recording == run.recording and earlier.own is run.own
    return same and _process(earlier) == _process(run)


def _process(run: Run) -> object:
    return run.root.span.resource.attributes.get("reenact.process.id") if run.root is not None else None


def _count(run: Run, least: int) -> int:
    basis = unit.stands_on(run)
    total = len(_unit_ids(run)) + (as_count(basis.get("without_run")) or 0) + (as_count(basis.get("more")) or 0)
    return max(least, total)


def _unnamed(runs: Sequence[Run]) -> Iterator[str]:
    """Name what units stand on and no run tells."""
    many = max((as_count(unit.stands_on(run).get("without_run")) or 0 for run in runs), default=0)
    if many:
        yield f"{many} earlier units that had called nobody by then, which are not kept"
    yield from dict.fromkeys(loss for run in runs if (loss := unit.unseen(run)))
    between = {as_text(each) for run in runs for each in as_list(unit.stands_on(run).get("between"))}
    if between:
        yield f"{', '.join(sorted(between)[:_NAMED])}, which changed while no unit was under way"


def _partial(units: Sequence[Run], store: StoredRuns) -> Iterator[str]:
    """Name units that cannot be done again whole themselves."""
    for each in units:
        if why := store.partial(each):
            yield f"unit {each.id[:12]}, which is partial itself: {why}"


def _undeliverable(units: Sequence[Run], run: Run, around: Sequence[Run], *, overlap: bool) -> Iterator[str]:
    """Name what keeps units from being delivered one with another."""
    doors = {_door(each) for each in (*units, run)}
    if len(doors) > 1:
        yield "units that came in by several doors, which are not delivered together"
    elif overlap and doors & {"celery"}:
        yield "units that were under way at the same time, and tasks are delivered one after the other"
    if overlap:
        yield from _unordered((*units, run))
    if not all(_order(each) for each in (*units, run)) and overlap:
        yield "units that were under way at the same time, and their recorder did not say when they came in"
    for each in (*units, run):
        if any(node.span.attributes.get(PROCESS_ROOT) for node in each.nodes):
            subject = f"unit {each.id[:12]}, which" if each is not run else "earlier units, and"
            yield f"{subject} started Pythons of its own"
    first = min(map(_started, (*units, run)))
    calls = sum(
        node is not other.root and not node.call.is_structure and first < node.span.start_ns < run.ended_ns
        for other in around
        for node in other.nodes
    )
    if calls:
        yield f"{calls} calls that its process made outside of all units, between them"


def _unordered(runs: Sequence[Run]) -> Iterator[str]:
    """Name two units of which one went on while the other one was at work, or waited for what nobody recorded."""
    units = [_Line.of(each) for each in runs if _order(each) and each.root is not None and each.root.end_order]
    for a in units:
        for b in units:
            if a is not b and any(a.began < at < a.ended and not a.waits(at) for at in b.events):
                yield f"units {a.name} and {b.name}, which ran at the same time in an order that nobody recorded"
                return


@dataclass(frozen=True, slots=True)
class _Line:
    """One unit in the sequence of its process."""

    name: str
    began: int
    ended: int
    waiting: tuple[tuple[int, int], ...]
    """From when to when it waited for what was recorded."""
    events: tuple[int, ...]
    """When it went on."""

    @staticmethod
    def of(run: Run) -> _Line:
        began, ended = _order(run), run.root.end_order if run.root is not None else 0
        calls = [node for node in run.nodes if node is not run.root and node.start_order and not node.call.is_structure]
        received_order = run.root.span.attributes.get(RECEIVED) if run.root is not None else None
        received = received_order if isinstance(received_order, int) else 0
        waiting = [(node.start_order, node.end_order or ended) for node in calls]
        waiting += [(began, received)] if received else []
        replied = run.root.span.attributes.get(REPLIED) if run.root is not None else None
        if isinstance(replied, int) and all(node.start_order < replied for node in calls):
            waiting.append((replied, ended))
        events = [began, *([received] if received else [])]
        for node in calls:
            chunks = [chunk.order for chunk in node.outcome.chunks] if isinstance(node.outcome, Streamed) else []
            events += [order for order in (node.head_order, *chunks, node.end_order) if order]
        return _Line(run.id[:12], began, ended, tuple(waiting), tuple(events))

    def waits(self, at: int) -> bool:
        """Tell whether it waited at a moment."""
        return any(start < at < end for start, end in self.waiting)


def _door(run: Run) -> str:
    request, job = unit.request_of(run), unit.job_of(run)
    return request.interface if request is not None else job.interface if job is not None else ""


def _started(run: Run) -> int:
    return run.root.span.start_ns if run.root is not None else run.started_ns


def _order(run: Run) -> int:
    arrival_order = run.root.span.attributes.get(CAME_IN) if run.root is not None else None
    return arrival_order if isinstance(arrival_order, int) else 0


def _came_in(run: Run) -> tuple[int, int]:
    return _order(run), _started(run)


def _ended(run: Run) -> tuple[int, int]:
    end = run.root.end_order if run.root is not None else 0
    return end or 1 << 62, run.ended_ns


def _overlap(runs: Sequence[Run]) -> bool:
    """Tell whether any unit came in before an earlier one had ended."""
    in_order = sorted(runs, key=_came_in)
    furthest = (0, 0)
    for each in in_order:
        if _came_in(each) < furthest:
            return True
        furthest = max(furthest, _ended(each) if _order(each) else (0, _root_end(each)))
    return False


def _root_end(run: Run) -> int:
    return run.root.span.end_ns if run.root is not None else run.ended_ns
