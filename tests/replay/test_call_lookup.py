from __future__ import annotations

import pytest

from made import Made, user
from reenact.errors import UsageError
from reenact.replay.call_lookup import call_named
from reenact.values.run import Run


@pytest.fixture
def run() -> Run:
    made = Made()
    made.llm([user("one")], "1")
    made.tool("look up", {"n": 1})
    made.llm([user("two")], "2")
    made.tool("weigh", {"n": 2})
    made.tool("look up", {"n": 3})
    return made.run()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("#3", 3),
        ("3", 3),
        ("tool look up #3", 3),
        ("  tool   weigh ", 5),
        ("weigh", 5),
        ("first llm", 2),
        ("last LLM", 4),
        ("second llm", 4),
        ("2nd look up", 6),
        ("first tool look up", 3),
        ("last tool", 6),
        ("last", 6),
    ],
)
def test_a_call_is_named_in_many_ways(run: Run, text: str, number: int) -> None:
    assert call_named(run, text).number == number


def test_a_call_is_named_by_its_id_or_its_beginning(run: Run) -> None:
    for node in run.nodes[1:]:
        assert call_named(run, node.id) is node
        assert call_named(run, node.id[:12].upper()) is node


@pytest.mark.parametrize(
    "text", ["", "#1", "#77", "99", "tool weigh #2", "third llm", "7th", "nothing", "0th tool", "ab"]
)
def test_a_wrong_name_lists_the_calls(run: Run, text: str) -> None:
    with pytest.raises(UsageError, match="no call") as caught:
        call_named(run, text)
    for label in ("llm ChatCompletion #2", "tool look up #3", "tool weigh #5"):
        assert label in str(caught.value)
    assert "#1\n" not in str(caught.value)


def test_a_name_that_several_calls_have_lists_those(run: Run) -> None:
    with pytest.raises(UsageError, match="2 calls that 'look up' may mean") as caught:
        call_named(run, "look up")
    assert "tool look up #3" in str(caught.value)
    assert "weigh" not in str(caught.value)


def test_a_long_run_is_not_listed_to_its_end() -> None:
    made = Made()
    for number in range(200):
        made.tool("step", {"n": number})
    with pytest.raises(UsageError) as caught:
        call_named(made.run(), "jump")
    assert "… and 140 more" in str(caught.value)
