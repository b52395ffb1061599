"""A search that is stopped, or has no more time, tells what it found until then."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from desk import Desk
from reenact.change.fuzzing import Settings, fuzz
from reenact.find.sources import find
from reenact.stores.directory import DirectoryStore
from reenact.values.fuzz_outcome import Fuzzed
from reenact.values.variation import Group

PROGRAM = """
import reenact

@reenact.tool
def weigh(parcel: str) -> dict:
    return {"grams": 500, "parcel": parcel}

print(weigh("P-1")["grams"] / 2)
"""


class Stop:
    """Stops the search by a signal once something is found."""

    def __init__(self, number: signal.Signals) -> None:
        self._number, self.done = number, 0

    def __call__(self, done: int, of: int | None, found: int) -> None:
        del of
        self.done = done
        if found and done >= 2:
            os.kill(os.getpid(), self._number)


def searched(desk: Desk, settings: Settings, told: Stop) -> Fuzzed:
    desk.write("program.py", PROGRAM)
    done = desk.reenact("run", "-q", "--", "python", "program.py")
    assert done.returncode == 0, done.stderr
    store = DirectoryStore(Path(desk.folder, ".reenact"))
    argv = [sys.executable, str(desk.folder / "program.py")]
    return fuzz(find("last", store), argv, desk.folder, store, (), settings, told)


@pytest.mark.slow
@pytest.mark.sample(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupted", "terminated"])
def test_a_search_that_is_stopped_tells_what_it_found(desk: Desk, number: signal.Signals) -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals come to the main thread")
    before = signal.getsignal(number)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    stop = Stop(number)
    told = searched(desk, Settings(cases=400, jobs=1, groups=frozenset({Group.TOOLS})), stop)
    signal.signal(number, before)
    assert told.stopped == number.name
    assert told.found
    assert [each.run for each in told.discoveries] == [""] * len(told.discoveries)
    assert 2 <= told.cases <= stop.done + 1


@pytest.mark.slow
def test_a_search_without_time_left_makes_nothing_smaller(desk: Desk) -> None:
    stop = Stop(signal.SIGTERM)
    settings = Settings(seconds=0.001, cases=None, jobs=1, groups=frozenset({Group.TOOLS}))
    told = searched(desk, settings, stop)
    assert (told.cases, told.nothing_tried, told.exhausted) == (0, True, False)
