from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from made import Made, user
from reenact.boundary.question import Question, question
from reenact.replay.stubs import Stubs, orders
from reenact.values.call import Call, CallKind, FunctionCall
from reenact.values.difference import ABSENT
from reenact.values.run import Node, Run


def asked(name: str, *, kind: CallKind = CallKind.TOOL, **arguments: Any) -> Question:
    return question(Call(kind=kind, name=name, request=FunctionCall(function=f"agent:{name}", arguments=arguments)))


def again(run: Run, node_id: str) -> Question:
    return question(next(node for node in run.nodes if node.id == node_id).call)


def taken(stubs: Stubs, wanted: Question, parent: str | None = None, lane: str = "main") -> str | None:
    stub = stubs.take(wanted, parent, lane)
    return stub.node.id if stub else None


# which of several equal calls


def test_the_key_decides_first() -> None:
    made = Made()
    tea, milk = made.tool("fetch", {"item": "tea"}), made.tool("fetch", {"item": "milk"})
    stubs = Stubs([made.run()])
    assert taken(stubs, asked("fetch", item="milk")) == milk
    assert taken(stubs, asked("fetch", item="tea")) == tea
    assert taken(stubs, asked("fetch", item="tea")) is None
    assert taken(stubs, asked("order", item="tea")) is None
    assert taken(stubs, asked("fetch", kind=CallKind.RETRIEVER, item="tea")) is None


def test_equal_calls_are_told_apart_by_what_they_hang_below_then_by_lane_then_by_order() -> None:
    made = Made()
    chains = [made.tool("branch", {"n": n}, kind=CallKind.CHAIN, lane=f"main/branch#{n}") for n in range(2)]
    calls = {
        (parent, lane, which): made.tool("fetch", parent=chains[parent], lane=f"main/branch#{parent}{lane}")
        for parent in (1, 0)
        for lane in ("/b#0", "/a#0")
        for which in range(2)
    }
    stubs = Stubs([made.run()])
    wanted = asked("fetch")
    for (parent, lane, _), node_id in calls.items():
        assert taken(stubs, wanted, chains[parent], f"main/branch#{parent}{lane}") == node_id


def test_a_lane_that_is_new_takes_what_hangs_below_the_same_parent() -> None:
    made = Made()
    chain = made.tool("branch", kind=CallKind.CHAIN)
    elsewhere, here = made.tool("fetch", lane="main"), made.tool("fetch", parent=chain, lane="main/old#0")
    stubs = Stubs([made.run()])
    assert taken(stubs, asked("fetch"), chain, "main/new#0") == here
    assert taken(stubs, asked("fetch"), None, "main/new#1") == elsewhere


def test_a_parent_that_is_new_takes_what_is_on_the_same_lane() -> None:
    made = Made()
    made.tool("fetch", lane="main/a#0")
    on_b = made.tool("fetch", lane="main/b#0")
    assert taken(Stubs([made.run()]), asked("fetch"), "an unknown parent", "main/b#0") == on_b


def test_a_trace_without_lanes_is_taken_in_its_order() -> None:
    made = Made(lanes=False)
    calls = [made.tool("fetch") for _ in range(3)]
    stubs = Stubs([made.run()])
    assert [taken(stubs, asked("fetch"), None, f"main/x#{n}") for n in range(3)] == calls


def test_several_runs_of_one_recording_answer_together() -> None:
    first, second = Made(seed=1), Made(seed=2)
    one, two = first.tool("fetch", {"n": 1}), second.tool("fetch", {"n": 2})
    stubs = Stubs([first.run(), second.run()])
    assert (taken(stubs, asked("fetch", n=2)), taken(stubs, asked("fetch", n=1))) == (two, one)


def test_the_root_answers_nothing() -> None:
    run = Made().run()
    assert Stubs([run]).stubs == {}


def test_eight_thousand_equal_prompts_cost_as_much_each_as_eight_hundred() -> None:
    def cost(count: int) -> float:
        made = Made()
        for number in range(count):
            made.tool("vote", lane=f"main/vote#{number % 40}")
        stubs = Stubs([made.run()])
        wanted = asked("vote")
        with lines_run() as lines:
            for number in range(count):
                assert stubs.take(wanted, None, f"main/vote#{(number * 7) % 40}") is not None
            assert stubs.take(wanted, None, "main") is None
        return len(lines) / count

    assert cost(8000) < cost(800) * 1.5


@contextmanager
def lines_run() -> Generator[list[None]]:
    """Count the lines of Python that run: what they cost whatever else the machine does."""
    lines: list[None] = []

    def trace(_frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        if event == "line":
            lines.append(None)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)


# what an answered call answers for


def nested() -> tuple[Made, dict[str, str]]:
    made = Made()
    outer = made.tool("outer")
    inner = made.tool("inner", parent=outer)
    deep = made.llm([user("deep")], "yes", parent=inner)
    beside = made.llm([user("beside")], "yes")
    return made, {"outer": outer, "inner": inner, "deep": deep, "beside": beside}


def test_what_hangs_below_an_answered_call_is_covered() -> None:
    made, ids = nested()
    run = made.run()
    stubs = Stubs([run])
    below = stubs.cover(stubs.stubs[ids["outer"]])
    assert {node.id for node in below} == {ids["inner"], ids["deep"]}
    assert taken(stubs, again(run, ids["deep"])) is None
    assert taken(stubs, again(run, ids["beside"])) == ids["beside"]


def test_a_chain_of_calls_of_any_depth_is_covered() -> None:
    made = Made()
    top = parent = made.tool("step")
    for _ in range(3000):
        parent = made.tool("step", parent=parent)
    stubs = Stubs([made.run()])
    assert len(stubs.cover(stubs.stubs[top])) == 3000


def test_evidence_is_a_provider_s_call_below() -> None:
    made, ids = nested()
    by_hand = made.tool("by hand", kind=CallKind.LLM)
    made.tool("by hand", kind=CallKind.LLM, parent=by_hand)
    stubs = Stubs([made.run()])
    assert {name: stubs.holds_evidence(stubs.stubs[node_id]) for name, node_id in ids.items()} == {
        "outer": True,
        "inner": True,
        "deep": False,
        "beside": False,
    }
    assert not stubs.holds_evidence(stubs.stubs[by_hand])


def test_what_nobody_asked_for() -> None:
    made, ids = nested()
    made.tool("chain", kind=CallKind.CHAIN)
    made.tool("cut off", unfinished=True)
    run = made.run()
    stubs = Stubs([run])
    assert {stub.node.id for stub in stubs.unconsumed()} == set(ids.values())
    stubs.cover(stubs.stubs[ids["inner"]])
    taken(stubs, again(run, ids["inner"]))
    assert {stub.node.id for stub in stubs.unconsumed()} == {ids["outer"], ids["beside"]}


# the nearest


def test_the_nearest_call_is_named_with_the_field_that_differs() -> None:
    made = Made()
    made.tool("sell", {"shares": 5, "symbol": "ACME"})
    near = made.tool("sell", {"shares": 5, "symbol": "OTHER", "at": "market"})
    made.tool("buy", {"shares": 1000, "symbol": "OTHER", "at": "market"})
    found = Stubs([made.run()]).nearest(asked("sell", shares=1000, symbol="OTHER", at="market"), "main")
    assert found is not None
    stub, fields = found
    assert stub.node.id == near
    assert [(field.path, field.a, field.b) for field in fields] == [("arguments.shares", 5, 1000)]


def test_a_message_of_a_conversation_is_named_by_its_place() -> None:
    made = Made()
    near = made.llm([user("Hello."), user("Is there tea?")], "yes")
    run = made.run()
    other = Made(seed=3)
    live = other.llm([user("Hello."), user("Is there milk?")], "yes")
    found = Stubs([run]).nearest(again(other.run(), live), "main")
    assert found is not None
    assert found[0].node.id == near
    assert [field.path for field in found[1]] == ["body.messages[1].content"]


def test_one_that_is_free_is_nearer_than_one_that_was_taken() -> None:
    made = Made()
    gone, free = made.tool("sell", {"n": 1, "x": 1}), made.tool("sell", {"n": 2, "x": 2})
    stubs = Stubs([made.run()])
    assert taken(stubs, asked("sell", n=1, x=1)) == gone
    found = stubs.nearest(asked("sell", n=1, x=3), "main")
    assert found is not None
    assert found[0].node.id == free


def test_one_that_was_taken_already_differs_in_nothing() -> None:
    made = Made()
    only = made.tool("sell", {"n": 1})
    stubs = Stubs([made.run()])
    taken(stubs, asked("sell", n=1))
    found = stubs.nearest(asked("sell", n=1), "main")
    assert found is not None
    assert (found[0].node.id, found[1]) == (only, [])


def test_a_tool_of_another_name_is_near_where_there_is_no_other() -> None:
    made = Made()
    made.tool("sell", {"n": 1})
    found = Stubs([made.run()]).nearest(asked("buy", n=1), "main")
    assert found is not None
    assert [(field.path, field.a, field.b) for field in found[1]] == [("name", "sell", "buy")]


def test_an_argument_that_is_new_is_absent_in_the_recording() -> None:
    made = Made()
    made.tool("sell", {"n": 1})
    found = Stubs([made.run()]).nearest(asked("sell", n=1, at="market"), "main")
    assert found is not None
    assert [(field.path, field.a is ABSENT, field.b) for field in found[1]] == [("arguments.at", True, "market")]


def test_of_another_kind_nothing_is_near() -> None:
    made = Made()
    made.tool("sell")
    made.tool("chain", kind=CallKind.CHAIN)
    assert Stubs([made.run()]).nearest(asked("sell", kind=CallKind.RETRIEVER), "main") is None


# the releases that the gate expects


def node_of(run: Run, node_id: str) -> Node:
    return next(node for node in run.nodes if node.id == node_id)


def test_every_numbered_release_is_expected_once() -> None:
    made = Made()
    tool = made.tool("fetch")
    stream = made.llm([user("hello")], "a longer answer", stream=True)
    chain = made.tool("chain", kind=CallKind.CHAIN)
    cut_off = made.tool("cut off", unfinished=True)
    run = made.run()
    numbers = [each.order for each in Stubs([run]).expected()[""]]
    assert sorted(numbers) == sorted([*orders(node_of(run, tool)), *orders(node_of(run, stream))])
    assert len(orders(node_of(run, stream))) > 3
    assert node_of(run, chain).end_order not in numbers
    assert orders(node_of(run, cut_off)) == []


def test_kinds_that_go_live_are_not_awaited() -> None:
    made = Made()
    tool, model = made.tool("fetch"), made.llm([user("hello")], "yes")
    run = made.run()
    expected = Stubs([run]).expected({CallKind.TOOL})[""]
    assert [each.order for each in expected] == [node_of(run, model).end_order]
    assert node_of(run, tool).end_order


@pytest.mark.parametrize("name", ["CancelledError", "GeneratorExit"])
def test_of_what_the_agent_itself_gave_up_only_the_question_is_awaited(name: str) -> None:
    made = Made()
    error = asyncio.CancelledError() if name == "CancelledError" else GeneratorExit()
    made.tool("fetch", raised=error)
    run = made.run()
    (node,) = (node for node in run.nodes if node.call.name == "fetch")
    (releases,) = Stubs([run]).expected().values()
    assert [each.order for each in releases] == [node.start_order]
    assert node.end_order not in {node.start_order, 0}


@pytest.mark.parametrize("kind", ["tool", "model"])
def test_the_address_of_an_object_is_no_part_of_what_was_asked(kind: str) -> None:
    made = Made()
    texts = [f"use <Box object at {address}>, {rest}" for address, rest in (("0x7f01", ""), ("0x7f93482140e0", "a"))]
    texts += [texts[1].replace("82140e0", "c1fff00"), texts[1].replace(", a", ", b"), texts[1].replace(">", "")]
    ask = {"tool": lambda text: made.tool("use", {"text": text}), "model": lambda text: made.llm([user(text)], "done")}
    ids = [ask[kind](text) for text in texts]
    asked = {node.id: question(node.call) for node in made.run().nodes}
    plain, one, other, another, unclosed = (asked[each] for each in ids)
    assert one.key == other.key
    assert (one.noise["addresses"], other.noise["addresses"]) == (["0x7f93482140e0"], ["0x7f934c1fff00"])
    assert len({each.key for each in (plain, one, another, unclosed)}) == 4, "what is no address counts"


def test_who_asked_is_no_part_of_what_was_asked() -> None:
    made = Made()
    one, other, elsewhere = (
        made.llm([user("go")], "done", body=body) for body in ({"user": "a"}, {"user": "b"}, {"temperature": 1})
    )
    run = made.run()
    keys = [next(question(node.call).key for node in run.nodes if node.id == each) for each in (one, other, elsewhere)]
    assert keys[0] == keys[1] != keys[2]
