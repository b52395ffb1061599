"""An assertion over a name that nobody knows is undecided, and says which name may be meant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from made import Made, user
from reenact.assess.check import check
from reenact.values.assertion import Finding
from reenact.values.call import Body, CallKind, HttpReply, HttpRequest, Returned
from reenact.values.run import Run


def desk() -> Run:
    made = Made(1)
    made.llm([user("refund it")], "", tools=[("issue_refund", {"amount": 5})])
    made.tool("issue_refund", {"amount": 5, "order": "A-1"}, {"ok": True})
    made.llm([user("and?")], "Done.")
    return made.run()


def found(assertion: str, run: Run | None = None, **how: Any) -> Finding:
    (finding,) = check(run or desk(), [assertion], **how)
    return finding


@pytest.mark.parametrize(
    ("assertion", "meant"),
    [
        ("never called isue_refund", "a tool isue_refund; did you mean issue_refund?"),
        ("never called issue_refund where amont > 3", "a field amont of issue_refund; did you mean amount?"),
        ("called isue_refund at most 3 times", "a tool isue_refund; did you mean issue_refund?"),
        ("every isue_refund has amount = 5", "a tool isue_refund; did you mean issue_refund?"),
        ("no call of isue_refund after issue_refund", "a tool isue_refund; did you mean issue_refund?"),
        ('never called llm where call.model = "gpt-5-mnii"', "a model gpt-5-mnii"),
    ],
)
def test_a_name_with_a_typo_decides_nothing(assertion: str, meant: str) -> None:
    finding = found(assertion)
    assert finding.standing.value == "undecided", finding
    assert meant in finding.because


@pytest.mark.parametrize(
    "assertion",
    [
        "never called issue_refund where amount > 9",
        "never called issue_* where amont > 9",
        "never called delete_*",
        "every issue_refund has amount = 5",
        "never called issue_refund where bonus does not exist and amount = 9",
        "never called guardrail",
    ],
)
def test_a_name_that_is_known_and_a_pattern_decide(assertion: str) -> None:
    assert found(assertion).standing.value == "holds"


def test_what_fails_still_fails_and_says_that_nobody_knows_the_name() -> None:
    finding = found("called isue_refund")
    assert finding.standing.value == "fails"
    assert "did you mean issue_refund?" in finding.because


def test_another_run_of_the_program_knows_names_too() -> None:
    other = Made(2)
    other.llm([user("hello")], "Hi.")
    run = other.run()
    assert found("never called issue_refund", run).standing.value == "undecided"
    assert found("never called issue_refund", run, beside=[desk()]).standing.value == "holds"


def unreadable() -> Run:
    made = Made(3)
    url = "https://api.writer.example/v1/converse"
    request = HttpRequest(shape="http", method="POST", url=url, body=Body(b'{"messages": []}'))
    reply = HttpReply(status=200, headers=(), body=Body(json.dumps({"choices": []}).encode()))
    made.add(CallKind.UNKNOWN, "POST api.writer.example", request, Returned(payload=reply))
    made.tool("issue_refund", {"amount": 5}, {"ok": True})
    return made.run()


@pytest.mark.parametrize(
    "assertion",
    ["tokens at most 100", "model asked is gpt-*", "cost at most 1 usd", "never called llm", "never called delete_*"],
)
def test_a_call_of_an_api_that_nobody_reads_decides_nothing_of_models(assertion: str) -> None:
    finding = found(assertion, unreadable())
    assert finding.standing.value == "undecided"
    assert "does not read" in finding.because


def test_a_tool_with_spans_is_known_beside_such_an_api() -> None:
    assert found("never called issue_refund where amount > 9", unreadable()).standing.value == "holds"
