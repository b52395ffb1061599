"""How far a recording can be replayed: what found tools add to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from made import Made, user
from reenact.graph.verdict import judge
from reenact.values.call import CallKind, Chunk, FunctionCall, Streamed, StreamEnd
from reenact.values.discovered_tools import CHANGED, FOUND, REACHES, STATE, TOUCHED
from reenact.values.run import Grade, Reason


def reasons(made: Made) -> list[Reason]:
    made.llm([user("go")], "done")
    found = judge(made.run())
    lost = [reason for reason in found.reasons if reason.call != "run"]
    assert (found.grade is Grade.EXACT) == (not found.reasons)
    return lost


def lists(**said: list[str]) -> dict[str, Any]:
    names = {"touched": TOUCHED, "changed": CHANGED, "state": STATE}
    return {FOUND: True, REACHES: "[]", **{names[name]: json.dumps(each) for name, each in said.items()}}


def test_a_tool_that_touched_something_and_changed_nothing_loses_nothing() -> None:
    made = Made()
    made.tool("note", more=lists(touched=["write notes.txt"], state=["m:PATH"]))
    made.tool("add", more=lists(state=["m:CART"], changed=["m:CART"]))
    assert reasons(made) == []


def test_state_that_a_replay_cannot_restore_is_named_with_what_would_keep_it() -> None:
    made = Made()
    made.tool("book", more=lists(touched=["connect to db:5432"], state=["m:CART"], changed=["m:CART"]))
    (reason,) = reasons(made)
    assert (reason.call, reason.field) == ("tool book #2", "state")
    assert "m:CART" in reason.lost
    assert "connect to db:5432" in reason.lost
    assert "@reenact.tool" in reason.fix


def test_a_tool_that_lost_its_state_to_another_one_is_named_too() -> None:
    made = Made()
    made.tool("book", more=lists(touched=["write a"], state=["m:A"], changed=["m:A"]))
    made.tool("add", more=lists(state=["m:A"], changed=["m:A"]))
    assert [(reason.call, reason.field) for reason in reasons(made)] == [
        ("tool book #2", "state"),
        ("tool add #3", "state"),
    ]


def test_a_result_that_cannot_be_written_down_is_no_loss_where_the_tool_runs_again() -> None:
    unstable = {"$unstable": "m.Thing", "repr": "<Thing>"}
    made = Made()
    made.tool("quiet", {}, unstable, more=lists())
    assert reasons(made) == []
    made = Made()
    made.tool("loud", {}, unstable, more=lists(touched=["write a"]))
    assert [reason.field.startswith("result") for reason in reasons(made)] == [True]


def test_tool_schemas_that_were_sent_are_counted_where_no_tool_was_called() -> None:
    made = Made()
    schemas = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("ls", "rm")]
    made.llm([user("Tidy up.")], "Nothing to do.", body={"tools": schemas})
    made.llm([user("Tidy up again.")], "Nothing to do.", body={"tools": schemas})
    (item,) = [each for each in judge(made.run()).kit if each.name == "tool schemas"]
    assert (item.state, item.detail[:14]) == ("present", "2 sent, sha256")


@pytest.mark.parametrize(
    ("end", "lost"),
    [
        (StreamEnd.FINISHED, []),
        (StreamEnd.ABANDONED, []),
        (StreamEnd.UNFINISHED, ["the process ended in the middle of the stream"]),
    ],
)
def test_a_stream_that_a_process_left_is_a_loss_and_one_that_the_agent_closed_is_none(
    end: StreamEnd, lost: list[str]
) -> None:
    made = Made()
    pieces = (Chunk(offset_us=1, order=2, data=None, value="one"),)
    made.add(
        CallKind.TOOL, "count", FunctionCall(function="agent:count", arguments={}), Streamed(chunks=pieces, end=end)
    )
    assert [reason.lost for reason in reasons(made)] == lost
