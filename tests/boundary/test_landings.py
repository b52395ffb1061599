"""Ends of jobs land on an event loop as many turns behind each other as they did when recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial

import pytest

from reenact.boundary import landings, pauses
from reenact.boundary.lanes import Lane
from reenact.boundary.pauses import Landing


class Recorded:
    """A pace that knows only when ends landed."""

    def __init__(self, known: dict[str, Landing]) -> None:
        self.known = known

    def landing(self, lane: Lane) -> Landing:
        return self.known.get(lane.path, Landing())


@pytest.fixture
def recorded() -> Iterator[dict[str, Landing]]:
    known: dict[str, Landing] = {}
    pauses.install(None, Recorded(known))  # type: ignore[arg-type]
    yield known
    pauses.install(None)


class Jobs:
    """Jobs that end when a test says so, and in which turn of the loop each of them landed."""

    def __init__(self, *names: str) -> None:
        loop = asyncio.get_running_loop()
        self.main, self.turn = Lane("main"), 0
        self.landed: dict[str, int] = {}
        self.ends: dict[str, asyncio.Future[None]] = {}
        self.futures: dict[str, Future[None]] = {name: Future() for name in names}
        for name, future in self.futures.items():
            self.ends[name] = asyncio.wrap_future(future, loop=loop)
            self.ends[name].add_done_callback(partial(self._land, name))
            landings.watch(future, loop, Lane(name, self.main.reel))

    def _land(self, name: str, _: object) -> None:
        self.landed[name] = self.turn

    def end(self, name: str) -> None:
        self.futures[name].set_result(None)

    async def work(self, turns: int) -> None:
        """Keep the loop at work for some turns."""
        for _ in range(turns):
            await asyncio.sleep(0)
            self.turn += 1


def test_an_end_that_comes_while_the_loop_is_at_work_is_noted_with_its_turns() -> None:
    async def main() -> tuple[Jobs, int]:
        jobs = Jobs("a", "b", "c")
        jobs.end("a")
        await jobs.work(9)
        jobs.end("b")
        await jobs.work(9)
        await asyncio.sleep(0.01)  # the loop rests
        jobs.end("c")
        await asyncio.sleep(0.01)
        return jobs, jobs.landed["b"] - jobs.landed["a"]

    jobs, turns = asyncio.run(main())
    assert list(jobs.landed) == ["a", "b", "c"]
    assert jobs.main.reel.landings == {"b": ["a", turns]}
    assert turns > 8


@pytest.mark.parametrize("wait_s", [0, 0.1])
def test_an_end_lands_after_as_many_turns_again_however_late_it_comes(
    recorded: dict[str, Landing], wait_s: float
) -> None:
    recorded.update(a=Landing(follower="b"), b=Landing("a", 9))

    async def main() -> int:
        jobs = Jobs("a", "b")
        jobs.end("a")
        await asyncio.sleep(wait_s)
        assert jobs.landed == {}
        jobs.end("b")
        await jobs.work(40)
        return jobs.landed["b"] - jobs.landed["a"]

    assert asyncio.run(main()) == 9


def test_an_end_that_found_the_loop_at_rest_waits_for_a_rest(recorded: dict[str, Landing]) -> None:
    recorded.clear()

    async def main() -> Jobs:
        jobs = Jobs("a", "b")
        jobs.end("a")
        jobs.end("b")
        await jobs.work(30)
        assert list(jobs.landed) == ["a"]
        await asyncio.sleep(0.01)
        return jobs

    assert list(asyncio.run(main()).landed) == ["a", "b"]


def test_an_end_whose_follower_never_comes_lands_all_the_same(recorded: dict[str, Landing]) -> None:
    recorded.update(a=Landing(follower="b"), b=Landing("a", 2))

    async def main() -> Jobs:
        jobs = Jobs("a", "b", "c")
        jobs.end("a")
        await jobs.ends["a"]
        jobs.end("c")
        jobs.end("b")
        await asyncio.gather(*jobs.ends.values())
        return jobs

    assert set(asyncio.run(main()).landed) == {"a", "b", "c"}


@pytest.mark.parametrize("step", ["turn", "arrive", "_settle"])
def test_a_fault_of_ours_keeps_no_end_from_the_loop(
    recorded: dict[str, Landing], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise ValueError(step)

    recorded.update(a=Landing(follower="b"), b=Landing("a", 5))

    async def main() -> Jobs:
        jobs = Jobs("a", "b")
        monkeypatch.setattr(landings._Loop, step, fail)
        jobs.end("a")
        jobs.end("b")
        await asyncio.wait_for(asyncio.gather(*jobs.ends.values()), 5)
        return jobs

    assert sorted(asyncio.run(main()).landed) == ["a", "b"]


def test_a_loop_that_is_closed_hears_of_nothing() -> None:
    async def main() -> Jobs:
        return Jobs("a")

    jobs = asyncio.run(main())
    jobs.end("a")
    assert jobs.landed == {}
