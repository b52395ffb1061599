"""Appends frames to segment files: what it says is written is on disk, and what failed is taken back wholly."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from reenact.disk import private
from reenact.disk.frames import MAGIC

_MOST_VECTORS = 512


class Appender:
    """The one that appends to the segments of a folder, while it holds `lock`. Not for several threads."""

    def __init__(self, folder: Path, first: int, lock: int, most_bytes: int = 64 << 20) -> None:
        self.folder, self.number, self._lock, self._most = folder, first, lock, most_bytes
        self._fd = -1
        self._size = 0

    @property
    def path(self) -> Path:
        """The segment that is written."""
        return self.folder / f"seg-{self.number:08}.rnf"

    def append(self, frames: Sequence[bytes]) -> list[int]:
        """Append frames, have them on disk, and say at which byte each begins.

        Raises `OSError`, and then none of them is there. All go to one segment; `number` says to which.
        """
        if self._fd < 0 or self._size >= self._most:
            self._begin()
        places: list[int] = []
        at = self._size
        for frame in frames:
            places.append(at)
            at += len(frame)
        try:
            for start in range(0, len(frames), _MOST_VECTORS):
                _write_all(self._fd, frames[start : start + _MOST_VECTORS])
            os.fdatasync(self._fd)
        except BaseException:
            self._take_back()
            raise
        self._size = at
        return places

    def _begin(self) -> None:
        self._end()
        if self.path.exists():
            self.number += 1
        fd = private.opened(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        try:
            _write_all(fd, [MAGIC])
            os.fsync(fd)
            sync_folder(self.folder)
        except BaseException:
            os.close(fd)
            with suppress(OSError):
                self.path.unlink()
            raise
        self._fd, self._size = fd, len(MAGIC)

    def _take_back(self) -> None:
        """Cut what was written of it. Where not even that can be done, or a sync failed, another segment goes on."""
        with suppress(OSError):
            os.ftruncate(self._fd, self._size)
            os.fsync(self._fd)
        self._end()
        with suppress(OSError):
            if self.path.stat().st_size <= len(MAGIC):
                self.path.unlink()

    def _end(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)

    def close(self) -> None:
        """Let go of the segment and of the lock."""
        self._end()
        fd, self._lock = self._lock, -1
        if fd >= 0:
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)


def append_whole(path: Path, frames: Sequence[bytes]) -> list[int]:
    """Append frames to a file, made with its magic where there is none, and say at which byte each begins.

    They are on disk then. Raises `OSError`; a part of them may be there.
    """
    new = not path.exists()
    places: list[int] = []
    with os.fdopen(private.opened(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab", 1 << 20) as file:
        at = file.tell()
        if new:
            at += file.write(MAGIC)
        for frame in frames:
            places.append(at)
            at += file.write(frame)
        file.flush()
        os.fdatasync(file.fileno())
    if new:
        sync_folder(path.parent)
    return places


@contextmanager
def packing(folder: Path) -> Generator[None]:
    """Be the only one that appends to packs."""
    lock = private.opened(folder / "pack.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _write_all(fd: int, data: Sequence[bytes]) -> None:
    left = [memoryview(each) for each in data]
    while left:
        bytes_written = os.writev(fd, left)
        while left and bytes_written >= len(left[0]):
            bytes_written -= len(left.pop(0))
        if bytes_written:
            left[0] = left[0][bytes_written:]
