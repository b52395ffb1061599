"""Descriptors that a program is handed beside its streams, and what it may say through them."""

from __future__ import annotations

import os
import stat
from typing import Any


def mode_of(target: Any) -> int:
    """Give what kind of file a stream is; 0 where it is none."""
    try:
        fd: int = target if isinstance(target, int) else target.fileno()
        return os.fstat(fd).st_mode
    except (AttributeError, OSError, ValueError):
        return 0


def says_there(fd: int) -> bool:
    """Tell whether a program may say something through a descriptor: a pipe's writing end, a socket."""
    import fcntl

    mode = os.fstat(fd).st_mode
    writes = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    return stat.S_ISSOCK(mode) or (stat.S_ISFIFO(mode) and writes)


class Lent:
    """Files of the agent's that a program was handed: whether it wrote into them shows when it has ended."""

    def __init__(self) -> None:
        self._files: list[tuple[int, tuple[int, int]]] = []

    def look_at(self, fd: int) -> None:
        """See how a file is before the program starts; anything else is passed over."""
        if stat.S_ISREG(os.fstat(fd).st_mode):
            self._files.append((os.dup(fd), _state_of(fd)))

    def take(self) -> bool:
        """Let the files go; tell whether one is another now."""
        changed = False
        for fd, before in self._files:
            changed = changed or _state_of(fd) != before
            os.close(fd)
        self._files.clear()
        return changed


def _state_of(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_size, status.st_mtime_ns
