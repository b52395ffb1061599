"""On which earlier units of its process a unit stands: those that changed state which the agent's code reads back.

State is looked at before the first unit and at the end of each: variables of the agent's modules that a function of
theirs names and that can change, attributes of their classes, variables of closures, instances, caches. What differs
from the look before was changed by a unit that was under way. Whoever ends later stands on it, since any of the agent's
code may run in a unit: a framework, not the code, says which.

No change counts that no code reads back (`boundary.reads`), nor one that a unit alone would make again: a client of a
library's that is made at first need, the cache of a function without parameters.
"""

from __future__ import annotations

import marshal
import sys
import threading
from collections import deque
from collections.abc import Iterator
from types import FunctionType
from typing import Any, Final, cast

from reenact.boundary.code_facts import code_facts
from reenact.boundary.own_code import is_own_class, is_own_function, own_modules
from reenact.boundary.reads import is_read_back
from reenact.boundary.roots import ABSENT, CACHE, CODE, COLLECTIONS, Root, kind_of
from reenact.boundary.snapshot import Snapshot

KEPT: Final = 50
"""Units that are named; of the earlier ones it is only told how many they are."""
_MOST_MODULES: Final = 60
"""Modules of an agent's own that are looked at; a larger agent is not asked on what its units stand."""
_HUGE: Final = 1_000
"""Members of a collection, those of its members included, from which on it is only told how many they are."""
_PLAIN: Final = frozenset({str, bytes, int, float, bool, complex, type(None)})


class Stood:
    """A unit that changed something: its number, and the id of its run where it is one."""

    __slots__ = ("number", "run")

    def __init__(self, number: int) -> None:
        self.number = number
        self.run = ""


class Standing:
    """What the units of this process changed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._modules = -1
        self._is_large = False
        """The agent has more modules than can be looked at beside a request."""
        self._roots: list[Root] = []
        self._prints: list[Any] = []
        self._open: dict[int, Stood] = {}
        self._changed: dict[str, list[Stood]] = {}
        """By name of state that is read back: who changed it, the last ones."""
        self._more = 0
        self._read: dict[str, bool] = {}

    def begin(self) -> int:
        """Begin a unit; gives its number."""
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._look()  # what changes between units is taken for the next one's: one look for each is enough
            self._open[self._count] = Stood(self._count)
            return self._count

    def end(self, number: int, run: str) -> dict[str, Any]:
        """End a unit, which is the run of this id or none (""); tell what it stands on, or nothing."""
        with self._lock:
            own = self._open.get(number)
            if own is not None:
                own.run = run
            self._look()
            self._open.pop(number, None)
            units = {each.number: each for held in self._changed.values() for each in held if each.number != number}
            names = [name for name, held in self._changed.items() if any(each.number != number for each in held)]
        if not units:
            return {}
        listed = [units[each] for each in sorted(units)]
        return {
            "state": sorted(names),
            "units": [each.run for each in listed if each.run],
            "without_run": sum(not each.run for each in listed),
            "more": self._more,
        }

    def _look(self) -> None:
        """Look at all state, and note who may have changed what is not as it was."""
        if self._modules != (loaded := len(sys.modules)):
            self._modules = loaded
            self._is_large = len(own_modules()) > _MOST_MODULES
            if not self._is_large:
                self._find()
        if self._is_large:  # a request would wait for the look
            return
        for at, root in enumerate(self._roots):
            value = root.get()
            now = _print(value)
            was = self._prints[at]
            if now == was:
                continue
            self._prints[at] = now
            if not _is_made_at_need(was, value) and self._is_read(root):
                self._note(root.name)

    def _note(self, name: str) -> None:
        held = self._changed.setdefault(name, [])
        for each in self._open.values():
            if each not in held:
                held.append(each)
        if len(held) > KEPT:
            self._more += len(held) - KEPT
            del held[:-KEPT]

    def _is_read(self, root: Root) -> bool:
        if root.name not in self._read:
            self._read[root.name] = type(root.get()) is CACHE or is_read_back(
                root.name.rpartition(".")[2].rpartition(":")[2]
            )
        return self._read[root.name]

    def _find(self) -> None:
        """Find the pieces of state; what was known is kept as it was."""
        known = {(id(root.holder), root.key): at for at, root in enumerate(self._roots)}
        roots = list(_roots())
        prints: list[Any] = []
        for root in roots:
            at = known.get((id(root.holder), root.key))
            prints.append(_print(root.get()) if at is None else self._prints[at])
        self._roots, self._prints = roots, prints


def _roots() -> Iterator[Root]:
    """Name the state of the agent's modules that its functions name."""
    functions = [fn for module in own_modules() for value in [*vars(module).values()] for fn in _functions(value)]
    codes = {fn.__code__: fn for fn in functions}
    facts = [code_facts(code) for code in codes]
    named = {name for each in facts for name in each.variables | each.attributes}
    stored = {name for each in facts for name in each.stored | each.set_attributes}
    for module in own_modules():
        space = vars(module)
        for name, value in [*space.items()]:
            if name.startswith("__") or not (name in named or name in stored):
                continue
            if issubclass(kind_of(value), type):
                if is_own_class(value):
                    yield from _of_class(value, named, stored)
            elif _is_state(value) or (name in stored and type(value) in _PLAIN):
                yield Root(f"{module.__name__}:{name}", "table", space, name)
    for fn in codes.values():
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
            root = Root(f"{fn.__module__}:{fn.__qualname__}.{name}", "cell", cell, name)
            value = root.get()
            if _is_state(value) or type(value) in _PLAIN:
                yield root


def _of_class(cls: type, named: set[str], stored: set[str]) -> Iterator[Root]:
    table = cast("dict[str, Any]", vars(cls))
    for name, value in [*table.items()]:
        if (
            not name.startswith("__")
            and name in named | stored
            and (_is_state(value) or (name in stored and type(value) in _PLAIN))
        ):
            yield Root(f"{cls.__module__}:{cls.__qualname__}.{name}", "class", cls, name)


def _functions(value: Any) -> Iterator[FunctionType]:
    """Give the agent's functions behind a variable: itself, what it wraps, the methods of a class."""
    if issubclass(kind_of(value), type):
        if is_own_class(value):
            for held in [*cast("dict[str, Any]", vars(value)).values()]:
                if not issubclass(kind_of(held), type):
                    yield from _functions(held)
        return
    seen = 0
    while value is not None and seen < 9:
        value = getattr(value, "__func__", value) if kind_of(value) in {staticmethod, classmethod} else value
        if type(value) is FunctionType and is_own_function(value):
            yield value
        if type(value) is not FunctionType and type(value) is not CACHE:
            return
        value, seen = vars(value).get("__wrapped__"), seen + 1


def _is_state(value: Any) -> bool:
    """Tell what can change and is looked into."""
    kind = kind_of(value)
    if kind in _PLAIN or issubclass(kind, CODE) or value is ABSENT:
        return False
    if kind is CACHE:
        return bool(value.__wrapped__.__code__.co_argcount) if type(value.__wrapped__) is FunctionType else False
    if issubclass(kind, COLLECTIONS):
        return True
    return is_own_class(kind)


def _print(value: Any) -> Any:
    """Give what tells a value from another one: plain data by its digest, all else by what a look takes in."""
    kind = kind_of(value)
    if kind in _PLAIN:
        return kind, value
    if value is ABSENT:
        return None
    if kind is CACHE:
        return value.cache_info().misses
    if issubclass(kind, COLLECTIONS) and (many := _many(value)) > _HUGE:
        return many
    try:
        return hash(marshal.dumps(value, 2))
    except ValueError:
        pass
    if not _is_state(value):
        return id(value)
    looked = Snapshot(few=True)
    looked.look(value, "")
    return hash(repr([(shape.kind, shape.steps, shape.items) for shape in looked.done().shapes.values()]))


def _many(value: Any) -> int:
    """Count the members of a collection and of those in it."""
    many = len(value)
    if many > _HUGE or issubclass(kind_of(value), bytearray):
        return many
    members = dict[Any, Any].values(value) if issubclass(kind_of(value), dict) else value
    return many + sum(len(each) for each in [*members] if type(each) in _COUNTED)


_COUNTED: Final = frozenset({dict, list, tuple, set, frozenset, deque})


def _is_made_at_need(was: Any, value: Any) -> bool:
    """Tell a change that a unit alone would make again: nothing became a client of a library's."""
    return was in {(type(None), None), None} and not _is_state(value) and type(value) not in _PLAIN
