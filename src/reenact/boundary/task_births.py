"""Births: in which order a lane made its futures and tasks. That order is the same when the program runs again.

A set of them is gone through by address, which is another each time.
"""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from functools import wraps
from itertools import count
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from reenact.boundary.forgiving import forgive

T = TypeVar("T")
_births: Final[WeakKeyDictionary[Any, tuple[str, int]]] = WeakKeyDictionary()
_numbers: Final = count(1)
_UNKNOWN: Final = ("\U0010ffff", 0)
"""Behind every lane."""
_JOB: Final = "_reenact_job"
"""Under which name the future of a job keeps the job's lane."""
JOB_ELSEWHERE: Final = "_reenact_lane"
"""Under which name it does so where the job runs in another process and has not ended."""


_END: Final = "_reenact_end"
"""Under which name a future keeps its place in the order of ends."""
_ends: Final = count(1)


def end(future: Future[Any]) -> None:
    """Note that `future` ends now."""
    vars(future)[_END] = next(_ends)


def note(future: object, lane: str) -> None:
    """Note that `lane` made a future or task."""
    try:
        _births[future] = lane, next(_numbers)
    except Exception:  # a task factory of the host's may make what takes no weak reference
        forgive("births.note")


def runs(future: Future[Any], lane: Any) -> None:
    """Note that the job of `future` runs on `lane`, in this process."""
    note(future, lane.path.rpartition("/")[0])
    vars(future)[_JOB] = lane


def runs_elsewhere(future: Future[Any], lane: Any) -> None:
    """Note that the job of `future` runs on `lane` in another process, where no end of it is seen."""
    vars(future)[JOB_ELSEWHERE] = lane
    note(future, lane.path.rpartition("/")[0])


def job_of(future: Future[Any]) -> Any:
    """Give the lane of the job of `future`, in this process or in another; None where nothing noted it."""
    return vars(future).get(_JOB) or vars(future).get(JOB_ELSEWHERE)


def handing_on(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make a future of asyncio that stands for a job of a pool be as old as the job."""

    @wraps(original)
    def wrap_future(future: Any, **kwargs: Any) -> Any:
        asyncio_future = original(future, **kwargs)
        if asyncio_future is not future and (birth := _births.get(future)) is not None:
            _births[asyncio_future] = birth
        return asyncio_future

    return wrap_future


def completed(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make tasks in the order in which they are given: `asyncio.as_completed` goes through a set, by address."""

    @wraps(original)
    def as_completed(fs: Any, **kwargs: Any) -> Any:
        if asyncio.isfuture(fs) or asyncio.iscoroutine(fs):  # it will say that it takes several
            return original(fs, **kwargs)
        return original([asyncio.ensure_future(each) for each in dict.fromkeys(fs)], **kwargs)

    return as_completed


def _birth(each: object) -> tuple[str, int]:
    try:
        return _births.get(each, _UNKNOWN)
    except TypeError:  # it takes no weak reference, and is none of those
        return _UNKNOWN


def in_order(futures: Iterable[T]) -> list[T]:
    """List futures as they were given; those of a plain set as they were made."""
    if isinstance(futures, AbstractSet) and type(futures) in {set, frozenset}:
        return sorted(futures, key=_birth)
    return list(dict.fromkeys(futures))


def places(some: Container[T], sequence: Iterable[T]) -> tuple[int, ...]:
    """Give the places that some have among all that were given."""
    return tuple(at for at, each in enumerate(sequence) if each in some)


class InOrder(set[T]):
    """A set that is gone through in a known order."""

    __slots__ = ("_order",)

    def __init__(self, members: Iterable[T] = ()) -> None:
        self._order = list(members)
        super().__init__(self._order)

    def __iter__(self) -> Iterator[T]:
        order = [each for each in self._order if each in self]
        if len(order) < len(self):
            order += in_order(set(super().__iter__()).difference(order))
            self._order = order
        return iter(order)

    def __repr__(self) -> str:
        return repr(set(self))

    def pop(self) -> T:
        """Take the first one out."""
        for each in self:
            self.remove(each)
            return each
        return super().pop()


def futures_completed(original: Callable[..., Any]) -> Callable[..., Any]:
    """Give futures in the order in which they ended, those that were done before included.

    `concurrent.futures.as_completed` begins with a set of these, and so with the order of their addresses.
    """

    @wraps(original)
    def as_completed(fs: Iterable[Future[Any]], timeout: float | None = None) -> Generator[Future[Any]]:
        until = None if timeout is None else time.monotonic() + timeout
        ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        futures = dict.fromkeys(fs)
        count = left = len(futures)
        for future in futures:
            future.add_done_callback(ended.put)
        futures.clear()  # who was given is forgotten, so that the memory of results is freed
        early_futures = sorted((ended.get() for _ in range(ended.qsize())), key=lambda each: -vars(each).get(_END, 0))
        while left:
            left -= 1
            if early_futures:
                yield early_futures.pop()
                continue
            try:
                yield ended.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"{left + 1} (of {count}) futures unfinished") from None

    return as_completed
