"""Ends a process whose replay has stopped and which stands still.

A replay stops on the thread that made a call. Where that thread dies of it, or its task does, others may wait for what
it would have made: a queue is joined, an event is awaited, and nobody comes. So the process ends once nobody in it has
worked for a while, but for a look now and then. No call is answered behind a miss, and nothing that follows it is
evidence. Behind a refused effect the calls of others are answered still: a program that pauses has more time there.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from collections import deque
from typing import Final

from reenact.values.terminal import tell

_STILL_S: Final = {"miss": 4.0, "refused": 60.0}
"""So long nobody may work until the process is ended, in seconds, by the entry of the ledger that stopped it."""
_LOOK_S: Final = 0.1
_LEAST_SHARE: Final = 0.1
"""Who has less of a processor than this meanwhile looks whether something has come, and does nothing else."""
_CLOSING_S: Final = 10.0
_SAID: Final = b"reenact: the replay had stopped, and the program stood still; it was ended\n"
_allowed_s: dict[int, float] = {}
"""How long nobody may work, by process: a forked one has no watch yet."""


def watch(entry: str) -> None:
    """Hear that the replay has stopped in this process, by an entry of that kind."""
    me, before = os.getpid(), _allowed_s.get(os.getpid())
    _allowed_s[me] = min(_STILL_S[entry], before or _STILL_S[entry])
    if before is None:
        _thread.start_new_thread(_end_when_still, (me,))  # none of `threading`'s, which would be a lane


def _end_when_still(me: int) -> None:
    spent_s = deque([time.process_time()])
    while True:
        time.sleep(_LOOK_S)
        spent_s.append(time.process_time())
        allowed_s = _allowed_s[me]
        while len(spent_s) > allowed_s / _LOOK_S + 1:
            spent_s.popleft()
        if len(spent_s) > allowed_s / _LOOK_S and spent_s[-1] - spent_s[0] < _LEAST_SHARE * allowed_s:
            break
    os.write(2, _SAID)
    _thread.start_new_thread(_kill, ())
    try:
        sys.stdout.flush()
    finally:
        os._exit(1)


def end_by_signal(number: int, after_s: float) -> None:
    """Send this process, after so long, the signal that ended the recorded one: by itself it would not have ended."""
    _thread.start_new_thread(_signalled, (number, after_s))


def _signalled(number: int, after_s: float) -> None:
    time.sleep(after_s)
    name = signal.Signals(number).name
    tell(f"the recorded program went on until {name} came; it is sent that now")
    os.kill(os.getpid(), number)
    time.sleep(_CLOSING_S)
    os._exit(128 + number)


def _kill() -> None:
    """End the process where its recording cannot be closed."""
    time.sleep(_CLOSING_S)
    os.kill(os.getpid(), signal.SIGKILL)
