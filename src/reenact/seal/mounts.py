"""What is mounted where, and what of it becomes a copy.

An overlay can be laid over a folder only where no other mount lies below: such mounts are locked together in a new user
namespace. A folder that holds mounts is therefore divided into the folders in it; what lies in it directly stays read
only. A socket, a named pipe or a device there is covered: none of them cares whether its mount is read only.
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
    for spelled, meant in _ESCAPES:
        path = path.replace(spelled, meant)
    return path


def layout(points: Sequence[str], top: str = "/") -> tuple[list[str], list[str]]:
    """Say which folders below `top` are copied, and what lies beside them that leads out. Raises `OSError`.

    A connection to a socket through a read-only mount would reach its server, what is written into a pipe its reader.
    """
    copied: list[str] = []
    leading_out: list[str] = []
    _divide(top, frozenset(_above(points)), copied, leading_out, 0)
    return copied, leading_out


def _above(points: Iterable[str]) -> Iterable[str]:
    """Give every folder that a mount, or a folder that stays apart, lies below."""
    for point in (*points, *APART):
        above = point.rstrip("/")
        while above:
            above = above.rpartition("/")[0]
            yield above or "/"


def _divide(folder: str, divided: frozenset[str], copied: list[str], leading_out: list[str], depth: int) -> None:
    if folder in APART:
        return
    if folder not in divided:
        copied.append(folder)
        return
    if depth > _DEEPEST:
        raise OSError(40, os.strerror(40), folder)
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.is_dir(follow_symlinks=False):
                _divide(entry.path, divided, copied, leading_out, depth + 1)
            elif stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode) in _LEADING_OUT:
                leading_out.append(entry.path)
