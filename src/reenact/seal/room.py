"""The room that a program may fill in its copy: a process that ends the program where it takes more.

No quota can be set without root, so the disk is asked every quarter of a second how much is free (statvfs(3)), which
costs nothing; what the program itself took is counted only where that much has gone. A program is ended, and its ledger
says why, when its copy holds more than `most` bytes beyond what it began with, or when hardly anything is free.
"""

from __future__ import annotations

import json
import os
import select
import signal
from contextlib import suppress

from reenact.seal import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

MOST_MEGABYTES: Final = 10_240
OPTION: Final = "REENACT_COPY_ROOM_MB"
_MEGABYTE: Final = 1 << 20
_LEAST_FREE: Final = 256 * _MEGABYTE
_LOOKS_MS: Final = 250
_BLOCK: Final = 512


class Room:
    """The watch over one copy. `begin` before its world is entered, `watch` when the program has begun, `end` after."""

    def __init__(self, folder: str, ledger: str, most: int) -> None:
        """`folder` holds the copy, `ledger` is the ledger, `most` is in bytes: nothing is watched where it is 0."""
        self._folder, self._ledger, self._most = folder, ledger, most
        self._line = -1
        self.process = 0

    def begin(self) -> None:
        """Fork the watch, which stays outside. It ends with this process. Raises `OSError`."""
        if not self._most:
            return
        hears, self._line = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            with suppress(BaseException):
                os.close(self._line)
                kernel.end_with_parent(signal.SIGKILL)
                self._be_watch(hears)
            os._exit(0)
        os.close(hears)

    def watch(self, program: int) -> None:
        """Say which process is to be ended."""
        if self._most:
            os.write(self._line, b"%d\n" % program)

    def end(self) -> None:
        """End the watch; it looks a last time."""
        if self._most:
            os.close(self._line)
            with suppress(ChildProcessError):  # whoever takes in orphans has taken it
                os.waitpid(self.process, 0)

    def _be_watch(self, hears: int) -> None:
        _keep_only(hears)
        message = os.read(hears, 100)
        if not message:
            return
        free, usage = _free(self._folder), _disk_usage(self._folder)
        least = min(_LEAST_FREE, free // 10)
        poll = select.poll()
        poll.register(hears, select.POLLIN)
        over = False
        while not over:
            over = bool(poll.poll(_LOOKS_MS))
            now = _free(self._folder)
            if now < least:
                self._stop(
                    int(message),
                    "the disk of the copy has hardly any room left",
                    "make room there, or name another with TMPDIR",
                )
                return
            if free - now > self._most:
                grown = _disk_usage(self._folder) - usage
                if grown > self._most:
                    what = f"write more than {self._most // _MEGABYTE:,} MB to its copy"
                    self._stop(int(message), what, f"let it write more with {OPTION}")
                    return
                free = now + grown  # others took the rest

    def _stop(self, program: int, what: str, hint: str) -> None:
        """Say why in the ledger, and end the program."""
        entry = {"t": "refused", "what": what, "where": self._folder, "event": "room", "hint": hint}
        handle = os.open(self._ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        os.write(handle, json.dumps(entry).encode() + b"\n")
        os.close(handle)
        with suppress(ProcessLookupError):
            os.kill(program, signal.SIGKILL)


def _keep_only(handle: int) -> None:
    for number in map(int, os.listdir("/proc/self/fd")):
        if number != handle:
            with suppress(OSError):  # the one by which they are listed
                os.close(number)


def _free(folder: str) -> int:
    statistics = os.statvfs(folder)
    return statistics.f_bavail * statistics.f_frsize


def _disk_usage(folder: str) -> int:
    """Count the bytes on disk of what lies in a folder; of what is gone meanwhile, nothing."""
    size, left = 0, [folder]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
    return size
