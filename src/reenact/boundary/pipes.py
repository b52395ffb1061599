"""Whose a named pipe is that somebody writes into: of this program's processes, or of anybody else.

Who has it open is said by `/proc`. In a sealed world nobody else can be seen, and the pipe of the host's is another
one there: a pipe that is older than the program, and that none of its processes has open, is somebody else's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from reenact.boundary import listeners

_SEALED: Final = "REENACT_GUARDED"
_STARTED: Final = 19
"""The place of a process's start behind its name, in ticks since the system began (proc_pid_stat(5), field 22)."""
_A_TICK_S: Final = 1.0
"""The kernel tells its own start in whole seconds."""


def is_own(path: str) -> bool:
    """Tell whether nobody but this program reads what is written into a named pipe."""
    try:
        pipe = os.stat(path)  # noqa: PTH116 - in an audit hook
        family = set(listeners.family())
        if any(_has(pid, pipe) for pid in family):
            return True
        if os.environ.get(_SEALED):
            return pipe.st_ctime >= _began(family) - _A_TICK_S
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


def _began(family: set[int]) -> float:
    """Give when the first process of the program began, in seconds since 1970."""
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    booted = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    ticks = os.sysconf("SC_CLK_TCK")
    starts = [
        int(told.rpartition(")")[2].split()[_STARTED]) / ticks
        for pid in family
        if (told := listeners.read(f"/proc/{pid}/stat").decode(errors="replace"))
    ]
    return booted + min(starts)
