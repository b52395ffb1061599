"""Programs that we start end with us: a killed `reenact` leaves none behind.

Linux sends a process a signal of its choice when its parent dies (prctl(2), PR_SET_PDEATHSIG). The parent is the very
thread that forked, so a thread that starts a program so has to live until the program's end: whoever waits for it does.
The signal is SIGKILL. Every other that is sent to us is passed on, or ends what we started by what we do at our end;
SIGKILL alone gives us no time for that, and so the program gets it as if it had been sent to it.

A process that works through orders from a pipe or socket notices by that who ordered is gone: the other end is closed.

Elsewhere than on Linux a program lives on.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def bound_to_us() -> Callable[[], None] | None:
    """Give what a new process runs before its program (`preexec_fn`), so that it ends when this thread does.

    It is made ready before the fork: the copy of a process with threads may not import, nor wait for a lock.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):  # a system library without it
        return None
    parent, die = os.getpid(), int(signal.SIGKILL)
    arguments = [ctypes.c_ulong(each) for each in (die, 0, 0, 0)]

    def bind() -> None:
        prctl(_PR_SET_PDEATHSIG, *arguments)
        if os.getppid() != parent:  # it died before it could be told
            os._exit(128 + die)

    return bind


def status_of(child: int, orders: int) -> int:
    """Wait for a forked child and give its status, as `waitpid` does.

    Where `orders`, the descriptor that it was ordered by, hangs up meanwhile, the child and its group are killed.
    """
    try:
        over = os.pidfd_open(child)
    except (OSError, AttributeError):
        return os.waitpid(child, 0)[1]
    try:
        poll = select.poll()
        poll.register(over, select.POLLIN)
        poll.register(orders, 0)  # a hang-up is told in any case
        if over not in dict(poll.poll()):
            _kill(child)
    finally:
        os.close(over)
    return os.waitpid(child, 0)[1]


def _kill(child: int) -> None:
    with suppress(ProcessLookupError):
        if os.getpgid(child) == child:
            os.killpg(child, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def hung_up(orders: int) -> None:
    """Wait until the other end of a pipe or socket is closed; what it holds yet is left there."""
    poll = select.poll()
    poll.register(orders, 0)
    poll.poll()
