"""What an answered tool changed in memory: put back on the same objects, or said to be lost before anybody replays."""

from __future__ import annotations

import collections
import dataclasses
import functools
import io
import itertools
import json
import random
import sqlite3
import sys
import threading
from array import array
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from decimal import Decimal
from enum import Enum
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pydantic
import pytest

import reenact
from held import Held
from reenact.boundary import offers
from reenact.graph.verdict import judge
from reenact.values.run import Grade

pytestmark = pytest.mark.sample(12)


class Size(Enum):
    SMALL = 1
    LARGE = 2


@dataclasses.dataclass
class Item:
    name: str
    count: int = 0
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Slotted:
    value: Any = None
    size: Size = Size.SMALL


class Model(pydantic.BaseModel):
    name: str
    parts: list[int] = []


class Shop:
    made: ClassVar[int] = 0
    names: ClassVar[list[str]] = []

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.last: Item | None = None

    def put(self, name: str) -> None:
        Shop.made += 1
        type(self).names.append(name)
        self.last = self.items.setdefault(name, Item(name))
        self.last.count += 1
        self.last.tags.insert(0, name)


class Basket(dict[str, int]):
    """A dictionary with an attribute."""

    owner = "nobody"


class World:
    """Everything that a tool may change."""

    def __init__(self) -> None:
        self.cart: dict[Any, Any] = {"tea": 1, "milk": {"count": 1}, (1, 2): "tuple"}
        self.list: list[Any] = [1, [2, 3], {"a": [4]}]
        self.set: set[Any] = {1, 2, (3,)}
        self.deque: collections.deque[int] = collections.deque([1, 2, 3], maxlen=3)
        self.counter: collections.Counter[str] = collections.Counter("abca")
        self.ordered: collections.OrderedDict[str, int] = collections.OrderedDict(a=1, b=2)
        self.default: collections.defaultdict[str, list[int]] = collections.defaultdict(list)
        self.bytes = bytearray(b"abc")
        self.text = io.StringIO()
        self.space = SimpleNamespace(n=1)
        self.shop = Shop()
        self.slotted = Slotted()
        self.model = Model(name="a")
        self.basket = Basket(a=1)
        self.ids = itertools.count(5, 2)
        self.queue = iter([1, 2, 3, 4])
        self.dice = random.Random(7)
        self.array = array("i", [1, 2])
        self.numbers = np.zeros(3)
        self.plain: Any = 0
        self.handler: Any = str.upper
        self.cycle: list[Any] = []
        self.alias = self.list[1]
        self.memory = sqlite3.connect(":memory:")
        self.memory.execute("create table t (n)")
        self.by_size: dict[Size, list[int]] = {Size.SMALL: []}
        self.local = threading.local()
        self.steps: Iterator[int] = (n for n in range(9))


W: World
CIRCLE: list[Iterator[int]] = []
CONTEXT: ContextVar[int] = ContextVar("CONTEXT", default=0)


def shout(text: str) -> str:
    return text.upper() + "!"


@functools.lru_cache
def twice(n: int) -> int:
    return n * 2


def nested(w: World) -> None:
    w.cart["milk"]["count"] += 1
    w.cart["new"] = {"of": w.list[1], "size": Size.LARGE, "price": Decimal("1.50"), "when": (1, b"x", None, 1.5)}
    del w.cart["tea"]
    w.list[1].append(w.cart["new"])
    w.list[2]["a"] = w.list


def cyclic(w: World) -> None:
    w.cycle.append(w.cycle)
    w.cycle.append({"self": w.cycle, "pair": (w.cycle, 1)})


def queued(w: World) -> None:
    next(w.queue)
    next(w.ids)
    w.plain = w.dice.random()
    w.deque.append(4)
    w.bytes += b"d"
    w.text.write("hello")
    w.array.append(3)
    w.numbers[1] = 2.5


def collected(w: World) -> None:
    w.set.discard(1)
    w.set.add(frozenset({5}))
    w.set.add(40)
    w.counter["a"] += 5
    w.counter.pop("b")
    w.ordered.move_to_end("a")
    w.ordered["c"] = 3
    w.default["x"].append(1)
    w.space.n, w.space.m = [w.space.n], "m"


def shopped(w: World) -> None:
    w.shop.put("tea")
    w.shop.put("milk")
    w.slotted.value, w.slotted.size = w.shop.last, Size.LARGE
    w.model.parts.append(3)
    w.model.name = "b"
    w.basket["b"] = 2
    w.basket.owner = "somebody"
    w.handler = shout


def rebound(w: World) -> None:
    w.shop = Shop()
    w.shop.put("fresh")
    w.list = [w.list, Item("alone", tags=["x"]), Model(name="m"), Slotted(1)]
    w.cart = {key: value for key, value in w.cart.items() if key != "tea"}


def emptied(w: World) -> None:
    w.cart.clear()
    w.list.clear()
    w.set.clear()
    del w.slotted.value
    w.plain = None


def in_memory(w: World) -> None:
    w.memory.execute("insert into t values (1)")


def placed(w: World) -> None:
    w.by_size[Size.SMALL].append(1)
    w.local.n = [1]
    CONTEXT.set(CONTEXT.get() + 1)
    sys.path.append("/nowhere")


def circled(w: World) -> None:
    w.plain = next(CIRCLE[0])


def stepped(w: World) -> None:
    next(w.steps)


def cached(w: World) -> None:
    w.plain = twice(4)


def local_class(w: World) -> None:
    class Here:
        pass

    w.plain = Here()


def seen(w: World) -> str:  # noqa: C901
    """Say everything about a world that can be seen from outside, identities included."""
    ids: dict[int, int] = {}

    def told(value: Any) -> Any:  # noqa: C901, PLR0911
        if isinstance(value, list | dict | set | Item | Shop | Slotted | Model):
            if id(value) in ids:
                return f"same as {ids[id(value)]}"
            ids[id(value)] = len(ids)
        if isinstance(value, dict):
            return [
                type(value).__name__,
                [[told(key), told(each)] for key, each in value.items()],
                getattr(value, "owner", None),
            ]
        if isinstance(value, list | tuple | collections.deque):
            return [type(value).__name__, [told(each) for each in value]]
        if isinstance(value, set | frozenset):
            return [type(value).__name__, sorted(repr(each) for each in value)]
        if isinstance(value, Slotted):
            return ["Slotted", told(getattr(value, "value", "gone")), repr(value.size)]
        if isinstance(value, Model):
            return ["Model", value.model_dump_json(exclude_unset=True)]
        if isinstance(value, Item | Shop | SimpleNamespace):
            return [type(value).__name__, told(vars(value))]
        if isinstance(value, io.StringIO):
            return value.getvalue(), value.tell()
        if isinstance(value, random.Random):
            return value.random()
        return repr(value)

    rest = ("steps", "memory", "queue", "handler", "local")
    said = [told(value) for name, value in vars(w).items() if name not in rest]
    count = w.memory.execute("select count(*) from t").fetchone()
    more = [vars(w.local), next(CIRCLE[0]), CONTEXT.get(), sys.path[-1]]
    left = [more, list(w.steps), count, list(w.queue), w.handler("a"), Shop.made, Shop.names, repr(twice.cache_info())]
    return json.dumps([said, *map(repr, left)])


CHANGES = (nested, cyclic, queued, collected, shopped, rebound, emptied, placed)
LOST = (in_memory, circled, stepped, cached, local_class)


def program(change: Callable[[World], None]) -> str:
    """Let a tool change the world, then one more time, and say all that can be seen."""
    global W  # noqa: PLW0603 - the state of a program
    W = World()
    Shop.made, Shop.names = 0, []
    twice.cache_clear()
    CONTEXT.set(0)
    CIRCLE[:] = [itertools.cycle([1, 2])]
    sys.path[:] = [each for each in sys.path if each != "/nowhere"]
    before = [W.list, W.cart, W.set, W.shop, W.alias, W.deque]

    def tool(n: int) -> int:
        change(W)
        return n

    offers.hear(json.dumps({"messages": [], "model": "m", "tools": [{"function": {"name": "tool"}}]}).encode())
    tool(1)
    held = [seen_of(each) for each in before]
    return json.dumps([held, seen(W)])


def seen_of(value: Any) -> str:
    return repr(vars(value)) if isinstance(value, Shop) else repr(value)


@pytest.mark.parametrize("change", CHANGES)
def test_an_answer_puts_back_what_the_tool_changed(tmp_path: Any, change: Callable[[World], None]) -> None:
    held = Held(tmp_path)
    did = held.record(lambda: program(change))
    assert did.error is None
    (run,) = did.runs
    assert [reason for reason in judge(run).reasons if reason.field == "state"] == []
    again = held.replay(did, lambda: program(change))
    assert again.result is not None
    assert again.result.answered == {"tool": 1}
    assert again.value == did.value
    assert (again.result.result, again.result.unrestored) == ("same", [])


@pytest.mark.slow
@pytest.mark.parametrize("change", LOST)
def test_what_cannot_be_put_back_is_said_before_and_after(tmp_path: Any, change: Callable[[World], None]) -> None:
    held = Held(tmp_path)
    did = held.record(lambda: program(change))
    (run,) = did.runs
    verdict = judge(run)
    again = held.replay(did, lambda: program(change))
    assert again.result is not None
    assert verdict.grade is Grade.PARTIAL or again.result.result == "unjudged"
    assert [reason.field for reason in verdict.reasons if reason.field == "state"] or again.result.unrestored


def popped(w: World) -> Any:
    return w.list.pop(1)


def made(w: World) -> Any:
    w.cart["made"] = Item("made")
    return w.cart["made"]


HANDED: dict[str, Callable[[World], Any]] = {
    "a dictionary": lambda w: w.cart,
    "a member": lambda w: w.cart["milk"],
    "an object": lambda w: w.shop,
    "members in a list": lambda w: [w.list, w.cart["milk"]],
    "members in a dictionary": lambda w: {"shop": w.shop, "n": 1},
    "what it took out": popped,
    "what it made": made,
    "what it made by a default": lambda w: w.default["new"],
    "a set": lambda w: w.set,
    "none of it": lambda w: [*w.list],
}


def change_what_one_got(value: Any) -> None:
    match value:
        case dict():
            value["more"] = 1
        case list():
            value.append(7)
        case set():
            value.add("more")
        case Shop():
            value.items["more"] = Item("more")
        case Item():
            value.count += 5
        case other:
            raise AssertionError(other)


def handed(get: Callable[[World], Any], *, declared: bool) -> str:
    """Change what a tool returned, and say what the world is then."""
    global W  # noqa: PLW0603 - the state of a program
    W = World()
    Shop.made, Shop.names = 0, []

    def tool(n: int) -> Any:
        del n
        return get(W)

    if declared:
        run: Callable[[int], Any] = reenact.tool(tool)
    else:
        run = tool
        offers.hear(json.dumps({"messages": [], "model": "m", "tools": [{"function": {"name": "tool"}}]}).encode())
    result = run(1)
    inside = [*(result.values() if isinstance(result, dict) else result)] if isinstance(result, dict | list) else []
    change_what_one_got(result)
    for each in inside:
        if isinstance(each, dict | list | Shop):
            change_what_one_got(each)
    held = [W.cart, W.list, W.default, sorted(map(repr, W.set)), W.alias]
    return json.dumps([*map(repr, held), seen_of(W.shop)])


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "found"])
@pytest.mark.parametrize("name", HANDED)
def test_what_a_tool_returns_of_the_state_is_that_and_no_copy(tmp_path: Any, name: str, *, declared: bool) -> None:
    held = Held(tmp_path)
    did = held.record(lambda: handed(HANDED[name], declared=declared))
    assert did.error is None
    (run,) = did.runs
    assert judge(run).grade is Grade.EXACT, judge(run).reasons
    again = held.replay(did, lambda: handed(HANDED[name], declared=declared))
    assert again.result is not None
    assert again.result.answered == {"tool": 1}
    assert again.value == did.value
    assert (again.result.result, again.result.unrestored) == ("same", [])
