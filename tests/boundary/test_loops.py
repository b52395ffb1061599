"""A pause in a loop is told by what the loop looks at, and by whether something leaves it before its end."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

import pytest

from reenact.boundary.loops import loop_around


class Work:
    """What others do."""

    done = False
    seen: list[int]

    def poll(self) -> int | None:
        return 0 if self.done else None


work = Work()


def look() -> None:
    work.seen.append(loop_around(sys._getframe(1)))
    work.done = True


def until_others_are_done() -> None:
    while not work.done:
        look()


def until_others_are_done_or_it_takes_too_long() -> None:
    for _ in range(3):
        if work.done:
            break
        look()


def pause() -> None:
    look()


def in_a_function_that_the_loop_calls() -> None:
    while not work.done:
        pause()


def as_often_as_it_says() -> None:
    tries = 0
    while tries < 2:
        tries += 1
        time.sleep(0)


def through_a_list() -> None:
    for _ in (1, 2):
        look()


def in_no_loop() -> None:
    look()


def pausing_alone() -> None:
    while not work.done:
        time.sleep(0)


def pausing_and_counting() -> None:
    while not work.done:
        time.sleep(0)
        work.seen.append(0)


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        (until_others_are_done, True),
        (until_others_are_done_or_it_takes_too_long, True),
        (in_a_function_that_the_loop_calls, True),
        (through_a_list, False),
        (in_no_loop, False),
    ],
)
def test_a_loop_that_waits_for_others_is_told_from_those_that_do_not(code: Callable[[], None], *, waits: bool) -> None:
    work.done, work.seen = False, []
    code()
    assert [bool(each) for each in work.seen] == [waits] * len(work.seen)
    assert work.seen


def test_two_loops_are_told_apart_and_one_is_the_same_each_time() -> None:
    numbers: list[int] = []
    for code in (until_others_are_done, in_a_function_that_the_loop_calls, until_others_are_done):
        work.done, work.seen = False, []
        code()
        numbers += work.seen
    assert numbers[0] == numbers[2] != numbers[1]


def test_a_loop_that_looks_at_its_own_variables_alone_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(time, "sleep", lambda _seconds: seen.append(loop_around(sys._getframe(1))))
    as_often_as_it_says()
    assert seen
    assert not any(seen)


def asking_a_child() -> None:
    while work.poll() is None:
        time.sleep(0)
        work.seen.append(0)


@pytest.mark.parametrize(
    ("code", "waits"), [(pausing_alone, False), (pausing_and_counting, True), (asking_a_child, False)]
)
def test_nobody_sees_how_often_a_loop_went_around_that_does_nothing_but_pause(
    monkeypatch: pytest.MonkeyPatch, code: Callable[[], None], *, waits: bool
) -> None:
    rounds: list[int] = []

    def sleep(_seconds: float) -> None:
        rounds.append(loop_around(sys._getframe(1)))
        work.done = True

    work.done, work.seen = False, []
    monkeypatch.setattr(time, "sleep", sleep)
    code()
    assert [bool(each) for each in rounds] == [waits]


def test_an_await_that_is_cancelled_is_the_place_in_its_loop_that_it_was() -> None:
    places: list[int] = []

    async def pause(seconds: float, begun: asyncio.Event) -> None:
        frame = sys._getframe(1)
        try:
            begun.set()
            await asyncio.sleep(seconds)
        finally:
            places.append(loop_around(frame))

    async def beat(begun: asyncio.Event) -> None:
        while not work.done:
            await pause(60 if places else 0, begun if places else asyncio.Event())
            work.seen.append(0)

    async def main() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(beat(begun))
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    work.done, work.seen = False, []
    asyncio.run(main())
    first, cancelled = places
    assert first == cancelled > 0
