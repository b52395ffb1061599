"""A timer of `signal.setitimer` rings in a replay where it rang when recorded, however fast or slow the replay is."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import pytest

from reenact.replay.pace import AlarmClock


@pytest.fixture
def rings() -> Iterator[list[float]]:
    heard: list[float] = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(time.monotonic()))
    yield heard
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def _clock(first_s: float, interval_s: float) -> AlarmClock:
    """Begin at a place whose recorded time is 100 s, right behind the setting of a timer."""
    clock = AlarmClock()
    signal.setitimer(signal.ITIMER_REAL, first_s, interval_s)
    clock.enter()
    clock.stand(100.0)
    return clock


def test_what_rang_between_two_places_rings_at_the_second_one(rings: list[float]) -> None:
    clock = _clock(5.0, 2.0)
    clock.stand(104.9)
    assert rings == []
    clock.stand(108.0)  # it rang at 105 and 107
    assert len(rings) == 2
    clock.stand(108.9)
    assert len(rings) == 2
    clock.stand(109.1)
    assert len(rings) == 3


def test_what_rings_once_rings_once(rings: list[float]) -> None:
    clock = _clock(5.0, 0.0)
    clock.stand(106.0)
    assert len(rings) == 1
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    clock.stand(120.0)
    assert len(rings) == 1


def test_what_rang_in_a_call_rings_before_its_answer(rings: list[float]) -> None:
    clock = _clock(5.0, 2.0)
    clock.stand(104.0)
    assert clock.let_go_first(0.9) is None
    assert rings == []
    assert clock.let_go_first(3.1) is None  # to 107.1
    assert len(rings) == 2


def test_what_a_handler_raises_is_given(rings: list[float]) -> None:
    class Late(Exception):
        pass

    def ring(*_: object) -> None:
        raise Late

    signal.signal(signal.SIGALRM, ring)
    clock = _clock(5.0, 2.0)
    assert isinstance(clock.let_go_first(9.0), Late)
    assert rings == []


@pytest.mark.parametrize("wait", [lambda: None, lambda: time.sleep(0.03)], ids=["at once", "after a wait"])
def test_a_replay_that_waits_for_its_processor_does_not_hear_a_timer_too_soon(
    rings: list[float], wait: Callable[[], None]
) -> None:
    clock = _clock(0.15, 0.15)
    clock.stand(100.14)
    wait()  # 20 ms more than was left
    clock.leave()
    assert rings == []
    clock.stand(100.149)
    assert rings == []
    clock.stand(100.151)
    assert len(rings) == 1


def test_a_timer_that_the_program_sets_anew_is_taken_as_it_is(rings: list[float]) -> None:
    clock = _clock(5.0, 0.0)
    signal.setitimer(signal.ITIMER_REAL, 9.0, 0.0)
    clock.enter()
    clock.stand(106.0)
    assert rings == []
    clock.stand(114.9)
    assert rings == []
    clock.stand(115.1)
    assert len(rings) == 1
