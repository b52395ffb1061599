"""The ledger: what a replay did, kept outside the agent, which may swallow any exception.

One JSON object a line, each in one `write(2)` to a file opened for appending, so that several processes may share it.
The exit code comes from here and never from whether the program ended well.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from reenact.contracts.redactor import Redactor
from reenact.errors import InputError
from reenact.values.lenient import as_object

_OF_TODAY = frozenset(("refused", "miss", "ignored", "live", "killed", "undelivered", "volatile"))
"""Entries that say something that no recording has passed through redaction."""

_OURS = "reenact.ledger."
"""What an entry says is of the replay's own making, and no payload: it is searched, and never taken whole."""


def _none() -> str:
    return ""


class Ledger:
    """Takes entries down, in memory and, where a path is given, on disk."""

    def __init__(self, path: Path | None = None) -> None:
        self.entries: list[dict[str, Any]] = []
        self.unit: Callable[[], str] = _none
        """Names the earlier unit whose code runs now, where one is delivered before the run that is replayed."""
        self.redactor: Redactor | None = None
        """Scrubs what an entry says of the program as it runs now: the name of a file, a header of today's."""
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600) if path else None

    def note(self, what: str, /, **facts: Any) -> None:
        """Take one entry down; it is on disk when this returns."""
        if earlier := self.unit():
            facts["unit"] = earlier
        entry = {"t": what, **facts}
        if self.redactor is not None and what in _OF_TODAY:
            told = orjson.loads(orjson.dumps(facts, default=repr))
            clean = self.redactor.attributes({_OURS + name: value for name, value in told.items()})
            entry = {"t": what, **{name.removeprefix(_OURS): value for name, value in clean.items()}}
        if self._fd is None:
            self.entries.append(entry)
        else:
            os.write(self._fd, orjson.dumps(entry, default=repr) + b"\n")

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def read(path: Path) -> list[dict[str, Any]]:
    """Read a ledger back. Raises `InputError` at a line that is none."""
    entries: list[dict[str, Any]] = []
    if not path.exists():
        return entries
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            entry: Any = orjson.loads(line)
        except ValueError as error:
            raise InputError(f"{path}:{number}", f"the ledger is damaged: {error}") from error
        if not isinstance(as_object(entry).get("t"), str):
            raise InputError(f"{path}:{number}", "the ledger is damaged: the line is no entry")
        entries.append(entry)
    return entries
