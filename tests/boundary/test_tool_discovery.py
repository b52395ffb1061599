"""Tools that nobody declared, in a process that records: cut, recorded from their offer on, given back."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import json
import pickle
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reenact
from held import Held
from reenact.boundary import offers
from reenact.values.discovered_tools import CHANGED, FOUND, HELD, STATE, TOUCHED, listed
from reenact.values.run import Node

CART: dict[str, int] = {}


def add_item(sku: str, count: int = 1) -> int:
    CART[sku] = CART.get(sku, 0) + count
    return sum(CART.values())


@functools.lru_cache
def cached(n: int) -> int:
    return n * 2


@reenact.tool
def asked_for(n: int) -> int:
    return n


TABLE: dict[str, Any] = {"twice": functools.partial(pow, 2)}
FILE: dict[str, Any] = {}


def write_down(text: str) -> int:
    return int(FILE["open"].write(text))


@pytest.fixture
def held(tmp_path: Path) -> Held:
    CART.clear()
    cached.cache_clear()
    return Held(tmp_path)


def offer(*names: str) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    offers.hear(json.dumps({"messages": [], "model": "m", "tools": tools}).encode())


def names(nodes: list[Node]) -> list[str]:
    return [node.call.name for node in nodes]


def test_a_tool_is_recorded_from_its_offer_on_and_its_function_given_back(held: Held) -> None:
    code, table = add_item.__code__, dict(TABLE)

    def work() -> None:
        add_item("early")
        offer("add_item", "cached", "twice")
        assert add_item.__code__ is not code
        add_item("tea", count=2)
        cached(3)
        cached(3)
        TABLE["twice"](5)

    calls = held.record(work).calls
    assert names(calls) == ["add_item", "cached", "cached", "twice"]
    assert all(node.span.attributes[FOUND] for node in calls)
    assert calls[0].call.request.arguments == {"sku": "tea", "count": 2}  # type: ignore[union-attr]
    assert calls[0].call.request.function == f"{__name__}:add_item"  # type: ignore[union-attr]
    assert (listed(calls[0], STATE), listed(calls[0], CHANGED)) == ([f"{__name__}:CART"],) * 2
    assert [bool(listed(node, CHANGED)) for node in calls] == [True, True, True, False]
    assert add_item.__code__ is code
    assert table == TABLE
    assert type(cached) is type(functools.lru_cache(len))


def test_each_run_begins_with_no_tool_offered(held: Held) -> None:
    def work() -> None:
        with reenact.run("one"):
            offer("add_item")
            add_item("tea")
        with reenact.run("two"):
            add_item("milk")
            offer("add_item")
            add_item("rice")

    did = held.record(work)
    assert [node.call.request.arguments["sku"] for node in did.calls] == ["tea", "rice"]  # type: ignore[union-attr, call-overload, index]


def test_a_declared_tool_stays_one_record(held: Held) -> None:
    @functools.wraps(asked_for)
    def around(n: int) -> int:
        return asked_for(n)

    def work() -> int:
        offer("asked_for")
        return around(1)

    calls = held.record(work).calls
    assert names(calls) == ["asked_for"]
    assert FOUND not in calls[0].span.attributes


@pytest.mark.slow
def test_tools_made_anew_for_each_run_are_found_each_time_and_freed(held: Held) -> None:
    seen: list[weakref.ref[Any]] = []

    def session(n: int) -> int:
        def local_tool() -> int:
            return n

        tools: dict[str, Callable[[], int]] = {"local_tool": local_tool}
        seen.append(weakref.ref(local_tool))
        offer("local_tool")
        return tools["local_tool"]()

    did = held.record(lambda: [session(n) for n in range(3)])
    assert did.value == [0, 1, 2]
    assert names(did.calls) == ["local_tool"] * 3
    gc.collect()
    assert [each() for each in seen] == [None] * 3


class Framework:
    """As a framework's own object, that holds the tools of an agent."""

    def __init__(self, *tools: Callable[[], int]) -> None:
        self.tools = tools

    def go(self) -> int:
        offer("hidden", "add_item")
        return sum(tool() for tool in self.tools)


Framework.__module__ = "json"


def test_tools_of_a_function_that_returned_are_found_where_a_framework_holds_them(held: Held) -> None:
    def made(n: int) -> Framework:
        def hidden() -> int:
            return n

        def add_item() -> int:  # a function of the module is called so, too
            return 2 * n

        return Framework(hidden, add_item)

    agents = [made(n) for n in range(3)]
    did = held.record(lambda: [agent.go() for agent in agents])
    assert did.value == [0, 3, 6]
    assert names(did.calls) == ["hidden", "add_item"] * 3


def test_tools_are_found_beside_a_frame_that_holds_a_whole_application(held: Held) -> None:
    def made(n: int) -> Framework:
        def hidden() -> int:
            return n

        def add_item() -> int:
            return 2 * n

        return Framework(hidden, add_item)

    def outer() -> int:
        application = [[[] for _ in range(200)] for _ in range(200)]
        return made(1).go() + len(application[0][0])

    did = held.record(outer)
    assert names(did.calls) == ["hidden", "add_item"]


@pytest.mark.slow
def test_threads_and_tasks_reach_the_same_cut(held: Held) -> None:
    def work() -> None:
        offer("add_item")
        threads = [threading.Thread(target=add_item, args=(f"t{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        async def ask() -> None:
            await asyncio.gather(*(asyncio.to_thread(add_item, "a") for _ in range(4)))

        asyncio.run(ask())

    assert names(held.record(work).calls) == ["add_item"] * 8


def test_a_proxy_is_pickled_and_copied_as_what_it_stands_for(held: Held) -> None:
    def work() -> list[Any]:
        offer("twice", "cached")
        proxy = TABLE["twice"]
        assert isinstance(proxy, functools.partial)
        assert proxy.args == (2,)
        again = pickle.loads(pickle.dumps(proxy))
        named = pickle.loads(pickle.dumps(cached))
        return [again(5), copy.deepcopy(TABLE)["twice"](5), copy.copy(proxy)(5), named(4), cached.cache_info().misses]

    assert held.record(work).value == [32, 32, 32, 8, 1]


@pytest.mark.slow
def test_an_open_file_that_a_tool_can_reach_counts_as_used(held: Held, tmp_path: Path) -> None:
    def work() -> None:
        offer("write_down")
        with (tmp_path / "log.txt").open("a") as FILE["open"]:
            write_down("one")
        FILE.clear()

    (node,) = held.record(work).calls
    assert listed(node, TOUCHED) == []
    assert listed(node, HELD) == [f"_io.TextIOWrapper {__name__}:FILE"]


@pytest.mark.slow
def test_a_replay_that_is_not_sealed_answers_it_and_puts_its_state_back(held: Held) -> None:
    def work() -> tuple[int, dict[str, int]]:
        CART.clear()
        offer("add_item")
        return add_item("tea", 2) + add_item("milk"), dict(CART)

    did = held.record(work)
    again = held.replay(did, work)
    assert again.value == did.value == (5, {"tea": 2, "milk": 1})
    assert again.result is not None
    assert (again.result.result, again.result.answered, again.result.ran_again) == ("same", {"tool": 2}, {})


@pytest.mark.slow
def test_a_replay_that_runs_live_tools_runs_them_live(held: Held) -> None:
    def work() -> int:
        offer("add_item")
        return add_item("tea", 2)

    did = held.record(work)
    live = held.replay(did, work, tools="live")
    assert live.value == did.value + 2
    assert live.result is not None
    assert live.result.live == 1


def test_without_a_recorder_nothing_is_cut() -> None:
    code = add_item.__code__
    offer("add_item")
    assert add_item.__code__ is code
