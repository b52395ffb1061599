"""Looking for the functions behind the names in a model's tool schemas.

A tool is a function of the agent's own that bears the tool's name, or whatever callable stands under that name in a
dispatch table, an attribute or a record beside it (`("get_weather", fetch)`). The search starts from the agent's own
modules and from the local variables of its functions that are running, and goes through tables, lists, closures,
classes and instances. It runs none of the agent's code.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from reenact.boundary.own_code import is_own_class, is_own_code, is_own_function
from reenact.values import alarms

_MOST = 200_000
"""Objects that one search looks at."""
_SHORT = 64
_DEEPEST = 5
"""How many objects of libraries one inside the other are looked into."""
_MOST_DEEP = 20_000
"""Objects that a search through the frames of libraries looks at."""
_MOST_OF_A_FRAME = 2_000
"""Objects of one frame that it looks at before it has begun with each: one frame may hold a whole application."""
_ENTRIES = (
    *("forward", "_run", "execute", "invoke", "call", "run", "__call__"),
    *("_arun", "run_async", "acall", "arun", "ainvoke"),
)
"""Methods by which frameworks call their tools; a tool that is a class has its code in the first that it overrides."""
_FIRST_ASYNC = 7
_PREFIXED = re.compile(r".*(?:-|__|[./:])(\w+)")
"""A name with that of a plugin before it."""
_LONGEST = 10_000
"""Entries of a collection beyond which it is taken for data."""
_DATA = frozenset({str, bytes, bytearray, int, float, bool, complex, type(None), range, slice})
_STANDING_FOR = (MethodType, partial, staticmethod, classmethod)
_CACHE = type(lru_cache(len))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A function that may be the tool, or the place where something callable without code of the agent's is named."""

    name: str
    """The tool's."""
    function: Any = None
    """Its code is replaced, for every reference."""
    holder: dict[Any, Any] | None = None
    """The table that names it, and there alone it can be cut."""
    key: str = ""
    in_module: bool = False
    """The table is a module's namespace."""


class Search:
    """One search. `names` are the tools', `declared` the functions that have a decorator of ours."""

    def __init__(self, names: Collection[str], declared: Collection[Any]) -> None:
        self._names, self._declared = frozenset(names), declared
        self._offered = _by_last_part(self._names)
        """Names with a prefix, by what is behind it: a framework puts a plugin's name before the function's."""
        self._most = _MOST
        self._values_by_id: dict[int, Any] = {}
        self._queue: deque[tuple[Any, int]] = deque()
        self._strange = 0
        """How deep among the libraries' objects the one now looked at lies."""
        self._candidates: dict[tuple[str, int, int], Candidate] = {}
        self._inner: set[int] = set()
        self._deepest, self._longest = 0, _LONGEST

    def modules(self, modules: Iterable[ModuleType]) -> Search:
        """Look through modules of the agent's, and a few steps into what libraries made of its functions."""
        self._deepest = _DEEPEST
        for module in modules:
            self._table(vars(module), in_module=True)
        self._go()
        return self

    def frames(self, frame: FrameType | None, *, once_more: bool = False, deep: bool = False) -> Search:
        """Look through the local variables of the agent's functions that are running on this thread.

        `once_more` passes over long collections, such as a conversation: this is done at each model call. `deep` looks
        into the objects of libraries, and into their running functions: a framework has at hand what it will call.
        """
        self._longest = _SHORT if once_more else _LONGEST
        if deep:
            self._deepest, self._most = _DEEPEST, _MOST_DEEP
        rest: deque[tuple[Any, int]] = deque()
        while frame is not None:
            if is_own_code(frame.f_code, frame.f_globals) or (deep and not _is_of_ours(frame)):
                local = frame.f_locals
                if local is not frame.f_globals:
                    self._strange = 0
                    self._table(dict(local), replaceable=False)
                    if deep:
                        self._go(len(self._values_by_id) + _MOST_OF_A_FRAME)
                        rest += self._queue
                        self._queue.clear()
            frame = frame.f_back
        self._queue.extendleft(reversed(rest))
        self._go()
        return self

    def candidates(self) -> list[Candidate]:
        """Give what was found: the outermost of functions that wrap each other; a library's only where nothing else."""
        hits = [
            each for each in self._candidates.values() if each.function is None or id(each.function) not in self._inner
        ]
        outer = [(each.function, each.name) for each in hits if each.function is not None]
        wrapped = {id(inner) for fn, name in outer for inner in _wrapped_by(fn, name)}
        wrapped |= {id(_behind((each.holder or {}).get(each.key))) for each in hits if each.function is None}
        hits = [each for each in hits if each.function is None or id(each.function) not in wrapped]
        sure = {each.name for each in hits if each.function is not None or not each.in_module or _is_own(each)}
        return [each for each in hits if each.name not in sure or not _is_borrowed(each)]

    def _go(self, most: int | None = None) -> None:
        bound = self._most if most is None else min(most, self._most)
        while self._queue and len(self._values_by_id) < bound:
            value, self._strange = self._queue.popleft()
            self._look_at(value)

    def _push(self, values: Iterable[Any], strange: int = 0) -> None:
        seen_values, left = self._values_by_id, self._queue
        for value in values:
            if type(value) not in _DATA and id(value) not in seen_values:
                seen_values[id(value)] = value
                left.append((value, strange))

    def _look_at(self, value: Any) -> None:
        kind = cast("type[Any]", type(value))
        if kind is FunctionType:
            self._function(value)
        elif issubclass(kind, dict):  # never `isinstance`, which asks a proxy for its class
            self._table(value, replaceable=not self._strange)
        elif issubclass(kind, list | tuple | set | frozenset):
            members = self._members(value)
            self._record(members)
            self._push(members, self._strange)
        elif issubclass(kind, _STANDING_FOR):
            self._push(_stood_for(value))
        elif issubclass(kind, type):
            if is_own_class(value):
                self._class(value)
        elif is_own_class(kind):
            attributes = _attributes(value)
            self._table(attributes)
            self._push(_slots(value).values(), self._strange)
            self._entered(kind, attributes)
        elif self._strange < self._deepest and not issubclass(kind, ModuleType):  # a framework's wrapping of a tool
            self._strange += 1
            self._table(_attributes(value), replaceable=False)
            self._push(_slots(value).values(), self._strange)
            self._push([each for name in _ENTRIES if (each := vars(kind).get(name)) is not None], self._strange)

    def _function(self, fn: FunctionType) -> None:
        if fn in self._declared:
            self._inner.update(id(each) for each in (fn, *_wrapped_by(fn)))
            return
        if not is_own_function(fn):
            if self._strange < self._deepest:
                self._push(_cells(fn), self._strange + 1)
            return
        if fn.__name__ in self._names:
            self._add(fn.__name__, fn)
        tool_names = [self._offered[each] for each in vars(fn).values() if type(each) is str and each in self._offered]
        if len(tool_names) == 1:  # a decorator of a framework's wrote it down
            self._add(tool_names[0], fn)
        self._push(fn.__defaults__ or ())
        self._push((fn.__kwdefaults__ or {}).values())
        self._push(_cells(fn))
        self._push(tuple(vars(fn).values()))

    def _class(self, cls: type) -> None:
        members = [each for name, each in tuple(vars(cls).items()) if name not in {"__dict__", "__weakref__"}]
        self._push(members)
        self._entered(cls, {})

    def _entered(self, cls: type, attributes: dict[str, Any]) -> None:
        """Take the methods by which a framework calls an instance of a class that is a tool of this name."""
        tool_names = {
            str(each)
            for each in (*vars(cls).values(), *attributes.values())
            if type(each) is str and each in self._names
        }
        if len(tool_names) != 1:
            return
        for entries in (_ENTRIES[:_FIRST_ASYNC], _ENTRIES[_FIRST_ASYNC:]):
            fn = next((each for name in entries if (each := _overriding(cls, name)) is not None), None)
            if fn is not None:
                self._add(tool_names.copy().pop(), fn)

    def _table(self, table: dict[Any, Any], *, in_module: bool = False, replaceable: bool = True) -> None:
        if len(table) > self._longest:
            items = [(name, table[name]) for name in self._names if name in table]
            values = [value for _, value in items]
        else:
            try:
                items = [(key, value) for key, value in list(table.items()) if type(key) is str and key in self._names]
                values = list(table.values())
            except Exception:  # a key's own comparison, or a table that changes meanwhile
                alarms.pass_on()
                return
        for key, value in items:
            self._take_named(key, value, table if replaceable else None, in_module=in_module)
        if not in_module:
            self._record(values)
        self._push(values, self._strange)

    def _members(self, values: Collection[Any]) -> list[Any]:
        if len(values) > self._longest:
            return []
        try:
            return list(values)
        except Exception:  # it changes meanwhile
            alarms.pass_on()
            return []

    def _record(self, values: Collection[Any]) -> None:
        """See whether a table, row or object names one tool beside the one callable it holds."""
        if len(values) > _SMALL:
            return
        names = [value for value in values if type(value) is str and value in self._names]
        if len(names) != 1:
            return
        callables = [value for value in values if _function_of(value) is not None]
        if len(callables) == 1 and (fn := _function_of(callables[0])) is not None:
            self._add(names[0], fn)

    def _take_named(self, name: str, value: Any, table: dict[Any, Any] | None, *, in_module: bool) -> None:
        """Take what stands under a tool's name."""
        fn = _function_of(value)
        if fn is not None:
            if fn not in self._declared:
                self._add(name, fn)
        elif table is not None and callable(value) and not issubclass(type(value), type) and not self._leads_on(value):
            self._add(name, None, table, name, in_module=in_module)

    def _leads_on(self, value: Any) -> bool:
        """Tell whether this is a declared function, whatever it is bound to."""
        inner = value.__func__ if type(value) is MethodType else value
        return type(inner) is FunctionType and inner in self._declared

    def _add(
        self,
        name: str,
        fn: FunctionType | None,
        holder: dict[Any, Any] | None = None,
        key: str = "",
        *,
        in_module: bool = False,
    ) -> None:
        if fn is not None and any(inner in self._declared for inner in (fn, *_wrapped_by(fn, fn.__name__))):
            return
        place = (name, id(fn) if fn is not None else 0, id(holder) if holder is not None else 0)
        self._candidates.setdefault(
            place, Candidate(name=name, function=fn, holder=holder, key=key, in_module=in_module)
        )


_SMALL = 20
"""Entries of a record."""


def _by_last_part(names: Collection[str]) -> dict[str, str]:
    """Give tools' names by what their functions are called: themselves, or less a prefix that tells no two apart."""
    by_last: dict[str, str] = {}
    twice: set[str] = set()
    for name in names:
        if (match := _PREFIXED.fullmatch(name)) is not None and match[1] not in names:
            twice |= {match[1]} & by_last.keys()
            by_last[match[1]] = name
    return {last: name for last, name in by_last.items() if last not in twice} | {name: name for name in names}


def _is_of_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "reenact"


def _overriding(cls: type, name: str) -> FunctionType | None:
    """Give the agent's own method of a class by which it overrides one of an installed library's class."""
    below: FunctionType | None = None
    for each in cls.__mro__[:-1]:
        method = vars(each).get(name)
        if below is None:
            below = _function_of(method)
        elif method is not None and not is_own_class(each):
            return below
    return None


def _function_of(value: Any) -> FunctionType | None:
    """Find the agent's own function that a call of `value` runs and that has code to replace."""
    if type(value) is MethodType:
        value = value.__func__
    if issubclass(type(value), staticmethod | classmethod):
        value = value.__func__
    return value if type(value) is FunctionType and is_own_function(value) else None


def _behind(value: Any) -> Any:
    """Give the function that a partial or a cache calls; they are cut themselves."""
    kind = cast("type[Any]", type(value))
    if kind is _CACHE:
        return _behind(value.__wrapped__)
    return _behind(value.func) if issubclass(kind, partial) else value


def _stood_for(value: Any) -> tuple[Any, ...]:
    if type(value) is MethodType:
        return value.__func__, value.__self__
    return (value.func if issubclass(type(value), partial) else value.__func__,)


def _attributes(value: Any) -> dict[str, Any]:
    """Give what an instance holds, without asking it: its `__dict__` itself, or a copy of its slots."""
    try:
        table = object.__getattribute__(value, "__dict__")
    except Exception:
        alarms.pass_on()
        table = None
    return cast("dict[str, Any]", table) if isinstance(table, dict) else _slots(value)


def _slots(value: Any) -> dict[str, Any]:
    """Give what an instance holds in slots."""
    slots: dict[str, Any] = {}
    for cls in type(value).__mro__:
        names: Any = vars(cls).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else tuple(names):
            with suppress(Exception):  # an empty slot, or a private name
                slots[str(name)] = object.__getattribute__(value, name)
    return slots


def _cells(fn: FunctionType) -> list[Any]:
    contents: list[Any] = []
    for cell in fn.__closure__ or ():
        try:
            contents.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    return contents


def _wrapped_by(fn: FunctionType, name: str = "") -> Iterator[FunctionType]:
    """Give the functions that `fn` stands before: what it wraps, and those in its closure, of this name or of any."""
    left, seen_ids = [fn], {id(fn)}
    while left:
        outer = left.pop()
        wrapped = vars(outer).get("__wrapped__")
        for inner in (wrapped, *_cells(outer)):
            target = _function_of(inner) or (inner if type(inner) is FunctionType else None)
            if target is None or id(target) in seen_ids or (name and target is not wrapped and target.__name__ != name):
                continue
            seen_ids.add(id(target))
            left.append(target)
            yield target


def _is_own(candidate: Candidate) -> bool:
    kind = cast("type[Any]", type((candidate.holder or {}).get(candidate.key)))
    return issubclass(kind, partial) or is_own_class(kind) or kind is _CACHE


def _is_borrowed(candidate: Candidate) -> bool:
    """Tell whether a module merely imported something of a library's that happens to be called like a tool."""
    return candidate.in_module and candidate.function is None and not _is_own(candidate)
