"""A system call that waits to be answered (seccomp_unotify(2)): what it is about, and the answer to it."""

from __future__ import annotations

import fcntl
import os
import struct
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Final

    from reenact.seal.bounds import Bounds

    Answer = Callable[["Question"], int]

_RECEIVE: Final = 0xC0502100
_SEND: Final = 0xC0182101
_ADD_DESCRIPTOR: Final = 0x40182103
_AND_ANSWER: Final = 0x2
_GO_ON: Final = 0x1
_FORM: Final = "<QIIiIQ6Q"
_EPERM, _EFAULT, _ENAMETOOLONG = 1, 14, 36

HERE: Final = -100
"""AT_FDCWD."""
CLOEXEC: Final = 0x80000
_PATH_MAX: Final = 4096
_PAGE: Final = 4096
_NAMELESS: Final = ("pipe:", "socket:", "anon_inode:", "/memfd:")


class GoOn(Exception):
    """The kernel is to do it."""


class Question:
    """It, of a process that waits."""

    __slots__ = ("_listener", "arguments", "id", "number", "pid")

    def __init__(self, listener: int) -> None:
        """Receive the next one. Raises `OSError` where who asked has gone."""
        data = bytearray(struct.calcsize(_FORM))
        fcntl.ioctl(listener, _RECEIVE, data, True)
        self._listener = listener
        self.id, self.pid, _, self.number, _, _, *self.arguments = struct.unpack(_FORM, data)

    def integer(self, place: int) -> int:
        """Give an argument that is an `int`."""
        value = int(self.arguments[place]) & 0xFFFFFFFF
        return value - (1 << 32) if value & 0x80000000 else value

    def data(self, place: int, size: int) -> bytes:
        """Read what an argument points to. Raises `OSError` where there is not so much."""
        content = self._read_memory(self.arguments[place], size)
        if len(content) < size:
            raise OSError(_EFAULT, os.strerror(_EFAULT))
        return content

    def text(self, place: int, most: int = _PATH_MAX) -> bytes:
        """Read what ends with a zero. Raises `OSError`."""
        address, content = self.arguments[place], b""
        while len(content) < most:
            piece = self._read_memory(address, _PAGE - address % _PAGE)
            head, end, _ = piece.partition(b"\0")
            content += head
            if end:
                return content
            address += len(piece)
        raise OSError(_ENAMETOOLONG, os.strerror(_ENAMETOOLONG))

    def _read_memory(self, address: int, size: int) -> bytes:
        handle = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = os.pread(handle, size, address) if address else b""
        except OSError:  # EIO
            content = b""
        finally:
            os.close(handle)
        if not content:
            raise OSError(_EFAULT, os.strerror(_EFAULT))
        return content

    def answer(self, by: Answer) -> None:
        """Answer it by what `by` returns or raises."""
        value, error, flags = 0, 0, 0
        try:
            value = by(self)
        except GoOn:
            flags = _GO_ON
        except OSError as failed:
            error = -(failed.errno or _EPERM)
        except Exception:  # noqa: BLE001 - what cannot be judged is refused
            error = -_EPERM
        if value >= 0:  # else it was answered together with a descriptor
            with suppress(OSError):
                fcntl.ioctl(self._listener, _SEND, struct.pack("<QqiI", self.id, value, error, flags))

    def give(self, handle: int, flags: int) -> int:
        """Give a descriptor of ours to the one that asks, as the answer. Raises `OSError`."""
        request = struct.pack("<QIIII", self.id, _AND_ANSWER, handle, 0, flags & CLOEXEC)
        fcntl.ioctl(self._listener, _ADD_DESCRIPTOR, request)
        return -1


@contextmanager
def place(bounds: Bounds, question: Question, base: int, path: bytes, *, follow: bool = True) -> Generator[str]:
    """Give a path to what a path names, as the one that asks sees it, held open meanwhile.

    `base` is a descriptor of theirs, or `HERE`; without a path it is meant itself. Raises `OSError`, and
    `PermissionError` where it does not lie in the cell.
    """
    start = "/"
    if not path.startswith(b"/"):
        start = f"/proc/{question.pid}/cwd" if base == HERE else f"/proc/{question.pid}/fd/{base}"
    name = bounds.in_memory(path) or seen_by(question.pid, path)
    handles = [os.open(start, os.O_PATH | os.O_CLOEXEC)]
    try:
        if name:
            flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
            handles.append(os.open(name, flags, dir_fd=handles[0]))
        link = f"/proc/self/fd/{handles[-1]}"
        real = os.readlink(link)
        if not bounds.holds(real) and not (not name and real.startswith(_NAMELESS)):
            raise OSError(_EPERM, os.strerror(_EPERM), real)
        yield link
    finally:
        for handle in handles:
            os.close(handle)


def seen_by(pid: int, path: bytes) -> bytes:
    """Have `/proc/self` mean the process that asks."""
    for name in (b"/proc/self", b"/proc/thread-self"):
        if path == name or path.startswith(name + b"/"):
            return b"/proc/%d" % pid + path[len(name) :]
    return path
