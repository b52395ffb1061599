"""Having files on the disk itself, and the entries by which they are found: what a power cut leaves (fsync(2))."""

from __future__ import annotations

import os
from pathlib import Path


def force(path: Path) -> None:
    """Have a file's content, or a folder's entries, on the disk. Raises `OSError`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def force_entry(path: Path, above: Path) -> None:
    """Have the folders on the disk by which a file is found, from its own up to the one that holds `above`."""
    folder = path.parent
    while True:
        force(folder)
        if folder in {above.parent, folder.parent}:
            return
        folder = folder.parent


class Unforced:
    """Files below a folder that were written and are not known to be on the disk yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, None] = {}

    def note(self, path: Path) -> None:
        """Take it that a file was written or made."""
        self._files[path] = None

    def force(self) -> None:
        """Have all of them on the disk, then the folders between them and the one that holds ours, each once.

        Raises `OSError`; what is not done then is still noted.
        """
        folders: dict[Path, None] = {}
        for path in self._files:
            force(path)
            folders |= dict.fromkeys(each for each in path.parents if each.is_relative_to(self._folder.parent))
        for folder in folders:
            force(folder)
        self._files.clear()
