"""What a function can reach: its code, the agent's own code that it names, and whatever that code can lay hands on.

A tool that nobody declared may run again in a replay only where it is *known* to touch nothing outside the process. An
audit hook cannot know that: native code raises no events. So the question is asked of the code, which is not run.

**The rule.** Take every value that the function's code can name: variables of its module and its closure, defaults,
arguments, the attributes it names of the agent's own modules, classes and instances, and what these hold in turn. A
function among them counts as called, a class as instantiated, an attribute as read of everything that has it. If each
value is the agent's own Python code, plain data, or stands on the list of `harmless`, then whatever the code does with
them, it does to them. The first value of any other kind makes it unknown, and is named.

**Names that nothing spells.** A name given to `getattr` is spelled where it is a constant. Where it is computed, where
a module is imported that is not on the list, where a name leads to frames or namespaces (`__globals__`), nothing is
known. What reads every attribute by itself (`str.format`, `asdict`, a pattern with a class) counts as naming them all.

The answer holds as long as what was looked at stands where it stood: `Reach.holds` compares the code that is named,
and `state` tells while it walks through values whether it meets a kind of thing that nobody looked at.
"""

from __future__ import annotations

import builtins
import copyreg
import gc
import marshal
import sys
from collections import deque
from functools import cached_property, lru_cache, partial, partialmethod
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final, cast

from reenact.boundary import harmless, memory_databases
from reenact.boundary.code_facts import CodeFacts, code_facts
from reenact.boundary.own_code import is_own_class, is_own_function, is_own_globals
from reenact.values import alarms

_MOST: Final = 20_000
"""Values that one walk looks at."""
_REASONS: Final = 5
_PLAIN: Final = frozenset(
    {str, bytes, int, float, bool, complex, type(None), type(...), type(NotImplemented), range, slice}
)
_CACHE: Final = type(lru_cache(len))
_DESCRIPTORS: Final = (GetSetDescriptorType, MemberDescriptorType, MethodDescriptorType, WrapperDescriptorType)
_UNREAD: Final = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__module__",
        "__doc__",
        "__qualname__",
        "__annotations__",
        "__slots__",
        "__match_args__",
        "__static_attributes__",
        "__firstlineno__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__abstractmethods__",
        "_abc_impl",
        "__parameters__",
        "__orig_bases__",
        "__classcell__",
        "__protocol_attrs__",
        "__non_callable_proto_members__",
    }
)
"""What stands in a class and is data about it."""
_COLLECTIONS: Final = (dict, list, tuple, set, frozenset, deque)
_BUILT_IN: Final[dict[str, Any]] = builtins.__dict__
_ABSENT: Final = object()


class Reach:
    """What a call of a function can reach, as far as its code goes. Holds what it looked at."""

    def __init__(self, function: FunctionType | None) -> None:
        self.function = function
        self.functions: list[FunctionType] = []
        """The agent's own that it can call, itself first."""
        self.attributes: frozenset[str] = frozenset()
        """Every name of an attribute that their code uses."""
        self.set_attributes: frozenset[str] = frozenset()
        """Those that their code sets or deletes."""
        self.everything = False
        """Attributes are read that nothing spells."""
        self.unknown: list[str] = []
        """What makes it unknown, in short; empty where it is known to touch nothing."""
        self.holds_database = False
        """A connection to a database in memory is among what it can reach."""
        self.seen: dict[int, Any] = {}
        """Every value that was looked at and is no plain data, by id."""
        self._bindings: list[tuple[dict[str, Any], str, Any]] = []

    def holds(self) -> bool:
        """Tell whether the code that is named is what it was."""
        return all(space.get(name, _ABSENT) is value for space, name, value in self._bindings)

    def knows(self, value: Any) -> bool:
        """Tell whether a value that is met now is of a kind that was looked at: code, an instance of the agent's."""
        kind = cast("type[Any]", type(value))
        if is_own_class(kind):
            return id(kind) in self.seen
        if issubclass(kind, FunctionType | MethodType | type | ModuleType | partial | BuiltinFunctionType):
            return id(value) in self.seen
        return kind in _PLAIN or harmless.is_listed_class(kind) or memory_databases.is_in_memory(value)

    def reasons(self) -> list[str]:
        """List what makes it unknown, the first few."""
        return self.unknown[:_REASONS]

    def name(self, space: dict[str, Any], name: str, value: Any) -> None:
        """Remember what a name stands for."""
        self._bindings.append((space, name, value))


def reach(target: Any, arguments: tuple[Any, ...] = ()) -> Reach:
    """Find what a call of `target` with these arguments can reach. Runs none of the agent's code."""
    walk = _Walk(_function_behind(target))
    walk.push(target)
    for each in arguments:
        walk.push(each)
    return walk.go()


def _function_behind(target: Any) -> FunctionType | None:
    while issubclass(type(target), partial):
        target = target.func
    if type(target) is _CACHE:
        target = target.__wrapped__
    if type(target) is MethodType:
        target = target.__func__
    return target if type(target) is FunctionType else None


class _Walk:
    """One walk. Whatever is found is put in a queue; names meet places to look them up until nothing is new."""

    def __init__(self, function: FunctionType | None) -> None:
        self.found = Reach(function)
        self._queue: deque[Any] = deque()
        self._names: set[str] = set()
        self._assigned_names: set[str] = set()
        self._places: list[tuple[Any, dict[str, Any], bool]] = []
        """Where attributes are looked up: what has them, its table, and whether each of them is read anyway."""
        self._names_by_place: list[set[str]] = []
        """Names that were looked up in each place."""
        self._clocks: set[type[Any]] = set()
        """Listed classes that are met; some of them read the clock by some names."""

    def go(self) -> Reach:
        code_reach = self.found
        while True:
            while self._queue and len(code_reach.seen) < _MOST:
                self._look_at(self._queue.popleft())
            if self._queue:
                self._unknown("more values than are looked at")
                break
            if not self._look_up():
                break
        for cls in self._clocks:
            if clock := harmless.reads_clock(cls, frozenset(self._names)):
                self._unknown(f"{cls.__module__}.{cls.__qualname__}.{clock}")
        if code_reach.holds_database:
            from reenact.boundary.reads import spelled  # few programs have one

            for name in spelled(_PAST_MEMORY):
                self._unknown(f"sqlite3.Connection.{name}")
        code_reach.attributes, code_reach.set_attributes = frozenset(self._names), frozenset(self._assigned_names)
        return code_reach

    def push(self, value: Any) -> None:
        """Have a value looked at, once."""
        if type(value) not in _PLAIN and id(value) not in self.found.seen:
            self.found.seen[id(value)] = value
            self._queue.append(value)

    def _unknown(self, what: str) -> None:
        if what not in self.found.unknown:
            self.found.unknown.append(what)

    def _look_up(self) -> bool:
        """Look every name up in every place; tell whether that gave anything to look at."""
        for at, (owner, table, whole) in enumerate(self._places):
            names = (
                set(table)
                if whole or (self.found.everything and not issubclass(type(owner), ModuleType))
                else self._names
            )
            fresh = names - self._names_by_place[at]
            self._names_by_place[at] |= fresh
            for name in fresh & table.keys():
                self._attribute(owner, table, name)
        return bool(self._queue)

    def _attribute(self, owner: Any, table: dict[str, Any], name: str) -> None:
        value = table[name]
        if name in _UNREAD or type(value) in _PLAIN:
            return
        if issubclass(type(owner), ModuleType) and self._is_strange(value):
            self._unknown(f"{owner.__name__}.{name}")
            self.found.seen[id(value)] = value
            return
        self.push(value)

    @staticmethod
    def _is_strange(value: Any) -> bool:
        """Tell a thing of a module that nobody looked at, which is best named by the module it was found in."""
        kind = cast("type[Any]", type(value))
        if kind is FunctionType:
            return not (is_own_function(value) or harmless.is_listed_function(value) or "__wrapped__" in vars(value))
        if kind is BuiltinFunctionType:
            return issubclass(type(value.__self__), ModuleType) and not harmless.is_listed_builtin(value)
        if issubclass(kind, type):
            return not (is_own_class(value) or harmless.is_listed_class(value))
        looked_at = (ModuleType, MethodType, *_DESCRIPTORS)
        return not (
            issubclass(kind, looked_at)
            or kind is _CACHE
            or is_own_class(kind)
            or harmless.is_listed_class(kind)
            or harmless.is_standard_stream(value)
        )

    def _place(self, owner: Any, table: dict[str, Any], *, whole: bool = False) -> None:
        self._places.append((owner, table, whole))
        self._names_by_place.append(set())

    def _look_at(self, value: Any) -> None:
        kind = cast("type[Any]", type(value))
        if issubclass(kind, FunctionType | BuiltinFunctionType | type):
            self._names |= harmless.asks(value)
        if kind is FunctionType:
            self._function(value)
        elif issubclass(kind, ModuleType):
            self._module(value)
        elif issubclass(kind, type):
            self._class(value)
        elif kind is BuiltinFunctionType:
            self._builtin(value)
        else:
            self._look_at_value(value, kind)

    def _look_at_value(self, value: Any, kind: type[Any]) -> None:
        if issubclass(kind, _DESCRIPTORS) or kind is MethodWrapperType:
            self.push(getattr(value, "__objclass__", None))
            self.push(getattr(value, "__self__", None) if kind is MethodWrapperType else None)
        elif is_own_class(kind):
            self._instance(value, kind)
        elif harmless.is_listed_class(kind) or kind is _CACHE or kind is cached_property or kind is partialmethod:
            self._harmless(value, kind)
        elif harmless.is_standard_stream(value):
            return
        elif kind.__module__ == "reenact.boundary.tool_discovery":  # it stands for a tool where a table names it
            self.push(value.__wrapped__)
        elif memory_databases.is_in_memory(value):
            self.found.holds_database = True
            for hook in (value.row_factory, getattr(value, "text_factory", None)):
                self.push(None if getattr(hook, "__module__", None) == "sqlite3" else hook)
        else:
            self._unknown(f"{kind.__module__}.{kind.__qualname__}")

    def _harmless(self, value: Any, kind: type[Any]) -> None:
        """Look at what a value holds: its items, what a partial calls, what a property runs."""
        if is_of(value, _COLLECTIONS) and _is_data(value):
            return
        self._clocks.add(kind)
        if kind is _CACHE:  # what it keeps came of what it calls
            self.push(value.__wrapped__)
            return
        for each in gc.get_referents(value):
            if each is not kind:
                self.push(each)

    def _builtin(self, value: Any) -> None:
        bound = value.__self__
        if bound is None or issubclass(type(bound), ModuleType):
            if not harmless.is_listed_builtin(value):
                self._unknown(_spelled(value))
            elif value is print:
                self._names |= harmless.PRINT_ASKS
                self.push(sys.stdout)
                self.found.name(sys.__dict__, "stdout", sys.stdout)
        elif value.__name__ not in _OF_TYPES or not issubclass(type(bound), type):
            self.push(bound)

    def _function(self, fn: FunctionType) -> None:
        if _is_ours(fn) and "__wrapped__" in vars(fn):  # a tool, or a clock that is taped
            self.push(vars(fn)["__wrapped__"])
            return
        for each in (*_cells(fn), *(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()):
            self.push(each)
        wrapped = vars(fn).get("__wrapped__")
        if wrapped is not None:
            self.push(wrapped)
        if not is_own_function(fn):
            if not _is_generated(fn) and not harmless.is_listed_function(fn):
                self._unknown(_spelled(fn))
            elif fn.__globals__.get("__name__") == "copy":
                for each in [*copyreg.dispatch_table.values()]:
                    self.push(each if type(each) is FunctionType and is_own_function(each) else None)
            return
        behind = _behind_trampoline(fn.__code__)
        if behind is not None:  # a tool that was cut itself: what it ran before
            self.push(behind)
            return
        self.found.functions.append(fn)
        self._place(fn, vars(fn))
        self._code(fn, code_facts(fn.__code__))

    def _code(self, fn: FunctionType, facts: CodeFacts) -> None:
        if facts.computed:
            self._unknown("getattr with a computed name")
        self.found.everything |= facts.matches or not facts.attributes.isdisjoint(harmless.EVERYTHING)
        for name in sorted(facts.attributes):
            if name in harmless.FRAMES or (name[:2] == "__" == name[-2:] and name not in harmless.SPECIAL):
                self._unknown(name)
        self._names |= facts.attributes
        self._assigned_names |= facts.set_attributes
        for name in sorted(facts.imports):
            module = sys.modules.get(name)
            if module is None or not (harmless.is_listed_module(name) or is_own_globals(vars(module))):
                self._unknown(f"import {name}")
            else:
                self.push(sys.modules[name.partition(".")[0]])
                self.push(module)
        for name in sorted(facts.variables):
            self._variable(fn, facts, name)

    def _variable(self, fn: FunctionType, facts: CodeFacts, name: str) -> None:
        space: dict[str, Any] = fn.__globals__
        if name in space:
            value: Any = space[name]
        elif name in _BUILT_IN:
            value, space = _BUILT_IN[name], _BUILT_IN
        else:  # not there yet
            value = _ABSENT
        if value is _ABSENT or issubclass(
            type(value), FunctionType | ModuleType | type | BuiltinFunctionType | MethodType
        ):
            self.found.name(space, name, value)
        if name in _BY_NAME and space is _BUILT_IN:
            return  # its constants count as attributes
        if is_of(value, ModuleType) and not is_own_globals(value.__dict__) and name not in facts.bare:
            self._dotted(value, sorted(attribute for variable, attribute in facts.dotted if variable == name))
        elif value is not _ABSENT:
            self.push(value)

    def _dotted(self, module: ModuleType, names: list[str]) -> None:
        """Look at those attributes of a library's module that code reads of it, where it does nothing else with it."""
        for name in names:
            table = vars(module)
            if not harmless.is_listed_module(module.__name__):
                self._unknown(f"{module.__name__}.{name}")
            elif name in table:
                self._attribute(module, table, name)
                if type(table[name]) not in _PLAIN:
                    self.found.name(table, name, table[name])

    def _module(self, module: ModuleType) -> None:
        if is_own_globals(vars(module)) or harmless.is_listed_module(module.__name__):
            self._place(module, vars(module))
            self.push(vars(module).get("__getattr__"))  # PEP 562
            if type(module) is not ModuleType:
                self.push(type(module))
        else:
            self._unknown(module.__name__)

    def _class(self, cls: type) -> None:
        if not is_own_class(cls):
            if not harmless.is_listed_class(cls):
                self._unknown(f"{cls.__module__}.{cls.__qualname__}")
            self._clocks.add(cls)
            return
        self.push(type(cls))
        bases = cls.__mro__[1:]
        called_by_name = _is_called_by_name(bases)
        for base in bases:
            self.push(base)
        self._place(cls, dict(vars(cls)), whole=called_by_name)
        for name, value in list(vars(cls).items()):
            if name[:2] == "__" == name[-2:] and name not in _UNREAD:
                self.push(value)

    def _instance(self, value: Any, kind: type) -> None:
        self.push(kind)
        attributes = {**_slots(value, kind), **_dict_of(value)}
        called_by_name = _is_called_by_name(kind.__mro__)
        self._place(value, attributes, whole=called_by_name)
        if issubclass(kind, dict | list | tuple | set | frozenset | deque):
            attribute_ids = {id(each) for each in attributes.values()}
            for each in gc.get_referents(value):
                if id(each) not in attribute_ids and each is not kind and each is not attributes:
                    self.push(each)


_BY_NAME: Final = frozenset({"getattr", "hasattr", "setattr", "delattr"})
_OF_TYPES: Final = frozenset({"fromkeys", "maketrans", "fromhex", "from_bytes", "from_iterable", "combine", "strptime"})
"""Class methods of listed classes, bound to them."""


def is_of(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """Tell whether a value's class is one of these or derives from one, without asking the value."""
    return issubclass(type(value), kinds)


def _is_data(value: Any) -> bool:
    """Tell plain data by what refuses all else; faster than any walk."""
    try:
        marshal.dumps(value, 2)
    except ValueError:
        return False
    return True


_CALLED_SPECIALLY: Final = (dict, list, tuple, set, frozenset, deque, str, bytes, bytearray, int, float, complex)


_PAST_MEMORY: Final = frozenset(
    {
        *("backup", "create_aggregate", "create_collation", "create_function", "create_window_function"),
        *("enable_load_extension", "load_extension", "register_adapter", "register_converter"),
        *("set_authorizer", "set_progress_handler", "set_trace_callback"),
        *("ATTACH", "Attach", "attach", "VACUUM", "Vacuum", "vacuum"),
    }
)
"""By what SQLite calls functions, loads native code, or writes to another database (Python's `sqlite3`).

Any code of the agent's may have prepared a connection so.
"""


def _is_called_by_name(bases: tuple[type, ...]) -> bool:
    """Tell whether a base of Python's calls methods of a class by names that the agent's code need not spell."""
    return any(
        base is not object
        and base not in _CALLED_SPECIALLY
        and not is_own_class(base)
        and not issubclass(base, BaseException)
        for base in bases
    )


def _is_ours(fn: FunctionType) -> bool:
    """Tell a function that we put before another one, such as a clock that is taped."""
    return str(fn.__globals__.get("__name__")).partition(".")[0] == "reenact"


def _is_generated(fn: FunctionType) -> bool:
    """Tell the constructor that `namedtuple` makes in a namespace of its own."""
    return fn.__code__.co_filename == "<string>" and str(fn.__globals__.get("__name__")).startswith("namedtuple_")


def _behind_trampoline(code: CodeType) -> Any:
    return next((each for each in code.co_consts if type(each) is FunctionType), None)


def _spelled(value: Any) -> str:
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", type(value).__qualname__)
    return str(name) if module in {None, "builtins"} else f"{module}.{name}"


def _cells(fn: FunctionType) -> list[Any]:
    contents: list[Any] = []
    for cell in fn.__closure__ or ():
        try:
            contents.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    return contents


def _dict_of(value: Any) -> dict[str, Any]:
    try:
        table = object.__getattribute__(value, "__dict__")
    except Exception:  # it has none
        alarms.pass_on()
        return {}
    return cast("dict[str, Any]", table) if isinstance(table, dict) else {}


def _slots(value: Any, kind: type) -> dict[str, Any]:
    slots: dict[str, Any] = {}
    for each in kind.__mro__:
        if not is_own_class(each):
            continue
        for name, descriptor in list(vars(each).items()):
            if type(descriptor) is MemberDescriptorType:
                try:
                    slots[name] = descriptor.__get__(value)
                except AttributeError:  # it is empty
                    continue
    return slots
