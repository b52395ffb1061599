"""What several processes put into one queue comes out in the recorded order."""

from __future__ import annotations

import multiprocessing
import queue
from collections.abc import Generator
from functools import partial
from itertools import count
from typing import Any

import pytest

from integrations.test_timed_waits import Pace
from reenact.boundary import lanes, pauses
from reenact.boundary.patching import Patches
from reenact.boundary.pauses import Pause, Turn
from reenact.integrations import other_processes


@pytest.fixture
def pace() -> Generator[Pace]:
    made, patches = Pace(), Patches()
    lanes.restart()
    multiprocessing.Queue().close()  # imports what is cut
    other_processes.INTEGRATION.install(patches)
    pauses.install(count(1).__next__, made)
    yield made
    pauses.install(None)
    patches.undo()
    lanes.restart()


def taken(held: Any, times: int) -> list[Any]:
    return [held.get(timeout=5) for _ in range(times)]


class OnceOnly:
    """What cannot be pickled again where it came out."""

    def __init__(self, *, has_come: bool = False) -> None:
        self.has_come = has_come

    def __reduce__(self) -> tuple[Any, ...]:
        if self.has_come:
            raise TypeError
        return partial(OnceOnly, has_come=True), ()


def came(items: list[Any]) -> list[tuple[int, ...] | None]:
    """Tell what the recording says of what came out of a queue."""
    held: multiprocessing.Queue[Any] = multiprocessing.Queue()
    for each in items:
        held.put(each)
    assert taken(held, len(items)) == items
    noted: dict[str, list[Pause]] = pauses.take(lanes.current().reel)
    held.close()
    return [pause.done for pause in noted["main"]]


def test_what_comes_out_earlier_than_it_did_is_held_until_its_turn(pace: Pace) -> None:
    first, second, third = came(["tea", ["cake"], {"ale": 1}])
    held: multiprocessing.Queue[Any] = multiprocessing.Queue()
    for each in ({"ale": 1}, ["cake"], "tea"):
        held.put(each)
    found = list[Any]()
    for due in (second, third, first):
        pace.turn_of = Turn(7, due)
        found += taken(held, 1)
    assert found == [["cake"], {"ale": 1}, "tea"]
    pace.turn_of = Turn(7, ())
    held.put("more")
    with pytest.raises(queue.Empty):
        held.get(timeout=0.001)
    pace.turn_of = None
    assert taken(held, 1) == ["more"]
    held.close()


@pytest.mark.usefixtures("pace")
def test_what_cannot_be_pickled_again_comes_out_all_the_same() -> None:
    held: multiprocessing.Queue[Any] = multiprocessing.Queue()
    held.put(OnceOnly())
    assert taken(held, 1)[0].has_come
    held.close()


def test_what_never_came_when_recorded_comes_where_nothing_else_does(
    pace: Pace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_processes, "_NOTHING_NEW_S", 0.001)
    held: multiprocessing.Queue[Any] = multiprocessing.Queue()
    held.put("other")
    pace.turn_of = Turn(7, (1,))
    assert taken(held, 1) == ["other"]
    held.close()
