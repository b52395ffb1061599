from __future__ import annotations

import json

import pytest

from made import Made, user
from reenact.change.forking import Wanted, counted, prepare
from reenact.compare.judge import ReplayResult
from reenact.errors import UsageError
from reenact.find.sources import RunSource
from reenact.replay.policy import Policy, Source
from reenact.values.assertion import Finding, Standing
from reenact.values.call import CallKind
from reenact.values.fork_outcome import Forked
from reenact.values.json import Json
from reenact.values.run import Run

LIVE = Policy(models=Source.LIVE)
SECRET = "sk-proj-" + "a1B2c3D4" * 6


@pytest.fixture
def run() -> Run:
    made = Made(salt="5a17" * 8)
    made.tool("answer", {}, "done", kind=CallKind.AGENT)
    made.llm([user("clean up")], tools=[("delete", {"target": "production"})])
    made.tool("delete", {"target": "production"}, {"deleted": 3})
    made.llm([user("clean up"), user("3")], "done")
    return made.run()


def wanted(at: str = "", *sets: tuple[str, Json], policy: Policy | None = None, **parameters: Json) -> Wanted:
    return Wanted(at=at, values=sets, parameters=parameters, policy=policy or Policy())


def found(run: Run) -> RunSource:
    return RunSource(run=run, siblings=(), source="")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (wanted("#99", ("text", "x")), "has no call '#99'"),
        (wanted("llm", ("text", "x")), "2 calls that 'llm' may mean"),
        (wanted("", ("text", "x")), "--set needs --at CALL"),
        (wanted("#3"), "nothing is changed at llm ChatCompletion #3"),
        (wanted(""), "nothing is changed"),
        (wanted("#2", ("result", 1)), "runs again: it has no answer to change"),
        (wanted("#2", policy=LIVE), "runs again"),
        (wanted("#3", ("request.messages[0].content", "x")), "`--models live`"),
        (wanted("#4", ("request.target", "x"), policy=LIVE), "is no call of a model"),
        (wanted("#3", ("request.model", "m"), ("text", "x"), policy=LIVE), "set its request or its answer, not both"),
        (wanted("", stream=False), "`stream` cannot be set"),
        (wanted("", **{"a..b": 1}), "makes no sense"),
    ],
)
def test_what_makes_no_sense_is_refused(run: Run, asked: Wanted, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        prepare(found(run), asked)
    assert said in str(caught.value)


def test_a_changed_answer_is_in_the_plan_and_on_the_root(run: Run) -> None:
    prepared = prepare(found(run), wanted("first llm", ("tool_calls[0].arguments.target", "staging")))
    call = run.nodes[2]
    assert [change.to_json() for change in prepared.found.altered.changes] == [
        {"call": call.id, "path": "tool_calls[0].arguments.target", "value": "staging"}
    ]
    branch = prepared.found.altered.branch
    assert branch is not None
    assert branch.fork.at == {call.id}
    assert branch.fork.sent == frozenset()
    assert branch.root["reenact.fork.parent"] == run.id
    assert branch.root["reenact.fork.at"] == call.label
    assert json.loads(str(branch.root["reenact.fork.changes"])) == [
        {
            "call": call.label,
            "id": call.id,
            "path": "tool_calls[0].arguments.target",
            "from": "production",
            "to": "staging",
        }
    ]


def test_parameters_make_models_live_and_nothing_else(run: Run) -> None:
    prepared = prepare(found(run), wanted("", temperature=0.5))
    assert prepared.policy == Policy(models=Source.LIVE)
    branch = prepared.found.altered.branch
    assert branch is not None
    assert (branch.fork.at, branch.fork.parameters) == (frozenset(), {"temperature": 0.5})
    assert "reenact.fork.at" not in branch.root


@pytest.mark.parametrize(
    ("asked", "goes_out"),
    [
        (wanted("#3", policy=LIVE), True),
        (wanted("#3", model="m"), True),
        (wanted("#3", ("request.model", "m"), policy=LIVE), True),
        (wanted("#3", ("text", "x"), policy=LIVE), False),
        (wanted("#4", policy=LIVE), False),
        (wanted("#4", ("result", 1), policy=LIVE), False),
    ],
)
def test_a_model_call_goes_out_again_unless_its_answer_is_set(run: Run, asked: Wanted, goes_out: bool) -> None:  # noqa: FBT001
    branch = prepare(found(run), asked).found.altered.branch
    assert branch is not None
    assert bool(branch.fork.sent) is goes_out


def test_values_pass_the_redaction_of_the_recording(run: Run) -> None:
    prepared = prepare(found(run), wanted("#4", ("result.note", f"use {SECRET}"), ("result.api_key", "short")), {})
    values = [change.value for change in prepared.found.altered.changes]
    assert all("REDACTED_" in str(value) for value in values)
    assert len(prepared.notes) == 2
    again = prepare(found(run), wanted("#4", ("result.note", f"use {SECRET}")), {})
    assert again.found.altered.changes[0].value == values[0], "keyed by the salt of the recording"
    assert SECRET not in str(prepared.found.altered)


def fork(path: tuple[str, ...], *, stopped: str = "", standing: Standing = Standing.HOLDS) -> Forked:
    return Forked(
        result="forked",
        parent="p",
        run="r",
        at="",
        changes=(),
        parameters={},
        consequences=(),
        recorded_path=("llm", 'delete(target="production")', "llm"),
        path=path,
        stopped=stopped,
        replay=ReplayResult(result="same"),
        findings=(Finding(assertion="a", standing=standing, because="", nodes=(), layer="structure", place=""),),
    )


def test_forks_are_counted(run: Run) -> None:
    recorded = ("llm", 'delete(target="production")', "llm")
    other = ("llm", 'delete(target="staging")')
    forks = [
        fork(recorded),
        fork(other, stopped="tool delete"),
        fork(recorded, standing=Standing.FAILS),
        fork(("llm",)),
    ]
    several = counted(forks, run)
    assert several.same_path == 2
    assert several.paths == ((recorded, 2), ((*other, "…"), 1), (("llm",), 1))
    assert several.tools == {"delete": (3, 3, 1)}
    assert {name: dict(count) for name, count in several.findings.items()} == {"a": {"holds": 3, "fails": 1}}
