"""What state a tool can reach, and that a change of it shows."""

from __future__ import annotations

import collections
import functools
import io
import queue
import socket
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from openai import OpenAI

from reenact.boundary import snapshot, state

NUMBERS: list[int] = []
COUNT = 0
NOTHING = object()
QUEUE: queue.Queue[int] = queue.Queue()


def bump() -> None:
    global COUNT  # noqa: PLW0603 - a tool that counts
    COUNT += 1


def through_another() -> None:
    _inner()


def _inner() -> None:
    NUMBERS.append(1)


def enqueue() -> None:
    QUEUE.put(1)


class Register:
    entries: ClassVar[dict[str, int]] = {}

    def enter(self) -> None:
        self.entries["n"] = len(self.entries) + 1
        NUMBERS.append(1)


class Shelf(dict[str, int]):
    """A collection of the agent's own."""


REGISTER, SHELF = Register(), Shelf()


def of_a_collection() -> None:
    SHELF["n"] = len(SHELF) + 1


def through_an_instance() -> None:
    REGISTER.enter()


def of_a_class() -> None:
    Register.entries.clear()
    Register.entries[str(len(NUMBERS))] = 1


def counts_itself() -> None:
    counts_itself.calls = getattr(counts_itself, "calls", 0) + 1  # type: ignore[attr-defined]


def reads() -> int:
    return len(NUMBERS) + COUNT


def does_nothing() -> object:
    return NOTHING


@dataclass
class Basket:
    goods: dict[str, Any] = field(default_factory=dict)
    owner: str = "u-1"
    total: int = 0
    shared: ClassVar[collections.deque[int]] = collections.deque([1], maxlen=3)

    def put(self, item: str) -> None:
        self.goods.setdefault("list", []).append(item)

    def rename(self) -> None:
        self.owner = "u-2"

    def push(self) -> None:
        type(self).shared.append(len(self.shared))

    def by_name(self) -> None:
        setattr(self, "total", self.total + 1)  # noqa: B010 - a name that no code spells

    def compute(self) -> int:
        return self.total

    def looped(self) -> None:
        self.goods["me"] = self


def made() -> tuple[Callable[[], None], Callable[[], int]]:
    inside: set[int] = set()

    def add() -> None:
        inside.add(len(inside))

    def count() -> int:
        return len(inside)

    return add, count


def changed(fn: Callable[..., Any], **arguments: Any) -> tuple[list[str], list[str]]:
    """Call it; give the names of what changed, and of all that it can reach, without the module's."""
    before = state.reached(fn, arguments)
    fn(**arguments)
    after = state.reached(fn, arguments)
    plain = [name.removeprefix(f"{__name__}:") for name in before.changed(after)]
    return plain, [name.removeprefix(f"{__name__}:") for name in after.state]


@pytest.mark.parametrize(
    ("fn", "name"),
    [(bump, "COUNT"), (through_another, "NUMBERS"), (enqueue, "QUEUE")],
)
def test_variables_of_the_module(fn: Callable[..., Any], name: str) -> None:
    assert changed(fn) == ([name], [name])


def test_state_behind_what_the_code_names() -> None:
    assert set(changed(through_an_instance)[0]) == {"NUMBERS", "Register.entries"}
    assert changed(of_a_collection)[0] == ["Shelf"]
    assert changed(of_a_class)[0] == ["Register.entries"]
    counts_itself()
    assert changed(counts_itself)[0] == ["counts_itself.calls"]


def test_what_is_only_read_is_reached_and_unchanged() -> None:
    assert changed(reads) == ([], ["NUMBERS", "COUNT"]) or changed(reads) == ([], ["COUNT", "NUMBERS"])
    assert changed(does_nothing) == ([], ["NOTHING"])


def test_closures_share_their_names() -> None:
    add, count = made()
    assert changed(add) == (["made.<locals>.inside"], ["made.<locals>.inside"])
    assert changed(count) == ([], ["made.<locals>.inside"])


@pytest.mark.parametrize(
    ("method", "names"),
    [
        (Basket.put, ["Basket.goods"]),
        (Basket.rename, ["Basket.owner"]),
        (Basket.push, ["Basket.shared"]),
        (Basket.by_name, ["Basket.total"]),
        (Basket.compute, []),
        (Basket.looped, ["Basket.goods"]),
    ],
)
def test_attributes_of_an_instance_and_its_class(method: Callable[..., Any], names: list[str]) -> None:
    basket = Basket()
    before = state.reached(method, {"self": basket, "item": "tea"})
    method(basket, "tea") if method is Basket.put else method(basket)
    after = state.reached(method, {"self": basket, "item": "tea"})
    assert [name.removeprefix(f"{__name__}:") for name in before.changed(after)] == names


def test_arguments_that_can_change() -> None:
    def fill(into: list[int], n: int) -> None:
        into.append(n)

    assert changed(fill, into=[1], n=2) == (["argument into"], ["argument into"])


def test_what_has_no_code_of_its_own() -> None:
    @functools.lru_cache
    def cached(n: int) -> int:
        return n

    assert changed(cached, n=1)[0] == [f"{cached.__qualname__} cache"]
    into: list[int] = []
    before = state.reached(functools.partial(_append, into), {})
    into.append(1)
    assert before.changed(state.reached(functools.partial(_append, into), {})) == ["argument 0"]


def _append(into: list[int]) -> None:
    into.append(1)


def test_large_state_is_looked_at_no_further_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MOST", 50)

    def grow(into: list[Any]) -> None:
        into.append(1)

    large: list[Any] = [[n] for n in range(100)]
    assert changed(grow, into=large)[0] == ["argument into"]  # its length alone tells


@pytest.mark.parametrize(
    ("value", "tells"),
    [
        (io.StringIO, False),
        (lambda: sqlite3.connect(":memory:"), True),
        (socket.socket, True),
        (lambda: OpenAI(api_key="x"), False),
        (lambda: QUEUE, False),
        (lambda: [1], False),
    ],
    ids=["text in memory", "database", "socket", "model client", "queue", "list"],
)
def test_connections_are_told_from_values(value: Callable[[], Any], *, tells: bool) -> None:
    made = value()
    try:
        assert state.is_connection(made) is tells
        held = state.reached(lambda: made, {}).connections
        assert bool(held) is tells
    finally:
        getattr(made, "close", lambda: None)()
