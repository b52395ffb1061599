"""The three standard streams of a sealed program: none of them is a way to a file outside.

A descriptor holds the mount that it was opened on. One of a plain file could be opened again for writing by
`/proc/self/fd`, truncated or have its mode changed, whatever the new world's mounts are. So a plain file that is read
is opened again in the world, where it is a copy, or copied into memory. A plain file that is written stays outside: the
program gets a pipe, and a process of ours carries what comes out of it into the file. A terminal is the user's own, and
so is a pipe or a socket that others hold as well: how it was set, its mode and its owner are put back, and whether a
read of it waits. A device is opened again in the world.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import termios
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

_PIECE: Final = 1 << 16
_MOST_IN_MEMORY: Final = 1 << 30
_UNHEARD: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)


class Streams:
    """The streams of this process, until its program has ended. Raises `OSError`."""

    def __init__(self, ours: Sequence[str] = ()) -> None:
        """Put pipes in front of the plain files that are written; those in the folders `ours` may stay."""
        self.carriers: list[int] = []
        """The processes that carry what comes out of a pipe."""
        self._terminals = {number: _settings(number) for number in range(3) if os.isatty(number)}
        self._shared = {number: facts for number in range(3) if (facts := _facts(number)) is not None}
        self._ours = tuple(f"{each}/" for each in ours)
        shared: dict[tuple[int, int], int] = {}
        for number in (1, 2):
            status = _status(number)
            if status is None or not stat.S_ISREG(status.st_mode) or self._is_harmless(number, status):
                continue
            file = (status.st_dev, status.st_ino)
            if file in shared:  # one pipe for both keeps their order
                os.dup2(shared[file], number)
            else:
                self._carry(number)
                shared[file] = number

    def _is_harmless(self, number: int, status: os.stat_result) -> bool:
        """Tell whether nobody else knows the file: it has no name, or lies in a folder of ours."""
        return status.st_nlink == 0 or _path(number).startswith(self._ours)

    def _carry(self, number: int) -> None:
        reading, writing = os.pipe()
        carrier = os.fork()
        if carrier == 0:
            code = 1
            with suppress(BaseException):
                for each in _UNHEARD:  # what a terminal sends ends the program, and this one after it
                    signal.signal(each, signal.SIG_IGN)
                os.close(writing)
                if reading != 0:
                    os.dup2(reading, 0)
                for other in {1, 2} - {number}:
                    os.close(other)
                os.closerange(3, 1 << 30)
                _carry_over(number)
                code = 0
            os._exit(code)
        os.close(reading)
        os.dup2(writing, number)
        os.close(writing)
        self.carriers.append(carrier)

    def enter(self) -> None:
        """Open the file that is read again, or its content, in the world that this process has entered."""
        status = _status(0)
        if status is not None and stat.S_ISREG(status.st_mode) and not self._is_harmless(0, status):
            place = os.lseek(0, 0, os.SEEK_CUR)
            again = _by_name(0, status) or _in_memory(0, status)
            os.lseek(again, place, os.SEEK_SET)
            os.dup2(again, 0)
            os.close(again)
        for number in range(3):
            _open_device_again(number)

    def end(self) -> None:
        """Wait until all that the program said is where it belongs; every process of the world has ended."""
        for number, settings in self._terminals.items():
            with suppress(termios.error, OSError):
                _set_again(number, settings)
        for number, facts in self._shared.items():
            with suppress(OSError):
                _put_back(number, facts)
        if self.carriers:
            for number in (1, 2):
                with suppress(OSError):
                    os.close(number)
        for carrier in self.carriers:
            os.waitpid(carrier, 0)


def _settings(number: int) -> tuple[Any, tuple[int, int], bytes]:
    """Read how a terminal is set, its size in lines and columns, and its line discipline (ioctl_tty(2))."""
    return termios.tcgetattr(number), termios.tcgetwinsize(number), _discipline(number)


def _discipline(number: int) -> bytes:
    return fcntl.ioctl(number, termios.TIOCGETD, bytes(4))


def _set_again(number: int, settings: tuple[Any, tuple[int, int], bytes]) -> None:
    if _discipline(number) != settings[2]:  # first: another one may know no settings
        fcntl.ioctl(number, termios.TIOCSETD, settings[2])
    if _settings(number) == settings:
        return
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # in the background this would stop us
    termios.tcsetattr(number, termios.TCSADRAIN, settings[0])
    termios.tcsetwinsize(number, settings[1])
    signal.signal(signal.SIGTTOU, before)


def _facts(number: int) -> tuple[int, int, int, int] | None:
    """Give the status flags of a stream that is no file, with its mode and its owner; None of any other."""
    status = _status(number)
    if status is None or stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return None
    return fcntl.fcntl(number, fcntl.F_GETFL), stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid


def _put_back(number: int, facts: tuple[int, int, int, int]) -> None:
    """Give a stream the flags that others hold it with (F_SETFL, fcntl(2)), its owner, and its mode behind that."""
    if (current := _facts(number)) == facts or current is None:
        return
    flags, mode, *owner = facts
    fcntl.fcntl(number, fcntl.F_SETFL, flags)
    if [*current[2:]] != owner:
        os.fchown(number, *owner)
    if current[1:] != facts[1:]:
        os.fchmod(number, mode)


def _open_device_again(number: int) -> None:
    """Open a device in the world, whose mount lets nobody change its mode; leave it where none has its name there."""
    status = _status(number)
    if status is None or not stat.S_ISCHR(status.st_mode) or os.isatty(number):
        return
    with suppress(OSError):
        flags = fcntl.fcntl(number, fcntl.F_GETFL) | os.O_NOCTTY | os.O_CLOEXEC
        again = os.open(_path(number), flags)
        if os.fstat(again).st_rdev == status.st_rdev:
            os.dup2(again, number)
        os.close(again)


def _status(number: int) -> os.stat_result | None:
    try:
        return os.fstat(number)
    except OSError:  # it is closed
        return None


def _path(number: int) -> str:
    return os.readlink(f"/proc/self/fd/{number}")


def _carry_over(number: int) -> None:
    while piece := os.read(0, _PIECE):
        while piece:
            piece = piece[os.write(number, piece) :]


def _by_name(number: int, status: os.stat_result) -> int | None:
    """Open the file by its name in this world; None where another one stands there, or none."""
    try:
        again = os.open(_path(number), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    candidate = os.fstat(again)
    what = [(each.st_mode, each.st_size, each.st_mtime_ns) for each in (status, candidate)]
    if what[0] == what[1] and (candidate.st_dev, candidate.st_ino) != (status.st_dev, status.st_ino):
        os.set_blocking(again, True)
        return again
    os.close(again)
    return None


def _in_memory(number: int, status: os.stat_result) -> int:
    if status.st_size > _MOST_IN_MEMORY:
        raise OSError(27, os.strerror(27), f"standard stream {number}")
    copy = os.memfd_create("stream", os.MFD_CLOEXEC)
    at = 0
    while piece := os.pread(number, _PIECE, at):
        at += os.write(copy, piece)
    return copy
