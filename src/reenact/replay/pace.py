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

    At each place whose recorded time is known, what is left of the timer is what was left then. A timer that the
    program has set since the last place is taken as it is.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[float, float, float | None] | None = None
        """What was left at the last place, when that was by this clock, and when by the recorded one."""

    def enter(self) -> None:
        """Hear that the program comes to a call: from here on the time is the replay's own."""
        left_s = _left_s()
        if left_s > 0 and not self._is_going_on(left_s):
            self._last = left_s, time.monotonic(), None

    def stand(self, recorded_s: float) -> None:
        """Hear that the program stands where the recorded one stood at a time, in seconds since any epoch."""
        left_s = _left_s()
        if left_s <= 0:
            self._last = None
            return
        if self._last is not None and self._is_going_on(left_s):
            before_s, _, at_s = self._last
            due_s = max(_AFTER_S, before_s - (recorded_s - at_s if at_s is not None else 0.0))
            if abs(due_s - left_s) > _AFTER_S:
                signal.setitimer(signal.ITIMER_REAL, due_s, signal.getitimer(signal.ITIMER_REAL)[1])
                left_s = due_s
        self._last = left_s, time.monotonic(), recorded_s

    def _is_going_on(self, left_s: float) -> bool:
        """Tell whether nobody has set the timer since the last place."""
        if self._last is None:
            return False
        before_s, then, _ = self._last
        return abs(before_s - (time.monotonic() - then) - left_s) < _EVEN_S


alarm_clock: Final = AlarmClock()
"""That of this process, which has one such timer."""


def _left_s() -> float:
    """Say how long it is until the timer rings; 0 where none is set, or another thread asks, which hears none."""
    if threading.current_thread() is not threading.main_thread():
        return 0.0
    return signal.getitimer(signal.ITIMER_REAL)[0]


def let_alarms_go_first(took_s: float) -> BaseException | None:
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
