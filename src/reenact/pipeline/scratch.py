"""Folders of ours in the temporary folder: each goes with its maker, however that one ends.

A maker holds a lock on its folder (flock(2)). Whoever makes the next one takes away those of the same kind that nobody
holds: their makers were killed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_NEW_S: Final = 60.0
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Scratch:
    """A folder of a kind, which is the first part of its name. Raises `OSError` where none can be made."""

    def __init__(self, kind: str) -> None:
        _sweep(kind)
        self.path = Path(tempfile.mkdtemp(prefix=kind))
        self._process = os.getpid()
        self._lock = os.open(self.path, _OPEN)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Take it away; a forked copy of its maker leaves it alone. It may be called again."""
        if self._lock < 0:
            return
        if self._process == os.getpid():
            remove(self.path)
        os.close(self._lock)
        self._lock = -1


def remove(folder: Path) -> None:
    """Remove a folder, whatever its folders let nobody do: a program made some, an overlay works in others."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(place, name)
            if not path.is_symlink():
                with suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _sweep(kind: str) -> None:
    """Take away the folders whose makers were killed. Never raises."""
    with suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{kind}*"):
            with suppress(OSError):
                _remove_unlocked(path)


def _remove_unlocked(path: Path) -> None:
    handle = os.open(path, _OPEN)
    try:
        seen = os.fstat(handle)
        if seen.st_uid == os.geteuid() and seen.st_mtime < time.time() - _NEW_S:  # a new one may be about to be locked
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(path)
    finally:
        os.close(handle)
