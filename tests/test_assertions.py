from __future__ import annotations

from datetime import date
from typing import Any, get_args

import pytest

import reenact
from reenact import assertions as a
from reenact.assertions import arg, calls, fact, parse, raised, result, spell
from reenact.errors import AssertionsFailed, UsageError
from reenact.values.assertion import Assertion
from runs_asserted import INCIDENT

LINES: dict[str, Any] = {
    "called pay": a.called("pay"),
    "called pay exactly 2 times": a.called("pay", times=2),
    "called pay at least 2 times": a.called("pay", at_least=2),
    "called pay at most 3 times": a.called("pay", at_most=3),
    "called tool pay where amount > 5 between 1 and 2 times": a.called(
        calls("pay", kind="tool"), arg("amount") > 5, at_least=1, at_most=2
    ),
    'never called delete_* where target = "production" and ids[*] in ["a", "b"]': a.never_called(
        "delete_*", arg("target") == "production", arg("ids")[:].one_of("a", "b")
    ),
    "called check before pay": a.called_before("check", "pay"),
    "called pay only after check where result.ok = true": a.called_only_after(
        "pay", calls("check", result("ok").equals(True))
    ),
    "path is check, pay": a.path_is("check", "pay"),
    "path contains check, pay": a.path_contains("check", "pay"),
    "path starts with check": a.path_starts_with("check"),
    "path ends with pay": a.path_ends_with("pay"),
    'arguments of pay are to: "acme" or string, ids: list of integer, note?: string, at: {day: any}': a.arguments_are(
        "pay",
        {
            "to": a.one_of("acme", a.string),
            "ids": a.list_of(a.integer),
            "note": a.optional(a.string),
            "at": a.record({"day": a.anything}),
        },
    ),
    "arguments of pay are to: string, ...": a.arguments_are("pay", {"to": a.string}, more=True),
    "arguments of pay fit its schema": a.arguments_fit_schema("pay"),
    'every llm has call.model matches "^gpt" and raised does not exist': a.every(
        calls(kind="llm"), fact("model").matches("^gpt"), raised().absent()
    ),
    "no call after refusal": a.no_call_after(),
    "no call of pay after approve where result.ok = false": a.no_call_after(
        calls("approve", result("ok").equals(False)),
        of="pay",
    ),
    'answer is "done"': a.answer == "done",
    'answer.refund.id is not "x"': a.answer["refund"]["id"] != "x",
    'answer does not contain "production"': a.answer.lacks("production"),
    "response.total exists": a.response["total"].exists(),
    "status is 200": a.status == 200,
    'stdout contains "done"': a.stdout.contains("done"),
    'stderr does not contain "Traceback"': a.stderr.lacks("Traceback"),
    "returns.ok is true": a.returns["ok"] == True,  # noqa: E712 - it makes an assertion
    "wrote report.csv": a.wrote("report.csv"),
    "never wrote *.db": a.never_wrote("*.db"),
    "answer grounded in the tool results": a.answer_grounded("the tool results"),
    "tokens of llm at most 500": a.at_most("tokens", 500, of=calls(kind="llm")),
    "cost at least 0.01 usd": a.at_least("cost", 0.01),
    "price of gpt-4o* is 2.5 in, 10 out, 1.25 cached usd per million tokens": a.price(
        "gpt-4o*", input=2.5, output=10, cached=1.25
    ),
    "model asked is gpt-4o, gpt-4o-mini": a.model_asked("gpt-4o", "gpt-4o-mini"),
    "model answered is gpt-4o-*": a.model_answered("gpt-4o-*"),
    "ends ok": a.ends_ok(),
    "ends with ValueError": a.ends_with(ValueError),
    "ends with exit code 3": a.ends_with(3),
    'prose: answer says "it is done" by "judges:strict"': a.prose_says("it is done", by="judges:strict"),
    'prose: answer is like "done" at least 0.7 by overlap': a.prose_is_like("done", by="overlap", least=0.7),
}


@pytest.mark.parametrize("line", LINES)
def test_python_says_what_the_language_says(line: str) -> None:
    assert spell(LINES[line]) == line
    assert parse(line)[0].assertion == LINES[line]


def test_python_can_say_everything() -> None:
    assert {type(each) for each in LINES.values()} == set(get_args(Assertion))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: a.called("pay", at_least=0),
        lambda: a.called("pay", at_least=3, at_most=2),
        lambda: a.every("pay"),
        a.path_is,
        lambda: a.one_of("x"),
    ],
    ids=["at least 0", "3 to 2", "every", "path", "one of"],
)
def test_what_says_nothing_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        wrong()


def test_a_value_that_json_has_none_for_is_refused() -> None:
    with pytest.raises(TypeError, match="is no JSON"):
        assert arg("day") == date(2026, 5, 17)


def test_a_check_is_true_where_everything_holds() -> None:
    found = reenact.check(
        INCIDENT, "called delete_accounts", a.never_called("delete_accounts", arg("target") == "nowhere")
    )
    assert found
    assert [each.standing for each in found] == [a.Standing.HOLDS] * 2
    found.raise_for_failures()


def test_a_failure_is_an_assertion_error_that_says_why() -> None:
    safe = a.never_called("delete_accounts", arg("target") == "production")
    found = reenact.check(INCIDENT, safe, "called list_accounts", 'called refund where token = "x"')
    assert not found
    with pytest.raises(AssertionError) as told:
        found.raise_for_failures()
    assert isinstance(told.value, AssertionsFailed)
    assert str(told.value) == (
        f"2 assertions do not hold of run {INCIDENT.id[:12]}\n"
        '  fails: never called delete_accounts where target = "production"\n'
        '    called 1 time: tool delete_accounts #6: target = "production"\n'
        '  fails: called refund where token = "x"\n'
        "    refund was not called; no schema, recording or replay knows a tool refund"
    )


def test_what_is_undecided_is_not_true_either() -> None:
    found = reenact.check(INCIDENT, "never called refund", complete=False)
    assert not found
    with pytest.raises(AssertionError, match="undecided: never called refund"):
        found.raise_for_failures()


def test_prose_does_not_count_unless_asked() -> None:
    found = reenact.check(INCIDENT, "called list_accounts", 'prose: answer is like "something else entirely"')
    assert found
    assert [each.layer for each in found.prose] == ["prose"]
    found.raise_for_failures()
    with pytest.raises(AssertionError, match="prose: answer is like"):
        found.raise_for_failures(prose=True)


def test_to_check_nothing_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="nothing is asserted"):
        reenact.check(INCIDENT)
