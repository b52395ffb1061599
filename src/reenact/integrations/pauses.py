"""Waiting by the clock in the agent's own code: `time.sleep`, `asyncio.sleep`, `threading.Event.wait` with a time.

Beside them stand the looks by which code that sleeps learns how far another thread is.
What a library waits for goes by the clock alone: nobody saw what it does behind that. A `threading.Timer` waits for
the agent's function.

Several children say what they say at the same time, and which task of an event loop goes on first is a matter of the
clock. So what the agent's own code reads of a child, by the line or to a mark or to the end, is a pause too. What is
read by pieces of any length is not counted: nobody knows how many there will be.
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
from weakref import WeakSet

from reenact.boundary import lanes, pauses, tape
from reenact.boundary.forgiving import forgive
from reenact.boundary.pauses import LONGER_S, Waiting
from reenact.boundary.tape import Sites, Source
from reenact.contracts.integration import Integration, PatchSet

_TIMER: Final = threading.Timer.run.__code__
_STEP: Final = asyncio.Handle._run.__code__  # noqa: SLF001 - what runs a task's first step
_SLEEP, _ASYNC_SLEEP, _WAIT = (Source(name=f"{name} pause") for name in ("time.sleep", "asyncio.sleep", "Event.wait"))


_CHILDREN: Final = Sites(Source(name="reading a child"), libraries=False)
_READS: Final = ("readline", "readuntil", "readexactly", "__anext__")
_of_children: Final[WeakSet[Any]] = WeakSet()
"""The readers of children's pipes."""


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


# what tasks read from children


def _connection_made(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def connection_made(self: Any, transport: Any) -> None:
        original(self, transport)
        _of_children.update(each for each in (self.stdout, self.stderr) if each is not None)

    return connection_made


def _begun(frame: FrameType | None) -> Waiting | None:
    """Begin to wait; None where nobody keeps it, as it is a library's, or there are too many."""
    try:
        if not pauses.is_on():
            return None
        lane = lanes.current()
        is_own = not lane.is_aside if frame is not None and frame.f_code is _STEP else _CHILDREN.of(frame) is not None
        if not is_own or not lane.reel.has_room():
            return None
        waiting = Waiting(lane=lane)
        waiting.runs_again()
    except Exception:
        forgive("pauses.child")
        return None
    return waiting


def _waits(original: Callable[..., Any], is_of_child: Callable[[Any], bool]) -> Callable[..., Any]:
    @wraps(original)
    async def wait(self: Any, *args: Any, **kwargs: Any) -> Any:
        waiting = _begun(_getframe().f_back) if is_of_child(self) else None
        if waiting is None:
            return await original(self, *args, **kwargs)
        try:
            result = await original(self, *args, **kwargs)
        except asyncio.CancelledError:
            waiting.cut_short()
            raise
        except BaseException:  # the end of the lines, too, is in its turn
            await waiting.over_async()
            raise
        await waiting.over_async()
        return result

    return wait


def _read(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    async def read(self: Any, n: int = -1) -> bytes:
        waiting = _begun(_getframe().f_back) if n == -1 and self in _of_children else None
        if waiting is None:
            return await original(self, n)
        try:
            data = await original(self, n)
        except BaseException:
            waiting.cut_short()
            raise
        await waiting.over_async()
        return data

    return read


def _install_readers(patches: PatchSet, module: Any) -> None:
    for name in _READS:
        patches.replace(module.StreamReader, name, lambda original: _waits(original, _of_children.__contains__))
    patches.replace(module.StreamReader, "read", _read)


def _install_processes(patches: PatchSet, module: Any) -> None:
    patches.replace(module.SubprocessStreamProtocol, "connection_made", _connection_made)
    for name in ("wait", "communicate"):
        patches.replace(module.Process, name, lambda original: _waits(original, lambda _: True))


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
    patches.when_imported("asyncio.streams", lambda module: _install_readers(patches, module))
    patches.when_imported("asyncio.subprocess", lambda module: _install_processes(patches, module))


INTEGRATION = Integration(name="pauses", libraries=("time", "asyncio", "threading"), install=_install)
