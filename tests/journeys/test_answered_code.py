"""A fix inside a tool that a replay answers: the replay cannot have seen it, and says so wherever it judges."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from desk import Desk
from reenact.demo.provider import StandIn

TOOLS = """
import reenact

{declared}
def get_profile(user: str) -> dict:
    return {{"user": user, "plan": plan_of(user)}}

def plan_of(user):
    return "gold"
"""
AGENT = """
import json
from openai import OpenAI
from tools import get_profile

client = OpenAI(max_retries=0)
SCHEMA = {"name": "get_profile", "parameters": {"type": "object", "properties": {"user": {"type": "string"}}}}

def ask(text):
    said = client.chat.completions.create(
        model="stand-in-everything",
        messages=[{"role": "user", "content": text}],
        tools=[{"type": "function", "function": SCHEMA}],
    )
    return said.choices[0].message.content

if __name__ == "__main__":
    ask("Look at u-1.")
    print(json.dumps(get_profile("u-1")))
    ask("Say goodbye.")
"""
WRONG = 'every get_profile has result.plan = "silver"'


def git(desk: Desk, *words: str) -> None:
    named = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    subprocess.run(["git", *named, *words], cwd=desk.folder, check=True, capture_output=True)


def recorded(desk: Desk, declared: str) -> Desk:
    """Make a committed project with one more line that is not committed, and record it."""
    desk.write("tools.py", TOOLS.format(declared=declared))
    desk.write("agent.py", AGENT)
    (desk.folder / ".gitignore").write_text(".reenact\n__pycache__\n*.jsonl\n")
    git(desk, "init", "-q")
    git(desk, "add", ".")
    git(desk, "commit", "-qm", "The agent looks at profiles")
    desk.write("agent.py", AGENT.replace("goodbye.", "goodbye!"))
    with StandIn() as provider:
        done = desk.reenact("run", "-q", "--", "python", "agent.py", environ=desk.settings() | provider.environment)
    assert done.returncode == 0, done.stderr
    desk.environ["OPENAI_API_KEY"] = "none"
    return desk


def mended(desk: Desk, declared: str) -> None:
    """Mend the helper that the tool calls."""
    desk.write("tools.py", TOOLS.format(declared=declared).replace('"gold"', '"silver"'))


SAID = "get_profile was answered and its code differs; --tool-live get_profile runs it"


@pytest.mark.parametrize(
    "declared", ["@reenact.tool", pytest.param("", marks=pytest.mark.slow)], ids=["declared", "found"]
)
def test_a_fix_inside_an_answered_tool_is_not_judged(desk: Desk, declared: str) -> None:
    environ = {"REENACT_ENFORCE": "off"}  # there a found tool is answered, too
    recorded(desk, declared)
    as_it_was = desk.reenact("replay", "last", environ=desk.settings() | environ)
    assert as_it_was.returncode == 0, as_it_was.stdout + as_it_was.stderr
    desk.write("tools.py", "# a comment\n" + TOOLS.format(declared=declared))
    assert desk.reenact("replay", "last", environ=desk.settings() | environ).returncode == 0
    mended(desk, declared)
    asked = [(), ("--assert", WRONG), ("--assert", 'called get_profile where user = "u-1"')]
    for words in asked[:1] if declared else asked:
        done = desk.reenact("replay", "last", *words, environ=desk.settings() | environ)
        assert done.returncode == 125, done.stdout + done.stderr
        assert f"unjudged: {SAID}" in done.stderr, done.stderr
    told = json.loads(desk.reenact("replay", "last", "--assert", WRONG, "--json").stdout) if declared else None
    if told is not None:
        assert (told["result"], told["check"]["word"]) == ("unjudged", "unjudged")
        assert [each["name"] for each in told["other_code"]] == ["get_profile"]


@pytest.mark.slow
def test_the_fix_is_judged_where_the_tool_runs(desk: Desk) -> None:
    recorded(desk, "@reenact.tool")
    before = desk.reenact("replay", "last", "--assert", WRONG)
    assert (before.returncode, "reproduced: " in before.stderr) == (1, True), before.stdout + before.stderr
    mended(desk, "@reenact.tool")
    done = desk.reenact("replay", "last", "--assert", WRONG, "--tool-live", "get_profile", "--json")
    told = json.loads(done.stdout)
    if "copied" not in str(told["world"]):
        pytest.skip("the world of a replay cannot be sealed here")
    assert (done.returncode, told["check"]["word"], told["other_code"]) == (0, "fixed", []), done.stdout


@pytest.mark.slow
def test_what_failed_before_the_answer_is_reproduced_all_the_same(desk: Desk) -> None:
    recorded(desk, "@reenact.tool")
    mended(desk, "@reenact.tool")
    done = desk.reenact("replay", "last", "--assert", 'never called llm where messages[0].content = "Look at u-1."')
    assert (done.returncode, "reproduced: " in done.stderr) == (1, True), done.stdout + done.stderr
    assert SAID in done.stderr


@pytest.mark.slow
def test_a_promoted_test_is_red_and_says_how_to_judge(desk: Desk) -> None:
    recorded(desk, "@reenact.tool")
    made = desk.reenact("promote", "last", "--name", "plan", "--assert", WRONG)
    assert made.returncode == 0, made.stdout + made.stderr
    mended(desk, "@reenact.tool")
    done = desk.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_plan.py"])
    assert (done.returncode, f"unjudged: {SAID}" in done.stdout) == (1, True), done.stdout + done.stderr


@pytest.mark.slow
def test_a_block_of_code_is_not_judged_either(desk: Desk) -> None:
    recorded(desk, "@reenact.tool")
    mended(desk, "@reenact.tool")
    calls = "agent.ask('Look at u-1.'); agent.get_profile('u-1'); agent.ask('Say goodbye!')"
    block = f"import agent, reenact\nwith reenact.replay('last', strict=False) as done:\n    {calls}"
    desk.write("block.py", f"{block}\nprint(done.result.result, done.result.why)\n")
    done = desk.run([sys.executable, "block.py"])
    assert done.stdout == f"unjudged {SAID}\n", done.stdout + done.stderr


@pytest.mark.slow
def test_changes_that_are_not_committed_are_said(desk: Desk) -> None:
    recorded(desk, "@reenact.tool")
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=desk.folder, check=True, capture_output=True, text=True
    ).stdout[:12]
    changes = f"{head} with uncommitted changes"
    done = desk.reenact("replay", "last")
    assert f"commit recorded {changes}, now {changes}" in done.stderr, done.stderr
    Path(desk.folder, "agent.py").write_text(AGENT)
    told = json.loads(desk.reenact("replay", "last", "--json").stdout)
    assert told["uncommitted"] == {"recorded": True, "current": False}
    assert changes.replace(" with", ", with") in desk.reenact("doctor", "last").stdout
