"""Deadlines of asyncio in the agent's own code: `wait_for`, `timeout`, `wait` with a time. Which were missed is kept.

In a replay the same are missed again, in their place among the answers, and the others not, however slow it is. Of
several tasks that `wait` waits for, the same have ended.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio import timeouts
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import FrameType
from typing import Any, Final
from weakref import WeakKeyDictionary

from reenact.boundary import pauses, tape, task_births
from reenact.boundary.pauses import LONGER_S, Waiting
from reenact.boundary.tape import Sites, Source
from reenact.boundary.task_births import InOrder
from reenact.contracts.integration import Integration, PatchSet

_SITES: Final = Sites(Source(name="deadline"), libraries=False)
_asked: Final[ContextVar[bool]] = ContextVar("reenact_deadline", default=False)
"""The agent asked for what `wait_for` is just about to enter: from Python 3.12 on that is a `timeout`."""
_WAIT_FOR: Final = asyncio.wait_for.__code__
_IN_TASK: Final = sys.version_info[:2] >= (3, 12)


def _is_own(frame: FrameType | None) -> bool:
    """Tell whether the agent's own code waits."""
    return pauses.is_on() and _SITES.of(frame) is not None


async def _be_late_again(waiting: Waiting, seconds: float, task: asyncio.Future[Any] | None = None) -> None:
    """Let the time of a wait pass that was up when recorded, or a task end before that."""
    if task is None:
        await asyncio.sleep(seconds)
    else:
        await asyncio.wait([task], timeout=seconds)
    await waiting.over_async()


def _wait(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(original)
    def asked(fs: Any, *, timeout: float | None = None, return_when: str = asyncio.ALL_COMPLETED) -> Awaitable[Any]:
        is_own = pauses.is_on() and _SITES.of(_getframe().f_back) is not None
        if not is_own or asyncio.isfuture(fs) or asyncio.iscoroutine(fs):  # it will say that it takes several
            return original(fs, timeout=timeout, return_when=return_when)
        return wait(task_births.in_order(fs), timeout, return_when)

    @wraps(original)
    async def wait(tasks: list[Any], seconds: float | None, return_when: str) -> Any:
        if seconds is None and return_when == asyncio.ALL_COMPLETED:
            done, _ = await original(tasks)
        else:
            done = await _some_of(Waiting(), tasks, seconds, return_when, original)
        parted = ([each for each in tasks if each in done], [each for each in tasks if each not in done])
        return tuple(map(InOrder, parted))

    return asked


async def _some_of(
    waiting: Waiting, tasks: list[Any], seconds: float | None, return_when: str, wait: Callable[..., Awaitable[Any]]
) -> set[Any]:
    """Wait for some of several tasks: in a replay for those that had ended when recorded."""
    until = time.monotonic() + (seconds or 0)
    longer = LONGER_S if waiting.was_late is False else 0  # it was cut short
    try:
        done, _ = await wait(tasks, timeout=None if seconds is None else seconds + longer, return_when=return_when)
        if (again := waiting.done_of(tasks)) is not None:
            if not all(each.done() for each in again):
                await wait(again, timeout=LONGER_S)
            done = set(again) if all(each.done() for each in again) else done
            if seconds and pauses.is_late(done, set(tasks) - done, return_when):
                await asyncio.sleep(max(0, until - time.monotonic()))
        await waiting.over_async(task_births.places(done, tasks))
    except BaseException:
        waiting.cut_short()
        raise
    return done


def _wait_for(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    run = _wait_for_in_task if _IN_TASK else _wait_for_a_task

    @wraps(original)
    def asked(fut: Any, timeout: float | None) -> Awaitable[Any]:
        if timeout is None or not pauses.is_a_while(timeout) or not _is_own(_getframe().f_back):
            return original(fut, timeout)
        return wait_for(fut, timeout)

    @wraps(original)
    async def wait_for(fut: Any, seconds: float) -> Any:
        return await run(original, fut, seconds)

    return asked


async def _wait_for_in_task(original: Callable[..., Awaitable[Any]], awaited: Any, seconds: float) -> Any:
    """Wait as Python does from 3.12 on: what is awaited runs in the same task, within a `timeout`."""
    _asked.set(True)
    return await original(awaited, seconds)


async def _wait_for_a_task(original: Callable[..., Awaitable[Any]], awaited: Any, seconds: float) -> Any:
    waiting, loop = Waiting(), asyncio.get_running_loop()
    if waiting.was_late:
        return await _too_late(original, asyncio.ensure_future(awaited), seconds, waiting)
    until = loop.time() + seconds
    try:
        return_value = await original(awaited, seconds if waiting.was_late is None else seconds + LONGER_S)
    except BaseException as error:
        waiting.ended(late=isinstance(error, TimeoutError) and loop.time() >= until)
        raise
    waiting.ended(late=False)
    return return_value


async def _too_late(
    original: Callable[..., Awaitable[Any]], task: asyncio.Future[Any], seconds: float, waiting: Waiting
) -> Any:
    try:
        await _be_late_again(waiting, seconds, task)
    except BaseException:
        waiting.cut_short()
        task.cancel()
        with suppress(BaseException):
            await task
        raise
    return await original(task, 0)


_entered: Final[WeakKeyDictionary[asyncio.Timeout, Waiting]] = WeakKeyDictionary()


def _enter(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(original)
    async def __aenter__(self: asyncio.Timeout) -> Any:  # noqa: N807 - it is that method
        frame = _getframe().f_back
        if frame is not None and frame.f_code is _WAIT_FOR:
            is_own = _asked.get()
            _asked.set(False)
        else:  # a machine that stood still meanwhile may have let the time pass already: that says nothing
            is_own = self.when() is not None and _is_own(frame)
        if is_own:
            _entered[self] = Waiting()
        return await original(self)

    return __aenter__


def _leave(original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @wraps(original)
    async def __aexit__(self: asyncio.Timeout, *error: Any) -> Any:  # noqa: N807 - as above
        waiting = _entered.pop(self, None)
        if waiting is not None:
            waiting.cut_short()
        return await original(self, *error)

    return __aexit__


def _expire(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def _on_timeout(self: Any) -> None:
        waiting = _entered.get(self)
        if waiting is None or waiting.was_late is None:
            if _entered.pop(self, None) is not None and waiting is not None:
                waiting.ended(late=True)
            original(self)
        elif waiting.was_late:
            self._late = asyncio.get_running_loop().create_task(_in_turn(self, waiting, original))
        elif not hasattr(self, "_longer"):
            self._longer = True
            self._timeout_handler = asyncio.get_running_loop().call_later(LONGER_S, self._on_timeout)
        else:
            original(self)

    return _on_timeout


async def _in_turn(block: asyncio.Timeout, waiting: Waiting, expire: Callable[[Any], None]) -> None:
    await waiting.over_async()
    if _entered.pop(block, None) is not None:
        expire(block)


def _install(patches: PatchSet) -> None:
    replaced: dict[int, Callable[..., Any]] = {}
    for name, make in (("wait", _wait), ("wait_for", _wait_for)):
        original = getattr(asyncio, name)
        patches.replace(asyncio, name, make)
        replaced[id(original)] = getattr(asyncio, name)
    patches.replace(timeouts.Timeout, "__aenter__", _enter)
    patches.replace(timeouts.Timeout, "__aexit__", _leave)
    patches.replace(timeouts.Timeout, "_on_timeout", _expire)
    tape.rebind(patches, replaced)


INTEGRATION = Integration(name="deadlines", libraries=("asyncio",), install=_install)
