"""Forty tools that nobody declared: those that reach out never run again, those that keep to memory do if sealed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asking import every_tool_once, is_sealed, listed, noted, recorded, tools
from desk import Desk
from reenact.demo.provider import StandIn

PROGRAM = Path(__file__).with_name("forty_tools_program.py")


@pytest.fixture
def asking() -> Iterator[StandIn]:
    with StandIn(scripts={"all-tools": every_tool_once}, max_delay_ms=1) as provider:
        yield provider


@pytest.mark.slow
def test_none_that_reaches_out_runs_again(desk: Desk, asking: StandIn) -> None:
    live = recorded(desk, asking, str(PROGRAM))
    struck = desk.folder / "struck.txt"
    before = struck.read_bytes(), struck.stat().st_mtime_ns
    calls = tools(desk)
    by_id = {str(call["id"]): str(call["name"]) for call in calls}
    names = set(by_id.values())
    sly, harmless = ({name for name in names if name.startswith(start)} for start in ("s_", "h_"))
    assert (len(sly), len(harmless)) >= (20, 20)
    known = {call["name"] for call in calls if not listed(call, "reaches")}
    assert not known & (sly - {"s_swapped"})  # harmless itself, until the program gave it something else
    assert "exact" in live.stderr
    for setting in ({}, {"REENACT_ENFORCE": "off"}):
        done = desk.reenact("replay", "last", "--json", environ={**desk.bare(), **setting})
        assert done.returncode == 0, done.stderr
        assert live.stdout in done.stderr
        assert (struck.read_bytes(), struck.stat().st_mtime_ns) == before
        told: dict[str, Any] = json.loads(done.stdout)
        again = [by_id[str(each)] for each in noted(tools(desk, told["replay"]), "reenact.replay.ran_again")]
        if not is_sealed(told):
            assert again == []
        else:
            assert set(again) - {"s_swapped"} >= set(sorted(harmless)[:15])
            assert not set(again) & (sly - {"s_swapped"})
            assert again.count("s_swapped") == 1
