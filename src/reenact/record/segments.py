"""The files of one process's journal: begun one after the other, and counted as long as nobody carried them away."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from reenact.disk import private
from reenact.disk.durable import force_entry
from reenact.formats import journal
from reenact.record.bounds import MAX, Bounds

_LOOK_S: Final = 1.0
_monotonic: Callable[[], float] = time.monotonic


class Segments:
    """Where the journal of one process stands on the disk, and how much of it still waits there."""

    def __init__(self, folder: Path, name: str, bounds: Bounds) -> None:
        self.folder, self.bounds = folder, bounds
        self._name = name
        self.number = 0
        self._before: list[Path] = []
        """Earlier files that were there when they were last looked at."""
        self._waiting = 0
        self._looked = 0.0

    @property
    def path(self) -> Path:
        """The file that is written now."""
        return self.folder / journal.segment_name(self._name, self.number)

    def next(self) -> Path:
        """Go on to a further file, and give its path."""
        self._before.append(self.path)
        self.number += 1
        self._looked = 0.0
        return self.path

    def back(self) -> None:
        """Stay with the file before: the further one could not be begun."""
        self.number -= 1
        if self._before:
            self._before.pop()

    def write_over(self, at: int, data: bytes) -> None:
        """Write over what stands in the file in hand, which a full disk does not keep from. Raises `OSError`."""
        fd = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(fd, data, at)
        finally:
            os.close(fd)

    def open(self, path: Path, opening: bytes) -> tuple[int, int]:
        """Begin a file under a lock that its writer holds, and give its descriptor and size. Raises `OSError`."""
        try:
            for folder in (path.parent.parent, path.parent):
                private.check_ours(folder, "this store", hint="set REENACT_STORE to a folder of your own")
        except private.NotOursError as error:
            raise PermissionError(errno.EPERM, f"{error.problem}; {error.hint}") from None
        private.folder(path.parent, path.parent.parent)
        draft = path.with_suffix(".opening")
        fd = private.opened(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        try:
            fd = private.high_descriptor(fd)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            rest = opening
            while rest:
                rest = rest[os.write(fd, rest) :]
            draft.rename(path)
        except OSError:
            os.close(fd)
            with suppress(OSError):
                draft.unlink()
            raise
        return fd, len(opening)

    def force_entry(self) -> None:
        """Have the entry of the file in hand on the disk, and those of the folders of the store. Raises `OSError`."""
        force_entry(self.path, self.folder.parent)

    def look(self) -> None:
        """See how much of the earlier files waits yet, now and then."""
        if not self._before or not self.bounds.most:
            return
        now = _monotonic()
        if now - self._looked < _LOOK_S:
            return
        self._looked, self._waiting = now, 0
        there: list[Path] = []
        for path in self._before:
            with suppress(OSError):
                self._waiting += path.stat().st_size
                there.append(path)
        self._before = there

    def free(self) -> int:
        """Give the size that the file in hand may reach before anything is to be looked at again."""
        if not self.bounds.most:
            return self.bounds.segment
        return min(self.bounds.segment, self.bounds.payload - self._waiting)

    def refuses(self, size: int) -> str:
        """Say why a payload that brings the file to `size` is not to be written; empty where it may be."""
        most = self.bounds.most
        if not most or self._waiting + size <= self.bounds.payload:
            return ""
        return (
            f"{self._waiting + size} bytes of {self.path} wait to be carried and {MAX} is {most}; from here on only "
            "the structure of runs is kept, and what is left out is counted"
        )

    def full(self, size: int) -> bool:
        """Tell whether nothing but roots may bring the file to `size`."""
        return bool(self.bounds.most) and self._waiting + size > self.bounds.most
