"""What is mounted where, and what of it becomes a copy.

An overlay can be laid over a folder only where no other mount lies below: such mounts are locked together in a new user
namespace. A folder that holds mounts is therefore divided into the folders in it; what lies in it directly stays read
only, and a socket there is covered.
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


def mount_points(text: str) -> list[str]:
    """Read the mount points of `/proc/self/mountinfo` (proc_pid_mountinfo(5)), each once, in their order."""
    lines = (line.split(" ") for line in text.splitlines())
    return list(dict.fromkeys(_unescaped(fields[_POINT]) for fields in lines if len(fields) > _POINT))


def _unescaped(path: str) -> str:
    for spelled, meant in _ESCAPES:
        path = path.replace(spelled, meant)
    return path


def layout(points: Sequence[str], top: str = "/") -> tuple[list[str], list[str]]:
    """Say which folders below `top` are copied, and which sockets lie beside them. Raises `OSError`.

    A connection to a socket through a read-only mount would reach its server.
    """
    copied: list[str] = []
    sockets: list[str] = []
    _divide(top, frozenset(_above(points)), copied, sockets, 0)
    return copied, sockets


def _above(points: Iterable[str]) -> Iterable[str]:
    """Give every folder that a mount, or a folder that stays apart, lies below."""
    for point in (*points, *APART):
        above = point.rstrip("/")
        while above:
            above = above.rpartition("/")[0]
            yield above or "/"


def _divide(folder: str, divided: frozenset[str], copied: list[str], sockets: list[str], depth: int) -> None:
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
                _divide(entry.path, divided, copied, sockets, depth + 1)
            elif stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                sockets.append(entry.path)
