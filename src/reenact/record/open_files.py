"""Which files this process has open, as Linux tells it (proc_pid_fd(5)); how one is read, and what stands at a path.

A process loses its record locks on a file as soon as it closes any descriptor of that file (fcntl(2)), and SQLite locks
so. What may be locked is therefore read through a descriptor that stays open.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import Final

from reenact.values.json import Json

_DIGESTED: Final = 32 << 20
"""Bytes of a file that are read at the end; of a larger one its size is told."""
_MOST_KEPT_OPEN: Final = 32
_SQLITE: Final = b"SQLite format 3\0"
_OWN_ATTRIBUTES: Final = "user."
_OF_OVERLAYS: Final = "user.overlay."
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_paths() -> list[str]:
    """List the paths of what is open, one for each descriptor."""
    try:
        return [open_path(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - names, no objects
    except OSError:
        return []


def open_path(handle: int | str) -> str:
    """Give the path of a descriptor; nothing where it is closed."""
    try:
        return os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 - many
    except OSError:
        return ""


def handles_on(paths: Container[str]) -> list[int]:
    """List the descriptors of these files."""
    try:
        return [int(each) for each in os.listdir("/proc/self/fd") if open_path(each) in paths]  # noqa: PTH208 - as above
    except OSError:
        return []


def appends(path: str) -> bool:
    """Tell whether every descriptor of a file only writes at its end, wherever that is by then."""
    import fcntl

    flags = [fcntl.fcntl(each, fcntl.F_GETFL) for each in handles_on({path})]
    return all(flag & os.O_APPEND for flag in flags if flag & os.O_ACCMODE != os.O_RDONLY)


class _Readers:
    """Descriptors through which files are read that this process may have locks on, by device and inode."""

    __slots__ = ("_handles", "_locked")

    def __init__(self) -> None:
        self._handles: dict[tuple[int, int], int] = {}
        self._locked: set[tuple[int, int]] = set()

    def lock(self, handle: int) -> None:
        """Note that the program asks for a lock on an open file."""
        status = os.fstat(handle)
        self._locked.add((status.st_dev, status.st_ino))

    def open(self, path: str) -> tuple[int, bool]:
        """Open a file to read; give its descriptor, and whether it is to be closed. Raises `OSError`."""
        status = os.lstat(path)
        file = status.st_dev, status.st_ino
        kept = self._handles.get(file)
        if kept is not None:
            return kept, False
        handle = os.open(path, _FLAGS)
        is_kept = file in self._locked or path.endswith("-shm") or os.pread(handle, len(_SQLITE), 0) == _SQLITE
        if is_kept:
            self._close_unshared()
            self._handles[file] = handle
        return handle, not is_kept

    def _close_unshared(self) -> None:
        """Close what was deleted, and, of many, what the program itself has not open: it can have no lock there."""
        counts = Counter(open_paths()) if len(self._handles) >= _MOST_KEPT_OPEN else None
        for file, handle in tuple(self._handles.items()):
            if not os.fstat(handle).st_nlink or (counts is not None and counts[open_path(handle)] <= 1):
                del self._handles[file]
                os.close(handle)


readers = _Readers()


def _pieces(path: str, size: int, begin: int) -> Iterator[bytes]:
    """Read a part of a file piece by piece; a locked file stays locked. Raises `OSError`."""
    handle, is_closed = readers.open(path)
    try:
        end = begin + size
        while begin < end and (piece := os.pread(handle, min(end - begin, 1 << 18), begin)):
            begin += len(piece)
            yield piece
    finally:
        if is_closed:
            os.close(handle)


def file_bytes(path: str, size: int, begin: int = 0) -> bytes:
    """Read a part of a file. Raises `OSError`."""
    return b"".join(_pieces(path, size, begin)) if size else b""


def file_digest(path: str, begin: int = 0) -> dict[str, Json]:
    """Name the content of a large file; nothing where it is too large for that."""
    size = os.lstat(path).st_size - begin
    if size > _DIGESTED:
        return {}
    mark = hashlib.blake2b(digest_size=16)
    for piece in _pieces(path, size, begin):
        mark.update(piece)
    return {"digest": mark.hexdigest()}


def state_of(path: str) -> dict[str, Json] | None:
    """Say what stands at a path; None for nothing."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISREG(status.st_mode):
        state: dict[str, Json] = {"size": status.st_size, "mode": mode, "mtime": str(status.st_mtime_ns)}
        return {**state, "attributes": [*names]} if (names := _attributes(path)) else state
    if stat.S_ISLNK(status.st_mode):
        return {"kind": "link", "to": os.readlink(path)}  # noqa: PTH115 - in a hook
    return {"kind": "folder" if stat.S_ISDIR(status.st_mode) else "other", "mode": mode}


def _attributes(path: str) -> Iterable[Json]:
    """List the extended attributes of a file (xattr(7)), each with a digest of its value; those of overlays aside."""
    try:
        names = os.listxattr(path) if sys.platform == "linux" else []
        own = sorted(name for name in names if name.startswith(_OWN_ATTRIBUTES) and not name.startswith(_OF_OVERLAYS))
        return [[name, digest_of(os.getxattr(path, name))] for name in own]
    except OSError:  # its file system has none
        return []


def digest_of(data: bytes) -> str:
    """Give the digest that stands for a content in a recording: 128 bits of BLAKE2b, in hex."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
