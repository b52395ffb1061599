"""Forks of runs that are not plain: foreign traces, redacted ones, requests of a service, children, found tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from desk import EXAMPLES, Desk
from journeys.test_foreign import AGENT as WEATHER
from journeys.test_services import serving
from matrix.serving import Provider, Reply
from reenact.demo.provider import StandIn

SECRET = "sk-proj-" + "a1B2c3D4" * 6

KEEPER = """
import json, sys, uuid
import openai, reenact

@reenact.tool
def look_up(name: str) -> dict:
    return {"name": name, "note": "nothing"}

found = look_up("vault")
client = openai.OpenAI()
asked = [{"role": "user", "content": json.dumps(found)}]
print(client.chat.completions.create(model="m", messages=asked).choices[0].message.content)
"""

CHILDREN = """
import subprocess, sys
import reenact

@reenact.tool
def weigh(thing: str) -> int:
    assert False

@reenact.tool
def measure(thing: str) -> int:
    return len(thing)

if len(sys.argv) > 1:
    print(measure(sys.argv[1]))
else:
    for thing in ("anvil", "feather"):
        print(subprocess.run([sys.executable, __file__, thing], capture_output=True, text=True).stdout.strip())
    print(measure("the end"))
"""

FOUND = """
import json, os
import openai

def roll(sides: int) -> int:
    return sides // 2

TOOLS = [{"type": "function", "function": {"name": "roll", "description": "Roll.",
    "parameters": {"type": "object", "properties": {"sides": {"type": "integer"}}}}}]
client = openai.OpenAI()
messages = [{"role": "user", "content": "Roll."}]
first = client.chat.completions.create(model="m", messages=messages, tools=TOOLS).choices[0].message
rolled = {"roll": roll}[first.tool_calls[0].function.name](**json.loads(first.tool_calls[0].function.arguments))
print("rolled", rolled)
"""


def chat(content: str | None, calls: list[Any] | None = None) -> Reply:
    message = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
    finish = "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return Reply(body=json.dumps({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}).encode())


def forked(desk: Desk, *words: str) -> dict[str, Any]:
    done = desk.reenact("fork", *words[:1], "--json", *words[1:])
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "printed": done.stderr}


@pytest.mark.slow
def test_a_foreign_trace_is_forked(desk: Desk, shared_data: Path) -> None:
    trace = str(shared_data / "traces" / "rosetta" / "openinference.otlp.jsonl")
    program = desk.write("weather.py", WEATHER)
    words = (trace, "--at", "last llm", "--set", "text=It rains.", "--", "python", program)
    told = forked(desk, *words)
    assert "It rains." in told["printed"].splitlines()
    assert (told["result"], told["same_path"]) == ("forked", True)
    words = (trace, "--at", "first tool", "--set", "result=It snows.", "--after", "nearest", "--", "python", program)
    told = forked(desk, *words)
    assert told["first"]["call"].startswith("llm ")
    assert told["replay"]["beyond"] == 1
    shown = json.loads(desk.reenact("show", told["fork"], "--json").stdout)["calls"]
    assert "It snows." in [call["outcome"].get("returned") for call in shown if call["kind"] == "tool"]


@pytest.mark.slow
def test_a_value_that_is_set_passes_redaction(desk: Desk) -> None:
    program = desk.write("keeper.py", KEEPER)
    with Provider() as provider:
        desk.environ |= {"OPENAI_BASE_URL": provider.answer("openai", chat("fine")), "OPENAI_API_KEY": SECRET}
        assert desk.reenact("run", "--", "python", program).returncode == 0
    told = forked(desk, "last", "--at", "first tool", "--set", f"note=use {SECRET}", "--after", "nearest")
    assert told["notes"] == ["note holds a credential: its token is set"]
    assert "REDACTED_" in told["changes"][0]["to"]
    assert SECRET not in json.dumps(told)
    assert not [path for path in (desk.folder / ".reenact").rglob("*") if path.is_file() and SECRET in _text(path)]
    again = desk.reenact("replay", told["fork"])
    assert again.returncode == 0, again.stderr


def _text(path: Path) -> str:
    return path.read_bytes().decode("latin-1")


@pytest.mark.slow
def test_what_a_child_was_answered_is_changed(desk: Desk) -> None:
    program = desk.write("things.py", CHILDREN)
    assert desk.reenact("run", "--", "python", program).stdout.split() == ["5", "7", "7"]
    told = forked(desk, "last", "--at", "2nd measure", "--set", "result=70")
    assert told["printed"].split() == ["5", "70", "7"]
    assert told["same_path"]
    shown = json.loads(desk.reenact("show", told["fork"], "--json").stdout)["calls"]
    changed = [call for call in shown if call["attributes"].get("reenact.fork.changed")]
    assert [call["outcome"] for call in changed] == [{"returned": 70}]


def test_a_found_tool_does_not_run_again_where_its_result_is_set(desk: Desk) -> None:
    program = desk.write("dice.py", FOUND)
    call = {"id": "c1", "type": "function", "function": {"name": "roll", "arguments": '{"sides": 6}'}}
    with Provider() as provider:
        desk.environ |= {"OPENAI_BASE_URL": provider.answer("openai", chat(None, [call])), "OPENAI_API_KEY": "sk-none"}
        assert desk.reenact("run", "--", "python", program).stdout == "rolled 3\n"
    told = forked(desk, "last", "--at", "tool roll", "--set", "result=5")
    assert "rolled 5" in told["printed"]
    again = desk.reenact("replay", told["fork"])
    assert (again.returncode, again.stdout) == (0, "rolled 5\n"), again.stderr


@pytest.mark.slow
def test_a_request_of_a_service_is_forked(desk: Desk) -> None:
    asked = {"question": "Where is my order?"}
    with StandIn(slip=1.0) as provider:
        desk.environ |= provider.environment
        with serving(desk, "uvicorn", "--app-dir", str(EXAMPLES), "support_service:app", "--port", "PORT") as service:
            reply = httpx.post(f"{service.url}/ask", json=asked, headers={"x-user-id": "u-17"}, timeout=60)
            assert reply.status_code == 200
            service.stop()
    told = forked(desk, "last", "--at", "last llm", "--set", "text=It was given to a neighbour.")
    assert "It was given to a neighbour." in told["printed"]
    assert told["same_path"]
    assert "fork of" in desk.reenact("show", told["fork"]).stdout
