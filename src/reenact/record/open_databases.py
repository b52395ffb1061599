"""Databases of SQLite's that units of work have open, and whether one changed while two of them used it.

A connection changes its file without an event, and a server's units overlap: the next request often comes in while the
one before, whose answer is sent, closes its session. Two units overlap from the moment the second one may use the
database until the first of them ends. What stands in the file at both moments tells whether anybody changed it between.
Where nobody did, each unit read what it would have read alone. A thread of the program's own that has a connection, and
belongs to no unit, may change it at any time: what it does is told nowhere.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias
from weakref import WeakSet

from reenact.boundary.files import PathChange
from reenact.boundary.inbound import Inbound
from reenact.boundary.own_code import own_frame
from reenact.values import locks

Mark: TypeAlias = tuple[Any, ...]
"""One state of a database."""
Read: TypeAlias = Callable[[str, int, int], bytes]
"""Reads a part of a file: its path, how many bytes, and where they begin. Raises `OSError`."""

BESIDE: Final = ("-wal", "-journal")
_TELLING: Final = (("", 24, 4), ("-wal", 16, 8), ("-shm", 0, 48))
"""What changes with each transaction, by the end of the file's name, its place and its size: the change counter, the
salt of the log, the header of the log's index (https://sqlite.org/fileformat2.html, https://sqlite.org/walformat.html).
A file system may give two changes the same time."""


def database_mark(path: str, read: Read) -> Mark:
    """Tell a state of a database from another one."""
    marks: list[Any] = [_status(path + end) for end in ("", *BESIDE)]
    for end, begin, size in _TELLING:
        with suppress(OSError):
            marks.append(read(path + end, size, begin))
    return tuple(marks)


def _status(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - at each call of a tool
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


class Overlap:
    """What other units did to a file beside the one that it is noted for."""

    __slots__ = ("changed", "followed", "is_single")

    def __init__(self) -> None:
        self.changed = False
        """It changed while another unit used it as well: nobody knows whose change was read when."""
        self.followed = False
        """Another unit used it before all was told of this one: what it became may be that unit's doing."""
        self.is_single = False
        """The process was its server's only worker when the unit began to use it."""


class _User(NamedTuple):
    unit: Inbound
    overlap: Overlap


class OpenDatabase:
    """A database of SQLite's that was opened in this process."""

    __slots__ = ("_lock", "_meetings", "_read", "_threads", "_users", "at", "changes", "last_touch", "openers")

    def __init__(self, changes: list[PathChange], at: str, read: Read) -> None:
        self.changes, self.at, self._read = changes, at, read
        self.openers: list[Inbound] = []
        """Units under way that made a connection, once for each."""
        self.last_touch = 0
        """The number of the last touch that was no unit's."""
        self._threads: WeakSet[threading.Thread] = WeakSet()
        """Threads of the program's own that made a connection and belong to no unit."""
        self._users: list[_User] = []
        """Units that may use it and of which not all is told."""
        self._meetings: list[tuple[_User, _User, Mark]] = []
        """Units that use it at the same time, and what it was when the second one began to."""
        self._lock = locks.rlock()

    def connect(self, unit: Inbound | None) -> None:
        """Note that a connection is made, by a unit or by nobody's."""
        if unit is not None:
            self.openers.append(unit)
        elif threading.current_thread() is not threading.main_thread() and own_frame(inspect.currentframe()):
            self._threads.add(threading.current_thread())

    def may_change(self, since: int) -> bool:
        """Tell whether what is no unit may have changed it since a touch: it touched it, or keeps a connection."""
        return self.last_touch > since or any(each.is_alive() for each in tuple(self._threads))

    def use(self, unit: Inbound) -> Overlap:
        """Note that a unit may use it from now on; gives what will be known of the others that do."""
        with self._lock:
            user = _User(unit, Overlap())
            self._users = [each for each in self._users if not each.unit.over]
            state: Mark | None = None
            for other in self._users:
                other.overlap.followed = True
                if not other.unit.ended:
                    state = state or database_mark(self.changes[0].path, self._read)
                    self._meetings.append((other, user, state))
            self._users.append(user)
            return user.overlap

    def leave(self, unit: Inbound) -> None:
        """Note that a unit has ended: whom it met read what it would have read alone, unless the file changed."""
        with self._lock:
            ended = [each for each in self._meetings if unit in {each[0].unit, each[1].unit}]
            if not ended:
                return
            self._meetings = [each for each in self._meetings if each not in ended]
            now = database_mark(self.changes[0].path, self._read)
            for one, other, before in ended:
                if before != now:
                    one.overlap.changed = other.overlap.changed = True
