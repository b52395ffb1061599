from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from reenact.values import alarms


class Quit(BaseException):
    """What a server's handler raises."""


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """Handle two signals: one notes that it came, the other raises."""
    calls: list[str] = []

    def noting(_number: int, _frame: FrameType | None) -> None:
        calls.append("noted")

    def quitting(_number: int, _frame: FrameType | None) -> None:
        calls.append("quit")
        raise Quit

    before = [(each, signal.getsignal(each)) for each in (signal.SIGUSR1, signal.SIGUSR2)]
    signal.signal(signal.SIGUSR1, noting)
    signal.signal(signal.SIGUSR2, quitting)
    yield calls
    for each, handler in before:
        signal.signal(each, handler)


def write_while_told_to_quit(written: list[str]) -> None:
    with alarms.postponed():
        with alarms.postponed():
            os.kill(os.getpid(), signal.SIGUSR2)
            os.kill(os.getpid(), signal.SIGUSR1)
        written.append("written")


def test_a_handler_runs_behind_what_is_written_and_is_in_its_place_again(heard: list[str]) -> None:
    handler = signal.getsignal(signal.SIGUSR2)
    with pytest.raises(Quit):
        write_while_told_to_quit(heard)
    assert heard == ["written", "quit", "noted"]
    assert signal.getsignal(signal.SIGUSR2) is handler


def test_a_signal_that_the_program_leaves_alone_stays_as_it_is(heard: list[str]) -> None:
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    with alarms.postponed():
        os.kill(os.getpid(), signal.SIGUSR1)
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    signal.signal(signal.SIGUSR1, before)
    assert heard == []


def test_other_threads_put_off_nothing(heard: list[str]) -> None:
    handlers: list[object] = []

    def other() -> None:
        with alarms.postponed():
            handlers.append(signal.getsignal(signal.SIGUSR1))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGUSR1)]
    assert heard == []
