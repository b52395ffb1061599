"""Births: in which order a lane made its futures and tasks. That order is the same when the program runs again.

A set of them is gone through by address, which is another each time.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from collections.abc import Set as AbstractSet
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


def note(future: object, lane: str) -> None:
    """Note that `lane` made a future or task."""
    try:
        _births[future] = lane, next(_numbers)
    except Exception:  # a task factory of the host's may make what takes no weak reference
        forgive("births.note")


def handing_on(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make a future of asyncio that stands for a job of a pool be as old as the job."""

    @wraps(original)
    def wrap_future(future: Any, **kwargs: Any) -> Any:
        asyncio_future = original(future, **kwargs)
        if asyncio_future is not future and (birth := _births.get(future)) is not None:
            _births[asyncio_future] = birth
        return asyncio_future

    return wrap_future


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
