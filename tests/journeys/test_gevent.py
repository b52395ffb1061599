"""Greenlets have lanes of their own, and what gevent starts is said not to be heard."""

from __future__ import annotations

import json

import pytest

from desk import Desk

pytest.importorskip("gevent")
pytestmark = pytest.mark.slow

BEGIN = """
from gevent import monkey

monkey.patch_all()
import gevent, subprocess, time
import reenact

@reenact.tool
def note(number: int) -> int:
    return number
"""


def test_greenlets_inside_a_tool_hang_below_it(desk: Desk) -> None:
    lines = """
def one(number):
    gevent.sleep(0.05 - number / 100)
    return note(number)

@reenact.tool
def ask() -> list:
    return [job.value for job in gevent.joinall([gevent.spawn(one, number) for number in range(4)])]

print(ask())
"""
    desk.write("agent.py", BEGIN + lines)
    recorded = desk.reenact("run", "--", "python", "agent.py", cold=True)
    assert "(5 tool); replayable: exact" in recorded.stderr
    assert recorded.stdout == "[3, 2, 1, 0]\n"
    calls = json.loads(desk.reenact("show", "last", "--json").stdout)["calls"]
    outer = next(call["id"] for call in calls if call["name"] == "ask")
    assert [call["parent"] for call in calls if call["name"] == "note"] == [outer] * 4
    for _ in range(3):
        replay = desk.reenact("replay", "last", cold=True)
        assert (replay.returncode, replay.stdout) == (0, recorded.stdout), replay.stderr


def test_a_program_that_gevent_starts_is_named_and_refused(desk: Desk) -> None:
    desk.write("agent.py", BEGIN + 'note(1)\nprint(subprocess.run(["sh", "-c", "echo out"], capture_output=True))\n')
    recorded = desk.reenact("run", "--", "python", "agent.py", cold=True)
    assert "replayable: partial" in recorded.stderr
    assert "a program that gevent's subprocess started went past the recorder" in recorded.stderr
    assert desk.reenact("replay", "last", cold=True).returncode == 125


def test_a_timeout_of_the_agent_s_own_ends_a_tool_and_a_kill_ends_a_greenlet(desk: Desk) -> None:
    lines = """
@reenact.tool
def slow() -> int:
    gevent.sleep(5)
    return 1

with gevent.Timeout(0.1, False):
    slow()
print("went on")
job = gevent.spawn(slow)
gevent.sleep(0.1)
job.kill()
print(job.dead, note(2))
"""
    desk.write("agent.py", BEGIN + lines)
    recorded = desk.reenact("run", "--", "python", "agent.py", cold=True)
    assert recorded.stdout == "went on\nTrue 2\n"
    for _ in range(3):
        replay = desk.reenact("replay", "last", cold=True)
        assert (replay.returncode, replay.stdout) == (0, recorded.stdout), replay.stderr
