"""Locks on files (`flock(2)`, `lockf(3)`) that processes of others hold while the program asks for them.

In a sealed world the file is a copy, which nobody else has locked: what the program does there (it waits, or says that
it is busy) happens in no replay. Linux lists the holders in `/proc/locks`; elsewhere nothing is told.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from reenact.boundary import listeners
from reenact.values.run import LOCKED

_SHARED: Final = 1
_EXCLUSIVE: Final = 2
"""LOCK_SH and LOCK_EX of flock(2); Python's `lockf` takes the same."""


def foreign_lock(args: tuple[Any, ...]) -> str:
    """Say that the lock which is asked for is held by others, by the path of its file; empty where it is not.

    What an audit event of `fcntl` tells begins with the descriptor and the wish.
    """
    handle, wish = args[0], args[1]
    if not isinstance(handle, int) or not wish & (_SHARED | _EXCLUSIVE):
        return ""
    try:
        holders = _holders(os.fstat(handle), shared=not wish & _EXCLUSIVE)
        if not holders or not holders - set(listeners.family()):
            return ""
        return LOCKED + os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 - in an audit hook
    except (OSError, ValueError):  # the system does not say
        return ""


def _holders(file: os.stat_result, *, shared: bool) -> set[int]:
    """Give the processes that hold what a new lock on a file would wait for (`/proc/locks`, proc_locks(5))."""
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    holders = set[int]()
    for row in Path("/proc/locks").read_text().splitlines():
        fields = row.split()
        if "->" in fields or place not in fields:  # an arrow marks who waits
            continue
        mode, pid = fields[3], int(fields[4])
        if pid > 0 and not (shared and mode == "READ"):
            holders.add(pid)
    return holders
