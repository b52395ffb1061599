"""`call_later` and `call_at` of an event loop in the agent's own code: what is called comes in its recorded place.

One that was cancelled when recorded, or that was never due, is not called before it is cancelled again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial, wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from typing import Any, Final

from reenact.boundary import lanes, pauses
from reenact.boundary.lanes import Lane
from reenact.boundary.pauses import LONGER_S, Waiting
from reenact.boundary.tape import Sites, Source
from reenact.contracts.integration import Integration, PatchSet

_SITES: Final = Sites(Source(name="timer"), libraries=False)


class _Due:
    """What a timer calls."""

    def __init__(self, call: Callable[[], object], loop: Any, at: Callable[..., Any]) -> None:
        here = lanes.current()
        self._call, self._loop, self._at = call, loop, at
        self._waiting = Waiting(lane=Lane(f"{here.path}/timer", here.reel))  # whoever sets it does not wait
        self.is_cancelled = self._waits_longer = False

    def __call__(self) -> None:
        """Call it, in turn."""
        late = self._waiting.was_late
        if late:
            self._loop.create_task(self._in_turn(copy_context()))
        elif late is None or self._waits_longer:
            self._waiting.over()
            self._call()
        else:
            self._waits_longer = True
            self._at(self._loop, self._loop.time() + LONGER_S, self._unless_cancelled)

    def cancel(self) -> None:
        """Hear that nobody wants it any more."""
        if not self.is_cancelled:
            self.is_cancelled = True
            self._waiting.cut_short()

    async def _in_turn(self, context: Context) -> None:
        await self._waiting.over_async()
        context.run(self._unless_cancelled)

    def _unless_cancelled(self) -> None:
        if not self.is_cancelled:
            self._call()


def _call_at(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def call_at(self: Any, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        frame = _getframe(1)
        if frame.f_code is _CALL_LATER:
            frame = frame.f_back
        if not pauses.is_on() or _SITES.of(frame) is None or not callable(callback):
            return original(self, when, callback, *args, context=context)
        return original(self, when, _Due(partial(callback, *args), self, original), context=context)

    return call_at


def _cancel(original: Callable[[Any], None]) -> Callable[[Any], None]:
    @wraps(original)
    def cancel(self: Any) -> None:
        if isinstance(due := self._callback, _Due):
            due.cancel()
        original(self)

    return cancel


_CALL_LATER: Final = asyncio.BaseEventLoop.call_later.__code__


def _install(patches: PatchSet) -> None:
    patches.replace(asyncio.BaseEventLoop, "call_at", _call_at)
    patches.replace(asyncio.TimerHandle, "cancel", _cancel)


INTEGRATION = Integration(name="timers", libraries=("asyncio",), install=_install)
