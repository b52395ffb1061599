"""Unix sockets of a program in a cell: they lead to its own processes and to nobody else.

A filter cannot see where a socket is to be connected, and Landlock does not look at sockets that have a path. So the
warden makes each socket, and both hold it. A bind puts it into the cell, also where its name is no path, and a
connection leads to what lies in the cell. Then the warden lets it go: who waits for its end is to hear of it.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from reenact.seal.calls import CONNECTING
from reenact.seal.question import CLOEXEC, HERE, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, Final

    from reenact.seal.bounds import Bounds
    from reenact.seal.denials import Denials
    from reenact.seal.question import Answer, Question

_EPERM, _EACCES, _EINVAL, _EAFNOSUPPORT, _ECONNREFUSED = 1, 13, 22, 97, 111
_UNIX: Final = 1
_SHORTEST, _LONGEST, _NAME = 2, 110, 108
_INODE: Final = "socket:["


class Sockets:
    """Those that are neither connected nor bound, and the names that are no paths."""

    def __init__(self, bounds: Bounds, denials: Denials) -> None:
        self._bounds, self._denials = bounds, denials
        self._descriptors: dict[int, int] = {}
        """Our descriptors, by the inodes of the sockets."""
        self._names: dict[bytes, bytes] = {}

    def answers(self) -> dict[str, Answer]:
        """Give what answers the calls about sockets, by their names."""
        return {"socket": self._make, "bind": self._bind, "connect": self._connect}

    def _make(self, question: Question) -> int:
        from _socket import socket  # `socket` would cost more than the seal

        kind = question.integer(1)
        if question.integer(0) != _UNIX or kind & 0xF not in CONNECTING:
            self._denials.note(question, "make a socket of the network", each=True)
            raise OSError(_EACCES, os.strerror(_EACCES))
        end = socket(_UNIX, kind | CLOEXEC, question.integer(2))
        self._descriptors[os.fstat(end.fileno()).st_ino] = end.fileno()
        return question.give(end.detach(), kind)

    @contextmanager
    def _socket(self, question: Question) -> Generator[Any]:
        """Give our own end of the socket that a call is about; let it go where the call succeeds."""
        from _socket import socket

        link = os.readlink(f"/proc/{question.pid}/fd/{question.integer(0)}")
        inode = int(link[len(_INODE) : -1]) if link.startswith(_INODE) else -1
        if inode not in self._descriptors:
            raise OSError(_EPERM, os.strerror(_EPERM))
        end = socket(fileno=self._descriptors[inode])
        try:
            yield end
        except BaseException:
            end.detach()
            raise
        del self._descriptors[inode]
        end.close()

    @staticmethod
    def _address(question: Question) -> bytes:
        size = question.integer(2)
        if not _SHORTEST <= size <= _LONGEST:
            raise OSError(_EINVAL, os.strerror(_EINVAL))
        address = question.data(1, size)
        if int.from_bytes(address[:2], "little") != _UNIX:
            raise OSError(_EAFNOSUPPORT, os.strerror(_EAFNOSUPPORT))
        return address[2:] if address[2:3] == b"\0" else address[2:].partition(b"\0")[0]

    def _bind(self, question: Question) -> int:
        """Bind a socket in the cell: Landlock, which binds us as well, lets no other be made."""
        address = self._address(question)
        if not address or address.startswith(b"\0"):  # the kernel chooses a name, or it is no path
            address = address or os.urandom(8)
            path = self._names.setdefault(address, os.fsencode(f"{self._bounds.memory}/.{len(self._names)}"))
        else:
            path = self._bounds.copied(address)
        with self._socket(question) as end:
            if path.startswith(b"/") and len(path) < _NAME:
                end.bind(path)
            else:
                folder, _, name = path.rpartition(b"/")
                with self._folder(question, folder):
                    end.bind(name)
        return 0

    @contextmanager
    def _folder(self, question: Question, path: bytes) -> Generator[None]:
        """Be in a folder, as the one that asks sees it. Nothing else of this process goes by where it is."""
        with place(self._bounds, question, HERE, path or b".") as there:
            os.chdir(there)
        try:
            yield
        finally:
            os.chdir("/")

    def _connect(self, question: Question) -> int:
        address = self._address(question)
        path = self._names.get(address, b"") if address.startswith(b"\0") else self._bounds.copied(address)
        if not path:
            raise OSError(_ECONNREFUSED, os.strerror(_ECONNREFUSED))
        with self._socket(question) as end:
            try:
                with place(self._bounds, question, HERE, path) as there:
                    end.connect(there)
            except PermissionError:  # nobody in the cell listens there
                self._denials.note_file(question, HERE, path, "connect to %s")
                raise OSError(_ECONNREFUSED, os.strerror(_ECONNREFUSED)) from None
        return 0
