"""Waits in the agent's own code that end when somebody is done, or when their time is up: which of both is kept.

In a replay it is so again: whoever went on because the time was up goes on in that place among the answers, and who was
in time is in time however slow the replay is. Of several futures the same have ended, in the same order.
"""

from __future__ import annotations

import concurrent.futures
import operator
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from functools import wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import CodeType, FrameType
from typing import Any, Final, TypeVar

from reenact.boundary import pauses, tape, task_births
from reenact.boundary.forgiving import forgive
from reenact.boundary.pauses import LONGER_S, SITES, Waiting, begun, is_late_again, waited
from reenact.boundary.task_births import InOrder
from reenact.contracts.integration import Integration, PatchSet

T = TypeVar("T")
_PUT_NOWAIT: Final = queue.Queue.put_nowait.__code__
_GET_NOWAIT: Final = queue.Queue.get_nowait.__code__


def _caller(code: CodeType) -> FrameType | None:
    """Give the frame of who called the function that asks, directly or by `code`."""
    frame = _getframe(1).f_back
    return frame.f_back if frame is not None and frame.f_code is code else frame


def _get(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def get(self: queue.Queue[Any], block: bool = True, timeout: float | None = None) -> Any:  # noqa: FBT001, FBT002 - as it is called
        frame = _caller(_GET_NOWAIT)
        if not block and (turn := pauses.looking(frame)) is not None:
            return _take(lambda: original(self, False), turn)
        if block and timeout is None and (turn := pauses.taking(frame)) is not None:
            return _take(lambda: original(self), turn)
        waiting = begun(timeout, frame) if block else None
        if waiting is None or timeout is None:
            return original(self, block, timeout)
        if is_late_again(waiting, timeout):
            raise queue.Empty
        return waited(waiting, timeout, lambda seconds: original(self, True, seconds), lambda _: False)

    return get


def _take(take: Callable[[], T], waiting: Waiting) -> T:
    """Take what several threads may wait for: in a replay the thread gets it that got it when recorded."""
    if waiting.was_late is False:  # it waited to the end of the program, and what comes is for another
        threading.Event().wait(LONGER_S)
    else:
        waiting.in_turn()
    _TAKING.waiting = waiting
    try:
        item = take()
    except BaseException as error:
        _TAKING.waiting = None
        if isinstance(error, (queue.Empty, queue.Full, threading.BrokenBarrierError, *_SHUT_DOWN)):
            waiting.ended(late=True)
        else:
            waiting.cut_short()
        raise
    _TAKING.number()  # where it is no item, or a queue gives its items in a way of its own
    return item


class _Taking(threading.local):
    """Who takes an item on one thread."""

    waiting: Waiting | None = None

    def number(self) -> None:
        """Note that it is taken, once. Never raises."""
        try:
            waiting, self.waiting = self.waiting, None
            if waiting is not None:
                waiting.ended(late=True)
        except Exception:
            forgive("timed_waits.number")


_TAKING: Final = _Taking()
_SHUT_DOWN: Final[tuple[type[BaseException], ...]] = tuple(filter(None, [getattr(queue, "ShutDown", None)]))
"""What a queue raises that takes and gives no more, from Python 3.13 on."""


def _numbered(original: Callable[..., T]) -> Callable[..., T]:
    """Number who takes or puts an item, or comes to a barrier, while that is locked: nobody else does so in between."""

    @wraps(original)
    def step(self: Any, *args: Any) -> T:
        result = original(self, *args)
        _TAKING.number()
        return result

    return step


def _put(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def put(self: queue.Queue[Any], item: Any, block: bool = True, timeout: float | None = None) -> None:  # noqa: FBT001, FBT002 - as it is called
        frame = _caller(_PUT_NOWAIT)
        if not block or not timeout or self.maxsize <= 0:
            turn = pauses.taking(frame)
            if turn is None:
                original(self, item, block, timeout)
            else:
                _take(lambda: original(self, item, block, timeout), turn)
            return
        waiting = begun(timeout, frame)
        if waiting is None:
            original(self, item, block, timeout)
        elif is_late_again(waiting, timeout):
            raise queue.Full
        else:
            waited(waiting, timeout, lambda seconds: original(self, item, True, seconds), lambda _: False)

    return put


def _let_go(condition: threading.Condition, waiting: Waiting, seconds: float) -> bool:
    """Let the time of a wait pass that was up when recorded, others having the lock meanwhile."""
    lock: Any = condition
    if not waiting.was_late or not lock._is_owned():  # noqa: SLF001 - as `queue` lets go of it
        return False
    saved = lock._release_save()  # noqa: SLF001 - as above
    try:
        return is_late_again(waiting, seconds)
    finally:
        lock._acquire_restore(saved)  # noqa: SLF001 - as above


def _wait(original: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(original)
    def wait(self: threading.Condition, timeout: float | None = None) -> bool:
        frame = _getframe().f_back
        if timeout is None:
            pauses.waits_on(frame)
            try:
                return original(self)
            finally:
                pauses.waited_on()
        waiting = begun(timeout, frame)
        if waiting is None:
            return original(self, timeout)
        if _let_go(self, waiting, timeout):
            return False
        return waited(waiting, timeout, lambda seconds: original(self, seconds), lambda woken: not woken)

    return wait


def _wait_for(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def wait_for(self: threading.Condition, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        frame = _getframe().f_back
        if timeout is None and pauses.is_on() and SITES.of(frame) is not None:
            while not (value := predicate()):
                pauses.waits_on(frame)
                try:
                    self.wait()
                finally:
                    pauses.waited_on()
            return value
        waiting = begun(timeout, frame)
        if waiting is None or timeout is None:
            return original(self, predicate, timeout)
        if _let_go(self, waiting, timeout):
            return predicate()
        return waited(waiting, timeout, lambda seconds: original(self, predicate, seconds), lambda value: not value)

    return wait_for


def _acquire(original: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(original)
    def acquire(self: threading.Semaphore, blocking: bool = True, timeout: float | None = None) -> bool:  # noqa: FBT001, FBT002 - as it is called
        frame = _getframe().f_back
        if blocking and timeout is None and (turn := pauses.taking(frame)) is not None:
            return _take(lambda: original(self), turn)  # one permit is as good as another: who has one goes on
        waiting = begun(timeout, frame) if blocking else None
        if waiting is None or timeout is None:
            return original(self, blocking, timeout)
        if is_late_again(waiting, timeout):
            return False
        return waited(waiting, timeout, lambda seconds: original(self, True, seconds), lambda got: not got)

    return acquire


def _looked(look: Callable[[int], T]) -> Callable[[Callable[[Any], T]], Callable[[Any], T]]:
    """Have the agent's own code look at how many items a queue has in turn, while nobody takes or puts one."""

    def make(original: Callable[[Any], T]) -> Callable[[Any], T]:
        @wraps(original)
        def looked(self: Any) -> T:
            turn = pauses.looking(_getframe().f_back)
            if turn is None:
                return original(self)
            return pauses.taken_in_turn(turn, lambda: look(self._qsize()), self.mutex)

        return looked

    return make


def _met(original: Callable[..., int]) -> Callable[..., int]:
    @wraps(original)
    def wait(self: threading.Barrier, timeout: float | None = None) -> int:
        turn = pauses.taking(_getframe().f_back)
        return original(self, timeout) if turn is None else _take(lambda: original(self, timeout), turn)

    return wait


def _join(original: Callable[..., None]) -> Callable[..., None]:
    @wraps(original)
    def join(self: threading.Thread, timeout: float | None = None) -> None:
        frame = _getframe().f_back
        waiting = begun(timeout, frame)
        if waiting is None or timeout is None:
            original(self, timeout)
            if timeout is None:
                try:
                    pauses.goes_on(frame)
                    pauses.learn(self)
                except Exception:
                    forgive("timed_waits.join")
        elif not is_late_again(waiting, timeout):
            waited(waiting, timeout, lambda seconds: original(self, seconds), lambda _: self.is_alive())

    return join


def _result(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def result(self: Future[Any], timeout: float | None = None) -> Any:
        waiting = begun(timeout, _getframe().f_back)
        if waiting is None or timeout is None:
            try:
                return original(self, timeout)
            finally:
                pauses.learn(self)
        if is_late_again(waiting, timeout):
            raise concurrent.futures.TimeoutError
        try:
            return_value = original(self, timeout if waiting.was_late is None else timeout + LONGER_S)
        except BaseException:
            waiting.ended(late=not self.done())
            raise
        waiting.ended(late=False)
        return return_value

    return result


def _wait_for_futures(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def wait(
        fs: Iterable[Future[Any]], timeout: float | None = None, return_when: str = concurrent.futures.ALL_COMPLETED
    ) -> Any:
        if not pauses.is_on() or SITES.of(_getframe().f_back) is None:
            return original(fs, timeout, return_when)
        futures = task_births.in_order(fs)
        if timeout is None and return_when == concurrent.futures.ALL_COMPLETED:
            pauses.blocks()
            outcome = original(futures)
            done = outcome.done
        else:
            outcome, done = _some_of(Waiting(), futures, timeout, return_when, original)
        parted = ([each for each in futures if each in done], [each for each in futures if each not in done])
        return type(outcome)(*map(InOrder, parted))

    return wait


def _some_of(
    waiting: Waiting, futures: list[Future[Any]], seconds: float | None, return_when: str, wait: Callable[..., Any]
) -> tuple[Any, set[Future[Any]]]:
    """Wait for some of several futures: in a replay for those that had ended when recorded."""
    until = time.monotonic() + (seconds or 0)
    longer = LONGER_S if waiting.was_late is False else 0  # it was cut short
    try:
        outcome = wait(futures, None if seconds is None else seconds + longer, return_when)
        done = set(outcome.done)
        if (again := waiting.done_of(futures)) is not None:
            if not wait(again, LONGER_S).not_done:
                done = set(again)
            if seconds and pauses.is_late(done, set(futures) - done, return_when):
                time.sleep(max(0, until - time.monotonic()))
    except BaseException:
        waiting.cut_short()
        raise
    waiting.over(task_births.places(done, futures))
    return outcome, done


def _as_completed(original: Callable[..., Generator[Future[Any]]]) -> Callable[..., Generator[Future[Any]]]:
    @wraps(original)
    def as_completed(fs: Iterable[Future[Any]], timeout: float | None = None) -> Generator[Future[Any]]:
        if not pauses.is_on() or SITES.of(_getframe().f_back) is None:
            return original(fs, timeout)
        return _one_by_one(task_births.in_order(fs), timeout, original)

    return as_completed


def _one_by_one(
    futures: list[Future[Any]], seconds: float | None, each_of: Callable[..., Generator[Future[Any]]]
) -> Generator[Future[Any]]:
    """Give futures as they end: in a replay in the order in which they ended when recorded."""
    waiting, ended = Waiting(), list[int]()
    until = time.monotonic() + (seconds or 0)
    again, left = waiting.done_of(futures) or [], dict(zip(futures, range(len(futures)), strict=True))
    again.reverse()
    futures.clear()  # who was given is forgotten, so that the memory of results is freed
    late = False
    try:
        while again and not concurrent.futures.wait(again[-1:], LONGER_S).not_done:
            ended.append(left.pop(again[-1]))
            yield again.pop()
        again.clear()
        if waiting.was_late:
            _be_too_late(waiting, until, len(left), len(ended) + len(left))
        for future in each_of(iter(tuple(left)), None if seconds is None else max(0, until - time.monotonic())):
            ended.append(left.pop(future))
            yield future
    except TimeoutError:
        late = True
        raise
    finally:
        waiting.ended(late=late, done=tuple(ended))


def _be_too_late(waiting: Waiting, until: float, left: int, count: int) -> None:
    if left:
        time.sleep(max(0, until - time.monotonic()))
        waiting.in_turn()
        raise TimeoutError(f"{left} (of {count}) futures unfinished")


def _install(patches: PatchSet) -> None:
    patches.replace(queue.Queue, "get", _get)
    patches.replace(queue.Queue, "put", _put)
    for kind in (queue.Queue, queue.LifoQueue, queue.PriorityQueue):
        for name in ("_get", "_put"):
            patches.replace(kind, name, _numbered)
    patches.replace(threading.Barrier, "_enter", _numbered)
    patches.replace(threading.Barrier, "wait", _met)
    patches.replace(queue.Queue, "empty", _looked(operator.not_))
    patches.replace(queue.Queue, "qsize", _looked(int))
    patches.replace(threading.Condition, "wait", _wait)
    patches.replace(threading.Condition, "wait_for", _wait_for)
    for name in ("acquire", "__enter__"):  # two names of one function
        patches.replace(threading.Semaphore, name, _acquire)
    patches.replace(threading.Thread, "join", _join)
    for name in ("result", "exception"):
        patches.replace(Future, name, _result)
    original = concurrent.futures.wait
    patches.replace(concurrent.futures, "wait", _wait_for_futures)
    patches.replace(concurrent.futures, "as_completed", _as_completed)
    tape.rebind(patches, {id(original): concurrent.futures.wait})


INTEGRATION = Integration(name="timed_waits", libraries=("queue", "threading", "concurrent.futures"), install=_install)
