"""The loop of a fix, as a user types it: the incident reproduced, the fix judged, what breaks told from what mends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from desk import EXAMPLES, Desk
from reenact.demo.provider import StandIn

pytestmark = pytest.mark.sample(2)

ASSERTIONS = {
    "cleanup_agent": 'never called delete_accounts where target = "production"',
    "order_desk": 'every lookup_order has user_id = "u-17"',
    "price_agent": "answer is grounded in the tool results",
    "trader_agent": "every place_order has quantity <= 10",
}
NOT_PRODUCTION = ASSERTIONS["cleanup_agent"]


def incident(desk: Desk, name: str, agent: Path | None = None) -> Path:
    """Record an example while it slips; what follows has nobody to talk to."""
    with StandIn(slip=1.0, max_delay_ms=1) as provider:
        desk.environ.update(provider.environment)
        agent = agent or EXAMPLES / f"{name}.py"
        done = desk.reenact("run", "-q", "--", "python", str(agent))
    assert done.returncode == 0, done.stderr
    desk.environ.clear()
    return agent


def variant(desk: Desk, *changes: tuple[str, str]) -> str:
    """Write a changed copy of the clean-up agent."""
    source = (EXAMPLES / "cleanup_agent.py").read_text()
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    return desk.write("changed_agent.py", source)


def judged(desk: Desk, *words: str) -> tuple[dict[str, Any], int]:
    done = desk.reenact("replay", "last", "--json", *words)
    assert done.stdout, done.stderr
    return json.loads(done.stdout), done.returncode


@pytest.mark.parametrize(
    "name",
    [
        each if each in {"cleanup_agent", "order_desk"} else pytest.param(each, marks=pytest.mark.slow)
        for each in ASSERTIONS
    ],
)
def test_the_incident_is_reproduced_and_the_fix_of_the_example_is_fixed(desk: Desk, name: str) -> None:
    agent = incident(desk, name)
    desk.write("incident.check", f"# what went wrong\n{ASSERTIONS[name]}\n")
    if name == "cleanup_agent":
        done = desk.reenact("replay", "last", "--check", "incident.check")
        assert done.returncode == 1, done.stderr
        assert done.stderr.startswith("reproduced: `"), done.stderr
    told, code = judged(desk, "--check", "incident.check", "--", "python", str(agent), "--guarded")
    check = told["check"]
    assert (code, check["word"], check["basis"]) == (0, "fixed", "recorded"), check["why"]
    assert [each["standing"] for each in check["findings"]["recorded"]] == ["fails"]
    assert [each["standing"] for each in check["findings"]["replay"]] == ["holds"]
    assert check["findings"]["replay"][0]["place"] == "incident.check:2"


GUARD = ('os.environ.get("CLEANUP_GUARD") and', "")
REFUSED = '{"role": "tool", "tool_call_id": call.id, "content": "refused"}'
REFUSES = ("                return\n", f"                messages.append({REFUSED})\n                continue\n")


@pytest.mark.slow
def test_a_guard_that_answers_the_model_is_judged_where_the_call_was_to_be(desk: Desk) -> None:
    incident(desk, "cleanup_agent")
    program = variant(desk, GUARD, REFUSES)
    told, code = judged(desk, "--assert", NOT_PRODUCTION, "--", "python", program)
    assert (code, told["check"]["word"]) == (0, "fixed"), told["check"]["why"]
    assert "everything before tool delete_accounts #7 was the same" in told["check"]["why"]
    assert told["live"] == 0
    told, code = judged(desk, "--assert", NOT_PRODUCTION, "--after", "nearest", "--", "python", program)
    assert (code, told["check"]["word"], told["check"]["basis"]) == (0, "fixed", "recorded"), told["check"]["why"]
    assert told["beyond"] == 1


@pytest.mark.slow
def test_a_fix_that_breaks_something_else_first_is_called_broken(desk: Desk) -> None:
    incident(desk, "cleanup_agent")
    elsewhere = 'TOOLS[name](**arguments | ({"target": "production"} if "list" in name else {}))'
    listing = ("TOOLS[name](**arguments)", elsewhere)
    program = variant(desk, GUARD, listing)
    done = desk.reenact("replay", "last", "--assert", NOT_PRODUCTION, "--", "python", program)
    assert done.returncode == 125, done.stderr
    first = done.stderr.splitlines()[0]
    assert first.startswith("broken: something else changed first: tool list_inactive_accounts #5: arguments.target")
    guarded = ("python", str(EXAMPLES / "cleanup_agent.py"), "--guarded")
    told, code = judged(desk, "--assert", "called delete_accounts", "--", *guarded)
    assert (code, told["check"]["word"]) == (1, "broken"), "an assertion that held fails now"


@pytest.mark.slow
def test_a_reworded_prompt_is_the_same_structure_in_other_words(desk: Desk) -> None:
    incident(desk, "cleanup_agent")
    words = ("Clean up the inactive accounts in staging.", "Please clean up inactive accounts in staging.")
    program = variant(desk, words)
    command = ("--after", "nearest", "--", "python", program)
    done = desk.reenact("replay", "last", "--assert", "called list_inactive_accounts", *command)
    assert done.returncode == 0, done.stderr
    assert "All clean" in done.stdout or "Staging is tidy" in done.stdout or "gone from staging" in done.stdout
    first = done.stderr.splitlines()[0]
    assert first.startswith("same, if the model answers as recorded (nearest answers are no evidence): "), first
    assert "same structure, prose differs: llm ChatCompletion #4" in first
    told, code = judged(desk, "--assert", NOT_PRODUCTION, *command)
    check = told["check"]
    assert (code, check["word"], check["basis"]) == (1, "reproduced", "nearest")
    assert check["same_structure"] is True
    spans = json.loads(desk.reenact("show", told["replay"], "--json").stdout)["calls"]
    marks = [
        call["attributes"].get("reenact.evidence") for call in spans if call["kind"] in {"llm", "tool", "retriever"}
    ]
    assert marks == [None, *["nearest"] * 5]


@pytest.mark.slow
def test_a_reworded_prompt_is_asked_live_and_no_tool_is(desk: Desk) -> None:
    incident(desk, "cleanup_agent")
    program = variant(desk, ("inactive accounts in staging.", "inactive accounts in staging, please."))
    with StandIn(slip=0.0, max_delay_ms=1) as provider:
        desk.environ.update(provider.environment)
        told, code = judged(desk, "--assert", NOT_PRODUCTION, "--after", "live-models", "--", "python", program)
    assert (code, told["check"]["word"]) == (125, "unjudged"), told["check"]
    assert "went on, and stopped at tool delete_accounts #7: arguments.target" in told["check"]["why"]
    assert (told["live"], provider.served.requests) == (2, 2)
    assert [miss.get("onward") for miss in told["misses"]] == ["live", "live", None]


@pytest.mark.slow
def test_what_a_live_model_says_is_judged_as_one_sample(desk: Desk) -> None:
    incident(desk, "price_agent")
    source = (EXAMPLES / "price_agent.py").read_text().replace("to the cent.", "to the cent, please.")
    program = desk.write("changed_agent.py", source)
    with StandIn(max_delay_ms=1) as provider:
        desk.environ.update(provider.environment)
        words = ("--assert", ASSERTIONS["price_agent"], "--after", "live-models", "--", "python", program)
        done = desk.reenact("replay", "last", *words)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("reproduced, by live answers of a model: one sample of what it may say"), done.stderr
    assert "1 tool calls answered from the recording, 2 live" in done.stderr


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import no_such_module\n", "none of the recorded calls"),
        ("def broken(:\n", "none of the recorded calls"),
        ("import sys\nsys.exit(3)\n", "none of the recorded calls"),
        (None, "none of the recorded calls"),
    ],
    ids=["import error", "syntax error", "exit code", "no such file"],
)
def test_what_does_not_start_cannot_be_judged(recorded: Desk, source: str | None, says: str) -> None:
    program = recorded.write("broken.py", source) if source else "nowhere.py"
    done = recorded.reenact("replay", "last", "--assert", NOT_PRODUCTION, "--", "python", program)
    assert done.returncode == 125, done.stderr
    assert says in done.stderr


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = Desk(tmp_path_factory.mktemp("recorded"))
    incident(desk, "cleanup_agent")
    return desk


def test_a_command_that_cannot_be_started_cannot_be_judged(recorded: Desk) -> None:
    done = recorded.reenact("replay", "last", "--assert", NOT_PRODUCTION, "--", "no-such-program")
    assert done.returncode == 125
    assert "cannot start 'no-such-program'" in done.stderr


def test_an_assertion_that_cannot_be_read_is_bad_input(recorded: Desk) -> None:
    assert recorded.reenact("replay", "last", "--assert", "never ever").returncode == 3
    assert recorded.reenact("replay", "last", "--check", "nowhere.check").returncode == 3


def test_a_reworded_prompt_cannot_be_judged_where_the_replay_stops(recorded: Desk) -> None:
    program = variant(recorded, ("inactive accounts in staging.", "inactive accounts in staging, please."))
    told, code = judged(recorded, "--assert", NOT_PRODUCTION, "--", "python", program)
    assert (code, told["check"]["word"]) == (125, "unjudged")
    assert "in its wording" in told["check"]["why"]


def test_after_works_without_a_check(recorded: Desk) -> None:
    program = variant(recorded, ("inactive accounts in staging.", "inactive accounts in staging, please."))
    done = recorded.reenact("replay", "last", "--after", "nearest", "--json", "--", "python", program)
    told = json.loads(done.stdout)
    assert (done.returncode, told["result"], told["beyond"]) == (1, "diverged", 5)
    assert {miss["onward"] for miss in told["misses"]} == {"nearest"}
    assert "check" not in told


def git(folder: Path, *words: str) -> str:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *settings, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "commits_made", "reworded"),
    [
        ("cleanup_agent", 8, ("in staging.", "in staging!")),
        pytest.param("cleanup_agent", 20, ("in staging.", "in staging!"), marks=pytest.mark.slow),
        pytest.param("order_desk", 20, ("Where is my order?", "Where is it?"), marks=pytest.mark.slow),
        pytest.param("price_agent", 20, ("right now?", "today?"), marks=pytest.mark.slow),
        pytest.param("trader_agent", 20, ("worth of ACME.", "worth of ACME!"), marks=pytest.mark.slow),
    ],
)
def test_git_bisect_finds_the_commit_that_brought_the_bug_in(
    desk: Desk, name: str, commits_made: int, reworded: tuple[str, str]
) -> None:
    """Of twenty commits the guard goes at the 13th; two do not start, and one has another prompt."""
    gone = 13 if commits_made == 20 else 5
    no_module, another_prompt, no_syntax = gone - 3, gone - 1, gone + 2
    source = (EXAMPLES / f"{name}.py").read_text()
    guarded = re.sub(r'os\.environ\.get\("\w+_GUARD"\)', '"always"', source)
    repository = desk.folder / "project"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    commits: list[str] = []
    for number in range(1, commits_made + 1):
        text = (guarded if number < gone else source) + f"\n# revision {number}\n"
        if number == no_module:
            text = "import no_such_module\n" + text
        if number == no_syntax:
            text += "def broken(:\n"
        if number == another_prompt:
            text = text.replace(*reworded)
        (repository / "agent.py").write_text(text)
        git(repository, "add", "agent.py")
        git(repository, "commit", "-q", "-m", f"revision {number}")
        commits.append(git(repository, "rev-parse", "HEAD").strip())
    incident(desk, name, repository / "agent.py")
    desk.write("incident.check", ASSERTIONS[name])
    git(repository, "bisect", "start", "HEAD", commits[0])
    judge = [sys.executable, "-m", "reenact", "replay", "last", "--store", str(desk.folder / ".reenact")]
    judge += ["--check", str(desk.folder / "incident.check"), "--after", "nearest", "--", "python", "agent.py"]
    told = git(repository, "bisect", "run", *judge)
    assert f"{commits[gone - 1]} is the first bad commit" in told, told
    assert git(repository, "status", "--porcelain") == ""


@pytest.mark.slow
def test_while_bisecting_bad_input_is_no_bad_commit(desk: Desk) -> None:
    repository = desk.folder
    git(repository, "init", "-q", "-b", "main")
    for number in range(3):
        git(repository, "commit", "-q", "--allow-empty", "-m", str(number))
    assert desk.reenact("replay", "last", "--check", "nowhere.check").returncode == 3
    git(repository, "bisect", "start", "HEAD", "HEAD~2")
    assert desk.reenact("replay", "last", "--check", "nowhere.check").returncode == 125
