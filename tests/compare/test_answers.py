from __future__ import annotations

from typing import Any

import pytest

from came_in import came_in
from made import Made
from reenact.compare.answers import answer_differences
from reenact.compare.judge import judge_replay
from reenact.values.difference import ABSENT
from reenact.values.run import Run

JOINED = {"t": "joined", "pid": 1}


def said(a: Run, b: Run) -> list[tuple[str, Any, Any]]:
    return [(each.field, each.a, each.b) for each in answer_differences(a, b)]


def test_equal_answers_do_not_differ() -> None:
    for body in (b'{"a": 1}', b"text", b"\xff\x00", b""):
        assert said(came_in(answer=body), came_in(answer=body)) == []


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (b'{"a": {"b": 1}, "c": 2}', b'{"a": {"b": 3}, "c": 2}', ("answer.body.a.b", 1, 3)),
        (b'{"a": 1}', b'{"a": 1, "b": 2}', ("answer.body.b", ABSENT, 2)),
        (b"[1, 2]", b"[1]", ("answer.body[1]", 2, ABSENT)),
        (b'{"a": 1}', b'{"a":1}', ("answer.body", '{"a": 1}', '{"a":1}')),
        (b"one", b"two", ("answer.body", "one", "two")),
        (b"1", b"2", ("answer.body", "1", "2")),
        (b"\xff", b"\xfe", ("answer.body", "\ufffd", "\ufffd")),
    ],
)
def test_a_difference_is_named_where_it_lies(before: bytes, now: bytes, expected: tuple[str, Any, Any]) -> None:
    assert said(came_in(answer=before), came_in(answer=now)) == [expected]


def test_the_status_comes_first() -> None:
    found = said(came_in(answer=b"ok"), came_in(status=500, answer=b"broken"))
    assert found == [("answer.status", 200, 500), ("answer.body", "ok", "broken")]


def test_no_answer_is_a_difference() -> None:
    assert said(came_in(), came_in(status=None)) == [("answer", "status 200", ABSENT)]
    assert said(came_in(status=None), came_in()) == []


def test_of_a_client_that_went_away_only_what_it_had_is_compared() -> None:
    left: dict[str, Any] = {"reenact.inbound.left_after": 3, "reenact.inbound.left_at": 1}
    assert said(came_in(answer=b"one", **left), came_in(answer=b"one two")) == []
    assert said(came_in(answer=b"one", **left), came_in(answer=b"two"))[0][0] == "answer.body"


def test_too_large_a_body_is_not_compared() -> None:
    assert said(came_in(answer=None), came_in(answer=b"anything")) == []


def judged(replay: Run, *entries: dict[str, Any], recorded: Run | None = None) -> Any:
    recorded = recorded or came_in(answer=b"yes")
    asked = {"t": "answered", "id": recorded.nodes[1].id, "kind": "TOOL"}
    return judge_replay(recorded, (), replay, [JOINED, asked, *entries], exit_code=0, recorded_exit=None)


def test_a_changed_answer_is_a_divergence() -> None:
    assert judged(came_in(answer=b"yes")).result == "same"
    result = judged(came_in(answer=b"no"))
    assert result.result == "diverged"
    assert result.divergences[0]["field"] == "answer.body"


def test_a_program_of_the_user_s_own_owes_no_answer() -> None:
    assert judged(Made(2).run()).result == "same"


def test_what_follows_the_delivery_is_not_judged() -> None:
    missed = {"t": "miss", "call": "tool stop", "field": "call", "reason": "no tool stop was recorded", "first": True}
    assert judged(came_in(answer=b"yes"), missed).result == "diverged"
    assert judged(came_in(answer=b"yes"), {"t": "delivered"}, missed).result == "same"


def test_what_could_not_be_delivered_is_not_judged() -> None:
    result = judge_replay(
        came_in(), (), None, [JOINED, {"t": "undelivered", "why": "no such module"}], exit_code=125, recorded_exit=None
    )
    assert (result.result, result.why) == ("unjudged", "no such module")
