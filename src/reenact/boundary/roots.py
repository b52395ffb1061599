"""The pieces of state of the process that a call can reach: where each stands, what it is called, how it is set.

The state of a function is what its code names: variables of its module and of its closure, attributes of the instance
it is bound to, arguments that can change; and the same of the agent's own functions that it names (`boundary.reach`).
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from types import BuiltinFunctionType, CellType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Final, cast

from reenact.boundary.code_facts import code_facts
from reenact.boundary.injected_state import StatePiece
from reenact.boundary.own_code import is_own_class, is_own_globals
from reenact.boundary.reach import Reach
from reenact.values import alarms

ABSENT: Final = object()
"""Stands for what is not there."""
CODE: Final = (ModuleType, type, FunctionType, MethodType, BuiltinFunctionType, property, staticmethod, classmethod)
"""Kinds of what is no state."""
COLLECTIONS: Final = (dict, list, tuple, set, frozenset, deque, bytearray)
CACHE: Final = type(lru_cache(len))
_PLAIN: Final = frozenset({str, bytes, int, float, bool, complex, type(None)})
_REFLECTION: Final = frozenset({"__dict__", "vars", "getattr", "setattr", "__getattribute__"})


_SETTABLE: Final = frozenset({"table", "attribute", "class", "kept", "cell"})


class Root:
    """One piece of state."""

    __slots__ = ("glance", "holder", "key", "kind", "name")

    def __init__(self, name: str, kind: str, holder: Any, key: str = "") -> None:
        self.name, self.kind, self.holder, self.key = name, kind, holder, key
        self.glance = False
        """Its value is an instance whose attributes are pieces of state themselves."""

    def get(self) -> Any:
        """Give its value, or ABSENT. Runs no code of the agent's."""
        if self.kind == "table":
            return self.holder.get(self.key, ABSENT)
        if self.kind == "attribute":
            return attribute(self.holder, self.key)
        if self.is_weak:
            return self._get_weakly()
        if self.kind == "class":
            return cast("dict[str, Any]", vars(self.holder)).get(self.key, ABSENT)
        if self.kind == "kept":
            return self.holder.spelled()
        if self.kind == "cell":
            try:
                return self.holder.cell_contents
            except ValueError:  # not filled yet
                return ABSENT
        return self.holder

    def _get_weakly(self) -> Any:
        holder = self.holder()
        if not self.key:
            return ABSENT if holder is None else holder
        if type(holder) is partial:
            members = {**{str(at): each for at, each in enumerate(holder.args)}, **holder.keywords}
            return members.get(self.key, ABSENT)
        if type(holder) is not FunctionType:
            return attribute(holder, self.key)
        cells = dict(zip(holder.__code__.co_freevars, holder.__closure__ or (), strict=False))
        return Root(self.name, "cell", cells[self.key]).get() if self.key in cells else ABSENT

    @property
    def is_weak(self) -> bool:
        """Tell whether it does not keep alive the object or function that has it."""
        return self.kind == "weak"

    @property
    def is_gone(self) -> bool:
        """Tell whether the object that had it is no more."""
        return self.is_weak and self.holder() is None

    @property
    def is_settable(self) -> bool:
        """Tell whether `put` can set it."""
        return self.kind in _SETTABLE

    def put(self, value: Any) -> None:
        """Set it, or take it away where `value` is ABSENT. Raises `ValueError` where it cannot be set."""
        if self.kind == "table":
            if value is ABSENT:
                self.holder.pop(self.key, None)
            else:
                self.holder[self.key] = value
        elif self.kind == "attribute":
            put_attribute(self.holder, self.key, value)
        elif self.kind == "class":
            if value is ABSENT:
                type.__delattr__(self.holder, self.key)
            else:
                type.__setattr__(self.holder, self.key, value)
        elif self.kind == "kept":
            self.holder.put(value)
        elif self.kind == "cell" and value is not ABSENT:
            self.holder.cell_contents = value
        else:
            raise ValueError(f"{self.name} cannot be set")


def roots(code_reach: Reach, target: Any, arguments: Mapping[str, Any]) -> Iterator[Root]:
    """Name the pieces of state: `module:name`, `module:function.name` of a closure, `module:Class.attribute`."""
    while issubclass(type(target), partial):
        items = [*enumerate(target.args), *target.keywords.items()]
        yield from (Root(f"argument {name}", "value", value) for name, value in items if type(value) not in _PLAIN)
        target = target.func
    if type(target) is CACHE:
        yield Root(f"{target.__module__}:{target.__qualname__} cache", "value", target)
        target = target.__wrapped__
    if type(target) is MethodType:
        arguments = {"self": target.__self__, **arguments}
        target = target.__func__
    elif type(target) is not FunctionType and is_own_class(kind_of(target)):
        arguments = {"self": target, **arguments}
    whole = not code_reach.attributes.isdisjoint(_REFLECTION) or "getattr with a computed name" in code_reach.unknown
    names = _Names(code_reach.attributes, code_reach.set_attributes, whole=whole or code_reach.everything)
    for fn in code_reach.functions:
        yield from _of_function(fn, names)
    for name, value in arguments.items():
        if type(value) in _PLAIN:
            continue
        if type(value) is StatePiece:
            yield Root(f"argument {name}", "kept", value)
        elif is_own_class(kind_of(value)) or issubclass(type(value), type):
            yield from _of_instance(value, names)
        else:
            yield Root(f"argument {name}", "value", value)


class _Names:
    """The names of attributes that code uses."""

    __slots__ = ("_entered", "_names", "set", "whole")

    def __init__(self, used: frozenset[str], set_: frozenset[str], *, whole: bool) -> None:
        self._names, self.set, self.whole = used, set_, whole
        self._entered = set[int]()

    def enter(self, module: ModuleType) -> bool:
        """Tell whether a module was not gone into yet."""
        fresh = id(module) not in self._entered
        self._entered.add(id(module))
        return fresh

    def __contains__(self, name: str) -> bool:
        return self.whole or name in self._names

    def among(self, table: Mapping[str, Any]) -> list[str]:
        """List those that a table has, in an order that is the same in every process."""
        return sorted(table) if self.whole else sorted(self._names & table.keys())


def kind_of(value: Any) -> type[Any]:
    """Give the class of a value without asking it, as `isinstance` may."""
    return cast("type[Any]", type(value))


def _of_function(fn: FunctionType, names: _Names) -> Iterator[Root]:
    facts, space = code_facts(fn.__code__), fn.__globals__
    for name in sorted(facts.variables | facts.stored):
        if name.startswith("__"):
            continue
        if name in space:
            yield from _of_global(f"{fn.__module__}:{name}", space, name, names)
        if name in facts.stored and (name not in space or issubclass(kind_of(space[name]), CODE)):
            yield Root(f"{fn.__module__}:{name}", "table", space, name)
    for name, each in sorted(facts.dotted):
        yield from _of_library(space.get(name), each)
    around = fn.__qualname__.rpartition(".")[0] or fn.__qualname__
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
        yield from _of_cell(f"{fn.__module__}:{around}.{name}", name, cell, names)
    defaults = (*enumerate(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).items())
    for name, value in defaults:
        if type(value) not in _PLAIN:
            yield Root(f"{fn.__module__}:{fn.__qualname__} default {name}", "value", value)


def _of_library(module: Any, name: str) -> Iterator[Root]:
    """Name what a library's module keeps in a collection that the code names, such as `sys.path`."""
    if type(module) is not ModuleType or is_own_globals(vars(module)) or (module.__name__, name) in _MOVING:
        return
    value = vars(module).get(name)
    if type(value) in {list, dict, set, deque} or value is os.environ:
        yield Root(f"{module.__name__}:{name}", "table", vars(module), name)


_MOVING: Final = frozenset({("sys", "modules"), ("sys", "path_importer_cache")})


def _of_cell(label: str, name: str, cell: CellType, names: _Names) -> Iterator[Root]:
    root = Root(label, "cell", cell)
    value = root.get()
    own = is_own_class(kind_of(value))
    if own:
        root.glance = True
        yield from _of_instance(value, names)
    if name not in {"__class__", "self"} or not own:
        yield root


def _of_global(label: str, space: dict[str, Any], name: str, names: _Names) -> Iterator[Root]:
    value = space[name]
    kind = kind_of(value)
    if issubclass(kind, ModuleType):
        table = cast("dict[str, Any]", vars(value))
        if is_own_globals(table) and names.enter(value):
            for each in sorted(table):
                if each in names and not each.startswith("__"):
                    yield from _of_global(f"{value.__name__}:{each}", table, each, names)
                    if each in names.set and issubclass(kind_of(table[each]), CODE):
                        yield Root(f"{value.__name__}:{each}", "table", table, each)
    elif issubclass(kind, type):
        yield from _of_instance(value, names)
    elif kind is FunctionType:
        table = cast("dict[str, Any]", vars(value))
        wanted = {*table, *names.set} if not names.whole else {*table}
        yield from (Root(f"{label}.{each}", "table", table, each) for each in sorted(wanted) if each in names)
    else:
        root = Root(label, "table", space, name)
        if is_own_class(kind):
            root.glance = True
            yield from _of_instance(value, names)
        if not issubclass(kind, CODE):
            yield root


def _of_instance(value: Any, names: _Names) -> Iterator[Root]:
    """Name the attributes of an instance and of its class that the code names, or all where it may compute names."""
    cls: type[Any] = value if issubclass(type(value), type) else kind_of(value)
    if not (is_own_class(cls) or issubclass(kind_of(value), COLLECTIONS)):
        return
    label = f"{cls.__module__}:{cls.__qualname__}"
    if issubclass(kind_of(value), COLLECTIONS):
        yield Root(label, "value", value)
    for each in cls.__mro__:
        if is_own_class(each):
            table = vars(each)
            for name in names.among(table):
                if not (name.startswith("__") or issubclass(type(table[name]), (*CODE, MemberDescriptorType))):
                    yield Root(f"{label}.{name}", "class", each, name)
    if cls is value:
        yield from (Root(f"{label}.{name}", "class", cls, name) for name in sorted(names.set - vars(cls).keys()))
        return
    instance_table, slots = dict_of(value), slots_of(cls)
    for name in names.among({**dict.fromkeys(slots), **instance_table}):
        yield Root(f"{label}.{name}", "attribute", value, name)
    attribute_names = instance_table.keys() | slots.keys()
    yield from (Root(f"{label}.{name}", "attribute", value, name) for name in sorted(names.set - attribute_names))


def dict_of(value: Any) -> dict[str, Any]:
    """Give the table of an instance's attributes itself; an empty one where it has none."""
    try:
        if issubclass(type(value), threading.local):  # this thread's
            table = threading.local.__getattribute__(value, "__dict__")
        else:
            table = object.__getattribute__(value, "__dict__")
    except Exception:  # it has none
        alarms.pass_on()
        return {}
    return cast("dict[str, Any]", table) if isinstance(table, dict) else {}


@lru_cache(maxsize=4096)
def slots_of(cls: type) -> dict[str, Any]:
    """Give the slots of a class that Python code made, each with its descriptor."""
    slots: dict[str, Any] = {}
    for each in reversed(cls.__mro__):
        if each.__flags__ & _HEAP:
            slots |= {name: it for name, it in vars(each).items() if type(it) is MemberDescriptorType}
    return slots


_HEAP: Final = 1 << 9


def attribute(value: Any, name: str) -> Any:
    """Give an attribute of an instance's own, or ABSENT."""
    table = dict_of(value)
    if name in table:
        return table[name]
    slot = slots_of(kind_of(value)).get(name)
    if slot is None:
        return ABSENT
    try:
        return slot.__get__(value)
    except AttributeError:  # it is empty
        return ABSENT


def put_attribute(value: Any, name: str, to: Any) -> None:
    """Set an attribute of an instance's own, or take it away, past whatever its class does at that."""
    slot = slots_of(kind_of(value)).get(name)
    if slot is not None:
        if to is not ABSENT:
            slot.__set__(value, to)
        elif attribute(value, name) is not ABSENT:
            slot.__delete__(value)
        return
    table = dict_of(value) if issubclass(type(value), threading.local) else object.__getattribute__(value, "__dict__")
    if to is ABSENT:
        table.pop(name, None)
    else:
        table[name] = to
