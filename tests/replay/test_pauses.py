"""Recorded pauses are handed out by lane and by the calls before them; code goes on behind them as it did."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace

import pytest

from made import Made
from reenact.boundary import pauses
from reenact.boundary.lanes import Lane
from reenact.boundary.pauses import Turn, Waiting
from reenact.replay.pauses import Pauses
from reenact.values.run import PAUSES, Node


def nodes_with(made: Made, **lanes: list[list[int | str]]) -> list[Node]:
    run = made.run()
    assert run.root is not None
    attributes = {**run.root.span.attributes, PAUSES: json.dumps(lanes)}
    root = replace(run.root, span=replace(run.root.span, attributes=attributes))
    return [root if node is run.root else node for node in run.nodes]


def test_pauses_are_those_of_their_lane_in_order() -> None:
    kept = Pauses(nodes_with(Made(), main=[[1, 4, 10]], other=[[2, 3, 5], [5, 0, 9]]), ())
    assert kept.take(("", "other")) == Turn(3)
    assert kept.take(("", "main")) == Turn(4)
    assert kept.take(("", "other")) == Turn(0)
    assert kept.take(("", "other")) is None
    assert kept.take(("", "third")) is None
    assert kept.orders == {3, 4}


def test_a_pause_within_another_wait_comes_behind_it_and_which_had_ended_is_known() -> None:
    kept = Pauses(nodes_with(Made(), main=[[2, 3, 10], [1, 4, 12, [0, 2]], [5, 6, 14, [], "00000000000000aa"]]), ())  # type: ignore[list-item]
    assert [kept.take(("", "main")) for _ in range(3)] == [Turn(4, (0, 2)), Turn(3), Turn(6, ())]


def test_a_lane_that_waits_more_or_less_often_before_a_call_shifts_nothing_behind_it() -> None:
    made = Made()
    call = made.tool("fetch", {"item": "tea"})
    start = next(node.start_order for node in made.run().nodes if node.id == call)
    told = [[start - 1, start, 1], [start + 1, start + 2, 2], [start + 3, start + 4, 3]]
    kept = Pauses(nodes_with(made, main=told), ())
    assert kept.take(("", "main")) == Turn(start)
    assert kept.take(("", "main")) is None
    assert kept.crossed(("", "main"), start) == []
    assert kept.take(("", "main")) == Turn(start + 2)
    assert kept.ended(("", "main")) == [start + 4]

    kept = Pauses(nodes_with(made, main=told), ())
    assert kept.crossed(("", "main"), start) == [start]
    assert kept.take(("", "main")) == Turn(start + 2)


def test_a_lane_that_calls_next_is_at_work_until_then() -> None:
    made = Made()
    call = made.tool("fetch", {"item": "tea"})
    start = next(node.start_order for node in made.run().nodes if node.id == call)
    kept = Pauses(nodes_with(made, main=[[start - 4, start - 3, 1], [start - 2, start - 1, 2]]), ())
    kept.take(("", "main"))
    assert not kept.calls_behind(("", "main"), start - 3)
    kept.take(("", "main"))
    assert kept.calls_behind(("", "main"), start - 1)
    assert not kept.calls_behind(("", "main"), start)


def test_nobody_waits_for_pauses_inside_a_call_that_is_answered() -> None:
    made = Made()
    call = made.tool("fetch", {"item": "tea"})
    kept = Pauses(nodes_with(made, main=[[1, 4, 10], [5, 7, 12, call]], other=[[5, 8, 12, call], [6, 0, 12, call]]), ())
    assert kept.covered({call}) == {"": [7, 8]}
    assert kept.take(("", "main")) == Turn(4)
    assert kept.take(("", "main")) is None
    assert kept.take(("", "other")) is None


def test_the_begin_of_the_run_itself_is_no_call_that_its_lane_makes_again() -> None:
    nodes = nodes_with(Made(), main=[[2, 3, 10]])
    (root,) = nodes
    kept = Pauses([replace(root, start_order=1, lane="main")], ())
    assert kept.take(("", "main")) == Turn(3)


def test_pauses_of_a_job_in_another_process_are_known_by_its_lane() -> None:
    lane = "main/pool work#0/p:1"
    kept = Pauses(nodes_with(Made(), **{lane: [[2, 3, 10]]}), ())
    place = kept.of_jobs[lane]
    assert place[0].endswith(lane)
    assert kept.take(place) == Turn(3)


class Pace:
    """Gives one pause."""

    def __init__(self, turn: Turn) -> None:
        self.turns, self.let_on, self.dropped = [turn], list[Turn](), list[Turn]()

    def turn(self, _lane: Lane) -> Turn | None:
        return self.turns.pop() if self.turns else None

    def wait(self, turn: Turn, _lane: Lane) -> None:
        self.let_on.append(turn)

    async def wait_async(self, turn: Turn, _lane: Lane) -> None:
        self.let_on.append(turn)

    def blocks(self, _lane: Lane) -> None:
        """Nobody waits here."""

    def given_up(self, turn: Turn, _lane: Lane) -> None:
        self.dropped.append(turn)


@pytest.fixture(autouse=True)
def _off() -> Generator[None]:
    yield
    pauses.install(None)


@pytest.mark.parametrize("woken", [True, False])
def test_who_was_not_woken_when_recorded_is_not_woken_and_goes_on_in_turn(*, woken: bool) -> None:
    pace = Pace(Turn(7))
    pauses.install(iter(range(100)).__next__, pace)
    assert Waiting().over_or_woken(lambda _seconds: woken, 0.1) is False
    assert pace.let_on == [Turn(7)]


def test_who_was_woken_when_recorded_waits_until_it_is() -> None:
    pace, asked = Pace(Turn(0)), list[float]()
    pauses.install(iter(range(100)).__next__, pace)

    def wait(seconds: float) -> bool:
        asked.append(seconds)
        return len(asked) == 2

    assert Waiting().over_or_woken(wait, 0.1) is True
    assert asked == [0.1, pauses.LONGER_S]
    assert pace.let_on == []


@pytest.mark.parametrize("woken", [True, False])
def test_beyond_the_recording_it_is_as_it_comes(*, woken: bool) -> None:
    pauses.install(iter(range(100)).__next__, None)
    assert Waiting().over_or_woken(lambda _seconds: woken, 0.1) is woken


def test_who_is_interrupted_is_no_longer_waited_for() -> None:
    pace = Pace(Turn(7))
    pauses.install(iter(range(100)).__next__, pace)
    Waiting().cut_short()
    assert pace.dropped == [Turn(7)]
