"""What was laid into a copy before its program began: a list beside it, told from what the program wrote later.

The time of a file's last change of status (`ctime`, inode(7)) is set by the kernel alone, so a file whose inode and
`ctime` are those of the list holds what was laid there, whatever others did to the original meanwhile. An entry is
`INODE CTIME_NS PATH` in a text of entries that each end with a NUL; the paths are relative to the copy.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

    Mark = tuple[int, int]
    """The inode of a file, and its `ctime` in nanoseconds."""

NAME: Final = "laid"
"""The file's name, beside the copy."""


def mark(status: os.stat_result) -> Mark:
    """Give what tells a file from each later state of it."""
    return status.st_ino, status.st_ctime_ns


def encode(copy: str, paths: Iterable[str]) -> bytes:
    """Write the entries of the files at these paths in a copy."""
    marks = ((path, mark(os.lstat(f"{copy}/{path}"))) for path in paths)
    return b"".join(b"%d %d %b\0" % (inode, changed, os.fsencode(path)) for path, (inode, changed) in marks)


def decode(content: bytes) -> Mapping[str, Mark]:
    """Read the marks of the files by their paths. Raises `ValueError`."""
    entries = (entry.split(b" ", 2) for entry in content.split(b"\0")[:-1])
    return {os.fsdecode(path): (int(inode), int(changed)) for inode, changed, path in entries}
