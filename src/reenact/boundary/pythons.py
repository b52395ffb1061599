"""Which commands are a Python that runs our start-up hook, by their words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_PYTHON: Final = re.compile(r"python[0-9.]*")
_ISOLATING: Final = frozenset("IES")
"""Flags under which Python does not look at PYTHONPATH or runs no start-up hook."""
_VALUED: Final = frozenset("WX")
"""Flags with a value, in the rest of the word or in the next one."""
_BEGIN_CODE: Final = frozenset("cm")
_LETTERS: Final = re.compile(r"-[^WXcm]*[WXcm]?")
_LONG_WITH_VALUE: Final = frozenset({"--check-hash-based-pycs"})


def is_python(program: str) -> bool:
    """Tell a Python by the name of its file."""
    return _PYTHON.fullmatch(Path(program).name) is not None


def isolates(flags: Sequence[str]) -> bool:
    """Tell whether the words behind a Python's name keep our start-up hook from running."""
    words = iter(flags)
    for word in words:
        if not word.startswith("-") or word == "-":
            return False
        if word.startswith("--"):
            if word in _LONG_WITH_VALUE:
                next(words, None)
            continue
        letters = _LETTERS.match(word)
        read = letters[0] if letters is not None else ""
        if not _ISOLATING.isdisjoint(read):
            return True
        if read[-1:] in _BEGIN_CODE:
            return False
        if read == word and read[-1:] in _VALUED:
            next(words, None)
    return False
