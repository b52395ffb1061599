"""The pace of answers: what the program does by the clock while a call is out comes before the answer, as recorded.

An answer that is given at once overtakes a timer of the program (`asyncio.sleep` in another task) that was faster than
the recorded call. So before an answer reaches its task, timers of its loop that are due within the time that the call
took are let go first. Where none is due nothing is waited for: a replay is no slower than its program makes it.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

_AFTER_S: Final = 0.0005
"""How long after a timer it is looked again: what it wakes runs first."""
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
