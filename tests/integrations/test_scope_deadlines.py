"""Deadlines of anyio: those that were missed are missed again, and the others not, however slow a replay is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import anyio
import pytest

import reenact
from held import Held

SCOPES = ("move_on_after", "fail_after")
SLOW_S = 0.4
SHORT_S = 0.2


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@reenact.tool
async def told(what: str) -> str:
    return what


@contextmanager
def _failing() -> Iterator[list[bool]]:
    late: list[bool] = []
    try:
        with anyio.fail_after(SHORT_S):
            yield late
    except TimeoutError:
        late.append(True)


@contextmanager
def _moving_on() -> Iterator[list[bool]]:
    late: list[bool] = []
    with anyio.move_on_after(SHORT_S) as scope:
        yield late
    late += [True] * scope.cancelled_caught


def _within(scope: str) -> Callable[[], AbstractContextManager[list[bool]]]:
    return _failing if scope == "fail_after" else _moving_on


@pytest.mark.always
@pytest.mark.parametrize("scope", SCOPES)
def test_a_slow_replay_misses_no_deadline_that_was_met(held: Held, scope: str) -> None:
    seen: list[list[bool]] = []

    async def work() -> None:
        with _within(scope)() as late:
            await told("in time")
            time.sleep(SLOW_S if seen else 0)  # noqa: ASYNC251 - the machine of the replay is slow
            await anyio.sleep(0.01)
        seen.append(late)
        await told(f"late {late}")

    did = held.record(lambda: anyio.run(work), generators={})
    assert held.replay(did, lambda: anyio.run(work)).error is None
    assert seen == [[], []]


@pytest.mark.always
@pytest.mark.parametrize("scope", SCOPES)
def test_a_deadline_that_was_missed_is_missed_again(held: Held, scope: str) -> None:
    seen: list[list[bool]] = []

    async def work() -> None:
        with _within(scope)() as late:
            await told("late")
            await anyio.sleep(5)
        seen.append(late)
        await told(f"late {late}")

    did = held.record(lambda: anyio.run(work), generators={})
    assert held.replay(did, lambda: anyio.run(work)).error is None
    assert seen == [[True], [True]]
