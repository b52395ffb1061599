"""Whether a folder can be written to, and a temporary one where that which is read cannot be."""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

_MEMORY: Final = "/dev/shm"  # noqa: S108 - a folder of its own is made in it
_REFUSED: Final = frozenset(
    {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EMFILE}
)
_REFUSED_BY_SQLITE: Final = frozenset(
    {
        *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL),
        sqlite3.SQLITE_CANTOPEN,
    }
)
LEAST: Final = 1 << 18
"""Bytes that a reader may have to write for itself, at least."""


def has_room(folder: Path, size: int = LEAST) -> bool:
    """Tell whether a file of `size` bytes can be written in a folder, by writing one and removing it."""
    return refusal(folder, size) is None


def refusal(folder: Path, size: int = LEAST) -> OSError | None:
    """Give what keeps a file of `size` bytes from being written in a folder; None where nothing does."""
    probe = folder / f".room-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        fd = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return error
    try:
        left = size
        while left > 0:
            left -= os.write(fd, bytes(min(left, LEAST)))
    except OSError as error:
        return error
    finally:
        os.close(fd)
        with suppress(OSError):
            probe.unlink()
    return None


def is_refusal(error: BaseException | None) -> bool:
    """Tell whether an error, or what caused it, says that nothing can be written: read-only, full, another user's."""
    while error is not None:
        if isinstance(error, sqlite3.Error):
            return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in _REFUSED_BY_SQLITE
        if isinstance(error, OSError):
            return error.errno in _REFUSED
        error = error.__cause__
    return False


def temporary_folder() -> Path | None:
    """Make a folder that goes with this process, where there is room; None where there is none anywhere.

    A full disk is often that of the temporary files as well: then memory has it.
    """
    for place in (tempfile.gettempdir(), _MEMORY):
        try:
            folder = Path(tempfile.mkdtemp(prefix="reenact-", dir=place))
        except OSError:
            continue
        if has_room(folder):
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            return folder
        shutil.rmtree(folder, ignore_errors=True)
    return None
