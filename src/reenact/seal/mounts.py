"""What is mounted where, and what of it becomes a copy.

An overlay can be laid over a folder only where no other mount lies below: such mounts are locked together in a new user
namespace. A folder that holds mounts is therefore divided into the folders in it; what lies in it directly is read
only, or stands in a folder of ours (`holders`). A socket, a named pipe or a device there is covered: none of them cares
whether its mount is read only.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final

_ESCAPES: Final = ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\"))
_POINT: Final = 4
"""The field of a line that holds the mount point."""
APART: Final = frozenset({"/proc", "/sys", "/dev", "/run", "/var/run"})
"""Folders that are made anew, or stay read only: none of them is copied."""
_DEEPEST: Final = 12
_LEADING_OUT: Final = (stat.S_IFSOCK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK)


def mount_points(text: str) -> list[str]:
    """Read the mount points of `/proc/self/mountinfo` (proc_pid_mountinfo(5)), each once, in their order."""
    lines = (line.split(" ") for line in text.splitlines())
    return list(dict.fromkeys(_unescaped(fields[_POINT]) for fields in lines if len(fields) > _POINT))


def _unescaped(path: str) -> str:
    for spelled, character in _ESCAPES:
        path = path.replace(spelled, character)
    return path


class Layout:
    """The folders below one: those that are copied, those that hold mounts, and what lies in these that leads out.

    A connection to a socket through a read-only mount would reach its server, what is written into a pipe its reader.
    A folder stands before what lies in it. Raises `OSError`.
    """

    def __init__(self, points: Sequence[str], top: str = "/") -> None:
        self.copied: list[str] = []
        self.divided: list[str] = []
        self.leading_out: list[str] = []
        self._above = frozenset(_above(points))
        self._divide(top, 0)

    def _divide(self, folder: str, depth: int) -> None:
        if folder in APART:
            return
        if folder not in self._above:
            self.copied.append(folder)
            return
        if depth > _DEEPEST:
            raise OSError(40, os.strerror(40), folder)
        self.divided.append(folder)
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if entry.is_dir(follow_symlinks=False):
                    self._divide(entry.path, depth + 1)
                elif _leads_out(entry):
                    self.leading_out.append(entry.path)


def _leads_out(entry: os.DirEntry[str]) -> bool:
    try:
        return stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode) in _LEADING_OUT
    except FileNotFoundError:  # somebody took it away meanwhile
        return False


def _above(points: Iterable[str]) -> Iterable[str]:
    """Give every folder that a mount, or a folder that stays apart, lies below."""
    for point in (*points, *(each for each in APART if not os.path.islink(each))):
        above = point.rstrip("/")
        while above:
            above = above.rpartition("/")[0]
            yield above or "/"
