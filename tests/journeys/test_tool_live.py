"""A tool that is named runs in the sealed world of a replay: a fix inside it is seen, and nothing else happens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desk import Desk
from reenact.demo.provider import StandIn

AGENT = """
from pathlib import Path
import reenact
from openai import OpenAI

client = OpenAI(max_retries=0)

def ask(text):
    said = client.chat.completions.create(model="stand-in-everything", messages=[{"role": "user", "content": text}])
    return said.choices[0].message.content

@reenact.tool
def get_profile(user: str) -> dict:
    summary = ask(f"Summarise {user}.")
    Path("profile.txt").write_text(summary)
    return {"user": user, "plan": "gold"}

print(ask(f"Greet a {get_profile('u-1')['plan']} customer."))
"""


@pytest.fixture
def recorded(desk: Desk) -> Desk:
    desk.write("agent.py", AGENT)
    with StandIn() as provider:
        done = desk.reenact("run", "-q", "--", "python", "agent.py", environ=desk.settings() | provider.environment)
    assert done.returncode == 0, done.stderr
    (desk.folder / "profile.txt").unlink()
    desk.environ["OPENAI_API_KEY"] = "none"
    return desk


def sealed(told: dict[str, object]) -> None:
    if "copied" not in str(told["world"]):
        pytest.skip("the world of a replay cannot be sealed here")


@pytest.mark.slow
def test_an_unchanged_tool_that_is_named_is_the_same_and_writes_to_the_copy(recorded: Desk) -> None:
    done = recorded.reenact("replay", "last", "--tool-live", "get_profile", "--json")
    told = json.loads(done.stdout)
    sealed(told)
    assert (told["result"], told["answered"], told["ran_again"]) == ("same", {"llm": 2}, {"tool": 1}), done.stderr
    assert not Path(recorded.folder, "profile.txt").exists()
    assert (told["unwitnessed"], told["by_tools"]) == ([], {"get_profile": [f"{recorded.folder}/profile.txt"]})
    said = recorded.reenact("replay", "last", "--tool-live", "get_profile").stderr
    assert f"written by get_profile, which ran by --tool-live, to the copy: {recorded.folder}/profile.txt" in said


def test_a_change_inside_a_tool_is_seen_where_it_is_named(recorded: Desk) -> None:
    recorded.write("fixed.py", AGENT.replace("gold", "silver"))
    words = ("replay", "last", "--json", "--tool-live", "get_profile")
    done = recorded.reenact(*words, "--", "python", "fixed.py")
    told = json.loads(done.stdout)
    sealed(told)
    first = told["divergences"][0]
    assert (done.returncode, told["result"]) == (1, "diverged"), done.stderr
    assert (first["field"], first["a"], first["b"], first["live"]) == ("result.plan", "gold", "silver", "structure")
    accepted = recorded.reenact(*words, "--live-differs", "ok", "--", "python", "fixed.py")
    assert (accepted.returncode, json.loads(accepted.stdout)["result"]) == (0, "diverged")


def test_a_tool_that_was_not_recorded_is_not_run(recorded: Desk) -> None:
    done = recorded.reenact("replay", "last", "--tool-live", "get_profil")
    assert done.returncode == 2
    assert "its tools are get_profile" in done.stderr
