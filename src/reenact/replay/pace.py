"""The pace of answers: what the program does by the clock while a call is out comes before the answer, as recorded.

An answer that is given at once overtakes a timer of the program (`asyncio.sleep` in another task) that was faster than
the recorded call. So before an answer reaches its task, timers of its loop that are due within the time that the call
took are let go first. Where none is due nothing is waited for: a replay is no slower than its program makes it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

_AFTER_S: Final = 0.0005
"""How long after a timer it is looked again: what it wakes runs first."""
_GRACE_S: Final = 0.05
"""How much longer a timer is set than what was left of it at a place."""
_EVEN_S: Final = 0.002
"""How far two readings of one timer may lie apart."""
_STEPS: Final = 5
"""Turns of the loop in which what was woken comes to its own next timer."""
_ours: Final[set[int]] = set()
"""The identities of our own timers."""


async def let_timers_go_first(until: float) -> None:
    """Suspend until the timers of the running loop that are due before `until`, by its clock, have fired."""
    loop = asyncio.get_running_loop()
    for _ in range(_STEPS):  # tasks that were created, or were woken by a timer just now, may set one
        await asyncio.sleep(0)
    while (due := _earliest(loop, until)) is not None:
        future: asyncio.Future[None] = loop.create_future()
        handle = loop.call_at(min(due + _AFTER_S, until), _wake, future)
        _ours.add(id(handle))
        try:
            await future
        finally:
            _ours.discard(id(handle))
            handle.cancel()


async def let_timers_of_trio_go_first(until: float) -> None:
    """Suspend until the deadlines of trio's loop that are due before `until`, by `time.monotonic`, have passed."""
    trio: Any = sys.modules["trio"]
    while True:
        for _ in range(_STEPS):
            await trio.lowlevel.checkpoint()
        due_s, left_s = trio.lowlevel.current_statistics().seconds_to_next_deadline, until - time.monotonic()
        if not 0 <= due_s < left_s:  # what is overdue has been woken, and waits for its turn in the batch
            return
        await trio.sleep(min(due_s + _AFTER_S, left_s))


class AlarmClock:
    """Has a timer of `signal.setitimer` elapse as it did when recorded, whatever time the replay itself takes.

    Theory of operation. At each place whose recorded time is known, what was left of the timer then is known too: one
    with an interval has gone on from ring to ring. What rang between two places rings at the second one, where it has
    not done so by itself. So the timer is set a little longer than what was left: a replay that has to wait for its
    processor would come too late to the place before which it did not ring. A timer that the program has set since the
    last place is taken as it is.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[float, float, float, float | None] | None = None
        """What was left at the last place, the interval, when that was by this clock, and when by the recorded one."""

    def enter(self) -> None:
        """Hear that the program comes to a call: from here on the time is the replay's own."""
        left_s, interval_s, now_s = _timer()
        if left_s > 0 and self._rings(left_s, interval_s, now_s) is None:
            self._last = left_s, interval_s, now_s, None

    def stand(self, recorded_s: float) -> None:
        """Hear that the program stands where the recorded one stood at a time, in seconds since any epoch.

        Raises what the handler of an alarm raises that had rung by then.
        """
        left_s, interval_s, now_s = _timer()
        if left_s <= 0:
            self._last = None
            return
        rings = self._rings(left_s, interval_s, now_s)
        if self._last is None or rings is None:
            self._set(left_s, interval_s, recorded_s)
            return
        due_s, _, then, at_s = self._last
        due_s -= recorded_s - at_s if at_s is not None else now_s - then
        recorded_rings = 0 if due_s > 0 else 1 if interval_s <= 0 else int(-due_s / interval_s) + 1
        self._set(due_s + max(rings, recorded_rings) * interval_s, interval_s, recorded_s)
        for _ in range(recorded_rings - rings):
            signal.raise_signal(signal.SIGALRM)

    def _set(self, due_s: float, interval_s: float, recorded_s: float) -> None:
        """Set what is left of the timer at a place; none where it was to ring once, and has."""
        if due_s <= 0:
            self._last = None
            signal.setitimer(signal.ITIMER_REAL, 0)
            return
        signal.setitimer(signal.ITIMER_REAL, due_s + _GRACE_S, interval_s)
        self._last = due_s, interval_s, time.monotonic(), recorded_s

    def leave(self) -> None:
        """Hear that the program goes on from the last place: what we did there since took no time of the timer's."""
        if self._last is not None and self._last[3] is not None and self._rings(*_timer()) == 0:
            self._set(self._last[0], self._last[1], self._last[3])

    def let_go_first(self, took_s: float) -> BaseException | None:
        """Have the alarms ring that rang within some seconds from the last place on.

        Gives what a handler raised: then no more do.
        """
        while self._last is not None and self._last[3] is not None and self._rings(*_timer()) == 0:
            due_s, interval_s, _, at_s = self._last
            if due_s >= took_s:
                return None
            self._set(due_s + interval_s if interval_s > 0 else 0.0, interval_s, at_s or 0.0)
            try:
                signal.raise_signal(signal.SIGALRM)
            except BaseException as error:  # noqa: BLE001 - the agent's
                return error
        return _let_alarms_go_first(took_s)

    def _rings(self, left_s: float, interval_s: float, now_s: float) -> int | None:
        """Count how often the timer rang since the last place; None where somebody has set it since."""
        if self._last is None or self._last[1] != interval_s:
            return None
        before_s, _, then, at_s = self._last
        behind_s = left_s - (before_s + (_GRACE_S if at_s is not None else 0.0) - (now_s - then))
        count = round(behind_s / interval_s) if interval_s > 0 else 0
        return count if count >= 0 and abs(behind_s - count * interval_s) < _EVEN_S else None


alarm_clock: Final = AlarmClock()
"""That of this process, which has one such timer."""


def _timer() -> tuple[float, float, float]:
    """Say how long it is until the timer rings, its interval, and when that was, by `time.monotonic`.

    The first is 0 where none is set, or another thread asks, which hears none.
    """
    if threading.current_thread() is not threading.main_thread():
        return 0.0, 0.0, 0.0
    left_s = interval_s = now_s = 0.0
    for _ in range(_STEPS):  # where this thread has to wait for its processor between both readings, they do not fit
        before_s = time.monotonic()
        left_s, interval_s = signal.getitimer(signal.ITIMER_REAL)
        now_s = time.monotonic()
        if now_s - before_s < _AFTER_S:
            break
    return left_s, interval_s, now_s


def _let_alarms_go_first(took_s: float) -> BaseException | None:
    """Block until the alarms of `signal.setitimer` that are due within some seconds have rung.

    Only the main thread hears them. Gives what a handler raised: then no more are waited for.
    """
    until = time.monotonic() + took_s
    while threading.current_thread() is threading.main_thread():
        left_s = signal.getitimer(signal.ITIMER_REAL)[0]
        if not 0 < left_s < until - time.monotonic():
            break
        try:
            time.sleep(left_s + _AFTER_S)
        except BaseException as error:  # noqa: BLE001 - the agent's
            return error
    return None


def in_next_turn(call: Callable[..., object], *args: object) -> None:
    """Call in the next turn of the loop that runs here, asyncio's or trio's."""
    if (loop := asyncio._get_running_loop()) is not None:  # noqa: SLF001 - `get_running_loop` raises where it is trio's
        loop.call_soon(call, *args)
    else:
        sys.modules["trio"].lowlevel.current_trio_token().run_sync_soon(call, *args)


def _earliest(loop: asyncio.AbstractEventLoop, until: float) -> float | None:
    """Give when the next timer of somebody else's is due, before a time; None where none is."""
    if loop.time() >= until:
        return None
    timers: list[Any] | None = getattr(loop, "_scheduled", None)
    if timers is None:  # a loop that shows none, such as uvloop's: whoever else there is may have one
        return until if len(asyncio.all_tasks(loop)) > 1 else None
    due = [each.when() for each in tuple(timers) if not each.cancelled() and id(each) not in _ours]
    return min((each for each in due if each < until), default=None)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
