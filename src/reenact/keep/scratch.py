"""Folders of ours in the temporary folder: each goes with its maker, however that one ends.

A maker holds a lock on its folder (flock(2)). Whoever makes the next one takes away those of the same kind that nobody
holds: their makers were killed.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

_NEW_S: Final = 60.0
_MOVED: Final = ".reenact-moved-"
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
        """Take it away, with all that `close_beside` was asked for; a forked copy of its maker leaves it alone.

        It may be called again.
        """
        while _removals:
            _removals.pop().join()
        self._close()

    def close_beside(self) -> None:
        """Begin to take it away, in a thread; it is gone when the next folder was closed by `close`."""
        removal = threading.Thread(target=self._close)
        removal.start()
        _removals.append(removal)

    def _close(self) -> None:
        if self._lock < 0:
            return
        if self._process == os.getpid():
            remove(self.path)
        os.close(self._lock)
        self._lock = -1


_removals: list[threading.Thread] = []


def remove(folder: Path) -> None:
    """Remove a folder, however deep it is and whatever its folders let nobody do: a program made them.

    Each folder is moved up to the top before it is emptied, so that no path grows long and nothing calls itself.
    What cannot be removed stays. Never raises.
    """
    with suppress(OSError):
        top = os.open(folder, _OPEN)
        try:
            _empty(top)
        finally:
            os.close(top)
        folder.rmdir()


def _empty(top: int) -> None:
    stuck = set[str]()
    # One that was killed at this has left folders by such names.
    numbers = count(1 + max((int(name.removeprefix(_MOVED)) for name in _names(top) if _is_moved(name)), default=0))
    while names := [name for name in _names(top) if name not in stuck]:
        for name in names:
            try:
                mode = os.stat(name, dir_fd=top, follow_symlinks=False).st_mode
                if not stat.S_ISDIR(mode):
                    os.unlink(name, dir_fd=top)
                    continue
                _open_up(name, mode, top)
                inner = os.open(name, _OPEN, dir_fd=top)
                try:
                    _empty_one(inner, top, numbers)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=top)
            except OSError:
                stuck.add(name)


def _is_moved(name: str) -> bool:
    return name.startswith(_MOVED) and name.removeprefix(_MOVED).isdecimal()


def _empty_one(inner: int, top: int, numbers: Iterator[int]) -> None:
    """Empty a folder; what holds something is moved to the top, by a number."""
    for below in _names(inner):
        mode = os.stat(below, dir_fd=inner, follow_symlinks=False).st_mode
        if not stat.S_ISDIR(mode):
            os.unlink(below, dir_fd=inner)
            continue
        with suppress(OSError):  # most hold nothing, and each step is one of the disk's
            os.rmdir(below, dir_fd=inner)
            continue
        _open_up(below, mode, inner)
        os.rename(below, f"{_MOVED}{next(numbers)}", src_dir_fd=inner, dst_dir_fd=top)


def _open_up(name: str, mode: int, folder: int) -> None:
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(name, 0o700, dir_fd=folder)


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _sweep(kind: str) -> None:
    """Take away the folders whose makers were killed. Never raises."""
    with suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{kind}*"):
            with suppress(OSError):
                _remove_unlocked(path)


def _remove_unlocked(path: Path) -> None:
    handle = os.open(path, _OPEN)
    try:
        file = os.fstat(handle)
        if file.st_uid == os.geteuid() and file.st_mtime < time.time() - _NEW_S:  # a new one may be about to be locked
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(path)
    finally:
        os.close(handle)
