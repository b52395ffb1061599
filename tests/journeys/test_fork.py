"""Forking a recorded run from the command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desk import EXAMPLES, Desk
from reenact.demo.provider import StandIn
from reenact.find.listing import listed
from reenact.find.sources import find
from reenact.report.documents import call_document
from reenact.stores.directory import DirectoryStore
from reenact.values.finding import Filters

STAGING = ("--set", "tool_calls[0].arguments.target=staging")
PRODUCTION = 'delete_accounts where target = "production"'


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recorded incident: the model chose production."""
    desk = Desk(tmp_path_factory.mktemp("incident"))
    (desk.folder / "files").mkdir()
    with StandIn(slip=1.0) as provider:
        desk.environ |= provider.environment
        done = desk.reenact("run", "--", "python", str(EXAMPLES / "cleanup_agent.py"), "--data", "files")
    assert "DELETED FROM PRODUCTION" in done.stdout, done.stderr
    return desk.folder


@pytest.fixture
def incident(kept: Path, tmp_path: Path) -> Iterator[Desk]:
    """The incident, put back afterwards: in a copy of the store nothing would be known as the user's own."""
    shutil.copytree(kept, tmp_path / "kept")
    yield Desk(kept, {"REENACT_STORE": str(kept / ".reenact")})
    shutil.rmtree(kept)
    shutil.move(tmp_path / "kept", kept)


def forked(desk: Desk, *words: str, code: int = 0, environ: dict[str, str] | None = None) -> dict[str, Any]:
    done = replace(desk, environ={**desk.environ, **(environ or {})}).reenact("fork", *words, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def runs(desk: Desk) -> list[dict[str, Any]]:
    return listed(DirectoryStore(desk.folder / ".reenact"), None, Filters(), 0)


def calls(desk: Desk, run: str) -> list[dict[str, Any]]:
    found = find(run, DirectoryStore(desk.folder / ".reenact"))
    return [call_document(node) for node in found.run.nodes]


@pytest.mark.slow
def test_the_model_chooses_staging_in_a_run_that_names_its_parent(incident: Desk) -> None:
    (parent,) = runs(incident)
    told = forked(incident, parent["id"], "--at", "llm ChatCompletion #6", *STAGING)
    assert told["result"] == "forked"
    (change,) = told["changes"]
    assert (change["call"], change["path"]) == ("llm ChatCompletion #6", "tool_calls[0].arguments.target")
    assert (change["from"], change["to"]) == ("production", "staging")
    first = told["first"]
    assert (first["call"], first["field"]) == ("tool delete_accounts #7", "arguments.target")
    assert (first["a"], first["b"]) == ("production", "staging")
    assert told["stopped"] == "tool delete_accounts #7"
    assert told["replay"]["answered"] == {"llm": 2, "retriever": 1, "tool": 1}
    assert not told["same_path"]
    assert told["path"]["fork"][:-1] == told["path"]["recorded"][:-2]
    fork, again = runs(incident)
    assert again["id"] == parent["id"]
    assert (fork["id"], fork["fork_of"], fork["replay_of"]) == (told["fork"], parent["id"], None)
    assert f"cleanup (fork of {parent['id'][:12]})" in incident.reenact("ls").stdout
    shown = incident.reenact("show", fork["id"]).stdout
    assert f"fork of {parent['id'][:12]} at llm ChatCompletion #6" in shown
    assert 'set tool_calls[0].arguments.target: "production" → "staging"' in shown
    assert "[changed]" in shown
    assert incident.reenact("show", "last").stdout.startswith(f"run {parent['id'][:12]}")
    root = calls(incident, fork["id"])[0]["attributes"]
    assert root["reenact.fork.parent"] == parent["id"]
    assert root["reenact.fork.at"] == "llm ChatCompletion #6"
    assert json.loads(root["reenact.fork.changes"])[0]["to"] == "staging"
    differs = json.loads(incident.reenact("diff", parent["id"], fork["id"], "--json").stdout)
    assert [each["call"] for each in differs["divergences"]][:2] == ["llm ChatCompletion #6", "tool delete_accounts #7"]


@pytest.mark.slow
def test_a_fork_goes_on_with_the_nearest_answers_and_can_be_replayed_and_forked_again(incident: Desk) -> None:
    (incident.folder / "wanted.txt").write_text(f"never called {PRODUCTION}\n")
    words = ("--at", "second llm", *STAGING, "--after", "nearest", "--check", "wanted.txt")
    told = forked(incident, "last", *words)
    assert (told["stopped"], told["replay"]["beyond"]) == (None, 2)
    assert [each["standing"] for each in told["findings"]] == ["holds"]
    first = told["fork"]
    replayed = incident.reenact("replay", first)
    assert replayed.returncode == 0, replayed.stderr
    assert "delete_accounts {'target': 'staging'" in replayed.stdout
    words = ("--at", "last llm", "--set", "text=Nothing was deleted.", "--assert", f"called {PRODUCTION}")
    told = forked(incident, first, *words, code=1)
    assert [each["standing"] for each in told["findings"]] == ["fails"]
    assert told["parent"] == first
    assert told["same_path"]
    assert [each["field"] for each in told["consequences"]] == ["stdout, line 5"]
    assert {run["fork_of"] for run in runs(incident)} == {None, runs(incident)[-1]["id"], first}
    assert "Nothing was deleted." in str(calls(incident, told["fork"])[-1]["outcome"])


@pytest.mark.slow
def test_what_nobody_recorded_is_answered_by_hand_call_by_call(incident: Desk) -> None:
    told = forked(incident, "last", "--at", "#6", *STAGING)
    for at, value in (
        ("tool delete_accounts #7", 'result={"target": "staging", "deleted": ["Acme Corp"]}'),
        ("#8", "text=One."),
    ):
        assert told["stopped"] in (at, "llm ChatCompletion #8")
        told = forked(incident, told["fork"], "--at", at, "--set", value)
    assert (told["stopped"], told["died"], told["same_path"]) == (None, None, True)
    assert told["consequences"] == []
    assert str(calls(incident, told["fork"])[-1]["outcome"]).count("One.") > 0
    done = incident.reenact("replay", told["fork"])
    assert done.stdout.splitlines()[-2:] == ["  DELETED FROM STAGING: Acme Corp", "One."], done.stderr


def test_a_tool_raises_what_is_set(incident: Desk) -> None:
    told = forked(incident, "last", "--at", "tool delete_accounts", "--set", 'raised=TimeoutError:"too slow"')
    assert told["died"] == "TimeoutError: too slow"
    assert told["stopped"] is None
    assert told["consequences"][-1]["b"] == "TimeoutError: too slow"


def test_a_provider_refuses_what_is_set(incident: Desk) -> None:
    sets = ("status=429", 'body={"error": {"message": "slow down"}}', "headers.x-should-retry=false")
    told = forked(incident, "last", "--at", "last llm", *(word for each in sets for word in ("--set", each)))
    assert "RateLimitError" in told["died"]
    assert "slow down" in told["died"]
    assert told["stopped"] is None


def test_one_event_of_a_stream_is_set(incident: Desk) -> None:
    (incident.folder / "said.txt").write_text("Never mind. ")
    chunks = next(call for call in calls(incident, "last") if call["number"] == 8)["outcome"]["streamed"]["chunks"]
    place = next(
        at for at, chunk in enumerate(chunks) if json.loads(chunk["data"][6:])["choices"][0]["delta"]["content"]
    )
    path = f"chunks[{place}].choices[0].delta.content"
    told = forked(incident, "last", "--at", "#8", "--set-file", f"{path}=said.txt")
    assert told["changes"][0]["to"] == "Never mind. "
    assert told["same_path"]
    assert "Never mind. " in str(calls(incident, told["fork"])[-1]["outcome"])


def test_what_makes_no_sense_is_refused_before_anything_runs(incident: Desk) -> None:
    done = incident.reenact("fork", "last", "--at", "#99", "--set", "text=x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "llm ChatCompletion #8" in done.stderr
    assert len(runs(incident)) == 1


def test_a_program_that_leaves_the_recording_before_the_change_is_told_so(incident: Desk) -> None:
    agent = (EXAMPLES / "cleanup_agent.py").read_text().replace('"staging clean-up"', '"another question"')
    incident.write("other.py", agent)
    done = incident.reenact("fork", "last", "--at", "#6", *STAGING, "--after", "nearest", "--", "python", "other.py")
    assert done.returncode == 1
    assert "diverged before llm ChatCompletion #6: retriever runbook #3: arguments.query: recorded" in done.stderr


def test_models_answer_live_and_tools_stay_frozen(incident: Desk) -> None:
    with StandIn(slip=1.0) as provider:
        told = forked(incident, "last", "--at", "#4", "--temperature", "0.5", environ=provider.environment)
    assert told["same_path"]
    assert told["replay"]["live"] == 3
    assert told["replay"]["answered"] == {"retriever": 1, "tool": 2}
    asked = calls(incident, told["fork"])
    assert [call["request"]["body"]["temperature"] for call in asked if call["kind"] == "llm"] == [0.5] * 3
    again = incident.reenact("replay", told["fork"])
    assert again.returncode == 0, again.stderr


def test_a_changed_prompt_is_asked_live(incident: Desk) -> None:
    with StandIn(slip=1.0) as provider:
        incident.environ |= provider.environment
        words = ("--at", "#4", "--set", "request.messages[0].content=Be careful.", "--models", "live")
        told = forked(incident, "last", *words)
    made = calls(incident, told["fork"])
    asked = [call["request"]["body"]["messages"][0]["content"] for call in made if call["kind"] == "llm"]
    assert asked[0] == "Be careful."
    assert asked[1].startswith("The runbook says")
    assert told["replay"]["live"] == 3
    assert all(not each["field"].startswith("body") for each in told["consequences"][:1])


@pytest.mark.slow
def test_forks_made_alike_are_counted(incident: Desk) -> None:
    with StandIn(slip=0.5, seed=1) as provider:
        incident.environ |= provider.environment
        words = ("--at", "#4", "--models", "live", "--repeat", "3")
        told = forked(incident, "last", *words, "--assert", f"never called {PRODUCTION}", code=1)
    assert told["count"] == len(told["forks"]) == 3
    assert sum(each["times"] for each in told["paths"]) == 3
    assert told["tools"]["delete_accounts"] == {"calls": 3, "forks": 3, "recorded": 1}
    (standings,) = told["findings"].values()
    production = sum(each["path"]["fork"][4].endswith('target="production")') for each in told["forks"])
    assert standings.get("fails", 0) == production == told["same_path"]
    assert 0 < production < 3
    assert len(runs(incident)) == 4
