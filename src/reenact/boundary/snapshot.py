"""A look at values and all that hangs from them, and another one later: what is not the same any more.

Each object is numbered when it is first met, so that an object which hangs at two places is one. Of each the contents
are noted: plain values themselves, other objects by their number. A second look gives objects of the first one the
numbers that they had. No code of the agent's is run, and nothing is held that the agent may let go: of instances only
a weak reference is kept.
"""

from __future__ import annotations

import io
import itertools
import marshal
import random
import sys
import threading
import weakref
from array import array
from collections import OrderedDict, deque
from collections.abc import MutableMapping, MutableSequence, MutableSet
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from pathlib import PurePath
from types import FunctionType, GeneratorType, SimpleNamespace
from typing import Any, Final, cast
from uuid import UUID

from reenact.boundary.memory_databases import counts, is_in_a_file, is_in_memory
from reenact.boundary.own_code import is_own_class
from reenact.boundary.reach import is_of
from reenact.boundary.roots import CACHE, CODE, COLLECTIONS, dict_of, kind_of, slots_of
from reenact.values import alarms

MOST: Final = 20_000
"""Values that one look takes in; larger state is told by a digest of what comes behind."""
FEW: Final = 1_000
"""Values that one look takes in of each piece of state of a declared tool, which is looked at whatever it does."""
HUGE: Final = 50_000
"""Members of a collection of which a look that takes in few notes no more than how many they are."""
_LIBRARY: Final = 300
"""Objects of libraries that one look goes into."""
_LONGEST: Final = 1_000_000
"""Bytes of a buffer that are looked at."""
PLAIN: Final = frozenset({str, bytes, int, float, bool, complex, type(None), type(...)})
ATOMS: Final = frozenset({Decimal, Fraction, date, datetime, time, timedelta, timezone, UUID, range})
"""Kinds of values that never change and compare by what they say."""
_DISCOVERY: Final = "reenact.boundary.tool_discovery"
_looks = itertools.count()
_CYCLE_TELLS: Final = sys.version_info < (3, 12)
"""`itertools.cycle` says where it stands; later Pythons warn at that, or cannot."""
ITERATORS: Final = frozenset(map(type, (iter([]), iter(()), iter(range(0)), iter(""), iter(b""), reversed([]))))
_VERBS: Final = (
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
_RECORDED: Final = frozenset(
    {
        "openai",
        "anthropic",
        "httpx",
        "httpx2",
        "asyncio",
        "logging",
        "tempfile",
        "reenact",
        "opentelemetry",
        "threading",
    }
)
"""Libraries whose clients ask through boundaries of their own, or hold no state that a program goes by."""


_EMBEDDED: Final = frozenset({"duckdb", "_duckdb", "apsw", "chdb", "kuzu", "lancedb", "chromadb", "pysqlite3"})
"""Databases that live in the process and do not tell whether they were changed: taken for changed."""


_OF_ATTRIBUTES: Final = frozenset({SimpleNamespace, threading.local})
_UNTOLD: Final = frozenset(
    {enumerate, zip, map, filter}
    | {kind_of(cast("Any", each)) for each in (iter({1: 1}), iter({1: 1}.values()), iter({1: 1}.items()), iter({1}))}
)
"""Iterators that do not say where they stand, as those of `itertools`: taken for changed."""


_CHANGING: Final = frozenset({"list", "dict", "pairs", "set", "deque", "bytearray", "object"})
"""Kinds of contents that can be changed, and spelled."""


class Ref(int):
    """The number of an object."""

    __slots__ = ()


class Shape:
    """The contents of one object: what to call their kind, a step to each, and each."""

    __slots__ = ("items", "kind", "steps")

    def __init__(self, kind: str, items: list[Any], steps: list[Any] | None = None) -> None:
        self.kind, self.items, self.steps = kind, items, steps

    def differs(self, other: Shape) -> bool:
        """Tell whether these are other contents. `1`, `1.0` and `True` are three things."""
        return not (
            self.kind == other.kind
            and self.items == other.items
            and self.steps == other.steps
            and list(map(type, self.items)) == list(map(type, other.items))
        )


class Snapshot:
    """One look."""

    def __init__(
        self, earlier: Snapshot | None = None, *, few: bool = False, named: frozenset[str] | None = None
    ) -> None:
        self._attribute_names = named
        """Attributes of libraries' objects that are looked at; None for all."""
        self.few = few or (earlier is not None and earlier.few)
        """Take in `FEW` values of each piece of state."""
        self.shapes: dict[int, Shape] = {}
        """The contents of each object, by its number."""
        self.via: dict[int, tuple[int, Any]] = {}
        """How each was met first: from which object (below 0: which value looked at, -1 the first), by what step."""
        self.glanced: dict[int, int] = {}
        """Objects that were not looked into, with the value looked at that each of them is."""
        self.connections: list[str] = []
        """Open connections, with the name of the value that they hang from."""
        self.strange: list[Any] = []
        """Code and instances of the agent's classes, for who wants to know them all."""
        self.whole = True
        """Everything was looked at."""
        self._changing: AbstractSet[int] | None = None
        self._earlier = earlier
        self._numbers: dict[int, int] = {} if earlier is None else earlier.numbers()
        self._objects: dict[int, Any] = {}
        self._fresh: dict[int, Any] = {}
        """What is held while this look is taken, so that no number is given twice."""
        self._next = 0 if earlier is None else earlier.count
        self._queue: deque[tuple[int, Any]] = deque()
        self._looks = 0
        self._budget, self._library = MOST, _LIBRARY
        self._name = ""

    def numbers(self) -> dict[int, int]:
        """Give the number of each object that lives yet, by id."""
        numbers_by_id: dict[int, int] = {}
        for number, reference in self._objects.items():
            value = _living(reference)
            if value is not None:
                numbers_by_id[id(value)] = number
        return numbers_by_id

    @property
    def count(self) -> int:
        """How many numbers were given."""
        return self._next

    def object(self, number: int) -> Any:
        """Give the object of a number; None where it is gone."""
        return _living(self._objects.get(number))

    def holds(self, value: Any) -> bool:
        """Tell whether a value that can be changed, or one of its members, is part of what was looked at."""
        members: list[Any] = [value]
        if kind_of(value) in {list, tuple, dict}:
            members += itertools.islice(value.values() if kind_of(value) is dict else value, MOST)
        looks = [self] if self._earlier is None else [self, self._earlier]
        return any(self._numbers.get(id(each)) in look.changing for each in members for look in looks)

    @property
    def changing(self) -> AbstractSet[int]:
        """The numbers of the objects that can be changed."""
        if self._changing is None:
            shapes = self.shapes.items()
            self._changing = {number for number, shape in shapes if shape.kind in _CHANGING} | self.glanced.keys()
        return self._changing

    def glance(self, value: Any, name: str) -> Any:
        """Look at which object a value is, and not into it, unless it is new; give it as contents have it."""
        earlier = self._earlier
        number = self._numbers.get(id(value))
        if earlier is not None and (number is None or number >= earlier.count):
            return self.look(value, name)
        self._looks += 1
        self.strange.append(value)
        if number is None:
            number = self._numbers[id(value)] = self._next
            self._next += 1
        if number not in self._objects:
            self._objects[number] = _reference_to(value, kind_of(value))
            self._fresh[number] = value
        self.glanced.setdefault(number, -self._looks)
        return Ref(number)

    def look(self, value: Any, name: str) -> Any:
        """Look at a value and all that hangs from it; give it as contents have it."""
        self._looks += 1
        self._name = name
        if self.few:
            self._budget, self._library = FEW, min(self._library, _LIBRARY)
        token = self._token(value, -self._looks, None)
        while self._queue:
            number, each = self._queue.popleft()
            self.shapes[number] = shape = self._shape(each)
            if shape.steps is None:
                steps: Any = range(len(shape.items))
            else:
                steps = shape.steps
            if not PLAIN.issuperset(map(type, shape.items)):
                shape.items = [self._token(item, number, step) for item, step in zip(shape.items, steps, strict=False)]
        return token

    def done(self) -> Snapshot:
        """Let go of what the agent may let go."""
        self._fresh.clear()
        return self

    def _token(self, value: Any, above: int, step: Any) -> Any:
        kind = kind_of(value)
        if kind in PLAIN or kind in ATOMS:
            return value
        if kind.__module__ == _DISCOVERY:  # it stands for a tool of the agent's in its place
            return self._token(value.__wrapped__, above, step)
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = self._next
            self._next += 1
        if number not in self.via:
            self.via[number] = above, step
            self._objects[number] = _reference_to(value, kind)
            self._fresh[number] = value
            self._queue.append((number, value))
        return Ref(number)

    def _shape(self, value: Any) -> Shape:
        kind = kind_of(value)
        if is_of(value, CODE):
            self.strange.append(value)
            return Shape("code", [getattr(value, "__qualname__", None)] if kind is FunctionType or kind is type else [])
        if is_of(value, (Enum, PurePath)):
            return Shape("value", [str(value) if is_of(value, PurePath) else value.name])
        own = is_own_class(kind)
        if kind not in COLLECTIONS:
            self.strange.append(value)
        try:
            if is_of(value, COLLECTIONS):
                return self._collection(value, kind)
            special = _special(value, kind)
            if special is not None or own or _is_of_attributes(kind):
                return special or _instance(value, kind)
            if self._attribute_names is not None and _is_collection(kind):
                return self._of_a_library_s(value, kind)
            if is_connection(value):
                if not is_in_memory(value):  # that acts on nothing outside
                    self.connections.append(f"{kind.__module__}.{kind.__qualname__} {self._name}")
                return Shape("connection", [_changes(value)])
            return self._library_s(value, kind)
        except Exception:  # it changes meanwhile
            alarms.pass_on()
            self.whole = False
            return Shape("opaque", [])

    def _collection(self, value: Any, kind: type[Any]) -> Shape:
        self._budget -= len(value) + 1
        if self._budget < 0:
            return self._digest(value)
        steps: list[Any] | None
        if is_of(value, dict):
            base: Any = OrderedDict if is_of(value, OrderedDict) else dict
            items: list[tuple[Any, Any]] = list(base.items(value))
            shape = Shape("dict", [each for _, each in items], [key if _is_step(key) else None for key, _ in items])
            if None in (shape.steps or ()):
                keys = [key for key, _ in items]
                shape = Shape("pairs", [*keys, *shape.items], [*[None] * len(keys), *(shape.steps or ())])
        elif is_of(value, (set, frozenset)):
            members = list(value)
            plain = sorted(
                (each for each in members if type(each) in PLAIN), key=lambda each: (type(each).__name__, repr(each))
            )
            others = [each for each in members if type(each) not in PLAIN]
            steps = [None] * len(members)
            shape = Shape("set" if is_of(value, set) else "frozenset", [*plain, *others], steps)
        elif is_of(value, bytearray):
            shape = Shape("bytearray", [bytes(value)])
        else:
            word = "tuple" if is_of(value, tuple) else "deque" if is_of(value, deque) else "list"
            shape = Shape(word, list(kind_iter(value, kind)))
        if is_own_class(kind) and (attributes := dict_of(value)):
            steps = list(range(len(shape.items))) if shape.steps is None else shape.steps
            return Shape(shape.kind, [*shape.items, attributes], [*steps, ATTRIBUTES])
        return shape

    def _of_a_library_s(self, value: Any, kind: type[Any]) -> Shape:
        """Look into a collection of a library's kind: its attributes, or its members where it is native code."""
        if dict_of(value) or slots_of(kind):
            return _instance(value, kind)
        self._budget -= len(value)
        if self._budget < 0:
            return Shape("large", [len(value)])
        members: list[Any] = [*value]
        return Shape("members", [*members, *(value.values() if issubclass(kind, MutableMapping) else ())])

    def _digest(self, value: Any) -> Shape:
        """Reduce what is too large to be looked at to a number, where it is plain data."""
        if self.few and len(value) > HUGE:
            self.whole = False
            return Shape("large", [len(value)])
        try:
            return Shape("large", [len(value), hash(marshal.dumps(value, 2))])
        except ValueError:
            self.whole = False
            return Shape("large", [len(value)])

    def _library_s(self, value: Any, kind: type[Any]) -> Shape:
        """Look into an object of a library's, where it is none that only computes or waits."""
        from reenact.boundary.library_state import hidden  # a process that starts looks at nothing yet

        if state := hidden(value):
            return Shape("hidden", [state])
        if kind.__module__.partition(".")[0] in _RECORDED or self._library <= 0:
            return Shape("opaque", [])
        self._library -= 1
        if (frame := _frame_of_rows(value, kind)) is not None:
            return frame
        if kind.__qualname__ == "Engine" and kind.__module__ == "sqlalchemy.engine.base":  # its pool changes by itself
            return Shape("engine", [repr(sorted(counts().items()))])
        if (buffer := _buffer(value)) is not None:
            return Shape("buffer", [buffer])
        if kind.__module__ in {"ctypes", "_ctypes"}:  # a library keeps each function that was asked of it
            return Shape("opaque", [])
        wanted = self._attribute_names
        attributes = {
            name: each
            for name, each in dict_of(value).items()
            if "cache" not in name and (wanted is None or name in wanted or name == "_state")
        }
        return Shape("library", list(attributes.values()), list(attributes))


ATTRIBUTES: Final = ("attributes",)
"""The step to the table of the attributes of a collection of the agent's own kind."""


def kind_iter(value: Any, kind: type[Any]) -> Any:
    """Iterate over a collection past what the agent's own kind of it does at that."""
    base: Any = next(each for each in (list, tuple, deque) if issubclass(kind, each))
    return base.__iter__(value)


def _is_of_attributes(kind: type) -> bool:
    return kind.__module__ in {"collections", "queue"} or kind in _OF_ATTRIBUTES


@lru_cache(maxsize=4096)
def _is_collection(kind: type) -> bool:
    """Tell a collection of a library's own kind, whose members hang in attributes that nobody names."""
    return issubclass(kind, MutableMapping | MutableSequence | MutableSet)


def _is_step(key: Any) -> bool:
    """Tell a key by which an entry can be named and found again."""
    kind = kind_of(key)
    if kind is tuple:
        return PLAIN.issuperset(map(type, key))
    return kind in PLAIN or kind in ATOMS or issubclass(kind, Enum)


def _living(reference: Any) -> Any:
    """Give what is held; None where the agent let it go."""
    if type(reference) is weakref.ref:
        return cast("Any", reference)()
    return reference


def _reference_to(value: Any, kind: type[Any]) -> Any:
    """Keep an object only as long as the agent does, where that can be had."""
    if is_of(value, COLLECTIONS) and not is_own_class(kind):
        return value
    try:
        return weakref.ref(value)
    except TypeError:
        return value


def _instance(value: Any, kind: type) -> Shape:
    attributes = dict(dict_of(value))
    for name, slot in slots_of(kind).items():
        try:
            attributes[name] = slot.__get__(value)
        except AttributeError:  # it is empty
            continue
    return Shape("object", list(attributes.values()), list(attributes))


def _special(value: Any, kind: type) -> Shape | None:
    """Give the contents of what keeps them where only it can say."""
    if kind is CACHE:
        return Shape("cache", [*value.cache_info()])
    if kind is itertools.count:
        return Shape("count", [repr(value)])
    if kind is random.Random:
        return Shape("random", [_numbers(value.getstate())])
    if kind in ITERATORS:
        parts = value.__reduce__()
        return Shape("iterator", [parts[2] if len(parts) > 2 else None, *parts[1]], [None, *("over",) * len(parts[1])])
    if kind in {io.StringIO, io.BytesIO}:
        return Shape("closed", []) if value.closed else Shape("text", [value.getvalue(), value.tell()])
    if kind is array:
        return Shape("buffer", [value.tobytes()])
    return _walking(value, kind)


def _walking(value: Any, kind: type) -> Shape | None:
    """Give the contents of what stands somewhere: a variable of a context, an iterator."""
    if kind is ContextVar:
        return Shape("context", [value.get(None)])
    if kind is itertools.cycle and _CYCLE_TELLS:
        _, (inner,), (seen, _first) = value.__reduce__()
        return Shape("cycle", [inner, *seen])
    if kind in _UNTOLD or kind.__module__ == "itertools":
        return Shape("untold", [next(_looks)])
    return _frame(value) if kind is GeneratorType else None


def _frame(value: Any) -> Shape:
    """Tell where a generator stands, and what its variables are."""
    frame = value.gi_frame
    if frame is None:
        return Shape("generator", [-1])
    variables = frame.f_locals
    return Shape("generator", [frame.f_lasti, *variables.values()], [None, *variables])


def _frame_of_rows(value: Any, kind: type[Any]) -> Shape | None:
    """Give what a table of pandas holds: its attributes are caches as well, and change when it is read."""
    if kind.__module__.partition(".")[0] != "pandas" or "_mgr" not in dict_of(value):
        return None
    manager = dict_of(value)["_mgr"]
    arrays = [*manager.arrays, *(axis.array for axis in manager.axes)]
    if sum(getattr(each, "size", len(each)) for each in arrays) > MOST * 10:
        return Shape("rows", [len(arrays), object()])
    return Shape("rows", [repr(each.tolist()) for each in arrays])


def _numbers(state: tuple[Any, ...]) -> bytes:
    return marshal.dumps(state, 2)


def _buffer(value: Any) -> bytes | None:
    """Give the bytes of an array of a library's."""
    try:
        view = memoryview(value)
    except TypeError:
        return None
    with view:
        return bytes(view) if view.nbytes <= _LONGEST else hash(bytes(view)).to_bytes(8, "big", signed=True)


def _changes(value: Any) -> Any:
    """Tell how often a connection changed what it keeps in memory, where it says so: files are looked at apart."""
    kind = kind_of(value)
    if kind.__module__ == "sqlite3":
        try:
            connection = value.connection if kind.__qualname__ == "Cursor" else value
            return connection.in_transaction if is_in_a_file(connection) else connection.total_changes
        except Exception:  # it is closed, or another thread's
            alarms.pass_on()
    return object() if kind.__module__.partition(".")[0] in _EMBEDDED else None


def is_connection(value: Any) -> bool:
    """Tell an open file, socket, or client of a database, broker or service, whose use raises no audit event."""
    kind = kind_of(value)
    if is_of(value, (io.StringIO, io.BytesIO)):
        return False
    if is_of(value, io.IOBase):
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
