"""What state of the process a tool can reach, whether it changed, and what open connections are among it.

The state of a function is what its code names: variables of its module and of its closure, attributes of the instance
it is bound to, arguments that can change; and the same of the agent's own functions that it names. Each is reduced to
a number before and after a call: bounded, without running the agent's code, and good only within this process.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from reenact.boundary.own_code import is_own_class, is_own_function, is_own_globals
from reenact.values import alarms

_MOST_FUNCTIONS = 200
_MOST_NAMESPACES = 50
_MOST_VALUES = 20_000
"""Values that are looked at for one fingerprint; state that is larger is told by what comes first of it."""
_PLAIN = frozenset({str, bytes, int, float, bool, complex, type(None)})
_REFLECTION = frozenset({"__dict__", "vars", "getattr", "setattr", "__getattribute__"})
_VERBS = (
    "cursor",
    "execute",
    "commit",
    "send",
    "sendall",
    "request",
    "query",
    "command",
    "execute_command",
    "publish",
    "write",
    "_make_api_call",
    "list_databases",
)
"""What clients of databases, brokers and services can do; with `close` they tell one."""
_RECORDED = frozenset({"openai", "anthropic", "httpx", "httpx2", "asyncio", "logging", "tempfile", "reenact"})
"""Libraries whose clients ask through boundaries of their own, or are no clients."""
_WALKED = frozenset({"collections", "queue", "types", "array"})
_COLLECTIONS = (dict, list, tuple, set, frozenset, deque, bytearray)
_CACHE = type(lru_cache(len))
_CODE = (ModuleType, type, FunctionType, MethodType, BuiltinFunctionType, property, staticmethod, classmethod)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What a call can reach: each piece of state by name, with its fingerprint, and open connections."""

    state: Mapping[str, int]
    held: tuple[str, ...]

    def changed(self, after: Reached) -> list[str]:
        """Name what is not the same any more."""
        names = [*self.state, *(name for name in after.state if name not in self.state)]
        return [name for name in names if self.state.get(name) != after.state.get(name)]


def reached(target: Any, arguments: Mapping[str, Any]) -> Reached:
    """Take the fingerprints of all that a call of `target` with these arguments can reach."""
    walk = _Walk()
    state: dict[str, int] = {}
    for name, value in _roots(target, arguments):
        found = walk.fingerprint(value, name)
        if found is not None:
            state[name] = found
    return Reached(state=state, held=tuple(dict.fromkeys(walk.held)))


def _roots(target: Any, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name the pieces of state: `module:name`, `module:function.name` of a closure, `module:Class.attribute`."""
    while issubclass(type(target), partial):
        yield from _bound(target)
        target = target.func
    if type(target) is _CACHE:
        yield f"{target.__module__}:{target.__qualname__} cache", target.cache_info()
        target = target.__wrapped__
    if type(target) is MethodType:
        arguments = {"self": target.__self__, **arguments}
        target = target.__func__
    elif type(target) is not FunctionType and is_own_class(_kind(target)):
        arguments = {"self": target, **arguments}
        target = next((vars(cls)["__call__"] for cls in _kind(target).__mro__ if "__call__" in vars(cls)), None)
    names: set[str] = set()
    if type(target) is FunctionType:
        owner = next(iter(arguments.values()), None) if "." in target.__qualname__ else None
        functions = _functions(target, owner)
        names = {name for fn in functions for name in _names(fn.__code__)}
        for fn in functions:
            yield from _of_function(fn, names)
    for name, value in arguments.items():
        if type(value) in _PLAIN:
            continue
        if is_own_class(_kind(value)) or issubclass(type(value), type):
            yield from _of_instance(value, names)
        else:
            yield f"argument {name}", value


def _kind(value: Any) -> type[Any]:
    """Give the class of a value without asking it, as `isinstance` may."""
    return cast("type[Any]", type(value))


def _bound(target: partial[Any]) -> Iterator[tuple[str, Any]]:
    given = [*enumerate(target.args), *target.keywords.items()]
    yield from ((f"argument {name}", value) for name, value in given if type(value) not in _PLAIN)


def _functions(fn: FunctionType, owner: Any) -> list[FunctionType]:
    """List a function and those of the agent's own that it names, directly or not, and methods of what it names."""
    found, spaces, seen = {id(fn): fn}, _namespaces(owner), {id(owner)}
    left = [fn]
    while left and len(found) < _MOST_FUNCTIONS:
        outer = left.pop()
        names = _names(outer.__code__)
        named = [space[name] for space in (outer.__globals__, *spaces) for name in names if name in space]
        for value in (*named, *_cells(outer).values()):
            inner = _plain_function(value)
            if inner is None:
                if id(value) not in seen and len(spaces) < _MOST_NAMESPACES and (further := _namespaces(value)):
                    seen.add(id(value))
                    spaces += further
                    left = list(found.values())  # their names may mean something there
            elif id(inner) not in found and is_own_globals(inner.__globals__):
                found[id(inner)] = inner
                left.append(inner)
    return list(found.values())


def _namespaces(value: Any) -> list[dict[str, Any]]:
    """Give where the attributes of a module, class or instance of the agent's own are looked up."""
    kind = _kind(value)
    if issubclass(kind, ModuleType):
        held = cast("dict[str, Any]", vars(value))
        return [held] if is_own_globals(held) else []
    cls: type[Any] = value if issubclass(kind, type) else kind
    spaces = [dict(vars(each)) for each in cls.__mro__ if is_own_class(each)]
    return [*spaces, _instance_dict(value)] if spaces and cls is not value else spaces


def _plain_function(value: Any) -> FunctionType | None:
    kind = _kind(value)
    if kind in {MethodType, staticmethod, classmethod}:
        value = value.__func__
    elif kind is property:
        value = value.fget
    elif kind is _CACHE:
        value = value.__wrapped__
    if type(value) is FunctionType:
        inner = vars(value).get("__wrapped__")
        return inner if type(inner) is FunctionType and not is_own_function(value) else value
    return None


def _of_function(fn: FunctionType, names: set[str]) -> Iterator[tuple[str, Any]]:
    for name in _names(fn.__code__):
        if name in fn.__globals__ and not name.startswith("__"):
            yield from _of_global(f"{fn.__module__}:{name}", fn.__globals__[name], names)
    around = fn.__qualname__.rpartition(".")[0] or fn.__qualname__
    for name, value in _cells(fn).items():
        if name == "self" or is_own_class(_kind(value)):
            yield from _of_instance(value, names)
        elif name != "__class__":
            yield f"{fn.__module__}:{around}.{name}", value
    for number, value in enumerate(fn.__defaults__ or ()):
        if type(value) not in _PLAIN:
            yield f"{fn.__module__}:{fn.__qualname__} default {number}", value


def _of_global(name: str, value: Any, names: set[str]) -> Iterator[tuple[str, Any]]:
    kind = _kind(value)
    if issubclass(kind, ModuleType):
        held = cast("dict[str, Any]", vars(value))
        if is_own_globals(held):
            yield from ((f"{value.__name__}:{each}", held[each]) for each in names if each in held)
    elif issubclass(kind, type) or is_own_class(kind):
        yield from _of_instance(value, names)
    elif kind is FunctionType:
        yield from (
            (f"{name}.{each}", held) for each, held in cast("dict[str, Any]", vars(value)).items() if each in names
        )
    else:
        yield name, value


def _of_instance(value: Any, names: set[str]) -> Iterator[tuple[str, Any]]:
    """Name the attributes of an instance and of its class that the code names, or all where it may compute names."""
    cls: type[Any] = value if issubclass(type(value), type) else _kind(value)
    if issubclass(_kind(value), _COLLECTIONS):
        yield f"{cls.__module__}:{cls.__qualname__}", value
    everything = not names.isdisjoint(_REFLECTION)
    held: dict[str, Any] = {}
    for each in reversed(cls.__mro__):
        if is_own_class(each):
            held |= {name: it for name, it in vars(each).items() if not name.startswith("__")}
            held |= {name: _slot(value, name) for name in _slots(each)}
    if cls is not value:
        held |= _instance_dict(value)
    for name, attribute in held.items():
        if everything or name in names:
            yield f"{cls.__module__}:{cls.__qualname__}.{name}", attribute


def _instance_dict(value: Any) -> dict[str, Any]:
    try:
        held = object.__getattribute__(value, "__dict__")
    except Exception:  # it has none
        alarms.pass_on()
        return {}
    return dict(cast("dict[str, Any]", held)) if isinstance(held, dict) else {}


def _slots(cls: type) -> tuple[str, ...]:
    names: Any = vars(cls).get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(str(name) for name in names)


def _slot(value: Any, name: str) -> Any:
    try:
        return object.__getattribute__(value, name)
    except Exception:  # it is empty
        alarms.pass_on()
        return None


@lru_cache(maxsize=4096)
def _names(code: CodeType) -> frozenset[str]:
    """Give every name of a variable or attribute that code uses, inner functions' included."""
    found = set(code.co_names)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found |= _names(each)
    return frozenset(found)


def _cells(fn: FunctionType) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return found


class _Walk:
    """Goes through values, however they hang together, up to a number of them in all."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self._left = _MOST_VALUES

    def fingerprint(self, value: Any, name: str) -> int | None:
        """Reduce a value to a number; None for code, which is no state."""
        if issubclass(type(value), _CODE):
            return None
        said: list[int] = []
        seen: dict[int, int] = {}
        queue = deque([value])
        while queue and self._left > 0:
            self._left -= 1
            each = queue.popleft()
            kind = _kind(each)
            if kind in _PLAIN:
                said += (id(kind), hash(each))
                continue
            number = seen.setdefault(id(each), len(seen))
            said += (id(kind), number)
            if number == len(seen) - 1:
                inside = self._inside(each, kind, name)
                said.append(id(each) if inside is None else len(inside))
                queue.extend(inside or ())
        return hash(tuple(said))

    def _inside(self, value: Any, kind: type[Any], name: str) -> list[Any] | None:
        """Give what a value holds; None where it is opaque."""
        try:
            if issubclass(kind, dict):
                return [each for pair in list(value.items()) for each in pair]
            if issubclass(kind, _COLLECTIONS):
                return list(value)
            if kind is _CACHE:
                return list(value.cache_info())
        except Exception:  # it changes meanwhile
            alarms.pass_on()
            return None
        if is_own_class(kind):
            held = _instance_dict(value) | {slot: _slot(value, slot) for each in kind.__mro__ for slot in _slots(each)}
            return [each for pair in held.items() for each in pair]
        if kind.__module__ in _WALKED:
            return list(_instance_dict(value).values())
        if is_connection(value):
            self.held.append(f"{kind.__module__}.{kind.__qualname__} {name}")
        return None


def is_connection(value: Any) -> bool:
    """Tell an open file, socket, or client of a database, broker or service, whose use raises no audit event."""
    kind = _kind(value)
    if issubclass(kind, io.StringIO | io.BytesIO):
        return False
    if issubclass(kind, io.IOBase):
        return not value.closed and not _is_standard(value)
    return _acts_outside(kind)


def _is_standard(value: Any) -> bool:
    try:
        return value.fileno() in {0, 1, 2}
    except Exception:  # a test's own capture of the standard streams
        alarms.pass_on()
        return False


@lru_cache(maxsize=4096)
def _acts_outside(kind: type) -> bool:
    if kind.__module__.partition(".")[0] in _RECORDED or not hasattr(kind, "close"):
        return False
    return any(hasattr(kind, verb) for verb in _VERBS)
