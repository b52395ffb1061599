"""Why a program left no run behind, as one sentence that names what to do."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

_PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*")
_BLIND: Final = {
    "I": "ignores PYTHONPATH",
    "E": "ignores PYTHONPATH",
    "S": "imports no sitecustomize",
}
"""Options of an interpreter with which it never loads the recorder, and why (python(1))."""
_WITH_VALUE: Final = frozenset("WX")
_LONG_WITH_VALUE: Final = frozenset({"--check-hash-based-pycs"})
_LAST: Final = frozenset("cm")
_DECIDES: Final = frozenset(_BLIND) | _WITH_VALUE | _LAST
_BY_SIGNAL: Final = 128


def unrecorded(command: Sequence[str], loaded: int | None, exit_code: int) -> str:
    """Say why nothing was recorded of `command`, of whose processes `loaded` had the recorder in them (None: unknown).

    `exit_code` is the program's, as a shell gives it: 128 + n where signal n ended it.
    """
    option = blind_option(command)
    if option and not loaded:
        return (
            f"`{PurePath(command[0]).name} -{option}` {_BLIND[option]}, and so never loads the recorder; leave it out"
        )
    if loaded == 0:
        if _PYTHON.fullmatch(PurePath(command[0]).name):
            return f"the program {_end(exit_code)} and never loaded the recorder"
        return (
            "no Python process of it loaded the recorder: it is not Python, or starts Python with -I, -E or -S, "
            "or with another PYTHONPATH"
        )
    if exit_code:
        return f"the program {_end(exit_code)} before its first call"
    return "the program made no call over a known HTTP client, and called no declared function"


def blind_option(command: Sequence[str]) -> str:
    """Give the option of a Python command with which it does not load the recorder; empty where there is none."""
    if not command or not _PYTHON.fullmatch(PurePath(command[0]).name):
        return ""
    words = iter(command[1:])
    for word in words:
        if not word.startswith("-") or word == "-":  # the program begins
            return ""
        option, valued = _read(word)
        if option in _BLIND or option in _LAST:
            return option if option in _BLIND else ""
        if valued:
            next(words, None)
    return ""


def _read(word: str) -> tuple[str, bool]:
    """Give the first letter of a word of options that decides, and whether the next word is the value of its last."""
    if word.startswith("--"):
        return "", word in _LONG_WITH_VALUE
    decides = next((at for at, letter in enumerate(word) if letter in _DECIDES), -1)
    letter = word[decides] if decides > 0 else ""
    return letter, letter in _WITH_VALUE and decides == len(word) - 1


def _end(exit_code: int) -> str:
    number = exit_code - _BY_SIGNAL
    names = {each.value: each.name for each in signal.Signals}
    return f"ended with exit code {exit_code}" + (f", as {names[number]} does it," if number in names else "")
