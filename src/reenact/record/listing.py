"""The names below the folder that a program was started in: which of them native code, or another program, made.

An index that faiss writes and a database that SQLite copies (`VACUUM INTO`) come into being past every audit event. A
replay that began with them would find done what the recorded run did. So the names are listed when a recording begins,
and again at its end, each file with the time of its last change: a table that native code wrote over is another one by
then. Where there are more names than are listed, or folders too deep, nothing is said.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from reenact.values import alarms

_MOST: Final = 5000
"""Names that are listed."""
_DEEPEST: Final = 12
"""Folders in folders that are looked into."""
_MOST_TOLD: Final = 200
_PASSED: Final = frozenset(
    {".git", ".reenact", "__pycache__", "node_modules", ".venv", "venv", ".tox", "proc", "sys", "dev"}
)
"""Folders that are not looked into: stores, caches, installed libraries, and what is no file of a disk."""
_BESIDE: Final = ("-wal", "-journal", "-shm")


class Listing:
    """What stood in the folder when the recording began."""

    def __init__(self) -> None:
        self._folder = ""
        self._before = dict[str, int]()
        try:
            self._folder = os.path.realpath(os.getcwd())  # noqa: PTH109 - at the start of every recording
            self._before = dict(self._names())
        except Exception:  # a folder that is gone, or too much in it
            alarms.pass_on()
            self._folder = ""

    def made(self, noted_paths: frozenset[str]) -> list[tuple[str, int]]:
        """List the paths that are new and not among `noted_paths`, with their times of change.

        Of a folder that was made what is in it is not listed.
        """
        if not self._folder:
            return []
        change_times: dict[str, int] = {}
        try:
            for path, changed_ns in self._names():
                if path in self._before or path in noted_paths or path.endswith(_BESIDE):
                    continue
                if not _is_below(path, noted_paths) and not _is_below(path, change_times):
                    change_times[path] = changed_ns or os.lstat(path).st_mtime_ns
        except Exception:
            alarms.pass_on()
            return []
        return [*change_times.items()][:_MOST_TOLD]

    def rewritten(self, noted_paths: frozenset[str]) -> list[str]:
        """List the files that stood there before, are others now, and are not among `noted_paths`.

        None where no native code is loaded that may have done that: another program is at work in the same folder.
        Nor is one named that this program's output is led to (`> out.txt`), or that another program has open (`tee`).
        """
        if not self._folder:
            return []
        try:
            now = dict(self._names())
        except Exception:
            alarms.pass_on()
            return []
        others = (path for path, ns in self._before.items() if ns and path not in noted_paths)
        changed = [path for path in others if now.get(path, 0) != self._before[path] and not path.endswith(_BESIDE)]
        if not changed:
            return []
        from reenact.boundary import native_libraries  # most programs write over no file, or by Python

        if not native_libraries.are_loaded():
            return []
        others_have = _open_elsewhere()
        return [path for path in changed if path not in others_have and not _is_below(path, noted_paths)][:_MOST_TOLD]

    def _names(self) -> Iterator[tuple[str, int]]:
        """Give every path below the folder with the time of its last change, 0 of what is no file; folders come first.

        Raises where there are too many.
        """
        left, count = [(self._folder, 0)], 0
        store = os.path.realpath(os.environ.get("REENACT_STORE") or ".reenact")
        while left:
            folder, depth = left.pop()
            with os.scandir(folder) as entries:
                for entry in entries:
                    count += 1
                    if count > _MOST or depth > _DEEPEST:
                        raise _TooManyError
                    if entry.path == store:
                        continue
                    is_file = entry.is_file(follow_symlinks=False)
                    yield entry.path, entry.stat(follow_symlinks=False).st_mtime_ns if is_file else 0
                    if entry.name not in _PASSED and entry.is_dir(follow_symlinks=False):
                        left.append((entry.path, depth + 1))


class _TooManyError(Exception):
    """There is more than is listed."""


def _open_elsewhere() -> set[str]:
    """Give the paths that are open as a standard stream of this process, or in a process that it did not start."""
    open_paths: set[str] = set()
    own = str(os.getpid())
    for process in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):  # noqa: PTH112, PTH208 - at the end of every recording
        with suppress(OSError, ValueError):
            names = ["0", "1", "2"] if process == own else _foreign(process, own)
            for name in names:
                with suppress(OSError):  # closed meanwhile
                    open_paths.add(os.readlink(f"/proc/{process}/fd/{name}"))  # noqa: PTH115 - as above
    return open_paths


def _foreign(process: str, own: str) -> list[str]:
    """List the descriptors of a process, of a child of this one none. Raises `OSError` where it is another user's."""
    with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - as above
        parent = file.read().rpartition(")")[2].split()[1]
    return [] if parent == own else os.listdir(f"/proc/{process}/fd")  # noqa: PTH208 - as above


def _is_below(path: str, folders: frozenset[str] | dict[str, int]) -> bool:
    above = os.path.dirname(path)  # noqa: PTH120 - of every new file
    while len(above) > 1:
        if above in folders:
            return True
        above = os.path.dirname(above)  # noqa: PTH120 - as above
    return False
