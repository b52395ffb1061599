"""What a call changed in the memory of the process, written down so that a replay which answers the call can do it.

An answered tool does not run, but the agent goes by what the tool did: a cart it filled, a counter, a plan. The change
is spelled between two looks at the state (`boundary.state`): new contents of objects that were there, which are
named by the way to them (a variable, then keys, indexes, attributes), new objects, and variables that hold something
else. In a replay the objects keep their identity, so whoever else holds them sees the change.

    {"set": [[WAY, {"add": [3], "keep": 2}]], "put": [[ROOT, VALUE]], "new": [{"is": "dict", "items": []}]}

A WAY is `[ROOT, STEP, …]`, a ROOT `[name, how it is held, its turn among those alike]`. A VALUE is plain JSON, or one
of `{"at": WAY}`, `{"new": number}`, `{"is": typed JSON}`, `{"gone": true}`. What cannot be spelled so (a generator, a
database in memory, a cache) is not spelled at all: there is no half of a change. Where the call returned an object that
the state holds as well, or one that leads to such an object, `return` is its VALUE.
"""

from __future__ import annotations

import io
import itertools
import math
import random
import re
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from types import FunctionType, SimpleNamespace
from typing import Any, Final, cast

from reenact.boundary.own_code import is_own_class, is_own_function
from reenact.boundary.roots import ABSENT, Root, attribute, dict_of, kind_of, put_attribute, slots_of
from reenact.boundary.snapshot import ATTRIBUTES, ITERATORS, Ref, Shape, kind_iter
from reenact.boundary.state import Reached
from reenact.values import typed
from reenact.values.classes import Unhydratable, class_of, findable, loaded, unstable_places
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object

LONGEST: Final = 200_000
"""Parts that the spelling of one change may have."""
_CONTAINERS: Final[dict[str, Callable[[], Any]]] = {
    "list": list,
    "dict": dict,
    "set": set,
    "deque": deque,
    "bytearray": bytearray,
}
_LIMIT: Final = 2**63
_SET: Final[Any] = set
_TRIES: Final = 720
"""Orders of adding members to a set that are tried for the one in which they are met."""
_HEAP: Final = 1 << 9
_MADE: Final = frozenset({OrderedDict, Counter, defaultdict, SimpleNamespace})
_FACTORIES: Final = frozenset({list, dict, set, int, float, str, bool, tuple, deque, *_MADE})


class Unspelled(Exception):
    """This change cannot be written down, or not put back; the message says what is in the way."""


def spelled(before: Reached, after: Reached, result: Any = None, *, beside: bool = False) -> Json:
    """Spell what changed between two looks, and the `result` as it hangs together with it. Raises `Unspelled`.

    Where others ran `beside` it, a list or dictionary that changed is spelled whole: what they had added by then may
    come later in a replay, where each makes its change at its end, and entries keep the order in which they came.
    """
    spelling = _Spelling(before, after)
    spelling.beside = beside
    return spelling.write(result)


def spelled_as_read(
    before: Reached, after: Reached, is_read: Callable[[Root], bool], result: Any = None, *, beside: bool = False
) -> tuple[Json, dict[str, str]]:
    """Spell what changed, less what cannot be spelled and nobody reads back; `beside` is as for `spelled`.

    Gives the change, and why the state of each name that is read cannot be spelled: with one of these it is no change.
    """
    spelling = _Spelling(before, after, is_read)
    spelling.beside = beside
    return spelling.write(result), spelling.lost


class _Spelling:
    def __init__(self, before: Reached, after: Reached, is_read: Callable[[Root], bool] | None = None) -> None:
        self._before, self._after, self._is_read = before, after, is_read
        self.lost: dict[str, str] = {}
        self.beside = False
        self._was, self._is = before.snapshot, after.snapshot
        self._names = {at: [*place] for place, at in before.places().items()}
        self._new: list[Json] = []
        self._numbers: dict[int, int] = {}
        self._parts = 0

    def write(self, result: Any = None) -> Json:
        if self._is_read is None and not (self._was.whole and self._is.whole):
            raise Unspelled("it is too large to be looked at")
        contents: list[Json] = []
        for number in sorted(self._before.touched(self._after)):
            if not self._matters(root for _, root in self._before.leading_to(number, self._after)):
                continue
            new_count = len(self._new)
            try:
                content = self._contents(self._was.object(number), self._was.shapes[number], self._is.shapes[number])
                contents.append([self._way(number), content])
            except Unspelled as why:
                self._give_up(why, new_count, (root for _, root in self._before.leading_to(number, self._after)))
        change: dict[str, Json] = {"set": contents, "put": self._bindings()}
        returned = self._returned(result)
        return {**change, "new": self._new, **({} if returned is ABSENT else {"return": cast("Json", returned)})}

    def _returned(self, result: Any) -> Any:
        """Spell what the call returned where that hangs together with the state; `ABSENT` where it does not."""
        if not self._is.holds(result):
            return ABSENT
        new_count = len(self._new)
        try:
            token = self._is.look(result, "what it returned")
            self._is.done()
            return self._value(token) if self._is.whole else ABSENT
        except Unspelled:  # the agent gets a copy of it
            del self._new[new_count:]
            self._numbers = {number: at for number, at in self._numbers.items() if at < new_count}
            return ABSENT

    def _matters(self, roots: Iterable[Root]) -> bool:
        """Tell whether somebody reads a change back: one that nobody does is not made again."""
        return self._is_read is None or any(map(self._is_read, roots))

    def _give_up(self, why: Unspelled, new_count: int, roots: Iterable[Root]) -> None:
        """Leave a change out that nobody reads back; note it otherwise."""
        if self._is_read is None:
            raise why
        del self._new[new_count:]
        self._numbers = {number: at for number, at in self._numbers.items() if at < new_count}
        for root in roots:
            if root.name not in self.lost and self._is_read(root):
                self.lost[root.name] = str(why)

    def _bindings(self) -> list[Json]:
        places, bindings = self._before.places(), list[Json]()
        for place, at in self._after.places().items():
            was = self._before.values[places[place]] if place in places else ABSENT
            now = self._after.values[at]
            if was is now or (type(was) is type(now) and was == now):
                continue
            if not self._matters([self._after.roots[at]]):
                continue
            if place not in places:  # it hangs from an object that the call made, and is spelled with that
                continue
            new_count = len(self._new)
            try:
                if not self._after.roots[at].is_settable:
                    raise Unspelled(f"{place[0]} cannot be set")  # noqa: TRY301 - it goes the way of the others
                bindings.append([[*place], self._value(now)])
            except Unspelled as why:
                self._give_up(why, new_count, [self._after.roots[at]])
        return bindings

    def _way(self, number: int) -> Json:
        steps: list[Json] = []
        while True:
            above, step = self._was.via.get(number) or (self._was.glanced[number], None)
            if above < 0:
                break
            if step is None:
                raise Unspelled("it hangs where nothing leads: in a set, or as a key")
            steps.append({"its": "attributes"} if step is ATTRIBUTES else self._plain(step))
            number = above
        looked = [at for at, value in enumerate(self._before.values) if value is not ABSENT]
        return [cast("Json", self._names[looked[-above - 1]]), *reversed(steps)]

    def _value(self, token: Any) -> Json:
        self._parts += 1
        if self._parts > LONGEST:
            raise Unspelled("the change is too large to be written down")
        if token is ABSENT:
            return {"gone": True}
        if type(token) is not Ref:
            return self._plain(token)
        number = int(token)
        if number not in self._was.via and number not in self._was.glanced:
            return self._object(number)
        try:
            return {"at": self._way(number)}
        except Unspelled:
            shape = self._is.shapes.get(number)
            if shape is None or shape.kind not in {"tuple", "frozenset", "value", "code"}:
                raise
            return self._object(number)  # which one it is makes no difference: it never changes

    @staticmethod
    def _plain(value: Any) -> Json:
        kind = kind_of(value)
        if value is None or kind is bool or (kind is int and -_LIMIT <= value < _LIMIT):
            return cast("Json", value)
        if kind is float and math.isfinite(value):
            return cast("Json", value)
        typed_json = typed.encode(value)
        if kind is str and isinstance(typed_json, str):
            return typed_json
        if unstable_places(typed_json):
            raise Unspelled(f"{class_of(value)} cannot be written down")
        return {"is": typed_json}

    def _object(self, number: int) -> Json:
        """Spell an object that the call made, once."""
        if number in self._numbers:
            return {"new": self._numbers[number]}
        value, shape = self._is.object(number), self._is.shapes[number]
        if value is None:
            raise Unspelled("an object that it made is gone already")
        if shape.kind in {"code", "value", "opaque", "library", "buffer"}:
            return self._spell_by_name(value)
        at = self._numbers[number] = len(self._new)
        self._new.append(None)
        self._new[at] = {"is": shape.kind, "of": self._class(value, shape), **self._object_fields(value, shape)}
        return {"new": at}

    def _spell_by_name(self, value: Any) -> Json:
        """Spell code by its name, and what typed JSON can hold whole."""
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if isinstance(module, str) and isinstance(name, str) and _named(f"{module}:{name}") is value:
            return {"named": f"{module}:{name}"}
        return self._plain(value)

    def _class(self, value: Any, shape: Shape) -> Json:
        kind = kind_of(value)
        if kind in {list, dict, set, tuple, frozenset, deque, bytearray}:
            return None
        if shape.kind in {
            "count",
            "random",
            "iterator",
            "generator",
            "cache",
            "text",
            "connection",
            "large",
            "context",
            "untold",
            "rows",
            "closed",
        }:
            raise Unspelled(f"{class_of(value)} cannot be made anew")
        if not (findable(kind) and (kind in _MADE or is_own_class(kind))):
            raise Unspelled(f"{class_of(value)} cannot be found by its name")
        if shape.kind == "object" and any(not base.__flags__ & _HEAP for base in kind.__mro__[:-1]):
            raise Unspelled(f"{class_of(value)} is made by more than its attributes")
        return class_of(value)

    def _object_fields(self, value: Any, shape: Shape) -> dict[str, Json]:
        more: dict[str, Json] = {}
        if shape.kind == "deque" and value.maxlen is not None:
            more["maxlen"] = value.maxlen
        if kind_of(value) is defaultdict:
            factory = value.default_factory
            more["factory"] = None if factory is None else self._spell_by_name(factory)
        return {**more, **self._all(shape)}

    def _all(self, shape: Shape) -> dict[str, Json]:
        """Spell contents whole."""
        items, steps = shape.items, shape.steps
        if shape.kind == "bytearray":
            return {"items": [self._plain(items[0])]}
        spec: dict[str, Json] = {}
        if steps and steps[-1] is ATTRIBUTES:
            spec["attributes"] = self._value(items[-1])
            items, steps = items[:-1], steps[:-1]
        if shape.kind == "pairs":
            half = len(items) // 2
            return {
                **spec,
                "items": [[self._value(k), self._value(v)] for k, v in zip(items[:half], items[half:], strict=True)],
            }
        if shape.kind in {"dict", "object"}:
            members = zip(steps or (), items, strict=True)
            return {**spec, "items": [[self._plain(step), self._value(item)] for step, item in members]}
        return {**spec, "items": [self._value(item) for item in items]}

    def _contents(self, value: Any, was: Shape, now: Shape) -> Json:
        """Spell what an object holds now, against what it held."""
        if value is None:
            raise Unspelled("an object that changed is gone")
        kind = now.kind
        whole = self.beside and kind == "dict"
        if kind in {"dict", "object"} and was.kind == kind and ATTRIBUTES not in (now.steps or ()) and not whole:
            return self._fields(was, now)
        if kind == "list" and was.kind == kind and was.steps is None and now.steps is None:
            keep = next(
                (at for at, (a, b) in enumerate(zip(was.items, now.items, strict=False)) if _differ(a, b)), None
            )
            keep = 0 if self.beside else min(len(was.items), len(now.items)) if keep is None else keep
            return {"keep": keep, "add": [self._value(item) for item in now.items[keep:]]}
        if kind in {"dict", "pairs", "list", "deque", "bytearray", "object"}:
            return self._all(now)
        if kind == "set" and was.kind == kind:
            return self._members(value, was, now)
        return self._by_methods(value, now)

    def _members(self, value: Any, was: Shape, now: Shape) -> Json:
        """Spell what went from a set and what came, and in which order one meets its members."""
        before, after = set(map(_exact, was.items)), set(map(_exact, now.items))
        numbers = {id(self._is.object(int(item))): item for item in now.items if type(item) is Ref}
        order = [numbers.get(id(each), each) for each in _SET.__iter__(value)]
        spelled_order: list[Json] = [self._value(item) for item in order]
        came = [self._value(item) for item in order if _exact(item) not in before]
        try:
            removals: Json = [self._value(item) for item in was.items if _exact(item) not in after]
        except Unspelled:  # what hung nowhere else has no name now: all are put in anew
            removals = None
        return {"gone": removals, "came": came, "order": spelled_order}

    def _by_methods(self, value: Any, now: Shape) -> Json:
        """Spell what only an object's own methods change."""
        kind = now.kind
        if kind == "count":
            return {"repr": cast("str", now.items[0])}
        if kind == "random":
            return {"random": self._plain(value.getstate())}
        if kind == "buffer":
            return {"buffer": self._value(now.items[0])}
        if kind == "text":
            return {"text": self._value(now.items[0]), "at": self._value(now.items[1])}
        if kind == "context":
            return {"context": self._value(now.items[0])}
        if kind == "iterator" and now.items[0] is not None:
            return {"index": self._value(now.items[0])}
        raise Unspelled(f"{class_of(value)} changed, and cannot be set")

    def _fields(self, was: Shape, now: Shape) -> Json:
        """Spell keys or attributes that went and that came or changed, in the order in which they stand."""
        before = dict(zip(map(_exact, was.steps or ()), was.items, strict=True))
        after = dict(zip(map(_exact, now.steps or ()), now.items, strict=True))
        left = [step for step in before if step in after]
        order = [*left, *(step for step in after if step not in before)]
        if order != list(after) and now.kind == "dict":
            return self._all(now)
        changed = [step for step in order if step not in before or _differ(before[step], after[step])]
        return {
            "drop": [self._plain(step[1]) for step in before if step not in after],
            "put": [[self._plain(step[1]), self._value(after[step])] for step in changed],
        }


def _exact(step: Any) -> tuple[type[Any], Any]:
    return kind_of(step), step


def _differ(was: Any, now: Any) -> bool:
    return type(was) is not type(now) or was != now


def put_back(change: Json, roots: Mapping[tuple[str, str, int], Root]) -> Any:
    """Make the change that `spelled` wrote, to the state that stands at `roots` now.

    Gives what the call returned where that is part of the state, else None. Raises `Unspelled` where something that
    it names is not there; then nothing was changed.
    """
    try:
        return _Putting(as_object(change), roots).go()
    except (Unhydratable, LookupError, TypeError, ValueError, AttributeError) as error:
        raise Unspelled(f"{type(error).__name__}: {error}") from error


class _Putting:
    """Finds everything first, then changes it."""

    def __init__(self, change: Mapping[str, Json], roots: Mapping[tuple[str, str, int], Root]) -> None:
        self._change, self._roots = change, roots
        self._specs = [as_object(each) for each in as_list(change.get("new"))]
        self._instances: dict[int, Any] = {}
        self._values_by_name: dict[str, Any] = {}

    def go(self) -> Any:
        contents = [(self._at(way), as_object(change)) for way, change in self._pairs("set")]
        bindings = [(self._root(root), self._value(value)) for root, value in self._pairs("put")]
        returned = self._value(self._change["return"]) if "return" in self._change else None
        for at in range(len(self._specs)):
            self._new(at)
        steps: list[Callable[[], None]] = [self._filling(at) for at in range(len(self._specs))]
        steps += [self._setting(value, change) for value, change in contents]
        for step in steps:
            step()
        for root, value in bindings:
            root.put(value)
        return returned

    def _pairs(self, name: str) -> list[tuple[Json, Json]]:
        return [(pair[0], pair[1]) for pair in map(as_list, as_list(self._change.get(name)))]

    def _root(self, spelling: Json) -> Root:
        name, kind, turn = as_list(spelling)
        root = self._roots.get((str(name), str(kind), cast("int", turn)))
        if root is None:
            raise Unspelled(f"there is no {name}")
        return root

    def _at(self, way: Json) -> Any:
        root, *steps = as_list(way)
        value = self._root(root).get()
        for step in steps:
            value = _stepped(
                value, step, self._value(step) if not isinstance(step, dict) or "its" not in step else None
            )
        if value is ABSENT:
            raise Unspelled(f"{as_list(root)[0]} is not there")
        return value

    def _value(self, spelling: Json) -> Any:
        if not isinstance(spelling, dict):
            return spelling
        if "at" in spelling:
            return self._at(spelling["at"])
        if "new" in spelling:
            return self._new(cast("int", spelling["new"]))
        if "gone" in spelling:
            return ABSENT
        if "named" in spelling:
            code = _named(str(spelling["named"]))
            if code is None:
                raise Unspelled(f"there is no {spelling['named']}")
            return code
        return typed.decode(spelling["is"])

    def _new(self, at: int) -> Any:
        """Make a new object, empty where it can be filled afterwards."""
        if at in self._instances:
            return self._instances[at]
        spec = self._specs[at]
        word, of = str(spec["is"]), spec.get("of")
        cls: Any = _class_named(of) if isinstance(of, str) else None
        if word in {"tuple", "frozenset"}:
            items = [self._value(item) for item in as_list(spec.get("items"))]
            instance: Any = {"tuple": tuple, "frozenset": frozenset}[word](items)
            if cls is not None:
                base: Any = tuple if word == "tuple" else frozenset
                instance = base.__new__(cls, items)
        elif cls is defaultdict:
            instance = defaultdict[Any, Any](self._value(spec.get("factory")))
        elif word == "deque":
            length = spec.get("maxlen")
            instance = cast("Any", deque).__new__(cls or deque)
            cast("Any", deque).__init__(instance, (), length if isinstance(length, int) else None)
        elif cls is not None:
            base = {"pairs": dict, "dict": dict, "list": list, "set": set, "bytearray": bytearray}.get(word, object)
            whole: Any = OrderedDict if base is dict and issubclass(cls, OrderedDict) else base
            instance = whole.__new__(cls)
        else:
            instance = _CONTAINERS["dict" if word == "pairs" else word]()
        self._instances[at] = instance
        return instance

    def _filling(self, at: int) -> Callable[[], None]:
        spec, instance = self._specs[at], self._instances[at]
        if str(spec["is"]) in {"tuple", "frozenset"}:
            return self._attributes(instance, spec) or _nothing
        return self._setting(instance, spec)

    def _setting(self, value: Any, change: Mapping[str, Json]) -> Callable[[], None]:
        """Prepare a change of contents, so that nothing can fail any more when it is made."""
        special = _special(value, {name: self._value(each) for name, each in change.items() if name in _SPECIAL})
        if special is not None:
            return special
        if "keep" in change:
            keep, add = cast("int", change["keep"]), [self._value(item) for item in as_list(change.get("add"))]
            if keep > list.__len__(value):
                raise Unspelled("a list is shorter than it was")
            return lambda: list.__setitem__(value, slice(keep, None), add)
        if "order" in change:
            went, came, order = (self._values(change.get(name)) for name in ("gone", "came", "order"))
            return lambda: _set_members(value, None if change.get("gone") is None else went, came, order)
        if "put" in change:
            drop = [self._value(each) for each in as_list(change.get("drop"))]
            pairs = [(self._value(pair[0]), self._value(pair[1])) for pair in map(as_list, as_list(change["put"]))]
            return _fields(value, drop, pairs)
        filled = self._filled(value, as_list(change.get("items")))
        attributes = self._attributes(value, change)
        return filled if attributes is None else lambda: (filled(), attributes())[0]

    def _values(self, spelling: Json) -> list[Any]:
        return [self._value(each) for each in as_list(spelling)]

    def _attributes(self, value: Any, change: Mapping[str, Json]) -> Callable[[], None] | None:
        spelling = change.get("attributes")
        if spelling is None:
            return None
        table = self._value(spelling)
        return lambda: dict_of(value).update(table)

    def _filled(self, value: Any, items: list[Json]) -> Callable[[], None]:
        kind = kind_of(value)
        if issubclass(kind, dict):
            pairs = [(self._value(pair[0]), self._value(pair[1])) for pair in map(as_list, items)]
            base: Any = OrderedDict if issubclass(kind, OrderedDict) else dict
            return lambda: (base.clear(value), [base.__setitem__(value, *pair) for pair in pairs])[0]
        if issubclass(kind, bytearray):
            data = self._value(items[0])
            return lambda: bytearray.__setitem__(value, slice(None), data)
        if issubclass(kind, list | set | deque):
            plain = [self._value(item) for item in items]
            base = list if issubclass(kind, list) else set if issubclass(kind, set) else deque
            return lambda: (base.clear(value), (set.update if base is set else base.extend)(value, plain))[0]
        pairs = [(self._value(pair[0]), self._value(pair[1])) for pair in map(as_list, items)]
        return _fields(value, [], pairs)


_SPECIAL: Final = frozenset({"context", "repr", "random", "buffer", "text", "at", "index"})


def _set_members(value: Any, removals: list[Any] | None, came: list[Any], order: list[Any]) -> None:
    """Change a set so that one meets its members in the recorded order, which hangs on how they came to be there."""
    for each in removals or ():
        _SET.discard(value, each)
    for each in came:
        _SET.add(value, each)
    if removals is not None and [*_SET.__iter__(value)] == order:
        return
    tries = itertools.islice(itertools.permutations(order), _TRIES)
    insertion_order = next((each for each in tries if _met(each) == order), order)
    _SET.clear(value)
    for each in insertion_order:
        _SET.add(value, each)
    if [*_SET.__iter__(value)] != order:
        raise Unspelled("the members of a set came in another order")


def _met(members: Iterable[Any]) -> list[Any]:
    """Give members in the order in which one meets them in a set to which they were added one by one."""
    probe = set[Any]()
    for each in members:
        probe.add(each)
    return [*probe]


def _nothing() -> None:
    return None


def _class_named(name: str) -> type:
    """Find a class that may be instantiated because a trace says so: the agent's own, or a kind of collection."""
    candidate = loaded(name)
    if not (isinstance(candidate, type) and (candidate in _MADE or is_own_class(candidate))):
        raise Unspelled(f"there is no class {name}")
    return candidate


def _named(name: str) -> Any:
    """Find what the agent's own code calls so; no trace may name other code."""
    candidate = loaded(name)
    if isinstance(candidate, FunctionType):
        return candidate if is_own_function(candidate) else None
    if isinstance(candidate, type):
        return candidate if is_own_class(candidate) or candidate in _FACTORIES else None
    return None


def _stepped(value: Any, step: Json, plain: Any) -> Any:
    kind = kind_of(value)
    if isinstance(step, dict) and "its" in step:
        return dict_of(value)
    if issubclass(kind, dict):
        return dict[Any, Any].__getitem__(value, plain)
    if issubclass(kind, list | tuple | deque):
        items: list[Any] = list(kind_iter(value, cast("Any", kind)))
        return items[plain]
    attribute_value = attribute(value, str(plain))
    if attribute_value is ABSENT:
        raise Unspelled(f"{class_of(value)} has no {plain}")
    return attribute_value


def _fields(value: Any, drop: list[Any], assignments: list[tuple[Any, Any]]) -> Callable[[], None]:
    if issubclass(kind_of(value), dict):
        base: Any = OrderedDict if issubclass(kind_of(value), OrderedDict) else dict

        def change() -> None:
            for key in drop:
                base.pop(value, key, None)
            for key, item in assignments:
                base.__setitem__(value, key, item)

        return change
    slots = slots_of(kind_of(value))
    if any(name not in slots for name, _ in assignments) and not hasattr(kind_of(value), "__dict__"):
        raise Unspelled(f"{class_of(value)} takes no attributes")

    def set_them() -> None:
        for name in drop:
            put_attribute(value, name, ABSENT)
        for name, item in assignments:
            put_attribute(value, name, item)

    return set_them


def _special(value: Any, spec: Mapping[str, Any]) -> Callable[[], None] | None:
    """Prepare the change of what only its own methods change."""
    kind = kind_of(value)
    if "repr" in spec and kind is itertools.count:
        return lambda: _advance(value, spec["repr"])
    if "context" in spec and kind is ContextVar:
        return lambda: value.set(spec["context"]) and None
    if "random" in spec and kind is random.Random:
        return lambda: value.setstate(spec["random"])
    if "text" in spec and kind in {io.StringIO, io.BytesIO}:
        return lambda: (value.seek(0), value.truncate(), value.write(spec["text"]), value.seek(spec["at"]))[0] and None
    if "buffer" in spec:
        if kind is array:
            return lambda: (array.__delitem__(value, slice(None)), value.frombytes(spec["buffer"]))[0]
        view = memoryview(value).cast("B")
        if view.readonly or view.nbytes != len(spec["buffer"]):
            raise Unspelled(f"{class_of(value)} has another size")
        return lambda: view.__setitem__(slice(None), spec["buffer"])
    if "index" in spec and kind in ITERATORS:
        return lambda: value.__setstate__(spec["index"])
    return None


_STEPS: Final = 100_000
_COUNT: Final = re.compile(r"count\((-?\d+)\)")


def _advance(value: Any, to: str) -> None:
    """Count on until a counter stands where it stood; one that is further on has been used more often, and stays."""
    now, then = (_COUNT.fullmatch(each) for each in (repr(value), to))
    if now is not None and then is not None and int(now[1]) > int(then[1]):
        return
    for _ in range(_STEPS):
        if repr(value) == to:
            return
        next(value)
    raise Unspelled(f"a counter does not come to {to}")
