"""Recording programs whose model asks for each tool that it is offered, and reading what was written of the tools."""

from __future__ import annotations

import json
import subprocess
from random import Random
from typing import Any

import pytest

from desk import Desk
from reenact.demo.provider import StandIn
from reenact.demo.script import Question, Reply, Says, ToolUse


def every_tool_once(question: Question, chance: Random) -> Reply:
    """Ask for each tool that the request offers, one after the other."""
    offered = [str(tool["function"]["name"]) for tool in question.body["tools"]]  # type: ignore[index, union-attr]
    done = len(question.results)
    if done == len(offered):
        return Says(text="that was all of them")
    return Says(tools=(ToolUse(name=offered[done], arguments={"n": chance.randint(1, 99)}),))


def recorded(desk: Desk, provider: StandIn, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    desk.environ.update(provider.environment)
    done = desk.reenact("run", "--", "python", program, *words)
    desk.environ.clear()
    assert done.returncode == 0, done.stderr
    return done


def tools(desk: Desk, run: str = "last") -> list[dict[str, object]]:
    calls = json.loads(desk.reenact("show", run, "--json").stdout)["calls"]
    return [call for call in calls if call["kind"] == "tool"]


def listed(call: dict[str, object], what: str) -> list[str]:
    attributes = call["attributes"]
    assert isinstance(attributes, dict)
    return json.loads(attributes.get(f"reenact.tool.{what}", "[]"))


def noted(calls: list[dict[str, object]], name: str) -> list[object]:
    return [each for call in calls if (each := call["attributes"].get(name))]  # type: ignore[attr-defined]


def is_sealed(told: dict[str, Any]) -> bool:
    """Tell from a replay's document whether the kernel sealed its world: then tools may run again."""
    return told["world"].get("processes") == "enforced"


def needs_a_sealed_world(desk: Desk) -> None:
    """Skip the test where no sealed world can be made."""
    if not is_sealed(json.loads(desk.reenact("replay", "last", "--json", environ=desk.bare()).stdout)):
        pytest.skip("no sealed world can be made here, so no tool runs again: tests/seal says why")
