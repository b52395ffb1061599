"""What of an agent's state may last from one unit of work to the next: where it stands, and what tells a change of it.

Variables of the agent's modules that a function of theirs names and that can change, attributes of their classes and of
their objects that a framework keeps, variables of closures, what a function without parameters keeps in its cache,
databases and caches in memory. Of an object of a
library's only those attributes count that the agent's code names: `app.state`, `session.headers`, and not its pool of
connections. A variable of a context or of a thread is looked at apart: what it holds depends on who looks.
"""

from __future__ import annotations

import gc
import itertools
import marshal
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, MutableMapping, MutableSequence, MutableSet
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache, partial
from types import FunctionType, GeneratorType, ModuleType, SimpleNamespace
from typing import Any, Final, cast

from reenact.boundary import memory_databases
from reenact.boundary.code_facts import code_facts
from reenact.boundary.library_state import inner, is_store, reader_of
from reenact.boundary.own_code import is_own_class, is_own_function, own_modules
from reenact.boundary.roots import ABSENT, CACHE, CODE, COLLECTIONS, Root, attribute, dict_of, kind_of, slots_of
from reenact.boundary.snapshot import ITERATORS, Snapshot

MEMORY: Final = "a database in memory"
DJANGO_CACHE: Final = "a cache of Django's in memory"
ENVIRONMENT: Final = "the environment"
HANDED: Final = "an argument that a partial keeps"
STORE: Final = "what a library keeps in memory"
ALWAYS_READ: Final = frozenset({MEMORY, DJANGO_CACHE, ENVIRONMENT, HANDED, STORE})
"""State that counts as read whatever the agent's code names."""
_METRICS: Final = ("prometheus_client.registry", "REGISTRY", "generate_latest")
"""Where metrics stand, and the name of code that reads them."""
CHANGED_BY_ALL: Final = ALWAYS_READ | {_METRICS[2]}
"""State that any code may change, whatever it names."""
_ENVIRONMENT: Final = frozenset({"environ", "getenv", "putenv"})
"""Names of code that has to do with it."""
_LOCAL_CACHES: Final = ("django.core.cache.backends.locmem", "_caches")
_HUGE: Final = 1_000
"""Members of a collection, those of its members included, from which on it is only told how many they are, unless they
are plain data."""
_HUGE_PLAIN: Final = 20_000
"""Likewise where they are: a digest of so many takes a millisecond."""
PLAIN: Final = frozenset({str, bytes, int, float, bool, complex, type(None)})
_COUNTED: Final = frozenset({dict, list, tuple, set, frozenset, deque})
_STEPPING: Final = frozenset({GeneratorType, enumerate, zip, map, filter}) | ITERATORS
"""What stands somewhere."""
_CHANGING: Final = (MutableMapping, MutableSequence, MutableSet)
_HELD: Final = 300
"""What a library's object refers to, so far as it is looked at for functions."""
_MOST_KEPT: Final = 50
"""Values of a cache that are looked at."""


_POOLS: Final = frozenset({"psycopg_pool", "asyncpg", "aiomysql", "redis", "pymongo"})
"""Libraries whose pools of connections change by themselves: what a program asks over these is recorded."""

_CLIENTS: Final = _POOLS | {
    *(
        "psycopg",
        "psycopg2",
        "pymysql",
        "sqlalchemy",
        "motor",
        "elasticsearch",
        "opensearchpy",
        "qdrant_client",
        "grpc",
    ),
    *("httpx", "httpx2", "aiohttp", "openai", "anthropic", "botocore", "aiobotocore", "grpc"),
}
"""Libraries whose clients a table may keep by name, each made when it is first needed."""


class NameUse:
    """The names that the agent's functions use."""

    def __init__(self, functions: Iterator[FunctionType]) -> None:
        self.functions = list({id(fn): fn for fn in functions}.values())
        """Each by itself: of two with the same code the variables that they close over are others."""
        facts = [code_facts(code) for code in {fn.__code__ for fn in self.functions}]
        self.named = frozenset(name for each in facts for name in each.variables | each.attributes)
        self.stored = frozenset(name for each in facts for name in each.stored | each.set_attributes)
        self.either = self.named | self.stored


def names() -> NameUse:
    """Gather what the functions of the agent's modules name."""
    return NameUse(
        fn for module in own_modules() for value in [*vars(module).values()] for fn in functions_behind(value)
    )


def roots(code_names: NameUse, objects: Iterable[weakref.ref[Any]] = ()) -> Iterator[Root]:
    """Name the state that functions of the agent name: of its modules, and of `objects` that frameworks keep."""
    for module in own_modules():
        for name, value in [*vars(module).items()]:
            if name.startswith("__"):
                continue
            if name in code_names.either or issubclass(kind_of(value), type):  # of a class only annotations may tell
                yield from _of_variable(module, name, value, code_names)
            elif not is_state(value) and not issubclass(kind_of(value), CODE):  # `app`, which code has by another name
                yield from _of_library(f"{module.__name__}:{name}", value, code_names)
    cell_ids = set[int]()
    for fn in code_names.functions:
        yield from _of_function(fn, code_names)
        yield from _of_closure(fn, cell_ids)
    for each in objects:
        yield from _of_object(each, code_names, cell_ids)
    yield from _of_process(code_names)


def _of_process(code_names: NameUse) -> Iterator[Root]:
    """Name what a library or the system keeps for the whole process."""
    yield Root(MEMORY, "value", memory_databases)
    if (module := sys.modules.get(_LOCAL_CACHES[0])) is not None:
        yield Root(DJANGO_CACHE, "table", vars(module), _LOCAL_CACHES[1])
    if (module := sys.modules.get(_METRICS[0])) is not None and _METRICS[2] in code_names.either:
        yield Root(f"prometheus_client:{_METRICS[2]}", "table", vars(module), _METRICS[1])
    if not code_names.either.isdisjoint(_ENVIRONMENT):
        yield Root(ENVIRONMENT, "value", os.environ)


def _of_object(kept: weakref.ref[Any], code_names: NameUse, cell_ids: set[int]) -> Iterator[Root]:
    """Name the state of an object that a framework keeps, which is held weakly."""
    value: Any = kept()
    if type(value) is FunctionType:
        yield from _of_closure(value, cell_ids, kept)
    elif type(value) is partial:
        yield from _of_partial(kept, value)
    elif is_store(kind_of(value)):
        yield Root(STORE, "weak", kept)
    elif is_own_class(kind_of(value)):
        yield from _of_instance(kept, value, code_names)
    else:
        yield from _of_library(kind_of(value).__qualname__, value, code_names, kept)


def _of_function(fn: FunctionType, code_names: NameUse) -> Iterator[Root]:
    """Name what a function has as defaults of its parameters, and as attributes."""
    label = f"{fn.__module__}:{fn.__qualname__}"
    for name, value in defaults_of(fn):
        if is_state(value):
            yield Root(f"{label}.{name}", "value", value)
    stored = {name for holder, name in code_facts(fn.__code__).dotted if fn.__globals__.get(holder) is fn}
    for name in sorted({*vars(fn), *stored}):
        value = vars(fn).get(name, ABSENT)
        if (
            not name.startswith("__")
            and name in code_names.either
            and (value is ABSENT or type(value) in PLAIN or is_state(value))
        ):
            yield Root(f"{label}.{name}", "table", vars(fn), name)


def defaults_of(fn: FunctionType) -> list[tuple[str, Any]]:
    """Give the parameters of a function that have defaults, each with its own."""
    positional, defaults = fn.__code__.co_varnames[: fn.__code__.co_argcount], fn.__defaults__ or ()
    named = zip(positional[len(positional) - len(defaults) :], defaults, strict=False)
    return [*named, *(fn.__kwdefaults__ or {}).items()]


def _of_partial(made: weakref.ref[Any], value: Any) -> Iterator[Root]:
    """Name what is handed to one of the agent's functions whenever it is called so."""
    for place, member in (*enumerate(value.args), *value.keywords.items()):
        if is_state(member):
            yield Root(HANDED, "weak", made, str(place))


def _of_closure(fn: FunctionType, cell_ids: set[int], weakly: weakref.ref[Any] | None = None) -> Iterator[Root]:
    """Name what a function closes over, unless another one was gone through that closes over the same."""
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
        label = f"{fn.__module__}:{fn.__qualname__}.{name}"
        root = Root(label, "cell", cell, name) if weakly is None else Root(label, "weak", weakly, name)
        value = root.get()
        if id(cell) not in cell_ids and (is_state(value) or type(value) in PLAIN):
            cell_ids.add(id(cell))
            yield root


def _of_instance(instance: weakref.ref[Any], value: Any, code_names: NameUse) -> Iterator[Root]:
    kind = kind_of(value)
    for name in (*dict_of(value), *slots_of(kind)):
        if name in code_names.either and not name.startswith("__"):
            member = attribute(value, name)
            if is_state(member) or (name in code_names.stored and type(member) in PLAIN):
                yield Root(f"{kind.__module__}:{kind.__qualname__}.{name}", "weak", instance, name)


def _of_variable(module: ModuleType, name: str, value: Any, code_names: NameUse) -> Iterator[Root]:
    label = f"{module.__name__}:{name}"
    if issubclass(kind_of(value), type):
        if is_own_class(value):
            yield from _of_class(value, code_names)
    elif is_state(value) or (name in code_names.stored and (type(value) in PLAIN or type(value) is FunctionType)):
        yield Root(label, "table", vars(module), name)
    elif not issubclass(kind_of(value), CODE):
        yield from _of_library(label, value, code_names)


def _of_class(cls: type, code_names: NameUse) -> Iterator[Root]:
    table = cast("dict[str, Any]", vars(cls))
    for name, value in [*table.items()]:
        if name.startswith("__") or name not in code_names.either:
            continue
        if is_state(value) or (name in code_names.stored and type(value) in PLAIN):
            yield Root(f"{cls.__module__}:{cls.__qualname__}.{name}", "class", cls, name)


def _of_library(label: str, value: Any, code_names: NameUse, weakly: weakref.ref[Any] | None = None) -> Iterator[Root]:
    """Name the attributes of a library's object that the agent's code names, and that can change."""
    if kind_of(value).__module__.partition(".")[0] in _POOLS:
        return
    for name, member in [*dict_of(value).items()]:
        public = name.removeprefix("_")
        if public not in code_names.either or issubclass(kind_of(member), CODE):
            continue
        plain = type(member) in PLAIN
        if (plain and name in code_names.stored) or is_state(member) or (not plain and name == "state"):
            kind, holder = ("attribute", value) if weakly is None else ("weak", weakly)
            yield Root(f"{label}.{public}", kind, holder, name)


def functions_behind(value: Any) -> Iterator[FunctionType]:
    """Give the agent's functions behind a variable: itself, what it wraps, the methods of a class."""
    if issubclass(kind_of(value), type):
        if is_own_class(value):
            for member in [*cast("dict[str, Any]", vars(value)).values()]:
                if not issubclass(kind_of(member), type):
                    yield from functions_behind(member)
        return
    if kind_of(value) is property:
        for each in (value.fget, value.fset, value.fdel):
            yield from functions_behind(each)
        return
    depth = 0
    while value is not None and depth < 9:
        value = getattr(value, "__func__", value) if kind_of(value) in {staticmethod, classmethod} else value
        if type(value) is FunctionType and is_own_function(value):
            yield value
        if type(value) is not FunctionType and type(value) is not CACHE:
            yield from _held_by(value)
            return
        value, depth = vars(value).get("__wrapped__"), depth + 1


def _held_by(value: Any) -> Iterator[FunctionType]:
    """Give the agent's functions that a library's callable object holds, such as a task; runs none of its code."""
    if issubclass(kind_of(value), CODE) or not callable(value):
        return
    seen_ids, left = {id(value)}, deque([value])
    while left and len(seen_ids) < _HELD:
        for each in gc.get_referents(left.popleft()):
            kind = kind_of(each)
            if id(each) in seen_ids or kind in PLAIN or issubclass(kind, ModuleType):
                continue
            seen_ids.add(id(each))
            if kind is FunctionType:
                if is_own_function(each):
                    yield each
            elif not issubclass(kind, COLLECTIONS) or len(each) <= _HELD:
                left.append(each)


@lru_cache(maxsize=4096)
def _is_changing(kind: type) -> bool:
    """Tell a collection of a library's own kind."""
    return issubclass(kind, _CHANGING)


def is_state(value: Any) -> bool:
    """Tell what can change and is looked into."""
    kind = kind_of(value)
    if kind in PLAIN or issubclass(kind, CODE) or value is ABSENT:
        return False
    if kind is CACHE:
        return not _is_of_a_library(value)
    if issubclass(kind, COLLECTIONS) or kind in _STEPPING or kind.__module__ == "itertools":
        return True
    if kind is SimpleNamespace or kind.__module__ == "queue" or is_of_whoever_looks(value):
        return True
    return is_own_class(kind) or _is_changing(kind) or reader_of(kind) is not None


def _is_of_a_library(cache: Any) -> bool:
    """Tell the cached function of a library (`urllib.parse.urlsplit`) from a function that the agent caches."""
    function: object = getattr(cache, "__wrapped__", None)
    if not isinstance(function, FunctionType) or is_own_function(function):
        return False
    module = sys.modules.get(function.__module__)
    return module is not None and vars(module).get(function.__name__) is cache


def is_of_whoever_looks(value: Any) -> bool:
    """Tell what holds another value for each context, or for each thread."""
    return issubclass(kind_of(value), ContextVar | threading.local)


def prints(value: Any, code_names: frozenset[str]) -> Any:
    """Give what tells a value from another one: plain data by its digest, all else by what a look takes in."""
    kind = kind_of(value)
    if kind in PLAIN:
        return kind, value
    if value is ABSENT:
        return None
    if value is memory_databases:
        return memory_databases.counts()
    if value is os.environ:
        return hash(tuple(value._data.items()))  # noqa: SLF001 - its own methods note who reads which variable
    if kind is CACHE:
        return _of_cache(value, code_names)
    if (reader := reader_of(kind)) is not None and (parts := inner(reader, value)) is not value:
        return "inner", prints(parts, code_names), prints(dict_of(value), code_names) if is_own_class(kind) else None
    if kind is dict and value and all(map(_is_client, value.values())):
        return frozenset((key, id(client)) for key, client in [*value.items()])
    return _of_contents(value, code_names)


def _is_client(value: Any) -> bool:
    return kind_of(value).__module__.partition(".")[0] in _CLIENTS


def _of_contents(value: Any, code_names: frozenset[str]) -> Any:
    many = _many(value) if issubclass(kind_of(value), COLLECTIONS) else 0
    if many > _HUGE_PLAIN:
        return many
    with suppress(ValueError):  # it is no plain data
        return hash(marshal.dumps(value, 2))
    if many > _HUGE:
        return many
    if issubclass(kind_of(value), CODE):
        return id(value)
    looked = Snapshot(few=True, named=code_names)
    top = looked.look(value, "")
    shapes = [(shape.kind, shape.steps, shape.items) for shape in looked.done().shapes.values()]
    return hash(repr((top, shapes)))


def _of_cache(value: Any, code_names: frozenset[str]) -> Any:
    """Tell how often a cache was filled, and hit where code asks for that; of one without parameters, what it keeps."""
    told = value.cache_info()
    misses = (told.misses, told.hits) if "cache_info" in code_names else told.misses
    behind = value.__wrapped__
    if type(behind) is FunctionType and behind.__code__.co_argcount:
        return misses
    pool = [each for each in _cache_items(value) if type(each) not in PLAIN]
    return "kept", [prints(each, code_names) for each in pool if not issubclass(kind_of(each), CODE) and is_state(each)]


def _cache_items(cache: Any) -> Iterator[Any]:
    """Give what a cache keeps, where its parts tell it."""
    attributes = cast("dict[str, Any]", vars(cache))
    for table in gc.get_referents(cache):
        if type(table) is dict and table is not attributes:
            for each in itertools.islice([*cast("dict[Any, Any]", table).values()], _MOST_KEPT):
                yield from gc.get_referents(each) if kind_of(each).__name__ == "_lru_list_elem" else (each,)


def _many(value: Any) -> int:
    """Count the members of a collection and of those in it."""
    many = len(value)
    if many > _HUGE or issubclass(kind_of(value), bytearray):
        return many
    members = dict[Any, Any].values(value) if issubclass(kind_of(value), dict) else value
    return many + sum(len(each) for each in [*members] if type(each) in _COUNTED)


def has_changed(was: Any, now: Any, value: Any) -> bool:
    """Tell whether a print is of another value; a database that was closed, or never written to, changed nothing."""
    if value is memory_databases:
        before: dict[int, int] = was or {}
        return any(count > 0 and before.get(each) != count for each, count in now.items())
    return now != was


def is_made_at_need(was: Any, now: Any, value: Any) -> bool:
    """Tell a change that a unit alone would make again: what was nothing became something of a cache or a library."""
    if kind_of(value) is CACHE:
        return was == ("kept", []) and was != now
    if type(now) is frozenset:  # clients by name
        return was <= now if type(was) is frozenset else was == _NOTHING
    return was in ((type(None), None), None) and not is_state(value) and type(value) not in PLAIN


_NOTHING: Final = _of_contents({}, frozenset())
"""What tells an empty table."""
