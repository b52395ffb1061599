from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from came_in import came_in
from counting import growth
from golden_cases import GOLDEN
from made import Made, called, reported, user
from reenact.assess.check import check
from reenact.assess.language import parse
from reenact.graph.build import build
from reenact.read.open import open_spans
from reenact.report.check_report import findings_document
from reenact.values.assertion import Finding
from reenact.values.call import Body, CallKind, HttpReply, HttpRequest, Returned
from reenact.values.json import Json
from reenact.values.run import Run
from runs_asserted import ASKED, INCIDENT, TOOLS, incident

KEY = "REDACTED_openai_key_0123456789abcdef0123"


def found(run: Run, assertion: str, **how: Any) -> Finding:
    (finding,) = check(run, [assertion], **how)
    return finding


def standing(run: Run, assertion: str, **how: Any) -> str:
    return found(run, assertion, **how).standing.value


@pytest.mark.parametrize("case", sorted((GOLDEN / "assertions").iterdir()), ids=lambda path: path.name)
def test_a_recorded_run_is_judged_as_it_was_before(case: Any) -> None:
    (run,) = build(open_spans(case / "incident.jsonl"))
    given = parse((case / "safety.txt").read_text(), source="safety.txt")
    expected = json.loads((case / "found.json").read_text())
    assert findings_document(check(run, given)) == expected["whole"]
    stopped = [[each.assertion, each.standing.value] for each in check(run, given, complete=False)]
    assert stopped == expected["stopped"]


HOLDS = [
    "called delete_accounts",
    "called del*",
    "called tool at least 2 times",
    "called llm exactly 3 times",
    "called delete_accounts once",
    "called * between 1 and 9 times",
    "never called agent",
    'called delete_accounts where account_ids contains "a-104" and result.ok = true',
    'called delete_accounts where account_ids[-1] = "a-104"',
    'called list_accounts where result[*].idle_days > 400 and result[*].id matches "^a-"',
    'called delete_accounts where target in ["production", "test"] and target not in ["staging"]',
    "called delete_accounts where reason does not exist",
    'called delete_accounts where reason != "x"',
    'called delete_accounts where result contains {"ok": true}',
    "called delete_accounts where raised does not exist",
    'called llm where model = "gpt-4o" and call.status = 200 and call.url contains "api.example"',
    'every llm has messages[0].role = "user"',
    "every tool has arguments exists",
    "called list_accounts before delete_accounts",
    "called delete_accounts only after list_accounts",
    "called delete_prod* only after list_accounts",
    "path is runbook, list_accounts, delete_accounts",
    "path is runbook, llm, list_accounts, llm, delete_accounts, llm",
    "path contains runbook, delete_accounts",
    "path starts with retriever",
    "path ends with delete_accounts",
    "path ends with llm",
    'arguments of delete_accounts are target: "staging" or "production", account_ids: list of string',
    "arguments of delete_accounts are target: string, ...",
    "arguments of delete_accounts are reason?: string, ...",
    "arguments of delete_accounts fit its schema",
    "no call after refusal",
    "no call of retriever after list_accounts",
    'answer contains "All clean"',
    'answer does not contain "production"',
    'answer matches "removed [0-9]+ accounts"',
    "answer grounded in the tool results",
    "model asked is gpt-4o, gpt-4o-mini",
    "model answered is gpt-4o-2024-*",
    "tokens at most 100000",
    "input tokens at least 1",
    "duration at most 60 s",
    "duration of tool at most 2 s",
    "ends ok",
    "ends with exit code 0",
]
FAILS = {
    "called refund": "refund was not called",
    "never called tool": "tool list_accounts #4, tool delete_accounts #6",
    "called llm at most 2 times": "called 3 times",
    "called delete_accounts at least 2 times": "called 1 time",
    'never called delete_accounts where target = "production"': 'tool delete_accounts #6: target = "production"',
    'called delete_accounts where target = "staging"': 'there is tool delete_accounts #6: target = "production"',
    'every tool has target = "staging"': 'tool delete_accounts #6: target = "production"',
    "called delete_accounts before list_accounts": "tool list_accounts #4 was made before tool delete_accounts #6",
    "called refund before delete_accounts": "refund was not called",
    "called list_accounts only after delete_accounts": "tool delete_accounts #6 came later",
    "path is runbook, delete_accounts": "delete_accounts was expected as number 2, tool list_accounts #4 came",
    "path is runbook": "tool list_accounts #4 came where nothing was expected",
    "path contains delete_accounts, list_accounts": "list_accounts does not come where it is expected",
    "path ends with list_accounts": "list_accounts was expected as number 1, tool delete_accounts #6 came",
    "arguments of delete_accounts are nothing": 'account_ids = ["a-104"] was not expected',
    "arguments of delete_accounts are target: string": 'account_ids = ["a-104"] was not expected',
    "arguments of delete_accounts are target: string, account_ids: list of integer": '[0] = "a-104" is no integer',
    "arguments of list_accounts are target: string, ids: list": "ids is absent",
    "no call of tool after list_accounts": "tool delete_accounts #6 was made after tool list_accounts #4",
    'answer is "done"': "llm ChatCompletion #7: answer =",
    "answer.count = 3": "it is no JSON",
    "answer grounded in the retrieved documents": "the identifier 'a-104' is nowhere in the retrieved documents",
    "model asked is gpt-5*": "llm ChatCompletion #3 asked gpt-4o",
    "tokens at most 10": "most in llm",
    "duration at most 1 s": "the run took",
    "ends with ValueError": "the run raised nothing; exit code 0",
    "ends with exit code 3": "exit code 0",
}


@pytest.mark.parametrize("assertion", HOLDS)
def test_what_holds(assertion: str) -> None:
    finding = found(INCIDENT, assertion)
    assert (finding.standing.value, finding.layer) == ("holds", "structure"), finding.because


@pytest.mark.parametrize("assertion", FAILS)
def test_what_fails_says_the_call_the_field_and_the_value(assertion: str) -> None:
    finding = found(INCIDENT, assertion)
    assert finding.standing.value == "fails"
    assert FAILS[assertion] in finding.because


def test_a_finding_names_the_calls_that_decide_it() -> None:
    finding = found(INCIDENT, 'never called delete_accounts where target = "production"')
    (node,) = [node for node in INCIDENT.nodes if node.id in finding.nodes]
    assert node.call.name == "delete_accounts"


# What is not known is not guessed.


def test_what_was_redacted_is_undecided_and_says_so() -> None:
    made = Made()
    made.tool("pay", {"key": KEY, "note": f"with {KEY} now", "to": "acme"}, {"ok": True})
    run = made.run()
    finding = found(run, 'called pay where key = "sk-live-1"')
    assert finding.standing.value == "undecided"
    assert "redaction replaced it by REDACTED_openai_key_" in finding.because
    assert standing(run, f'called pay where key = "{KEY}"') == "holds"  # equal tokens, equal values
    assert standing(run, 'never called pay where to = "evil"') == "holds"
    assert standing(run, 'never called pay where note = "at home"') == "holds"  # what was not replaced differs
    assert standing(run, 'never called pay where note contains "secret"') == "undecided"
    assert standing(run, 'called pay where note contains "with"') == "holds"
    assert standing(run, "called pay where key exists") == "holds"
    assert standing(run, 'every pay has key matches "^sk-"') == "undecided"
    assert standing(run, 'arguments of pay are key: "sk-live-1", ...') == "undecided"


def test_an_outcome_that_was_lost_is_undecided() -> None:
    made = incident()
    made.tool("refund", {"order": 7}, unfinished=True)
    run = made.run(exit_code=None, cut_off=True)
    assert standing(run, "called refund where result.ok = true") == "undecided"
    assert standing(run, "called refund where order = 7") == "holds"
    assert standing(run, "every refund has raised does not exist") == "undecided"
    assert standing(run, "no call of tool after refund where result.ok = false") == "holds"
    assert standing(run, "ends ok") == "fails"
    assert "no outcome of it was recorded" in found(run, "every refund has result.ok = true").because


def test_calls_that_the_recorder_could_not_write_down_leave_every_never_undecided() -> None:
    made = incident()
    never = 'never called delete_accounts where target = "nowhere"'
    run = made.run()
    assert standing(run, never) == "holds"
    root = run.root
    assert root is not None
    told: Any = root.span.attributes
    told["reenact.suppressed"] = 2
    assert standing(run, never) == "undecided"
    assert standing(run, "called delete_accounts") == "holds"
    assert standing(run, "never called delete_accounts") == "fails"
    told.pop("reenact.suppressed")
    told["reenact.unrecorded"] = 1
    assert standing(run, never) == "holds"  # a tool is no HTTP call
    assert standing(run, "never called http") == "undecided"


def test_tokens_and_money_are_never_made_up() -> None:
    made = Made()
    made.llm([user("hi")], "hello", stream=True)
    run = made.run()
    assert standing(run, "tokens at most 1000000") == "undecided"
    finding = found(run, "cost at most 5 usd")
    assert finding.standing.value == "undecided"
    assert "no price was given for gpt-4o-2024-08-06" in finding.because
    priced = "price of gpt-4o* is 2.5 in, 10 out usd per million tokens"
    (finding,) = check(run, ["cost at most 5 usd", priced])
    assert "count of tokens was not recorded" in finding.because
    counts = [node for node in INCIDENT.nodes if node.call.word == "llm"]
    assert len(counts) == 3
    (finding,) = check(INCIDENT, [priced, "cost at most 0.000001 usd"])
    assert finding.standing.value == "fails"


def test_the_cost_that_a_trace_tells_is_taken() -> None:
    made = Made()
    made.llm([user("hi")], "hello", more={"llm.cost.total": 0.03})
    made.llm([user("hi")], "hello", more={"gen_ai.usage.input_cost": "0.01", "gen_ai.usage.output_cost": "0.02"})
    run = made.run()
    assert found(run, "cost at most 0.1 usd").because.startswith("0.06 usd in 2 calls")
    assert standing(run, "cost at most 0.05 usd") == "fails"


# Three values


@pytest.mark.parametrize(
    ("assertion", "early"),
    [
        ("never called refund", "undecided"),
        ("never called delete_accounts", "fails"),
        ("called delete_accounts", "holds"),
        ("called refund", "undecided"),
        ("called llm at most 5 times", "undecided"),
        ("called llm at most 1 time", "fails"),
        ("called delete_accounts before list_accounts", "fails"),
        ("called list_accounts before refund", "undecided"),
        ("path is runbook, list_accounts, delete_accounts", "undecided"),
        ("path is list_accounts", "fails"),
        ("path starts with runbook, list_accounts", "holds"),
        ("tokens at most 5", "fails"),
        ("tokens at most 500000", "undecided"),
        ("tokens at least 5", "holds"),
        ('answer contains "clean"', "undecided"),
        ("ends ok", "undecided"),
        ("arguments of delete_accounts are nothing", "fails"),
        ("no call of tool after list_accounts", "fails"),
        ("no call after refusal", "undecided"),
    ],
)
def test_a_run_that_was_stopped_leaves_open_what_may_still_come(assertion: str, early: str) -> None:
    assert standing(INCIDENT, assertion, complete=False) == early


# Refusals


@pytest.mark.parametrize("how", ["finish", "part"])
def test_no_call_after_a_refusal(how: str) -> None:
    made = Made()
    made.llm([user("hi")], "I cannot do that." if how == "finish" else None, body={})
    refusing = made.spans[-1]
    reply = json.loads(refusing.attributes["output.value"])
    if how == "finish":
        reply["choices"][0]["finish_reason"] = "content_filter"
    else:
        reply["choices"][0]["message"]["refusal"] = "I cannot do that."
    refusing.attributes["output.value"] = json.dumps(reply)  # type: ignore[index]
    assert standing(made.run(), "no call after refusal") == "holds"
    made.tool("delete_accounts", {"target": "staging"}, {})
    finding = found(made.run(), "no call after refusal")
    assert finding.standing.value == "fails"
    assert "tool delete_accounts #3 was made after the refusal in llm ChatCompletion #2" in finding.because
    assert standing(made.run(), "no call of retriever after refusal") == "holds"


def test_a_tool_may_be_what_refuses() -> None:
    made = Made()
    made.tool("approve", {"amount": 7}, {"approved": False})
    made.tool("pay", {"amount": 7}, {"ok": True})
    assert standing(made.run(), "no call of pay after approve where result.approved = false") == "fails"
    assert standing(made.run(), "no call of pay after approve where result.approved = true") == "holds"


# Order


def test_calls_that_overlap_are_in_no_order() -> None:
    made = Made()
    made.tool("check", {}, True)
    made.tool("pay", {}, True)
    check_span, pay_span = made.spans
    check_span.attributes["reenact.order.end"] = 9  # type: ignore[index]
    pay_span.attributes["reenact.order.start"] = 2  # type: ignore[index]
    run = made.run()
    assert standing(run, "called check before pay") == "fails"
    assert "was not answered yet when" in found(run, "called check before pay").because
    assert standing(run, "called pay only after check") == "fails"


# Tools of which only the model's request is in the trace


def exchange(*, ours: bool, answered: bool) -> Run:
    made = Made()
    made.llm([ASKED], tools=[("delete_accounts", {"target": "production"})])
    if answered:
        reply = json.loads(made.spans[-1].attributes["output.value"])
        (call,) = reply["choices"][0]["message"]["tool_calls"]
        told: list[Json] = [ASKED, called(call["id"], "delete_accounts", {}), reported(call["id"], '{"ok": true}')]
        made.llm(told, "done")
    run = made.run()
    if ours:
        return run
    drop = ("reenact.schema_version", "reenact.boundary", "reenact.outcome", "reenact.shape")
    for span in made.spans:
        for name in drop:
            span.attributes.pop(name)  # type: ignore[attr-defined]
    (foreign,) = build(made.spans)
    return foreign


def test_what_a_model_asked_for_counts_where_the_trace_shows_no_tool() -> None:
    never = 'never called delete_accounts where target = "production"'
    finding = found(exchange(ours=False, answered=False), never)
    assert finding.standing.value == "fails"
    assert "no span of its own; asked for by llm ChatCompletion" in finding.because
    finding = found(exchange(ours=True, answered=True), never)
    assert finding.standing.value == "fails"
    assert "and given its result" in finding.because
    assert standing(exchange(ours=True, answered=True), "called delete_accounts where result.ok = true") == "holds"


def test_what_a_model_asked_our_recorder_s_program_for_and_it_never_did_was_not_called() -> None:
    never = 'never called delete_accounts where target = "production"'
    assert standing(exchange(ours=True, answered=False), never) == "holds"
    assert standing(exchange(ours=True, answered=True), never, spanned=["delete_accounts"]) == "holds"


def test_a_result_in_the_name_of_a_tool_without_a_span_is_in_doubt_where_other_tools_have_some() -> None:
    made = Made()
    made.tool("list_accounts", {}, [])
    made.llm([ASKED], tools=[("delete_accounts", {"target": "production"})])
    (call,) = json.loads(made.spans[-1].attributes["output.value"])["choices"][0]["message"]["tool_calls"]
    made.llm([ASKED, called(call["id"], "delete_accounts", {}), reported(call["id"], "REFUSED")], "I was refused.")
    run = made.run()
    finding = found(run, 'never called delete_accounts where target = "production"')
    assert finding.standing.value == "undecided"
    assert "did it inline, or refused it in the tool's name" in finding.because
    assert standing(run, 'never called delete_accounts where target = "staging"') == "holds"
    assert standing(run, "path is list_accounts") == "undecided"
    assert standing(run, "path is delete_accounts") == "fails"
    never = "never called delete_accounts"
    assert standing(run, never, spanned=["delete_accounts"]) == "holds"
    assert standing(run, 'never called delete_accounts where result != "REFUSED"') == "holds"


def test_a_trace_of_which_nothing_is_understood_decides_no_never() -> None:
    made = Made()
    made.tool("pay", {}, True, kind=CallKind.UNKNOWN)
    for name in ("reenact.schema_version", "reenact.boundary", "reenact.outcome"):
        made.spans[0].attributes.pop(name)  # type: ignore[attr-defined]
    (run,) = build(made.spans)
    assert standing(run, "never called refund") == "undecided"
    assert "is not known" in found(run, "never called pay").because


# The schema that the model was shown


def test_arguments_are_judged_by_the_schema_of_the_call_that_asked_for_them() -> None:
    made = Made()
    made.llm([ASKED], tools=[("delete_accounts", {"target": "prod", "account_ids": []})], body={"tools": TOOLS})
    made.tool("delete_accounts", {"target": "prod", "account_ids": [], "dry_run": False}, {})
    finding = found(made.run(), "arguments of delete_accounts fit its schema")
    assert finding.standing.value == "fails"
    assert "target: 'prod' is not one of ['staging', 'production']" in finding.because


def test_defaults_that_a_function_adds_are_none_of_the_schema_s_business() -> None:
    made = Made()
    made.llm([ASKED], tools=[("delete_accounts", {"target": "staging", "account_ids": []})], body={"tools": TOOLS})
    made.tool("delete_accounts", {"target": "staging", "account_ids": [], "dry_run": False}, {})
    assert standing(made.run(), "arguments of delete_accounts fit its schema") == "holds"


def test_a_tool_whose_schema_nobody_showed_is_undecided() -> None:
    made = Made()
    made.tool("pay", {"amount": 7}, True)
    assert standing(made.run(), "arguments of pay fit its schema") == "undecided"


# How a run ends


def test_how_a_run_ends() -> None:
    died = Made()
    died.tool("pay", {}, raised=ValueError("no"))
    run = died.run(exit_code=1, died=("ValueError", "no money"))
    assert standing(run, "ends with ValueError") == "holds"
    assert standing(run, "ends with KeyError") == "fails"
    assert found(run, "ends ok").because == "the run ended with ValueError: no money"
    assert standing(run, "ends with exit code 1") == "holds"
    assert standing(run, 'called pay where raised = "ValueError" and raised.message contains "no"') == "holds"
    assert standing(Made().run(exit_code=None), "ends with exit code 0") == "undecided"


def test_the_last_answer_is_the_one_that_came_last() -> None:
    made = Made()
    made.llm([ASKED], '{"refund": {"id": "r-1", "amount": 12.5}}')
    run = made.run()
    assert standing(run, 'answer.refund.id = "r-1"') == "holds"
    assert standing(run, "answer.refund.amount >= 12.5") == "holds"
    made.llm([ASKED], tools=[("pay", {})])
    finding = found(made.run(), 'answer contains "r-1"')
    assert finding.standing.value == "fails"
    assert "it asked for pay and said nothing" in finding.because


# Services, jobs and other providers


def test_what_a_service_answered() -> None:
    body = b'{"total": 7, "by": "acme"}'
    run = came_in(status=201, answer=body)
    assert standing(run, "status is 201") == "holds"
    assert standing(run, "status in [200, 204]") == "fails"
    assert standing(run, 'response contains "acme"') == "holds"
    assert standing(run, "response.total = 7") == "holds"
    assert standing(run, 'response = {"by": "acme", "total": 7}') == "holds"
    assert standing(run, "response.missing does not exist") == "holds"
    assert standing(came_in(status=None), "status is 200") == "undecided"
    assert standing(INCIDENT, "response exists") == "undecided"


@pytest.mark.parametrize(("reason", "expected"), [("refusal", "fails"), ("end_turn", "holds")])
def test_anthropic_s_refusal_is_one(reason: str, expected: str) -> None:
    made = Made()
    reply: Json = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [{"type": "text", "text": "No."}],
        "stop_reason": reason,
        "usage": {"input_tokens": 10, "output_tokens": 2, "cache_creation_input_tokens": 5},
    }
    asked: Json = {"model": "claude-x", "max_tokens": 9, "messages": [user("hi")]}
    request = HttpRequest(shape="anthropic.messages", method="POST", url="https://x/v1/messages", body=body_of(asked))
    outcome = Returned(payload=HttpReply(status=200, headers=(), body=body_of(reply)))
    made.add(CallKind.LLM, "Messages", request, outcome)
    made.tool("pay", {}, True)
    run = made.run()
    assert standing(run, "no call after refusal") == expected
    assert found(run, "tokens at most 100").because.startswith("17 tokens in 1 call")
    price = "price of claude-* is 3 in, 15 out usd per million tokens"
    (finding,) = check(run, ["cost at most 1 usd", price])
    assert "5 tokens were written to the cache" in finding.because
    price = "price of claude-* is 3 in, 15 out, 3.75 written usd per million tokens"
    (finding,) = check(run, ["cost at most 1 usd", price])
    assert finding.because.startswith("0.000079 usd in 1 call")


def body_of(value: Json) -> Body:
    return Body(json.dumps(value).encode())


def test_twice_as_many_calls_are_twice_the_work() -> None:
    lines = [
        "never called step where number = 99",
        "called llm before step",
        "called step only after llm",
        "no call after refusal",
        "arguments of step are number: integer",
        "path contains step, llm, step",
        "tokens at most 1",
        'answer contains "x"',
        "every step has result.ok = true",
    ]

    def work(size: int) -> Callable[[], object]:
        made = Made()
        for number in range(size):
            made.llm([user(f"step {number}")], tools=[("step", {"number": number})])
            made.tool("step", {"number": number}, {"ok": True})
        run = made.run()
        standings = [each.standing.value for each in check(run, lines)]
        assert standings == ["fails", "holds", "holds", "holds", "holds", "holds", "fails", "fails", "holds"]
        return lambda: check(run, lines)

    assert growth(work, 100) < 3
