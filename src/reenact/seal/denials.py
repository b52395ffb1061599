"""What a cell denies to code that no boundary of ours sees: said in the ledger, since the program itself may be silent.

A library in native code may answer a refused file by `False` or `-1`, and the program goes on another way. An entry of
the kind `prevented` says what was refused, so that nobody takes that way for a change of the program. It names what the
kernel would have allowed outside the cell, and nothing else: bytecode is written for no program's sake.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from reenact.seal.question import HERE, seen_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from reenact.seal.bounds import Bounds
    from reenact.seal.question import Question

_MOST: Final = 100
"""More denials say nothing more."""
_OF_THE_SYSTEM: Final = ("/dev/", "/proc/", "/sys/")
_BYTECODE: Final = ("__pycache__", ".pyc")
_WITHOUT_A_NAME: Final = "/memfd:"


class Denials:
    """Those of one cell."""

    def __init__(self, bounds: Bounds, ledger: str) -> None:
        """`ledger` is the path of the ledger; nothing is said where it is empty."""
        self._bounds, self._ledger = bounds, ledger
        self._spoken: list[str] = []

    def note(self, question: Question, what: str, *, each: bool = False) -> None:
        """Say that a process was refused something: once, or each time."""
        if not self._ledger or (what in self._spoken and not each) or len(self._spoken) >= _MOST:
            return
        self._spoken.append(what)
        with suppress(OSError):  # a replay tells what it can
            with open(f"/proc/{question.pid}/comm", encoding="utf-8", errors="replace") as stream:
                name = stream.read().strip()
            entry = {"t": "prevented", "what": what, "where": name, "event": "kernel"}
            handle = os.open(self._ledger, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
            os.write(handle, json.dumps(entry).encode() + b"\n")
            os.close(handle)

    def note_file(self, question: Question, base: int, path: bytes, act: str, *, follow: bool = True) -> None:
        """Say it of a change to a file or a folder, where it lies outside the cell and Landlock will refuse it.

        `base` is a descriptor of theirs from which the path begins, or `HERE`; `act` is a verb with its object, where
        `%s` stands for the path.
        """
        with suppress(OSError, ValueError):
            start = os.readlink(f"/proc/{question.pid}/{'cwd' if base == HERE else f'fd/{base}'}")
            named = os.path.join(start, os.fsdecode(seen_by(question.pid, path)))
            folder, name = os.path.split(named)
            real = os.path.realpath(named) if follow else os.path.join(os.path.realpath(folder), name)
            if self._is_refused(real):
                self.note(question, act % real)

    def _is_refused(self, real: str) -> bool:
        """Tell whether the cell is why a path cannot be changed: access(2) asks the file's mode, and no Landlock."""
        if self._bounds.holds(real) or real.startswith((*_OF_THE_SYSTEM, _WITHOUT_A_NAME)):
            return False
        if real.endswith(_BYTECODE) or f"/{_BYTECODE[0]}/" in real:
            return False
        return os.access(real if os.path.lexists(real) else os.path.dirname(real), os.W_OK)
