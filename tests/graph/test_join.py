from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from counting import growth
from made import Made, user
from reenact.values.run import Run

ASK = [user("do it")]


def causes(run: Run) -> dict[str, str | None]:
    """Which call asked for each tool call, by id."""
    return {node.id: node.caused_by for node in run.nodes if node.kind == "TOOL"}


def test_a_tool_call_is_tied_by_its_id_where_one_is_known() -> None:
    made = Made()
    llm = made.llm(ASK, tools=[("fetch", {"n": 1}), ("fetch", {"n": 1})])
    wanted = [part["id"] for part in _asked_for(made.run(), llm)]
    tools = [made.tool("fetch", {"n": 1}, more={"tool.id": each}) for each in reversed(wanted)]
    run = made.run()
    assert causes(run) == dict.fromkeys(tools, llm)
    assert [node.tool_call_id for node in run.nodes if node.kind == "TOOL"] == wanted[::-1]


def test_an_id_that_nobody_asked_for_ties_to_nothing() -> None:
    made = Made()
    made.llm(ASK, tools=[("fetch", {"n": 1})])
    tool = made.tool("fetch", {"n": 1}, more={"gen_ai.tool.call.id": "call_unknown"})
    assert causes(made.run()) == {tool: None}


def test_without_an_id_name_and_arguments_tell_whatever_their_order() -> None:
    made = Made()
    llm = made.llm(ASK, tools=[("fetch", {"a": 1, "b": 2}), ("fetch", {"a": 2}), ("drop", {"a": 2})])
    by_id = {str(part["id"]): part for part in _asked_for(made.run(), llm)}
    made.tool("drop", {"a": 2})
    made.tool("fetch", {"b": 2, "a": 1})
    made.tool("fetch", {"a": 2})
    tied = [by_id[str(node.tool_call_id)]["function"] for node in made.run().nodes if node.kind == "TOOL"]
    assert [(each["name"], each["arguments"]) for each in tied] == [
        ("drop", '{"a":2}'),
        ("fetch", '{"a":1,"b":2}'),
        ("fetch", '{"a":2}'),
    ]


def test_equal_calls_of_one_reply_are_tied_in_order() -> None:
    made = Made()
    llm = made.llm(ASK, tools=[("fetch", {"n": 1})] * 3)
    wanted = [part["id"] for part in _asked_for(made.run(), llm)]
    for _ in range(4):
        made.tool("fetch", {"n": 1})
    tied = [node.tool_call_id for node in made.run().nodes if node.kind == "TOOL"]
    assert tied == [*wanted, None]


def test_defaults_that_the_function_added_are_no_obstacle() -> None:
    made = Made()
    llm = made.llm(ASK, tools=[("fetch", {"item": "tea"})])
    added = made.tool("fetch", {"item": "tea", "unit": "g", "at": None})
    other = made.tool("fetch", {"item": "milk", "unit": "g"})
    assert causes(made.run()) == {added: llm, other: None}


def test_a_wish_that_was_never_granted_does_not_take_a_later_one_s_place() -> None:
    made = Made()
    made.llm(ASK, tools=[("delete", {"n": 1})])
    second = made.llm(ASK, tools=[("delete", {"n": 1})])
    tool = made.tool("delete", {"n": 1})
    assert causes(made.run()) == {tool: second}


def test_branches_at_the_same_time_keep_their_own() -> None:
    made = Made()
    lanes = [f"main/branch#{n}" for n in range(3)]
    asked = {lane: made.llm(ASK, tools=[("fetch", {"n": 1})], lane=lane) for lane in lanes}
    order = (lanes[1], lanes[0], lanes[2])
    done = {made.tool("fetch", {"n": 1}, lane=f"{lane}/fetch#0"): asked[lane] for lane in order}
    assert causes(made.run()) == done


def test_a_tool_that_ran_before_anybody_asked() -> None:
    made = Made()
    tool = made.tool("fetch", {"n": 1})
    made.llm(ASK, tools=[("fetch", {"n": 1})])
    assert causes(made.run()) == {tool: None}


@pytest.mark.parametrize("arguments", ["{", "", "[1]", "null", '"text"'])
def test_arguments_that_are_no_object_are_no_obstacle(arguments: str) -> None:
    made = Made()
    made.llm(ASK, tools=[("fetch", arguments)])
    made.tool("fetch", {})
    assert len(made.run().nodes) == 3


def test_twice_as_many_wishes_are_twice_the_work() -> None:
    def work(size: int) -> Callable[[], object]:
        made = Made()
        for _ in range(size):
            made.llm(ASK, tools=[("fetch", {"n": n}) for n in range(10)])
        tools = [made.tool("fetch", {"n": n % 10}) for n in range(5 * size)]
        run = made.run()
        assert len(causes(run)) == len(tools)
        return made.run

    assert growth(work, 20) < 3


def _asked_for(run: Run, node_id: str) -> list[dict[str, Any]]:
    (node,) = [node for node in run.nodes if node.id == node_id]
    reply = json.loads(str(node.span.attributes["output.value"]))
    return list(reply["choices"][0]["message"]["tool_calls"])


@pytest.mark.parametrize(
    "got",
    [
        {"arguments": {"city": "Bern", "days": 2}},
        {"text": '{"days": 2, "city": "Bern"}'},
        {"place": "Bern", "count": 2},
        {"city": "Bern", "days": 2, "unit": "C"},
    ],
    ids=["all as one", "all as one text", "by other names", "with a default"],
)
def test_a_found_tool_may_take_the_model_s_arguments_in_its_own_way(got: Any) -> None:
    made = Made()
    llm = made.llm(ASK, tools=[("forecast", {"city": "Bern", "days": 2}), ("other", {"city": "Bern", "days": 2})])
    tool = made.tool("forecast", got)
    stranger = made.tool("forecast", {"place": "Basel", "count": 2})
    assert causes(made.run()) == {tool: llm, stranger: None}
