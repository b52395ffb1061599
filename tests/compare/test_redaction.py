"""Whether redaction is why a replay left its recording."""

from __future__ import annotations

from typing import Any

import pytest

from compare.test_judge import answered, calls, changed, judged
from made import Made, user
from reenact.values.judgement import ReplayResult
from reenact.values.run import Run

MAIL = "REDACTED_e_mail_00aa11bb22cc33dd44ee@redacted.invalid"
CARD = "REDACTED_card_5f6e7d8c9b0a1f2e3d4c"
OTHER = "REDACTED_e_mail_ffffffffffffffffffff@redacted.invalid"


def desk(**ending: Any) -> Run:
    """A customer is looked up, then written to: nodes 2 to 4."""
    made = Made(4)
    made.tool("lookup", {"id": 7}, {"mail": MAIL, "card": CARD, "tier": "gold"})
    made.tool("choose", {"tier": "gold"}, "plan a")
    made.tool("send", {"to": "vip desk", "note": "card 4242"}, "sent")
    return made.run(**ending)


def left(at: int, field: str, recorded: Any, replay: Any) -> ReplayResult:
    run = desk()
    nodes = calls(run)
    return judged(run, *answered(*nodes[:at]), changed(nodes[at], field, recorded, replay), code=1)


def test_a_replay_that_is_the_same_says_what_it_was_given() -> None:
    run = desk()
    found = judged(run, *answered(*calls(run)), replay=desk())
    assert found.result == "same"
    assert found.redaction == {
        "given": [{"call": "tool lookup #2", "field": "result", "classes": {"e_mail": 1, "card": 1}}],
        "cause": "",
        "why": "",
        "keep": "",
    }


def test_nothing_redacted_is_nothing_said() -> None:
    made = Made(5)
    made.llm([user("hi")], "REDACTED words, but no token")
    run = made.run()
    assert judged(run, *answered(*calls(run))).redaction is None


@pytest.mark.parametrize(
    ("recorded", "replay", "of"),
    [
        ("card 4242", "card 3d4c", "card"),
        ("vip.com", "redacted.invalid", "e_mail"),
        ("bob", "REDACTED_e_mail_00aa11bb22cc33dd44ee", "e_mail"),
        ("4111 1111", f"card {CARD}", "card"),
        (16, len(CARD), "card"),
        ("4155550100", "5678901234", "card"),
    ],
    ids=["last four", "domain", "local part", "whole", "length", "digits"],
)
def test_a_piece_of_a_token_shows_that_redaction_made_the_difference(recorded: Any, replay: Any, of: str) -> None:
    found = left(2, "arguments.note", recorded, replay)
    assert found.redaction is not None
    assert found.redaction["cause"] == "likely"
    assert f"1 {of}" in str(found.redaction["why"])


def test_what_follows_right_behind_a_redacted_value_is_likely_its_doing() -> None:
    found = left(1, "arguments.tier", "gold", "basic")
    assert found.redaction is not None
    assert (found.redaction["cause"], found.redaction["why"]) == (
        "likely",
        "right before it tool lookup #2 gave the program 2 redacted values (1 card, 1 e_mail)",
    )


def test_what_follows_later_is_possibly_its_doing() -> None:
    found = left(2, "arguments.to", "vip desk", "desk")
    assert found.redaction is not None
    assert found.redaction["cause"] == "possible"


def test_another_value_is_another_value() -> None:
    made = Made(6)
    made.tool("write", {"to": MAIL}, "ok")
    run = made.run()
    (node,) = calls(run)
    found = judged(run, changed(node, "arguments.to", MAIL, OTHER), code=1)
    assert found.result == "diverged"
    assert found.redaction is None or found.redaction["cause"] != "likely"


def test_an_exception_that_names_a_token_shows_it() -> None:
    run = desk()
    died = ("ValueError", f"invalid literal for int() with base 10: '{CARD}'")
    found = judged(run, *answered(*calls(run)), code=1, replay=desk(exit_code=1, died=died))
    assert found.result == "diverged"
    assert found.redaction is not None
    assert (found.redaction["cause"], found.redaction["why"]) == (
        "likely",
        "outcome was made of 1 redacted value (1 card)",
    )


def test_a_tool_that_ran_again_on_tokens_and_came_to_something_else() -> None:
    made = Made(7)
    made.tool("valid", {"mail": MAIL}, True)
    run = made.run()
    (node,) = calls(run)
    entry = {"t": "changed", "id": node.id, "call": node.label, "field": "result", "recorded": True, "replay": False}
    found = judged(run, {"t": "ran_again", "id": node.id, "kind": "TOOL"}, {**entry, "absent": []})
    assert found.redaction is not None
    assert found.redaction["cause"] == "likely"
    assert "tool valid #2 ran again, and was given 1 redacted value (1 e_mail)" in str(found.redaction["why"])


def test_processes_that_took_one_value_for_two_diverged() -> None:
    run = desk()
    nodes = calls(run)
    first = {"t": "renamed", "id": nodes[0].id, "call": nodes[0].label, "pairs": {OTHER: MAIL}}
    second = {"t": "renamed", "id": nodes[1].id, "call": nodes[1].label, "pairs": {OTHER: CARD}}
    found = judged(run, *answered(*nodes), first, second)
    assert found.result == "diverged"
    assert "another process" in str(found.divergences[0]["reason"])
