"""What names the code reads that an entry of the agent's can reach: the function that does a job, a message.

Reached is every function of the agent's whose name such code uses, and what collections that it names hold. Where a
name is computed, or an object of a library's is named that may hold functions of the agent's, everything counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple, cast

from reenact.boundary.code_facts import code_facts
from reenact.boundary.harmless import is_listed_class
from reenact.boundary.lasting_state import (
    ALWAYS_READ,
    CHANGED_BY_ALL,
    PLAIN,
    NameUse,
    defaults_of,
    functions_behind,
    is_state,
)
from reenact.boundary.own_code import is_own_class, own_modules
from reenact.boundary.reads import reads_of
from reenact.boundary.roots import CACHE, CODE, COLLECTIONS, kind_of

_MANY: Final = 1_000
"""Members of a collection that are looked at."""
_ASKED: Final = frozenset(
    {"openai", "anthropic", "httpx", "httpx2", "requests", "logging", "re", "_thread", "threading"}
)
"""Libraries whose objects hold no function of the agent's."""
_ANYTHING: Final = frozenset({"globals", "eval", "exec", "__dict__", "vars", "attrgetter", "methodcaller"})


class Reach(NamedTuple):
    """The names that code behind an entry can meet."""

    reads: frozenset[str]
    uses: frozenset[str]
    """Those that it writes to included."""


class Entries:
    """What each entry reaches, found out once as long as no module is loaded."""

    def __init__(self) -> None:
        self._reach_by_entry: dict[FunctionType, Reach | None] = {}
        self._beside: dict[FunctionType, Reach | None] = {}
        self.compute_names = False
        """A function of the agent's reads what nothing spells."""
        self._functions: list[FunctionType] = []
        self._values_by_name: dict[str, list[Any]] = {}
        """By name: what variables of the agent's modules and attributes of its classes stand for."""

    def know(self, code_names: NameUse) -> None:
        """Take in the agent's modules as they are now."""
        self._reach_by_entry.clear()
        self._beside.clear()
        self._functions = code_names.functions
        self.compute_names = any(_used(fn) is None for fn in code_names.functions)
        self._values_by_name = {}
        for module in own_modules():
            for name, value in [*vars(module).items()]:
                self._values_by_name.setdefault(name, []).append(value)
                if issubclass(kind_of(value), type) and is_own_class(value):
                    for key, member in [*cast("dict[str, Any]", vars(value)).items()]:
                        self._values_by_name.setdefault(key, []).append(member)
        for fn in code_names.functions:
            self._values_by_name.setdefault(fn.__name__, []).append(fn)

    def reached(self, entry: object, others: Callable[[], Iterable[object]] | None = None) -> Reach | None:
        """Give the names that code behind an entry reads; None where it may read any.

        With `others`, those that all code reads but the functions which do other units of the application.
        """
        fn = entry.__func__ if isinstance(entry, MethodType) else entry
        if not isinstance(fn, FunctionType):
            return None
        if others is not None:
            if fn not in self._beside:
                self._beside[fn] = self._all_but(fn, others())
            return self._beside[fn]
        if fn not in self._reach_by_entry:
            self._reach_by_entry[fn] = self._walk(fn)
        return self._reach_by_entry[fn]

    def _all_but(self, entry: FunctionType, others: Iterable[object]) -> Reach | None:
        """Give the names that all functions read but some others, unless these are named in turn."""
        left_out = {fn for each in others for fn in _functions(each)} - {*_functions(entry)}
        names, read, left = set[str](), {*ALWAYS_READ}, [fn for fn in self._functions if fn not in left_out]
        while left:
            for fn in left:
                if (used := _used(fn)) is None:
                    return None
                names |= used
                read |= _read(fn, used)
            left = [fn for fn in left_out if fn.__name__ in names]
            left_out -= {*left}
        return Reach(frozenset(read), CHANGED_BY_ALL | names)

    def _walk(self, entry: FunctionType) -> Reach | None:
        names, read, seen_functions, left = set[str](), {*ALWAYS_READ}, set[FunctionType](), [*_functions(entry)]
        while left:
            fn = left.pop()
            if fn in seen_functions:
                continue
            seen_functions.add(fn)
            if (used := _used(fn)) is None:
                return None
            values = [
                *_function_contents(fn),
                *(value for name in used - names for value in self._values_by_name.get(name, ())),
            ]
            names |= used
            read |= _read(fn, used)
            try:
                left += [function for value in values for function in _code_in(value)]
            except (_Unknown, RecursionError, RuntimeError):  # or it changes meanwhile
                return None
        return Reach(frozenset(read), CHANGED_BY_ALL | names)


def _used(fn: FunctionType) -> set[str] | None:
    """Give the names that a function's own code uses; None where it computes any."""
    facts = code_facts(fn.__code__)
    used = facts.variables | facts.attributes | facts.stored | facts.set_attributes | {*fn.__code__.co_freevars}
    used |= {name for name, value in defaults_of(fn) if is_state(value)}
    return None if facts.computed or not used.isdisjoint(_ANYTHING) else {*used}


def _read(fn: FunctionType, used: set[str]) -> set[str]:
    """Give the names of those that it reads; all of them where nobody can tell."""
    names = reads_of(fn.__code__)
    return used if names is None else {*names}


def _function_contents(fn: FunctionType) -> Iterator[Any]:
    """Give what a function holds by itself."""
    for cell in fn.__closure__ or ():
        with suppress(ValueError):  # it is not filled yet
            yield cell.cell_contents
    yield from fn.__defaults__ or ()
    yield from (fn.__kwdefaults__ or {}).values()


def _functions(value: Any) -> list[FunctionType]:
    return [*functions_behind(value)]


class _Unknown(Exception):
    """Nobody knows what code a value leads to."""


def _code_in(value: Any) -> list[FunctionType]:
    """Give the agent's functions that can be called by what a name stands for. Raises `_Unknown`."""
    kind = kind_of(value)
    if kind in PLAIN:
        return []
    if issubclass(kind, type):
        return _called_by_python(value)
    if issubclass(kind, CODE) or kind is CACHE:
        return _functions(value)
    if issubclass(kind, COLLECTIONS):
        return _code_of_members(value)
    if is_own_class(kind):
        return _called_by_python(kind)
    if kind.__module__.partition(".")[0] in _ASKED or is_listed_class(kind):
        return []
    raise _Unknown


def _called_by_python(cls: type) -> list[FunctionType]:
    """Give the methods that Python calls of the agent's class; others are reached by their names."""
    if not is_own_class(cls):
        return []
    if not all(map(_is_plain_base, cls.__mro__)):
        raise _Unknown  # a library calls its methods by names that no code of the agent's spells
    table = cast("dict[str, Any]", vars(cls))
    return [fn for name, member in [*table.items()] if name.startswith("__") for fn in functions_behind(member)]


def _code_of_members(value: Any) -> list[FunctionType]:
    functions: list[FunctionType] = []
    for each in _members(value):
        if not issubclass(kind_of(each), COLLECTIONS):
            functions += _code_in(each)
        elif _is_deep(each):
            raise _Unknown
    return functions


def _members(value: Any) -> list[Any]:
    members = [*dict[Any, Any].values(value)] if issubclass(kind_of(value), dict) else [*value]
    if len(members) > _MANY and any(type(each) not in PLAIN for each in members):
        raise _Unknown
    return members


def _is_plain_base(base: type) -> bool:
    return base is object or is_own_class(base) or is_listed_class(base) or issubclass(base, BaseException)


def _is_deep(value: Any) -> bool:
    """Tell whether a collection holds anything but plain data."""
    return any(
        type(each) not in PLAIN and (not issubclass(kind_of(each), COLLECTIONS) or _is_deep(each))
        for each in _members(value)
    )
