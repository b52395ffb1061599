"""The order of sets whose members are the agent's own objects, or tasks and futures.

Theory of operation. A set goes by the hashes of its members, and an object whose class says nothing of its hash has
one of its address, which is another in every process. Python gives each class made in Python a slot that calls
`__hash__` where its first base that has one is not written in C. So `object.__hash__` is exchanged before the program
makes its classes: each of these calls ours, which gives an object of the agent's own class a number. Classes from
before keep the address. `asyncio.Task` and `concurrent.futures.Future` are from before; their slot is exchanged while
no object of theirs can be in a set, at the start of a process that is all of the program.

A number is given at the first hash of an object and is its own as long as it lives. It counts the objects of the lane,
and within a call those of the call: where a replay answers a tool, what the tool made is not hashed, and the numbers
behind it are the same. The low bits count, and put a set of the lane's own objects into the same order wherever the
count began; the high bits tell lanes apart, so that sets of many lanes' objects stay fast.

Nothing of it is undone: an object that changed its hash could not be found any more in the sets that hold it. For the
same reason all own objects get a number, whether or not a run is recorded at the moment.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import weakref
from collections.abc import Callable
from typing import Any, Final

from reenact.boundary import lanes, own_processes, place
from reenact.boundary.forgiving import forgive
from reenact.boundary.own_code import is_own_class
from reenact.boundary.static_types import OpenType, unsupported
from reenact.contracts.integration import Integration, PatchSet

_address: Final[Callable[[object], int]] = object.__hash__
_number_by_id: Final[dict[int, int]] = {}
_references: Final[dict[int, _Reference]] = {}
"""Let go of the number when its object is gone."""
_is_numbered: Final[dict[int, bool]] = {}
"""Whether objects of a class have numbers, by the class's identity. Never forgotten, since no hash may change."""
_lanes_by_path: Final[dict[str, int]] = {}
"""How many lanes of one name hashed: units of work have the same one."""
_full: Final[list[bool]] = []
"""Too many objects have numbers: from now on a new one has that of its address."""
_MOST: Final = 200_000
_MOST_CLASSES: Final = 100_000
_MOST_PATHS: Final = 10_000
_MOST_CALLS: Final = 1_000
"""So many calls of a lane go on counting where they are gone back to."""
_SHIFT: Final = 20
"""Bits of a set's order that are counted: a set of up to a million members goes by these first."""
_SLOT: Final = 120
"""Where a class holds the function that hashes (`tp_hash` of `PyTypeObject`, CPython on 64 bits)."""


class _Reference(weakref.ref[Any]):
    """A reference to an object that has a number."""

    __slots__ = ("key",)
    key: int


def _letting_go() -> Callable[[Any], None]:
    numbers, references = _number_by_id, _references  # a module is empty at the end of the interpreter

    def let_go(reference: Any) -> None:
        key: int = reference.key
        numbers.pop(key, None)
        references.pop(key, None)

    return let_go


_let_go: Final = _letting_go()


def _hashing() -> Callable[[object], int]:
    numbers, classes, address = _number_by_id, _is_numbered, _address  # as above
    learn, give, full = _learn, _number, _full

    def __hash__(self: object) -> int:  # noqa: N807 - it stands for that one
        """Return hash(self)."""
        key = id(self)
        number = numbers.get(key)
        if number is not None:
            return number
        is_numbered = classes.get(id(type(self)))
        if is_numbered is None:
            is_numbered = learn(type(self))
        return give(self, key) if is_numbered and not full else address(self)

    __hash__.__qualname__ = "object.__hash__"
    return __hash__


def _learn(cls: type) -> bool:
    """Tell whether objects of a class have numbers: those of the agent's own that can be let go of."""
    is_numbered = False
    try:
        is_numbered = cls.__weakrefoffset__ != 0 and is_own_class(cls)
    except Exception:
        forgive("object_hashes._learn")
    if len(_is_numbered) >= _MOST_CLASSES:
        return False
    return _is_numbered.setdefault(id(cls), is_numbered)


def _number(self: object, key: int) -> int:
    """Give an object its number."""
    try:
        candidate = _next()
    except Exception:
        forgive("object_hashes._number")
        candidate = _address(self)
    number = _number_by_id.setdefault(key, candidate)
    reference = _Reference(self, _let_go)
    reference.key = key
    _references[key] = reference
    if len(_number_by_id) >= _MOST and not _full:
        _full.append(True)
    return number


def _next() -> int:
    lane, here = lanes.current(), place.current()
    if lane.hashed is None:
        lane.hashed = _base(lane.path), dict[int, int]()
    base, counts = lane.hashed
    call = 0 if here is None else here.span_id
    counts[call] = count = counts.pop(call, -1) + 1  # the last one stands last
    if len(counts) > _MOST_CALLS:
        counts.pop(next(iter(counts)))
    return base + count


def _base(path: str) -> int:
    """Give the high bits of a lane's numbers."""
    earlier = _lanes_by_path.get(path, 0)
    if earlier or len(_lanes_by_path) < _MOST_PATHS:
        _lanes_by_path[path] = earlier + 1
    return ((hash(path) >> _SHIFT) + earlier) << _SHIFT


def _install(_patches: PatchSet) -> None:
    if unsupported() or vars(object)["__hash__"] is not _address:
        return
    try:
        setattr(OpenType(object), "__hash__", _hashing())  # noqa: B010 - it is the class's own, and not the stand-in's
        if own_processes.is_whole():
            _exchange_slots()
    except (ImportError, TypeError):  # a Python built without ctypes
        return


def _exchange_slots() -> None:
    """Have tasks and futures hashed as objects of a class made in Python are."""
    import ctypes

    class Probe:
        __slots__ = ()

    def slot(cls: type) -> Any:
        return ctypes.c_void_p.from_address(id(cls) + _SLOT)

    by_python, by_address = slot(Probe).value, slot(object).value
    if ctypes.sizeof(ctypes.c_void_p) != 8 or by_python == by_address:
        return
    for cls in (asyncio.Task, concurrent.futures.Future):
        if slot(cls).value == by_address:
            _is_numbered[id(cls)] = True
            slot(cls).value = by_python


INTEGRATION = Integration(name="object_hashes", libraries=("builtins",), install=_install)
