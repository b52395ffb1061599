"""The ledger: what a replay did, kept outside the agent, which may swallow any exception.

One JSON object a line, each in one `write(2)` to a file opened for appending, so that several processes may share it.
The exit code comes from here and never from whether the program ended well.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from reenact.contracts.redactor import Redactor
from reenact.disk import private
from reenact.values.lenient import as_object

_OF_TODAY = frozenset(("refused", "miss", "ignored", "live", "killed", "undelivered", "volatile"))
"""Entries that say something that no recording has passed through redaction."""

_OURS = "reenact.ledger."
"""What an entry says is of the replay's own making, and no payload: it is searched, and never taken whole."""

_AS_IT_IS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""What a program put in the ledger's place leads nowhere, and is not waited for."""


def _none() -> str:
    return ""


def _nothing(_entry: str) -> None:
    """Do nothing."""


class Ledger:
    """Takes entries down, in memory and, where a path is given, on disk."""

    def __init__(self, path: Path | None = None) -> None:
        self.entries: list[dict[str, Any]] = []
        self.unit: Callable[[], str] = _none
        """Names the earlier unit whose code runs now, where one is delivered before the run that is replayed."""
        self.redactor: Redactor | None = None
        """Scrubs what an entry says of the program as it runs now: the name of a file, a header of today's."""
        self.halted: Callable[[str], None] = _nothing
        """Hears that the replay stops on this thread, by an entry of that kind."""
        self.path = path
        self._fd = self._opened() if path else None

    def _opened(self) -> int:
        """Open the file, out of the way of a program that closes and opens descriptors by number."""
        fd = os.open(self.path or "", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return private.high_descriptor(fd)

    def note(self, what: str, /, **facts: Any) -> None:
        """Take one entry down; it is on disk when this returns."""
        if earlier := self.unit():
            facts["unit"] = earlier
        entry = {"t": what, **facts}
        if self.redactor is not None and what in _OF_TODAY:
            plain_facts = orjson.loads(orjson.dumps(facts, default=repr))
            clean = self.redactor.attributes({_OURS + name: value for name, value in plain_facts.items()})
            entry = {"t": what, **{name.removeprefix(_OURS): value for name, value in clean.items()}}
        if self._fd is None:
            self.entries.append(entry)
        else:
            self._write(orjson.dumps(entry, default=repr) + b"\n")
        if what == "refused" or (what == "miss" and "onward" not in facts):
            self.halted(what)

    def _write(self, line: bytes) -> None:
        try:
            os.write(self._fd or 0, line)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            self._fd = self._opened()  # the program closed what it did not know, as one does that becomes another
            os.write(self._fd, line)

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            with suppress(OSError):  # the program closed it
                os.close(self._fd)
            self._fd = None


def moved(recorded: str, lane: str) -> dict[str, bool]:
    """Say of a call whether it was made on another lane than when recorded."""
    return {} if lane == recorded else {"moved": True}


def read(path: Path) -> list[dict[str, Any]]:
    """Read a ledger back. What the program spoilt of it is an entry `damaged`, which says where."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | _AS_IT_IS)
    except FileNotFoundError:
        return []
    except OSError as error:
        why = "a link stands in its place" if path.is_symlink() else f"it cannot be read: {error.strerror}"
        return [_damaged(why)]
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return [_damaged("it is no file any more")]
        return [_entry(number, line) for number, line in enumerate(stream.read().splitlines(), 1)]


def _entry(number: int, line: bytes) -> dict[str, Any]:
    try:
        entry: Any = orjson.loads(line)
    except ValueError as error:
        return _damaged(f"line {number}: {error}")
    return entry if isinstance(as_object(entry).get("t"), str) else _damaged(f"line {number} is no entry")


def _damaged(why: str) -> dict[str, Any]:
    return {"t": "damaged", "why": why}
