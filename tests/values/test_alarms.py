from __future__ import annotations

import signal
import subprocess
import sys
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
            signal.raise_signal(signal.SIGUSR2)
            signal.raise_signal(signal.SIGUSR1)
        written.append("written")


def test_a_handler_runs_behind_what_is_written_and_no_signal_is_blocked_then(heard: list[str]) -> None:
    handler = signal.getsignal(signal.SIGUSR2)
    with pytest.raises(Quit):
        write_while_told_to_quit(heard)
    assert heard[0] == "written"
    assert sorted(heard[1:]) == ["noted", "quit"]
    assert signal.getsignal(signal.SIGUSR2) is handler
    assert signal.SIGUSR2 not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_signal_that_the_program_leaves_alone_stays_as_it_is(heard: list[str]) -> None:
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    with alarms.postponed():
        signal.raise_signal(signal.SIGUSR1)
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    signal.signal(signal.SIGUSR1, before)
    assert heard == []


def test_other_threads_put_off_nothing(heard: list[str]) -> None:
    blocked: list[set[int]] = []

    def other() -> None:
        with alarms.postponed():
            blocked.append({*signal.pthread_sigmask(signal.SIG_BLOCK, ())})

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert blocked == [signal.pthread_sigmask(signal.SIG_BLOCK, ())]
    assert heard == []


def test_a_server_that_wants_system_calls_to_go_on_keeps_that(heard: list[str]) -> None:
    """SIGALRM interrupts no `read` here, as gunicorn and asyncio ask for with `siginterrupt`."""
    program = """
import ctypes, os, signal, threading
from reenact.values import alarms
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.siginterrupt(signal.SIGUSR1, False)
with alarms.postponed():
    pass
reading, writing = os.pipe()
main = threading.main_thread().ident
def other():
    import time
    time.sleep(0.2)
    signal.pthread_kill(main, signal.SIGUSR1)
    time.sleep(0.2)
    os.write(writing, b"x")
threading.Thread(target=other).start()
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(1)
print(libc.read(reading, buffer, 1))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
    assert heard == []
