"""Keeping what a collector took in: traces that are over are put together, and every trace is noted in the index.

What the rules of retention do not keep is deleted beside that, where there are any.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reenact.disk.appender import packing
from reenact.disk.run_index import Entry
from reenact.errors import InputError
from reenact.keep.catalog import around, entry, runs_of
from reenact.keep.quick_index import glimpse
from reenact.keep.retention import Rules, prune
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore
from reenact.values.limits import spelled

IDLE_S = 30.0
"""So long nothing has come in of a trace that is put together."""
_AT_ONCE = 200
_JUDGED_AT_ONCE = 20
_SETTLED_NS = 2 * 10**9
"""A trace that grows is judged when nothing came in of it for so long, not again and again."""
_PAUSE_S = 0.5


PRUNE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """What is deleted now and then."""

    rules: Rules
    every_s: float = PRUNE_S


def keep(
    store: DirectoryStore,
    idle_s: float,
    over: Callable[[float], bool],
    say: Callable[[str], None],
    pruning: Pruning | None = None,
) -> None:
    """Keep a store until `over`, which waits so many seconds and tells whether to end."""
    due = time.monotonic()
    while True:
        if pruning is not None and time.monotonic() >= due:
            _prune(store, pruning.rules, over, say)
            due = time.monotonic() + pruning.every_s
        try:
            busy = compacted(store, idle_s) > 0
            busy = judged(store) > 0 or busy
        except InputError as error:
            say(str(error))
            busy = False
        if over(0.0 if busy else _PAUSE_S):
            return


def _prune(store: DirectoryStore, rules: Rules, over: Callable[[float], bool], say: Callable[[str], None]) -> None:
    try:
        pruning = prune(store, rules, over=lambda: over(0.0))
    except Exception as error:  # noqa: BLE001 - the keeping goes on, and it is tried again later
        say(f"what is too old was not deleted for now: {error}")
        return
    if pruning.deleted or pruning.flagged:
        say(
            f"{len(pruning.deleted)} runs deleted and {len(pruning.flagged)} flagged by the rules of retention; "
            f"{spelled(pruning.freed)} freed, {spelled(pruning.size)} left"
        )


def compacted(store: DirectoryStore, idle_s: float, most: int = _AT_ONCE) -> int:
    """Put traces together of which nothing came in for so long, and say how many. Raises `InputError`."""
    frames = FrameStore(store.folder)
    try:
        with packing(frames.folder):
            frames.catch_up()
            unnoted = set(frames.unnoted(1_000_000))
            ids = frames.idle(time.time_ns() - int(idle_s * 1e9), most)
            compactions = frames.compact(ids) if ids else {}
        entries = [glimpse(trace_id, spans) for trace_id, (spans, _) in compactions.items() if trace_id in unnoted]
        if entries:
            store.index([index_entry for index_entry in entries if index_entry is not None])
        return len(ids)
    finally:
        frames.close()


def judged(store: DirectoryStore, most: int = _JUDGED_AT_ONCE, within_s: float = 2.0) -> int:
    """Rebuild and note runs of traces that grew since they were noted, and say how many. Raises `InputError`."""
    end, count = time.monotonic() + within_s, 0
    for further in store.further():
        at = time.time_ns() - _SETTLED_NS  # what is under way now was made before now: it counts as come in since
        ids = further.unnoted(most, at)
        entries: list[Entry] = []
        noted_ids: list[str] = []
        for trace_id in ids:
            entries += _entries(store, trace_id)
            noted_ids.append(trace_id)
            if time.monotonic() > end:
                break
        if noted_ids:
            store.prepare()
            store.index(entries)
            further.noted(noted_ids, at)
            count += len(noted_ids)
    return count


def _entries(store: DirectoryStore, trace_id: str) -> Sequence[Entry]:
    try:
        return [*(entry(run) for run in runs_of(store, trace_id)), *around(store, trace_id)]
    except InputError:  # told where the trace is read
        return []
