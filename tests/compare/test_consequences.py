from __future__ import annotations

from typing import Any

from made import Made, user
from reenact.compare.consequences import ForkChange as What
from reenact.compare.consequences import consequences
from reenact.values.json import Json


def agent(
    seed: int,
    *,
    target: str = "production",
    says: str = "done",
    deleted: str | None = None,
    body: dict[str, Json] | None = None,
    missed: bool = False,
) -> Made:
    """Make an agent that asks, deletes and says so."""
    made = Made(seed)
    made.llm([user("clean up")], tools=[("delete", {"target": target})], body=body)
    more: dict[str, Any] = {"unfinished": True, "more": {"reenact.replay.missed": "x"}} if missed else {}
    made.tool("delete", {"target": target}, deleted or target, **more)
    if not missed:
        made.llm([user("clean up"), user(deleted or target)], says, body=body)
    return made


def first(made: Made, place: int = 1) -> str:
    return made.run().nodes[place].id


def test_the_change_itself_is_no_consequence() -> None:
    parent, fork = agent(1), agent(2, target="staging")
    found = consequences(parent.run(), fork.run(), What(answered=frozenset([first(parent)])))
    assert [(each.call, each.field) for each in found] == [
        ("tool delete #3", "arguments.target"),
        ("tool delete #3", "returned"),
        ("llm ChatCompletion #4", "body.messages[1].content"),
    ]


def test_a_changed_answer_that_changes_nothing_more_has_none() -> None:
    parent, fork = agent(1), agent(2, says="all done")
    assert consequences(parent.run(), fork.run(), What(answered=frozenset([first(parent, 3)]))) == ()
    assert len(consequences(parent.run(), fork.run(), What())) == 1


def test_of_a_changed_question_the_answer_is_a_consequence() -> None:
    parent, fork = agent(1), agent(2, target="staging", body={"seed": 1})
    changed = frozenset([first(parent)])
    found = consequences(parent.run(), fork.run(), What(asked=changed))
    assert found[0].call == "llm ChatCompletion #2"
    assert found[0].field == "reply.messages[0].tool_calls[0].arguments.target"


def test_parameters_are_no_consequence_and_hide_none() -> None:
    parent, fork = agent(1), agent(2, deleted="two", body={"temperature": 0.5})
    found = consequences(parent.run(), fork.run(), What(parameters=frozenset(["temperature"])))
    assert [(each.call, each.field) for each in found] == [
        ("tool delete #3", "returned"),
        ("llm ChatCompletion #4", "body.messages[1].content"),
    ]


def test_how_a_stopped_parent_ended_is_nothing_to_differ_from() -> None:
    parent, fork = agent(1, missed=True), agent(2)
    found = consequences(
        parent.run(died=("Miss", "x"), exit_code=1), fork.run(), What(answered=frozenset([first(parent, 2)]))
    )
    assert [(each.call, each.kind) for each in found] == [("llm ChatCompletion #4", "extra")]


def test_a_fork_that_was_stopped_owes_nothing_behind_its_stop() -> None:
    parent, fork = agent(1), agent(2, target="staging", missed=True)
    what = What(answered=frozenset([first(parent)]), stopped=True)
    found = consequences(parent.run(exit_code=0), fork.run(exit_code=1), what)
    assert [(each.call, each.field, each.a, each.b) for each in found] == [
        ("tool delete #3", "arguments.target", "production", "staging")
    ]
