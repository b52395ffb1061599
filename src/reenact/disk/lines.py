"""Files of whole lines that many processes append to at once, and that a crash may leave with a line cut short."""

from __future__ import annotations

import errno
import fcntl
import io
import os
from pathlib import Path
from typing import Any

from reenact.disk import private

_STEP = 1 << 20


class WholeLines(io.RawIOBase):
    """Reads a file of lines up to the last whole one. What is appended after it was made is left out."""

    def __init__(self, file: io.FileIO) -> None:
        super().__init__()
        self._file = file
        fcntl.flock(file, fcntl.LOCK_SH)  # only for a look: what is appended later lies behind
        try:
            self._rest_size = _last_line_end(file.fileno(), os.fstat(file.fileno()).st_size)
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def readable(self) -> bool:
        """Tell that it is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read on."""
        count = self._file.readinto(memoryview(buffer)[: self._rest_size]) or 0
        self._rest_size -= count
        return count


def append_lines(path: Path, data: bytes) -> int:
    """Append whole lines, under a lock, after mending a line that a crash cut short; give where they begin.

    The file is made where there is none, readable for its owner only. Raises `OSError`, and so for a file that has
    another name elsewhere.
    """
    fd = private.opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW)
    try:
        if os.fstat(fd).st_nlink > 1:
            raise OSError(errno.EMLINK, "it has another name elsewhere, and would be changed there")
        fcntl.flock(fd, fcntl.LOCK_EX)
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            size = _last_line_end(fd, size)
            os.ftruncate(fd, size)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
    finally:
        os.close(fd)
    return size


def _last_line_end(fd: int, size: int) -> int:
    while size > 0:
        start = max(0, size - _STEP)
        newline = os.pread(fd, size - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        size = start
    return 0
