"""Which variables of the environment the agent's own code reads, by name; no value is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

MOST: Final = 200
"""So many names of a process are noted."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class _State:
    __slots__ = ("at_start", "on", "read")

    def __init__(self) -> None:
        self.on = False
        self.at_start: frozenset[str] = frozenset()
        self.read: dict[str, bool] = {}


_STATE: Final = _State()


def begin(names: Iterable[str]) -> None:
    """Note from now on what is read; `names` are those that were set when the program began."""
    _STATE.on, _STATE.at_start, _STATE.read = True, frozenset(names), {}


def end() -> None:
    """Note nothing more."""
    _STATE.on = False


def is_new(name: object) -> bool:
    """Tell whether a name would be noted: whoever reads it, nobody of the agent's did before."""
    return _STATE.on and isinstance(name, str) and name not in _STATE.read and len(_STATE.read) < MOST


def note(name: str) -> None:
    """Note that the agent's own code read a variable, set or not."""
    if _NAME.fullmatch(name):
        _STATE.read[name] = name in _STATE.at_start


def variable_readings() -> list[tuple[str, bool]]:
    """List the names that were read, and whether each was set when the program began."""
    return sorted(_STATE.read.items())
