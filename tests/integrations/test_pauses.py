"""A pause that somebody cut short when recorded is over in a replay when he does so again, and not by the clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from itertools import count

import pytest

from reenact.boundary import lanes, pauses
from reenact.boundary.lanes import Lane
from reenact.boundary.patching import Patches
from reenact.boundary.pauses import LONGER_S, Turn, Waiting
from reenact.integrations.pauses import INTEGRATION

SHORT = 0.001


class Pace:
    """Says of each pause that it was cut short."""

    def turn(self, _lane: Lane) -> Turn:
        return Turn(0)

    def wait(self, turn: Turn, _lane: Lane) -> None:
        assert not turn.order

    async def wait_async(self, turn: Turn, _lane: Lane) -> None:
        assert not turn.order

    def given_up(self, turn: Turn, _lane: Lane) -> None:
        raise AssertionError(turn)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> Generator[list[float]]:
    asked = list[float]()
    monkeypatch.setattr(time, "sleep", asked.append)
    patches = Patches()
    lanes.restart()
    INTEGRATION.install(patches)
    pauses.install(count(1).__next__, Pace())
    yield asked
    pauses.install(None)
    patches.undo()
    lanes.restart()


def test_a_thread_sleeps_on(slept: list[float]) -> None:
    time.sleep(SHORT)
    assert slept == [SHORT, LONGER_S]


@pytest.mark.usefixtures("slept")
def test_a_task_beats_no_more_often_than_it_was_let() -> None:
    beats = list[int]()

    async def beat() -> None:
        for number in count(1):
            await asyncio.sleep(SHORT)
            beats.append(number)

    async def main() -> None:
        task = asyncio.create_task(beat())
        await asyncio.wait([task], timeout=20 * SHORT)
        task.cancel()

    asyncio.run(main())
    assert beats == []


def test_who_waits_at_the_end_of_the_program_is_told_to_have_never_gone_on() -> None:
    lanes.restart()
    pauses.install(count(1).__next__)
    try:
        over, waiting = Waiting(), Waiting()
        over.over()
        lane = lanes.current()
        found = pauses.take(lane.reel)
        assert [(each.began, each.ended) for each in found[lane.path]] == [(1, 3), (2, 0)]
        waiting.over()
    finally:
        pauses.install(None)
        lanes.restart()


@pytest.mark.parametrize("others_ns", [0, 5_000_000])
def test_what_a_sleeper_itself_computes_is_nobody_elses_work(monkeypatch: pytest.MonkeyPatch, others_ns: int) -> None:
    own_ns = 5_000_000
    threads, processes = iter([0, own_ns]), iter([0, own_ns + others_ns])
    monkeypatch.setattr(pauses, "_thread_time_ns", threads.__next__)
    monkeypatch.setattr(pauses, "_process_time_ns", processes.__next__)
    lanes.restart()
    pauses.install(count(1).__next__)
    try:
        pauses.slept(time.sleep, SHORT, None)
        lane = lanes.current()
        (pause,) = pauses.take(lane.reel)[lane.path]
        assert pause.beside == bool(others_ns)
    finally:
        pauses.install(None)
        lanes.restart()
