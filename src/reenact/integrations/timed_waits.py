"""Waits in the agent's own code that end when somebody is done, or when their time is up: which of both is kept.

In a replay it is so again: whoever went on because the time was up goes on in that place among the answers, and who was
in time is in time however slow the replay is. Locks and `queue.SimpleQueue`, which are native code, go by the clock.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import FrameType
from typing import Any, Final, TypeVar

from reenact.boundary import pauses, tape
from reenact.boundary.pauses import LONGER_S, Waiting
from reenact.boundary.tape import Sites, Source
from reenact.contracts.integration import Integration, PatchSet

T = TypeVar("T")
_PUT_NOWAIT: Final = queue.Queue.put_nowait.__code__
_SITES: Final = Sites(Source(name="timed wait"), libraries=False)


def _begun(seconds: object, frame: FrameType | None) -> Waiting | None:
    """Begin a wait; None where nobody keeps it: it is a library's, or has no end."""
    if not pauses.is_on() or _SITES.of(frame) is None:
        return None
    if seconds is None:
        pauses.blocks()
    return Waiting() if pauses.is_a_while(seconds) else None


def _waited(waiting: Waiting, seconds: float, wait: Callable[[float], T], is_late: Callable[[T], bool]) -> T:
    """Wait, and note whether the time was up. In a replay who was in time when recorded has longer."""
    try:
        result = wait(seconds if waiting.was_late is None else seconds + LONGER_S)
    except BaseException as error:
        if isinstance(error, queue.Empty | queue.Full):
            waiting.ended(late=True)
        else:
            waiting.cut_short()
        raise
    waiting.ended(late=is_late(result))
    return result


def _is_late_again(waiting: Waiting, seconds: float) -> bool:
    """Let the time of a wait pass whose time was up when recorded; False for any other."""
    if not waiting.was_late:
        return False
    time.sleep(seconds)
    waiting.over()
    return True


def _get(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def get(self: queue.Queue[Any], block: bool = True, timeout: float | None = None) -> Any:  # noqa: FBT001, FBT002 - as it is called
        waiting = _begun(timeout, _getframe(1)) if block else None
        if waiting is None or timeout is None:
            return original(self, block, timeout)
        if _is_late_again(waiting, timeout):
            raise queue.Empty
        return _waited(waiting, timeout, lambda seconds: original(self, True, seconds), lambda _: False)

    return get


def _put(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def put(self: queue.Queue[Any], item: Any, block: bool = True, timeout: float | None = None) -> None:  # noqa: FBT001, FBT002 - as it is called
        caller = _getframe(1)
        frame = caller.f_back if caller.f_code is _PUT_NOWAIT else caller
        if not block or not timeout or self.maxsize <= 0:
            _hand_over(frame)
            original(self, item, block, timeout)
            return
        waiting = _begun(timeout, frame)
        if waiting is None:
            original(self, item, block, timeout)
        elif _is_late_again(waiting, timeout):
            raise queue.Full
        else:
            _waited(waiting, timeout, lambda seconds: original(self, item, True, seconds), lambda _: False)

    return put


def _hand_over(frame: FrameType | None) -> None:
    """Let code of the agent hand something to others in its turn: they see who did so first.

    On the thread of an event loop it may not be held up: whoever comes before it may be one of the loop's tasks.
    """
    if pauses.is_on() and _SITES.of(frame) is not None and asyncio._get_running_loop() is None:  # noqa: SLF001 - `get_running_loop` raises where there is none
        Waiting().over()


def _let_go(condition: threading.Condition, waiting: Waiting, seconds: float) -> bool:
    """Let the time of a wait pass that was up when recorded, others having the lock meanwhile."""
    held: Any = condition
    if not waiting.was_late or not held._is_owned():  # noqa: SLF001 - as `queue` lets go of it
        return False
    saved = held._release_save()  # noqa: SLF001 - as above
    try:
        return _is_late_again(waiting, seconds)
    finally:
        held._acquire_restore(saved)  # noqa: SLF001 - as above


def _wait(original: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(original)
    def wait(self: threading.Condition, timeout: float | None = None) -> bool:
        waiting = _begun(timeout, _getframe(1))
        if waiting is None or timeout is None:
            return original(self, timeout)
        if _let_go(self, waiting, timeout):
            return False
        return _waited(waiting, timeout, lambda seconds: original(self, seconds), lambda woken: not woken)

    return wait


def _wait_for(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def wait_for(self: threading.Condition, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        waiting = _begun(timeout, _getframe(1))
        if waiting is None or timeout is None:
            return original(self, predicate, timeout)
        if _let_go(self, waiting, timeout):
            return predicate()
        return _waited(waiting, timeout, lambda seconds: original(self, predicate, seconds), lambda found: not found)

    return wait_for


def _acquire(original: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(original)
    def acquire(self: threading.Semaphore, blocking: bool = True, timeout: float | None = None) -> bool:  # noqa: FBT001, FBT002 - as it is called
        waiting = _begun(timeout, _getframe(1)) if blocking else None
        if waiting is None or timeout is None:
            return original(self, blocking, timeout)
        if _is_late_again(waiting, timeout):
            return False
        return _waited(waiting, timeout, lambda seconds: original(self, True, seconds), lambda got: not got)

    return acquire


def _join(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def join(self: threading.Thread, timeout: float | None = None) -> None:
        waiting = _begun(timeout, _getframe(1))
        if waiting is None or timeout is None:
            original(self, timeout)
        elif not _is_late_again(waiting, timeout):
            _waited(waiting, timeout, lambda seconds: original(self, seconds), lambda _: self.is_alive())

    return join


def _result(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def result(self: Future[Any], timeout: float | None = None) -> Any:
        waiting = _begun(timeout, _getframe(1))
        if waiting is None or timeout is None:
            return original(self, timeout)
        if _is_late_again(waiting, timeout):
            raise concurrent.futures.TimeoutError
        try:
            found = original(self, timeout if waiting.was_late is None else timeout + LONGER_S)
        except BaseException:
            waiting.ended(late=not self.done())
            raise
        waiting.ended(late=False)
        return found

    return result


def _wait_for_futures(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def wait(
        fs: Iterable[Future[Any]], timeout: float | None = None, return_when: str = concurrent.futures.ALL_COMPLETED
    ) -> Any:
        waiting = _begun(timeout, _getframe(1))
        if waiting is None or timeout is None:
            return original(fs, timeout, return_when)
        given = list(fs)
        if _is_late_again(waiting, timeout):
            return original(given, 0, return_when)
        return _waited(
            waiting,
            timeout,
            lambda seconds: original(given, seconds, return_when),
            lambda parted: pauses.is_late(parted.done, parted.not_done, return_when),
        )

    return wait


def _install(patches: PatchSet) -> None:
    patches.replace(queue.Queue, "get", _get)
    patches.replace(queue.Queue, "put", _put)
    patches.replace(threading.Condition, "wait", _wait)
    patches.replace(threading.Condition, "wait_for", _wait_for)
    patches.replace(threading.Semaphore, "acquire", _acquire)
    patches.replace(threading.Thread, "join", _join)
    for name in ("result", "exception"):
        patches.replace(Future, name, _result)
    original = concurrent.futures.wait
    patches.replace(concurrent.futures, "wait", _wait_for_futures)
    tape.rebind(patches, {id(original): concurrent.futures.wait})


INTEGRATION = Integration(name="timed_waits", libraries=("queue", "threading", "concurrent.futures"), install=_install)
