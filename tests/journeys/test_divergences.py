"""What a changed agent is told: exit code 1, and the call, the field and both values in the first line."""

from __future__ import annotations

import pytest

from desk import Desk
from reenact.demo.provider import StandIn

AGENT = """
import asyncio, os, sys
import reenact
from openai import OpenAI

CHANGE = os.environ.get("CHANGE", "")

@reenact.tool
def weigh(parcel: str, unit: str = "kg") -> float:
    print("weighing for real")
    return 4.5

def ask(text):
    reply = OpenAI().chat.completions.create(
        model="stand-in-everything",
        messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}],
    )
    return reply.choices[0].message.content

print(ask("Name an animal." if CHANGE != "prompt" else "Name two animals."))
print(weigh("P-7", "g" if CHANGE == "argument" else "kg"))
if CHANGE != "removed":
    print(ask("Name a place."))
if CHANGE == "extra":
    print(ask("Name a place."))
if CHANGE == "swallowed":
    try:
        print(ask("Name a colour nobody asked for."))
    except BaseException as error:
        print("never mind")
print(ask("Name a thing."))
"""


@pytest.fixture
def recorded(desk: Desk) -> Desk:
    program = desk.write("agent.py", AGENT)
    with StandIn(max_delay_ms=1) as provider:
        desk.environ.update(provider.environment)
        done = desk.reenact("run", "--", "python", program)
    assert done.returncode == 0, done.stderr
    desk.environ.clear()
    return desk


def test_the_unchanged_agent_is_the_same(recorded: Desk) -> None:
    done = recorded.reenact("replay", "last")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0].startswith("same")
    assert "1 tool calls answered" in done.stderr
    assert done.stdout.count("weighing for real") == 1, "an answer prints what the tool printed"


LOGGING = """
import reenact
from concurrent.futures import Future
from openai import OpenAI

def fail(future):
    raise ValueError("nobody asked")

@reenact.tool
def weigh(parcel: str) -> float:
    print("weighing for real")
    future = Future()
    future.add_done_callback(fail)
    future.set_result(parcel)  # the library logs that the callback failed
    return 4.5

OpenAI().chat.completions.create(model="stand-in-everything", messages=[{"role": "user", "content": "Name a place."}])
print(weigh("P-7"))
"""


def test_what_a_library_logs_in_an_answered_tool_is_passed_over_as_it_was(desk: Desk) -> None:
    program = desk.write("agent.py", LOGGING)
    with StandIn(max_delay_ms=1) as provider:
        desk.environ.update(provider.environment)
        recorded = desk.reenact("run", "--", "python", program)
    assert "exception calling callback for" in recorded.stderr
    assert "exact" in recorded.stderr
    desk.environ.clear()
    done = desk.reenact("replay", "last")
    assert done.stderr.count("exception calling callback for") == 1, "the answer prints it again"
    assert "same" in done.stderr
    assert done.returncode == 0, done.stderr


CHANGES = {
    "prompt": ["llm", "messages[1].content", '"Name an animal."', '"Name two animals."'],
    "argument": ["tool weigh", "arguments.unit", '"kg"', '"g"'],
    "extra": ["llm", "call", "recorded", "replay", "Name a place."],
    "removed": ["llm", "call", "recorded", "Name a place.", "replay absent"],
    "swallowed": ["llm", "messages[1].content", "Name a colour nobody asked for."],
}


@pytest.mark.always
def test_a_change_is_named_in_the_first_line(recorded: Desk) -> None:
    for change, words in CHANGES.items():
        recorded.environ["CHANGE"] = change
        done = recorded.reenact("replay", "last")
        assert done.returncode == 1, (change, done.stdout, done.stderr)
        set_here = "reenact: CHANGE: not set when it was recorded, and set here; the program reads it"
        first = next(line for line in done.stderr.splitlines() if line != set_here)
        assert first.startswith("diverged"), done.stderr
        assert [word for word in words if word not in first] == [], (change, first)


def test_nothing_undeclared_gets_out(desk: Desk) -> None:
    program = desk.write(
        "leaky.py",
        "import reenact, socket, sys, urllib.request\n"
        "@reenact.tool\ndef f():\n    return 1\n"
        "print(f())\n"
        "if len(sys.argv) > 1:\n"
        "    try:\n        socket.create_connection(('127.0.0.1', 9))\n"
        "    except BaseException as error:\n        print(type(error).__name__)\n"
        "    urllib.request.urlopen('http://127.0.0.1:9/')\n",
    )
    assert desk.reenact("run", "--", "python", program).returncode == 0
    done = desk.reenact("replay", "last", "--", "python", program, "leak")
    assert done.returncode == 1
    assert "SideEffectRefused" in done.stdout
    assert "leaky.py:8" in done.stderr
    assert "http GET 127.0.0.1: no http GET 127.0.0.1 was recorded" in done.stderr
    assert "@reenact.tool" in done.stderr
