from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reenact
from foreign import told
from reenact.boundary.question import question
from reenact.graph.build import build
from reenact.replay.stubs import Stubs
from reenact.values.call import Call, CallKind, FunctionCall


def fetch(city: str, days: int = 3, *, deep: bool = False) -> str:
    return f"{city} {days} {deep}"


HERE = f"{__name__}:fetch"


def take(recorded: Any, now: Any, function: str = HERE) -> tuple[bool, list[str]]:
    stubs = Stubs(build([told.tool(1, "fetch", recorded, "x")]))
    call = Call(kind=CallKind.TOOL, name="fetch", request=FunctionCall(function=function, arguments=now))
    found = stubs.take_kept(question(call), None, None)
    return found is not None, [each.path for each in found.ignored] if found else []


@pytest.mark.parametrize(
    ("recorded", "now", "fits"),
    [
        ({"city": "Oslo", "days": 3, "deep": False}, {"city": "Oslo", "days": 3, "deep": False}, True),
        ({"city": "Oslo"}, {"city": "Oslo", "days": 3, "deep": False}, True),  # the rest are defaults
        ({"city": "Oslo"}, {"city": "Oslo", "days": 4, "deep": False}, False),
        ({"city": "Oslo"}, {"city": "Rome", "days": 3, "deep": False}, False),
        ({"city": "Oslo", "days": 3.0}, {"city": "Oslo", "days": 3, "deep": False}, True),
        ({"city": "Oslo", "days": "3"}, {"city": "Oslo", "days": 3, "deep": False}, True),  # text of an emitter's
        ({"city": "Oslo", "days": True}, {"city": "Oslo", "days": 1, "deep": False}, False),
        ({"city": "Oslo", "away": 1}, {"city": "Oslo", "days": 3, "deep": False}, False),
        ({"args": ["Oslo"], "kwargs": {"days": 3}}, {"city": "Oslo", "days": 3, "deep": False}, True),
        ({"args": ["Oslo", 9], "kwargs": {}}, {"city": "Oslo", "days": 3, "deep": False}, False),
        (["Oslo", 3, False], {"city": "Oslo", "days": 3, "deep": False}, True),
        ('{"city": "Oslo"}', {"city": "Oslo", "days": 3, "deep": False}, True),
    ],
)
def test_a_function_s_arguments_agree_as_far_as_they_were_kept(recorded: Any, now: Any, *, fits: bool) -> None:
    assert take(recorded, now)[0] is fits


def test_defaults_of_a_function_that_nobody_knows_are_no_excuse() -> None:
    now = {"city": "Oslo", "days": 3, "deep": False}
    assert take({"city": "Oslo"}, now) == (True, ["arguments.days", "arguments.deep"])
    assert not take({"city": "Oslo"}, now, "elsewhere:fetch")[0]


def test_all_arguments_in_one() -> None:
    assert take({"city": "Oslo", "days": 3}, {"payload": {"city": "Oslo", "days": 3}})[0]
    assert take({"input": "Oslo"}, {"city": "Oslo"})[0]
    assert not take({"input": "Oslo"}, {"city": "Rome"})[0]


def test_equal_tools_are_taken_by_order_and_the_choice_is_counted() -> None:
    stubs = Stubs(build([told.tool(1, "fetch", {"city": "a"}, "x"), told.tool(2, "fetch", {"city": "a"}, "y")]))
    asked = question(
        Call(kind=CallKind.TOOL, name="fetch", request=FunctionCall(function=HERE, arguments={"city": "a"}))
    )
    first, second = stubs.take_kept(asked, None, None), stubs.take_kept(asked, None, None)
    assert first is not None
    assert second is not None
    assert [first.node.span.span_id, second.node.span.span_id] == [f"{1:016x}", f"{2:016x}"]
    assert (first.among, second.among) == (2, 1)
    assert stubs.take_kept(asked, None, None) is None


def test_a_declared_tool_is_answered_from_what_was_recovered(tmp_path: Path) -> None:
    user = told.said("user", told.text(told.QUESTION))
    calls = told.said("assistant", told.called("fetch", {"city": "Oslo"}))
    spans = [told.chat(1, [user], [calls]), told.chat(2, [user, calls, told.said("tool", told.came({"rain": 1}))], [])]
    tool = reenact.tool(fetch)
    with reenact.replay(told.written(tmp_path, *spans), store=tmp_path / "store", strict=False) as replay:
        assert tool("Oslo") == {"rain": 1}
    assert replay.result is not None
    assert replay.result.answered == {"tool": 1}
