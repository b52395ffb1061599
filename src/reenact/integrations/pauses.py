"""Waiting by the clock in the agent's own code: `time.sleep`, `asyncio.sleep`, `threading.Event.wait` with a time.

Beside them stand the looks by which code that sleeps learns how far another thread is.
What a library waits for goes by the clock alone: nobody saw what it does behind that. A `threading.Timer` waits for
the agent's function.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import FrameType
from typing import Any, Final

from reenact.boundary import lanes, pauses, tape
from reenact.boundary.pauses import LONGER_S, Waiting
from reenact.boundary.tape import Sites, Source
from reenact.contracts.integration import Integration, PatchSet

_TIMER: Final = threading.Timer.run.__code__
_STEP: Final = asyncio.Handle._run.__code__  # noqa: SLF001 - what runs a task's first step
_SLEEP, _ASYNC_SLEEP, _WAIT = (Source(name=f"{name} pause") for name in ("time.sleep", "asyncio.sleep", "Event.wait"))


def _sleep(original: Callable[[Any], None]) -> Callable[[Any], None]:
    sites = Sites(_SLEEP, libraries=False)

    @wraps(original)
    def sleep(seconds: Any, /) -> None:
        if not pauses.is_on() or not pauses.is_a_while(seconds) or sites.of(frame := _getframe().f_back) is None:
            original(seconds)
        else:
            pauses.slept(original, seconds, frame)

    return sleep


def _async_sleep(original: Callable[..., Any]) -> Callable[..., Any]:
    sites = Sites(_ASYNC_SLEEP, libraries=False)

    def is_own(frame: FrameType | None) -> bool:
        # Of a task that does nothing else only its lane tells whose it is.
        if frame is not None and frame.f_code is _STEP:
            return not lanes.current().is_aside
        return sites.of(frame) is not None

    @wraps(original)
    async def sleep(delay: float, result: Any = None) -> Any:
        if not pauses.is_on() or not pauses.is_a_while(delay) or not is_own(frame := _getframe().f_back):
            return await original(delay, result)
        waiting = Waiting(frame)
        try:
            return_value = await original(delay, result)
            if waiting.was_late is False:
                await original(LONGER_S)
        except BaseException:
            waiting.cut_short()
            raise
        await waiting.over_async()
        return return_value

    return sleep


def _wait(original: Callable[..., bool]) -> Callable[..., bool]:
    sites = Sites(_WAIT, libraries=False)

    def is_own(frame: FrameType | None) -> bool:
        return frame is not None and (frame.f_code is _TIMER or sites.of(frame) is not None)

    @wraps(original)
    def wait(self: threading.Event, timeout: float | None = None) -> bool:
        if timeout is None and pauses.is_on() and is_own(_getframe().f_back):
            pauses.blocks()
        if not pauses.is_on() or not pauses.is_a_while(timeout) or not is_own(frame := _getframe().f_back):
            was_set = original(self, timeout)
            if was_set:
                pauses.learn(self)
            return was_set
        return Waiting(frame).over_or_woken(lambda seconds: original(self, seconds), timeout or 0)

    return wait


# looks of threads at each other


def _is_set(original: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(original)
    def is_set(self: threading.Event) -> bool:
        def has_come(seconds: float) -> bool | None:
            return original(self) or (self.wait(seconds) if seconds else False) or None

        waiting = pauses.looking(_getframe().f_back, self)
        return original(self) if waiting is None else pauses.looked(waiting, has_come) is not None

    return is_set


def _set(original: Callable[[threading.Event], None]) -> Callable[[threading.Event], None]:
    @wraps(original)
    def set_(self: threading.Event) -> None:
        original(self)
        pauses.learn(self)

    return set_


def _clear(original: Callable[[threading.Event], None]) -> Callable[[threading.Event], None]:
    @wraps(original)
    def clear(self: threading.Event) -> None:
        pauses.unlearn(self)
        original(self)

    return clear


def _is_alive(original: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(original)
    def is_alive(self: threading.Thread) -> bool:
        def has_ended(seconds: float) -> bool | None:
            if seconds and original(self):
                self.join(seconds)
            return None if original(self) else True

        waiting = pauses.looking(_getframe().f_back, self)
        return original(self) if waiting is None else pauses.looked(waiting, has_ended) is None

    return is_alive


def _done(original: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(original)
    def done(self: Any) -> bool:
        def is_over(seconds: float) -> bool | None:
            if seconds and not original(self):
                from concurrent.futures import wait

                wait([self], seconds)
            return original(self) or None

        waiting = pauses.looking(_getframe().f_back, self)
        return original(self) if waiting is None else pauses.looked(waiting, is_over) is not None

    return done


def _install(patches: PatchSet) -> None:
    replaced: dict[int, Callable[..., Any]] = {}
    makes: tuple[tuple[Any, Any], ...] = ((time, _sleep), (asyncio, _async_sleep))
    for owner, make in makes:
        original = owner.sleep
        patches.replace(owner, "sleep", make)
        replaced[id(original)] = owner.sleep
    patches.replace(threading.Event, "wait", _wait)
    for name, make in (("is_set", _is_set), ("set", _set), ("clear", _clear)):
        patches.replace(threading.Event, name, make)
    patches.replace(threading.Thread, "is_alive", _is_alive)
    patches.when_imported("concurrent.futures._base", lambda module: patches.replace(module.Future, "done", _done))
    tape.rebind(patches, replaced)


INTEGRATION = Integration(name="pauses", libraries=("time", "asyncio", "threading"), install=_install)
