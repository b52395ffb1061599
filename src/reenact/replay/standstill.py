"""Ends a process whose replay has stopped and which stands still.

A replay stops on the thread that made a call. Where that thread dies of it, or its task does, others may wait for what
it would have made: a queue is joined, an event is awaited, and nobody comes. Nothing that follows a stop is evidence,
so the process ends once nobody in it has worked for a while.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time
from typing import Final

_STILL_S: Final = 4.0
"""So long nobody may work until the process is ended, in seconds."""
_LOOK_S: Final = 0.1
_LEAST_SHARE: Final = 0.05
"""Who has less of a processor than this looks whether something has come, and does nothing else."""
_CLOSING_S: Final = 10.0
_SAID: Final = b"reenact: the replay had stopped, and the program stood still; it was ended\n"
_watched: list[int] = []


def watch() -> None:
    """Hear that the replay has stopped in this process."""
    if os.getpid() not in _watched:
        _watched[:] = [os.getpid()]
        _thread.start_new_thread(_end_when_still, ())  # none of `threading`'s, which would be a lane


def _end_when_still() -> None:
    still_s, spent_s = 0.0, time.process_time()
    while still_s < _STILL_S:
        time.sleep(_LOOK_S)
        before_s, spent_s = spent_s, time.process_time()
        still_s = still_s + _LOOK_S if spent_s - before_s < _LEAST_SHARE * _LOOK_S else 0.0
    os.write(2, _SAID)
    _thread.start_new_thread(_kill, ())
    try:
        sys.stdout.flush()
    finally:
        os._exit(1)


def _kill() -> None:
    """End the process where its recording cannot be closed."""
    time.sleep(_CLOSING_S)
    os.kill(os.getpid(), signal.SIGKILL)
