from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from incidents import incident
from made import Made, user
from reenact.report.incident.incident import Second
from reenact.report.incident.story import answered_to_the_caller, headline, lede, same_before
from reenact.values.assertion import Finding, Standing
from reenact.values.call import CallKind
from reenact.values.difference import ABSENT, Divergence, divergence_to_json
from reenact.values.run import Run


def made() -> tuple[Any, dict[str, str]]:
    run = Made(1)
    ids = {
        "search": run.tool("handbook", {"query": "refunds"}, ["page"], kind=CallKind.RETRIEVER),
        "model": run.llm([user("Refund order 7.")], tools=[("refund", {"order": 7, "amount": 50})]),
        "tool": run.tool("refund", {"order": 7, "amount": 50}, {"ok": True}),
        "last": run.llm([user("Refund order 7."), user("ok")], "Refunded."),
    }
    return incident(replace(run.run(), name="refunds")), ids


def diverged(**said: Any) -> Second:
    divergence = Divergence(**{"structural": True, "a": None, "b": None, "field": "call", **said})
    return Second(run=None, word="diverged", divergences=(divergence_to_json(divergence),))


def test_a_run_that_went_well_is_said_to_have() -> None:
    told, _ = made()
    assert headline(told) == "refunds ran to its end: 1 document search, 2 model calls and 1 tool call"
    assert lede(told) == "It was asked: “Refund order 7.”"


def test_a_title_that_somebody_gave_comes_first() -> None:
    told, _ = made()
    assert headline(replace(told, title="We refunded twice")) == "We refunded twice"


def test_a_rule_that_is_broken_is_told_by_the_call_that_broke_it() -> None:
    told, ids = made()
    rule = Finding(
        assertion="never called refund", standing=Standing.FAILS, because="called 1 time", nodes=(ids["tool"],)
    )
    told = replace(told, findings=(rule,))
    assert headline(told) == "The agent called refund with amount 50 and order 7."
    assert lede(told).startswith("That breaks the rule “never called refund”.")


def test_a_rule_that_nothing_witnesses_is_told_by_its_reason() -> None:
    told, _ = made()
    rule = Finding(assertion="called audit", standing=Standing.FAILS, because="audit was not called.")
    assert headline(replace(told, findings=(rule,))) == "Audit was not called"


def test_a_verdict_on_wording_makes_no_headline() -> None:
    told, ids = made()
    prose = Finding(assertion="says x", standing=Standing.FAILS, because="no", nodes=(ids["tool"],), layer="prose")
    assert headline(replace(told, findings=(prose,))).startswith("refunds ran to its end")


def test_an_error_that_ended_it_is_named() -> None:
    run = Made(1)
    run.tool("look", {}, "x")
    told = incident(replace(run.run(died=("RateLimitError", "too many")), name="refunds"))
    assert headline(told) == "refunds ended with an error: RateLimitError: too many"
    assert headline(replace(made()[0], status="interrupted")) == "refunds was cut off before it ended"


@pytest.mark.parametrize(
    ("said", "first", "then"),
    [
        (
            {"kind": "missing", "call": "tool refund #4", "b": ABSENT, "node_a": "tool"},
            "The agent called refund with amount 50 and order 7.",
            "The replayed code does not. The 2 calls before that are the same.",
        ),
        (
            {
                "kind": "changed",
                "call": "tool refund #4",
                "field": "arguments.amount",
                "a": 50,
                "b": 5,
                "node_a": "tool",
            },
            "The agent called refund with amount 50 and order 7.",
            "The replayed code calls refund with amount 5 instead of 50. The 2 calls before that are the same.",
        ),
        (
            {
                "kind": "changed",
                "call": "llm ChatCompletion #5",
                "field": "body.model",
                "a": "x",
                "b": "y",
                "node_a": "last",
            },
            "The agent asked the model (call #5), which said: “Refunded”.",
            (
                "The replayed code makes the model call #5 too, and body.model differs."
                " The 3 calls before that are the same."
            ),
        ),
        (
            {"kind": "extra", "call": "tool audit", "a": ABSENT, "b": {}},
            "The replayed code leaves the recording.",
            "The replayed code does what was not recorded: tool audit.",
        ),
        (
            {"kind": "reordered", "call": "tool refund #4", "a": 4, "b": 3, "node_a": "tool"},
            "The replayed code leaves the recording.",
            (
                "The replayed code makes the same calls in another order; the first out of place is tool refund #4."
                " The 2 calls before that are the same."
            ),
        ),
    ],
    ids=["missing", "argument", "model", "extra", "reordered"],
)
def test_a_replay_that_leaves_the_recording_is_told_in_two_sentences(
    said: dict[str, Any], first: str, then: str
) -> None:
    told, ids = made()
    if "node_a" in said:
        said = said | {"node_a": ids[said["node_a"]]}
    told = replace(told, second=diverged(**said))
    assert headline(told) == first
    assert lede(told) == then


def test_what_a_service_or_a_job_answered_is_given() -> None:
    http = {"reenact.inbound": '{"protocol":"http"}', "http.response.status_code": 500, "output.value": "oh no"}
    job = {"reenact.inbound": '{"protocol":"job"}', "output.value": '{"sent":3}'}
    assert answered_to_the_caller(made()[0].run) == ""
    assert [answered_to_the_caller(rooted(each)) for each in (http, job)] == ["HTTP 500\noh no", '{"sent":3}']


def rooted(attributes: dict[str, Any]) -> Run:
    run = made()[0].run
    root = replace(run.root, span=replace(run.root.span, attributes={**run.root.span.attributes, **attributes}))
    return replace(run, root=root, nodes=(root, *run.nodes[1:]))


def test_calls_before_the_first_difference_are_counted() -> None:
    told, ids = made()
    at = {name: diverged(kind="missing", call="x", node_a=node) for name, node in ids.items()}
    counted = {name: same_before(replace(told, second=second)) for name, second in at.items()}
    assert counted == {"search": 0, "model": 1, "tool": 2, "last": 3}
    assert same_before(told) is None


def test_a_replay_that_is_the_same_is_said_to_be() -> None:
    told, _ = made()
    assert lede(replace(told, second=Second(run=None, word="same"))).startswith("The replay is the same run")
    assert "only wording differs" in lede(replace(told, second=Second(run=None, word="other words")))
    assert "no call" in lede(replace(told, second=Second(run=None, word="failed", why="no call")))
