"""What a program that met a variation came to: each harm, on which evidence, and what is none."""

from __future__ import annotations

import sysconfig
from dataclasses import replace
from typing import Any

from made import Made
from reenact.values.assertion import Finding, Standing
from reenact.values.judgement import ReplayResult
from reenact.values.run import Run
from reenact.values.variation import Basis, Case, Discovery, Group, Harm, Variation
from reenact.vary.harm_evidence import Met, crashes, discoveries, family

LIBRARY = sysconfig.get_path("purelib")
TRACE = f"""Traceback (most recent call last):
  File "/app/agent.py", line 12, in main
    price["total"]
  File "{LIBRARY}/sdk/client.py", line 99, in get
    raise KeyError(name)
KeyError: 'total'
"""


def run(**answered: str) -> Run:
    made = Made(1)
    for name, by in answered.items():
        made.tool(name, {}, 1, more={"reenact.replay.answered_by": by})
    return made.run()


def met(**what: Any) -> Met:
    result = ReplayResult(result=what.pop("result", "same"), **what.pop("said", {}))
    return Met(**{"result": result, "run": None, "exit_code": 0, **what})


def case(*variations: Variation) -> Case:
    return Case(number=1, variations=variations or (varied(),))


def varied(**what: Any) -> Variation:
    made = Variation(kind="null", group=Group.TOOLS, call="tool quote #4", node="n4", description="null")
    return replace(made, **what)


def one(found: list[Discovery]) -> Discovery:
    (each,) = found
    return each


def test_a_new_exception_is_a_crash_at_the_agent_s_own_line() -> None:
    found = one(discoveries(case(), met(exit_code=1, stderr=TRACE), met()))
    assert (found.harm, found.what, found.where) == (Harm.CRASH, "KeyError: 'total'", "app/agent.py:12")
    assert found.basis is Basis.EVIDENCE


def test_a_crash_that_was_recorded_is_none() -> None:
    assert discoveries(case(), met(exit_code=1, stderr=TRACE), met(exit_code=1, stderr=TRACE)) == []


def test_a_traceback_that_the_program_printed_and_survived_is_no_crash() -> None:
    assert crashes(met(stderr=TRACE)) == []
    assert [crash.kind for crash in crashes(met(stderr=f"Exception in thread T-1:\n{TRACE}"))] == ["KeyError"]


def test_what_follows_an_answer_that_is_no_evidence_is_told_so() -> None:
    miss = {"call": "llm ChatCompletion #5", "field": "body", "onward": "nearest"}
    found = one(discoveries(case(), met(exit_code=1, stderr=TRACE, said={"misses": [miss]}), met()))
    assert found.basis is Basis.NEAREST


def test_an_assertion_that_failed_before_is_not_told_again() -> None:
    fails = Finding(assertion="never called pay", standing=Standing.FAILS, because="called once")
    assert discoveries(case(), met(findings=(fails,)), met(findings=(fails,))) == []
    found = one(discoveries(case(), met(findings=(fails,), evident=(fails,)), met()))
    assert (found.harm, found.basis, found.because) == (Harm.ASSERTION, Basis.EVIDENCE, "called once")
    assert one(discoveries(case(), met(findings=(fails,)), met())).basis is Basis.NEAREST


def test_a_judge_s_verdict_on_prose_is_no_discovery() -> None:
    fails = Finding(assertion="says sorry", standing=Standing.FAILS, because="no", layer="prose")
    assert discoveries(case(), met(findings=(fails,)), met()) == []


def test_a_tool_that_is_called_with_what_was_put_in() -> None:
    miss = {
        "call": "tool refund #6",
        "field": "arguments.order_id",
        "recorded": "o-17",
        "replay": "o-23",
        "where": "/app/agent.py:30",
        "differences": [{"field": "arguments.order_id", "recorded": "o-17", "replay": "o-23"}],
    }
    stopped = met(result="diverged", exit_code=1, said={"misses": [miss]})
    found = one(discoveries(case(varied(marks=('"o-23"',))), stopped, met()))
    assert (found.harm, found.where, found.basis) == (Harm.TOOL, "app/agent.py:30", Basis.EVIDENCE)
    assert discoveries(case(varied(marks=('"o-99"',))), stopped, met()) == []
    told_to_the_model = met(result="diverged", said={"misses": [{**miss, "call": "llm ChatCompletion #6"}]})
    assert discoveries(case(varied(marks=('"o-23"',))), told_to_the_model, met()) == []


def test_arguments_that_a_function_does_not_take_are_a_crash_that_a_replay_cannot_have() -> None:
    differences = [
        {"field": "arguments.sku", "recorded": "k", "replay": None},
        {"field": "arguments.args", "recorded": None, "replay": []},
        {"field": "arguments.kwargs", "recorded": None, "replay": {"name": "k"}},
    ]
    miss = {"call": "tool price #4", "field": "arguments.sku", "where": "/app/a.py:3", "differences": differences}
    found = one(discoveries(case(), met(result="diverged", said={"misses": [miss]}), met()))
    assert found.what == 'TypeError: price(name="k") does not fit what price takes'


def test_a_failure_that_nobody_noticed() -> None:
    fails = case(varied(kind="raises", fails=True))
    same = met(run=run(quote="n4"), stdout="done\n")
    assert one(discoveries(fails, same, met(stdout="done\n"))).harm is Harm.SWALLOWED
    assert discoveries(case(), same, met(stdout="done\n")) == []
    never_met = met(run=run(quote="n9"), stdout="done\n")
    assert discoveries(fails, never_met, met(stdout="done\n")) == []
    said = met(run=run(quote="n4"), stdout="done\nno quote today\n")
    assert discoveries(fails, said, met(stdout="done\n")) == []
    asked_again = met(run=run(quote="n4"), stdout="done\n", said={"misses": [{"call": "llm x #5"}]})
    assert discoveries(fails, asked_again, met(stdout="done\n")) == []


def test_an_answer_that_was_cut_and_not_needed_is_no_harm() -> None:
    cut = case(varied(kind="cut stream", fails=True))
    whole = met(run=run(quote="n4"), stdout="one two\n")
    assert discoveries(cut, whole, met(stdout="one two\n")) == []
    short = met(run=run(quote="n4"), stdout="one\n")
    assert one(discoveries(cut, short, met(stdout="one two\n"))).harm is Harm.SWALLOWED


def test_a_program_that_does_not_end() -> None:
    found = one(discoveries(case(), met(run=run(quote="n4"), out_of_time=True, seconds=10.2, exit_code=-9), met()))
    assert found.harm is Harm.HANG
    assert "within 10 s" in found.what
    assert "tool quote" in found.what


def test_ways_in_which_one_service_fails_are_one_lack() -> None:
    ways = [varied(kind="raises", path="raised"), varied(kind="error", path="status")]
    failed = [one(discoveries(case(way), met(exit_code=1, stderr=TRACE), met())) for way in ways]
    assert len({family(each) for each in failed}) == 1
    other = one(discoveries(case(), met(exit_code=1, stderr=TRACE), met()))
    assert family(other) not in {family(each) for each in failed}


def test_the_last_call_of_a_run_without_its_root_is_numbered_as_the_store_will_number_it() -> None:
    whole = run(quote="n4")
    rootless = replace(whole, root=None, nodes=tuple(replace(each, number=each.number - 1) for each in whole.nodes[1:]))
    words = [one(discoveries(case(), met(run=each, out_of_time=True), met())).what for each in (whole, rootless)]
    assert words[0] == words[1]
    assert words[0].endswith("tool quote #2")
