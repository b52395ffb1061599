"""Which commands are a Python that runs our start-up hook, by their words."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_PYTHON: Final = re.compile(r"python[0-9.]*")
_ISOLATING: Final = re.compile(r"-[a-zA-Z]*[IES]")
"""Flags under which Python does not look at PYTHONPATH or runs no start-up hook."""


def is_python(program: str) -> bool:
    """Tell a Python by the name of its file."""
    return _PYTHON.fullmatch(Path(program).name) is not None


def isolates(flags: Sequence[str]) -> bool:
    """Tell whether the words behind a Python's name keep our start-up hook from running."""
    before_code = itertools.takewhile(lambda word: word.startswith("-") and word not in {"-c", "-m", "-"}, flags)
    return any(map(_ISOLATING.match, before_code))
