"""A coroutine function that never let anybody else run is told so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import reenact
from reenact.values.run import AT_ONCE


@reenact.tool
async def look_up(city: str, pauses: int) -> str:
    for _ in range(pauses):
        await asyncio.sleep(0)
    return city


@pytest.mark.always
@pytest.mark.parametrize(("pauses", "at_once"), [(0, True), (1, None)])
def test_a_call_that_ends_in_the_turn_in_which_it_began_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: int, *, at_once: bool | None
) -> None:
    monkeypatch.chdir(tmp_path)
    recorder = reenact.record(store=tmp_path)
    try:
        assert asyncio.run(look_up("Oslo", pauses)) == "Oslo"
    finally:
        (run,) = recorder.stop()
    (call,) = (node for node in run.nodes if node.call.name == "look_up")
    assert call.span.attributes.get(AT_ONCE) == at_once
