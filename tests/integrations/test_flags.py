"""A feature flag has its recorded value again, whatever it is today, and a replay says where that is another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reenact
from held import Did, Held
from reenact.graph.verdict import judge


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@reenact.tool
def told(what: str) -> str:
    return what


def recorded(held: Held, work: Callable[[], Any]) -> Did:
    did = held.record(work)
    assert did.error is None
    return did


@pytest.mark.always
def test_a_flag_is_what_it_was_and_today_s_value_is_named(held: Held) -> None:
    values: dict[str, Any] = {"new-prices": True, "limits": {"tier": [1, None]}, "eu only": 'a "b"'}
    seen: list[list[Any]] = []

    def work() -> None:
        seen.append([told(str(number)) and reenact.flag(name, values[name]) for number, name in enumerate(values)])
        told(repr(seen[-1]))

    did = recorded(held, work)
    (kit,) = [each for each in judge(did.runs[0]).kit if each.name == "feature flags"]
    assert (kit.state, kit.detail) == ("present", "eu only, limits, new-prices")
    values |= {"new-prices": False, "limits": {}}
    again = held.replay(did, work)
    assert again.error is None
    assert again.result is not None
    assert again.result.result == "same"
    assert seen[0] == seen[1]
    assert [(each["field"], each["recorded"], each["replay"]) for each in again.result.ignored] == [
        ("flag new-prices", True, False),
        ("flag limits", {"tier": [1, None]}, {}),
    ]
    work()
    assert seen[2] == [False, {}, 'a "b"'], "they are today's where nothing is replayed"


def test_a_flag_that_was_not_read_is_today_s_and_named(held: Held) -> None:
    asked = False

    def work() -> str:
        return told(str(reenact.flag("new", 3)) if asked else "3")

    did = recorded(held, work)
    asked = True
    again = held.replay(did, work)
    assert again.value == "3"
    assert again.result is not None
    assert [str(each["site"]).rpartition(" flag ")[2] for each in again.result.volatile] == ["new"]


@pytest.mark.parametrize("value", [object(), (1, 2), {1: 2}, float("nan"), b"x"])
def test_a_value_that_is_no_json_is_given_back_as_it_is(held: Held, value: object) -> None:
    def work() -> bool:
        return reenact.flag("odd", value) is value

    assert recorded(held, work).value is True


def test_many_flags_of_one_line_keep_their_order(held: Held) -> None:
    today = 0
    seen: list[list[int]] = []

    def work() -> None:
        seen.append([reenact.flag(f"flag-{number}", number + today) for number in range(1_500)] * 2)
        told(str(seen[-1]))

    did = recorded(held, work)
    today = 7
    assert held.replay(did, work).error is None
    assert seen[0] == seen[1]


@pytest.mark.always
def test_what_openfeature_evaluates_for_the_agent_is_what_it_was(held: Held) -> None:
    pytest.importorskip("openfeature")
    from openfeature import api
    from openfeature.provider.in_memory_provider import InMemoryFlag, InMemoryProvider

    def today(variant: str) -> None:
        flags = {
            "beta": InMemoryFlag(variant, {"on": True, "off": False}),
            "tier": InMemoryFlag(variant, {"on": {"limit": 9}, "off": {"limit": 1}}),
        }
        api.set_provider(InMemoryProvider(flags))

    seen: list[list[Any]] = []

    async def later() -> Any:
        details = await api.get_client().get_boolean_details_async("beta", False)
        return details.value, details.variant

    def work() -> None:
        client = api.get_client()
        plain = client.get_boolean_value("beta", False)
        seen.append(
            [plain, client.get_object_value("tier", {}), asyncio.run(later()), client.get_string_value("no", "x")]
        )
        told(repr(seen[-1]))

    today("on")
    did = recorded(held, work)
    assert seen[0] == [True, {"limit": 9}, (True, "on"), "x"]
    today("off")
    again = held.replay(did, work)
    assert again.error is None
    assert seen[1] == seen[0]
    assert again.result is not None
    assert {str(each["field"]) for each in again.result.ignored} == {"flag beta", "flag tier"}
    work()
    assert seen[2] == [False, {"limit": 1}, (False, "off"), "x"]
    api.clear_providers()
