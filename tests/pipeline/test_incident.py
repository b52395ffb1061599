from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from made import Made, user
from reenact.assess.fix import judge_fix
from reenact.errors import InputError
from reenact.find.sources import RunSource, runs_in
from reenact.formats import otlp_json
from reenact.keep.assertion_sources import asserted
from reenact.pipeline.incident import Wanted, incident_document, of_replay, of_runs, other_run, shareable, write
from reenact.pipeline.judging import Judged, Order
from reenact.pipeline.replay_from_spans import retold
from reenact.pipeline.replaying import Replayed
from reenact.replay.policy import Policy
from reenact.report.incident.page import page
from reenact.stores.directory import DirectoryStore
from reenact.values.json import Json
from reenact.values.judgement import ReplayResult
from reenact.values.run import Run

KEY = "sk-proj-" + "Ab3" * 12
RULE = 'never called delete where env = "prod"'


def recorded(seed: int = 1, **arguments: Json) -> tuple[Run, list[str]]:
    made = Made(seed, salt="00" * 16)
    ids = [made.llm([user("tidy")], tools=[("delete", {"env": "prod"})])]
    ids.append(made.tool("delete", arguments or {"env": "prod"}, {"deleted": 3}))
    ids.append(made.llm([user("tidy"), user("deleted")], "Done."))
    return made.run(), ids


def replayed(of: Run, answered: list[str], *, missed: dict[str, Any] | None = None) -> Run:
    """Build what a replay leaves: calls answered from the recording, and perhaps one that nobody recorded."""
    made = Made(9, salt="00" * 16)
    asked = [user("tidy")], [user("tidy"), user("deleted")]
    for number, node_id in enumerate(answered):
        by = {"reenact.replay.answered_by": node_id}
        if number == 1:
            made.tool("delete", {"env": "prod"}, {"deleted": 3}, more=by)
        else:
            tools: Any = [("delete", {"env": "prod"})] if number == 0 else []
            made.llm(asked[number // 2], None if tools else "Done.", tools=tools, more=by)
    if missed is not None:
        made.tool("delete", missed["arguments"], unfinished=True, more={"reenact.replay.missed": missed["nearest"]})
    run = made.run()
    root = run.root
    assert root is not None
    said = {**root.span.attributes, "reenact.replay.of": of.id}
    if missed is not None:
        said |= {"reenact.outcome": "raised", "exception.type": "Miss", "exception.message": "no"}
    root = replace(root, span=replace(root.span, attributes=said))
    return replace(run, root=root, nodes=(root, *run.nodes[1:]))


def found(run: Run) -> RunSource:
    return RunSource(run=run, siblings=(), source="here")


def test_a_replay_that_did_the_same_is_told_so_from_its_spans() -> None:
    run, ids = recorded()
    result, comparison = retold(run, replayed(run, ids))
    assert (result.result, result.divergences, result.misses) == ("same", [], [])
    assert result.answered == {"llm": 2, "tool": 1}
    assert comparison.same


def test_a_replay_that_went_another_way_is_told_with_all_that_differs() -> None:
    run, ids = recorded()
    result, _ = retold(run, replayed(run, ids[:1]))
    assert result.result == "diverged"
    assert [(each["kind"], each["node_a"]) for each in result.divergences] == [("missing", ids[1]), ("missing", ids[2])]
    assert not result.misses


def test_of_a_replay_that_was_stopped_nothing_is_said_about_what_lies_behind() -> None:
    run, ids = recorded()
    stopped = replayed(run, ids[:1], missed={"nearest": ids[1], "arguments": {"env": "staging"}})
    result, _ = retold(run, stopped)
    assert [(each["kind"], each["field"]) for each in result.divergences] == [("changed", "arguments.env")]
    assert [miss["nearest"] for miss in result.misses] == [ids[1]]
    assert result.not_reached == 1


def test_a_fix_is_judged_from_a_stored_replay() -> None:
    run, ids = recorded()
    wanted = Wanted(assertions=asserted([RULE]))
    same = incident_document(of_runs(found(run), found(replayed(run, ids)), wanted))
    gone = incident_document(of_runs(found(run), found(replayed(run, ids[:1])), wanted))
    missed = {"nearest": ids[1], "arguments": {"env": "staging"}}
    other = incident_document(of_runs(found(run), found(replayed(run, ids[:1], missed=missed)), wanted))
    words = [said["fix"]["word"] for said in (same, gone, other) if isinstance(said["fix"], dict)]
    assert words == ["reproduced", "fixed", "fixed"]
    assert [said["compared"] for said in (same, gone, other)] == ["same", "diverged", "diverged"]
    assert {said["headline"] for said in (same, gone, other)} == {"The agent called delete with env prod."}


def test_a_run_that_is_no_replay_is_held_against_it_without_judging_a_fix() -> None:
    run, _ = recorded(1)
    other, _ = recorded(2, env="staging")
    incident = of_runs(found(run), found(other), Wanted(assertions=asserted([RULE])))
    said = incident_document(incident)
    assert said["compared"] == "diverged"
    assert said["fix"] is None
    findings: Any = said["findings"]
    assert [findings[side][0]["standing"] for side in ("recorded", "second")] == ["fails", "holds"]
    assert "Where the two runs part" in page(incident)


def test_what_no_recorder_of_ours_redacted_is_redacted_on_the_way_to_the_page(tmp_path: Path) -> None:
    made = Made(1)
    made.llm([user(f"use {KEY}")], f"I used {KEY}.")
    made.tool("call", {"api_key": "hunter2hunter2"}, {"said": KEY})
    incident = of_runs(found(made.run()), None, Wanted())
    assert incident.replaced == {"openai_key": 3, "keyed_value": 1}
    size = write(incident, tmp_path / "page.html")
    source = (tmp_path / "page.html").read_bytes()
    assert len(source) == size
    assert KEY.encode() not in source
    assert KEY.encode() not in gzip.decompress(incident.trace)
    assert b"hunter2" not in source
    assert source.count(b"REDACTED_openai_key_") >= 3


def test_what_a_replay_quotes_of_a_recording_is_redacted_too() -> None:
    run, ids = recorded(1, env=KEY)
    replay = replayed(run, ids[:1])
    quoted: dict[str, Json] = {
        "call": "tool delete #3",
        "field": "arguments.env",
        "a": KEY,
        "b": "x",
        "kind": "changed",
    }
    outcome = Replayed(
        result=ReplayResult(result="diverged", divergences=[quoted], replay=replay.id, world={"files": "copied"}),
        run=replay,
        recorded_commit=None,
        current_commit=None,
        exit_code=0,
    )
    order = Order(policy=Policy(), assertions=asserted(["called delete"]))
    judgement = judge_fix(run, replay, outcome.result, order.assertions)
    judged = Judged(found=found(run), outcome=outcome, order=order, judgement=judgement)
    incident = of_replay(judged, Wanted(assertions=order.assertions))
    assert KEY not in page(incident)
    assert KEY not in str(incident_document(incident))
    assert incident.second is not None
    assert incident.second.word == "diverged"
    assert incident.second.world == {"files": "copied"}
    assert incident.fix is not None


def test_what_our_recorder_redacted_is_left_as_it_is() -> None:
    made = Made(1)
    made.tool("look", {"q": KEY}, "x")
    run = made.run()
    assert run.root is not None
    attributes = {**run.root.span.attributes, "reenact.redaction.policy": "ab" * 16}
    root = replace(run.root, span=replace(run.root.span, attributes=attributes))
    run = replace(run, root=root, nodes=(root, *run.nodes[1:]))
    assert shareable(run) == (run, {})


def test_the_recording_inside_a_page_is_the_run(tmp_path: Path) -> None:
    run, _ = recorded()
    incident = of_runs(found(run), None, Wanted())
    (tmp_path / "saved.jsonl.gz").write_bytes(incident.trace)
    (again,) = runs_in(tmp_path / "saved.jsonl.gz")
    assert [node.span for node in again.nodes] == [node.span for node in run.nodes]
    assert otlp_json.FORMAT.encode([node.span for node in run.nodes]) == gzip.decompress(incident.trace)
    assert of_runs(found(run), None, Wanted(trace=False)).trace == b""


def test_a_run_without_a_replay_says_how_to_make_one(tmp_path: Path) -> None:
    run, _ = recorded()
    with pytest.raises(InputError, match="holds no replay") as raised:
        other_run(found(run), "last", DirectoryStore(tmp_path))
    assert "reenact replay" in raised.value.hint


def test_a_page_that_cannot_be_written_names_its_place(tmp_path: Path) -> None:
    run, _ = recorded()
    with pytest.raises(InputError, match="cannot be written"):
        write(of_runs(found(run), None, Wanted()), tmp_path / "no" / "page.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_foreign_traces_have_a_page_as_well(shared_data: Path) -> None:
    files = [*shared_data.glob("traces/rosetta/*.otlp.jsonl"), *shared_data.glob("traces/openinference-replay/*.jsonl")]
    assert files
    calls = 0
    for path in files:
        for run in runs_in(path)[:5]:
            incident = of_runs(found(run), None, Wanted())
            source = page(incident)
            assert "<h1>" in source
            data = source.partition('id="data-bodies">')[2].partition("</script>")[0]
            bodies = json.loads(data)["bodies"]
            calls += sum(bool(body.get("asked") or body.get("given")) for body in bodies)
    assert calls > 50
