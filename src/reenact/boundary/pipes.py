"""Whose a named pipe is that somebody writes into: of this program's processes, or of anybody else.

Who has it open is said by `/proc`. In a sealed world nobody else can be seen, and the pipe of the host's is another
one there: a pipe that is older than the replay, or stands in the original of the working folder, and that none of the
program's processes has open, is somebody else's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from reenact.boundary import listeners, path_copies

_SEALED: Final = "REENACT_GUARDED"
_PLAN: Final = "REENACT_REPLAY"
"""Names a file that was written before the world was made."""
_UNLED: Final = "/proc/self/root"
"""Begins a path that is led to no copy."""


def is_own(path: str) -> bool:
    """Tell whether nobody but this program reads what is written into a named pipe."""
    try:
        pipe = os.stat(path)  # noqa: PTH116 - in an audit hook
        family = set(listeners.family())
        if any(_has(pid, pipe) for pid in family):
            return True
        if os.environ.get(_SEALED):
            return pipe.st_ctime_ns > os.stat(os.environ.get(_PLAN, "")).st_mtime_ns and not _stands_outside(path)  # noqa: PTH116 - as above
        return not any(_has(pid, pipe) for pid in _others(family))
    except OSError:  # the system does not say
        return False


def _others(family: set[int]) -> Iterator[int]:
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and int(each.name) not in family:
            yield int(each.name)


def _has(pid: int, pipe: os.stat_result) -> bool:
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # it is closed by now
                if os.path.samestat(each.stat(), pipe):
                    return True
    return False


def _stands_outside(path: str) -> bool:
    """Tell whether the original of a copy holds a pipe of that name, too: the program can make none there."""
    led = path_copies.of_this_process()
    if led is None:
        return False
    try:
        status = os.stat(_UNLED + led.original(os.path.abspath(path)))  # noqa: PTH100, PTH116 - as above
    except OSError:
        return False
    return stat.S_ISFIFO(status.st_mode)
