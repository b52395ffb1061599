"""Functions that the program hands over, to be called when a timer is due or a future has ended.

What `call_later` and `call_at` of an event loop are given by the agent's own code is called in its recorded place. One
that was cancelled when recorded, or that was never due, is not called before it is cancelled again.

A callback of a future of `concurrent.futures` runs on whichever thread ends the future: a worker, the thread that tells
the ends of processes, or who adds it where the future is done. Threads race for that. So it runs on a lane of its own,
named where it is added, and futures that have any end in the recorded order. An event loop that is handed such a future
hears of its end in its turn (`boundary.landings`).
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from functools import partial, wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from typing import Any, Final

from reenact.boundary import children, lanes, pauses, tape, task_births
from reenact.boundary.forgiving import forgive
from reenact.boundary.lanes import Lane
from reenact.boundary.pauses import LONGER_S, Waiting
from reenact.boundary.tape import Sites, Source
from reenact.contracts.integration import Integration, PatchSet
from reenact.values import locks

_SITES: Final = Sites(Source(name="timer"), libraries=False)
_HANDING_OVER: Final = locks.rlock()
"""Held while something is handed to a loop and numbered; a signal handler may do so in the middle."""
_OTHERS: Final = ("asyncio.", "concurrent.", "reenact.")
"""Packages whose callbacks hand an end on and do nothing of the program's."""


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
        frame = _getframe().f_back
        if frame is not None and frame.f_code is _CALL_LATER:
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


def _is_of_others(function: Any) -> bool:
    while isinstance(function, partial):
        function = function.func
    if type(getattr(function, "__self__", None)) is queue.SimpleQueue:  # how ends are waited for
        return True
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module}.".startswith(_OTHERS)


def _on_own_lane(future: Future[Any], function: Callable[[Future[Any]], object]) -> Callable[[Future[Any]], object]:
    host = children.host()
    if host is None or _is_of_others(function):
        return function
    label = lanes.label(function)
    lane, job = lanes.current().spawn(f"callback {label}"), task_births.job_of(future)
    lane.threaded = True
    if job is not None and not job.used and (descent := host.descent(label, lane.path)) is not None:
        job.used, job.root = True, descent.root
    return lanes.carried(lane, function)


def _add_done_callback(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def add_done_callback(self: Future[Any], fn: Callable[[Future[Any]], object]) -> None:
        turn = pauses.taking(_getframe().f_back)
        if turn is not None:
            turn.in_turn()
        try:
            fn = _on_own_lane(self, fn)
        except Exception:
            forgive("callbacks.add")
        with lanes.between_ends():  # who comes late for the end runs it at once
            if turn is not None:
                turn.ended(late=True)
            original(self, fn)

    return add_done_callback


def _from_thread(original: Callable[..., Any]) -> Callable[..., Any]:
    """Have threads of the program hand something over to a loop in turn."""

    @wraps(original)
    def handed_over(*args: Any, **kwargs: Any) -> Any:
        turn = pauses.taking(_getframe().f_back)
        if turn is None:
            return original(*args, **kwargs)
        return pauses.taken_in_turn(turn, partial(original, *args, **kwargs), _HANDING_OVER)

    return handed_over


def _landing(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def wrap_future(future: Any, **kwargs: Any) -> Any:
        asyncio_future = original(future, **kwargs)
        try:
            if asyncio_future is not future and (lane := task_births.job_of(future)) is not None:
                from reenact.boundary import landings  # few programs hand anything to threads

                landings.watch(future, asyncio_future.get_loop(), lane)
        except Exception:
            forgive("callbacks.landing")
        return asyncio_future

    return wrap_future


def _install(patches: PatchSet) -> None:
    patches.replace(asyncio.BaseEventLoop, "call_at", _call_at)
    patches.replace(asyncio.TimerHandle, "cancel", _cancel)
    patches.replace(Future, "add_done_callback", _add_done_callback)
    patches.replace(asyncio.BaseEventLoop, "call_soon_threadsafe", _from_thread)
    patches.when_imported("uvloop", lambda module: patches.replace(module.Loop, "call_soon_threadsafe", _from_thread))
    original = asyncio.run_coroutine_threadsafe
    patches.replace(asyncio, "run_coroutine_threadsafe", _from_thread)
    tape.rebind(patches, {id(original): asyncio.run_coroutine_threadsafe})
    for module in (asyncio, asyncio.futures):
        patches.replace(module, "wrap_future", _landing)


INTEGRATION = Integration(name="callbacks", libraries=("asyncio", "concurrent.futures"), install=_install)
