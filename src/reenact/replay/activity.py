"""Whether threads of this process are at work, by the kernel's accounts, and how long nobody was.

A thread that is ready to run and one that waits for a lock look alike by the clock: on a busy machine the first may not
run for a tenth of a second. Linux tells them apart: the state of a thread (`R` in proc_pid_stat(5)) and the processor
time that it has had, which moves also while it waits for the interpreter's own lock (it looks again every few
milliseconds). Elsewhere nothing is known, and the clock alone counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_BETWEEN_S: Final = 0.012
"""A thread that waits for the interpreter's lock has looked again by then (`sys.getswitchinterval`)."""
_LEAST_SHARE: Final = 0.02
"""A process of which the other threads had less of a processor than this stood still."""
_LATEST_S: Final = 0.02
"""More time than this between two looks means that the machine had no time for the one who looks."""
_LONGER: Final = 10
_THREADS: Final = 1000
"""So many threads are remembered."""
_ALONE_S: Final = 0.2
"""So long nobody looks at child processes: most answers have come by then."""
_KNOWN_S: Final = 0.5
"""So long the child processes are taken for the ones that were there."""
_CHILDREN: Final = 64
"""So many child processes are looked at."""


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    spent_s: float
    is_at_work: bool


class Activity:
    """Looks at threads. Not thread-safe: its owner holds a lock."""

    def __init__(self) -> None:
        self._looks: dict[int, _Look] = {}

    def spent(self, thread: int) -> float:
        """Give the processor time that a thread has had, in seconds; 0 where nobody can know."""
        return self._look(thread).spent_s

    def is_at_work(self, thread: int) -> bool:
        """Tell whether a thread runs, is ready to, or did so since it was looked at before."""
        return self._look(thread).is_at_work

    def _look(self, thread: int) -> _Look:
        now, before = time.monotonic(), self._looks.get(thread)
        if before is not None and now - before.at < _BETWEEN_S:
            return before
        if len(self._looks) > _THREADS:
            self._looks.clear()
        spent_s, runs = _account(thread)
        moved = before is not None and spent_s > before.spent_s
        look = self._looks[thread] = _Look(now, spent_s, runs or moved)
        return look


def _account(thread: int) -> tuple[float, bool]:
    """Read the processor time of a thread in seconds, and whether it is ready to run."""
    return _read(f"/proc/self/task/{thread}")


def _read(folder: str) -> tuple[float, bool]:
    try:
        with open(f"{folder}/schedstat", "rb", buffering=0) as accounts:  # noqa: PTH123 - many times
            spent_ns = int(accounts.read(100).split()[0])
        with open(f"{folder}/stat", "rb", buffering=0) as states:  # noqa: PTH123 - likewise
            return spent_ns / 1e9, states.read(200).rpartition(b") ")[2][:1] == b"R"
    except (OSError, ValueError, IndexError):
        return 0.0, False


class Patience:
    """Counts how long nothing came: by the clock while this process stands still, by processor time while it works.

    A child process may be the one to make what is waited for, so that its work counts as that of this process. What a
    busy machine takes longer for is thus waited for longer, and at most ten times as long.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Count from now."""
        self._at, self._cpu_s, self._own, self._waited = time.monotonic(), time.process_time(), time.thread_time(), 0.0
        self._children, self._known_at = dict[int, float](), -_KNOWN_S

    def waited(self) -> float:
        """Give the seconds counted; to be asked every few milliseconds, by one thread."""
        now, spent, own = time.monotonic(), time.process_time(), time.thread_time()
        elapsed_s, worked = now - self._at, spent - self._cpu_s
        below, any_runs = self._below(now) if self._waited > _ALONE_S else (0.0, False)
        others = worked - max(0.0, own - self._own) + below
        self._at, self._cpu_s, self._own = now, spent, own
        counted = worked + below if any_runs or others > _LEAST_SHARE * elapsed_s else min(elapsed_s, _LATEST_S)
        self._waited += max(counted, elapsed_s / _LONGER)
        return self._waited

    def _below(self, now: float) -> tuple[float, bool]:
        """Give the processor time that child processes had since the last look, and whether one is ready to run."""
        if now - self._known_at >= _KNOWN_S:
            self._known_at = now
            self._children = {each: self._children.get(each, -1.0) for each in _processes_below()}
        spent_s, any_runs = 0.0, False
        for process, before in self._children.items():
            had_s, runs = _read(f"/proc/{process}")
            spent_s += max(0.0, had_s - before) if before >= 0 else 0.0
            any_runs |= runs
            self._children[process] = had_s
        return spent_s, any_runs


def _processes_below() -> Iterator[int]:
    """Give the processes that this one and its children started, as far as Linux tells (proc_tid_children(5))."""
    left, count = [os.getpid()], 0
    while left and count < _CHILDREN:
        above = left.pop()
        try:
            for thread in os.listdir(f"/proc/{above}/task"):  # noqa: PTH208 - as above
                with open(f"/proc/{above}/task/{thread}/children", "rb", buffering=0) as children:  # noqa: PTH123 - as above
                    below = [int(each) for each in children.read(4000).split()]
                left += below
                count += len(below)
                yield from below
        except (OSError, ValueError):
            continue
