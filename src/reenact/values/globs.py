"""Patterns in which `*` stands for anything, as regular expressions that take no longer than the text asks for.

Where a pattern has several stars, the text between two of them is taken where it first comes: if the rest fits behind a
later place, it fits behind the first. Nothing is therefore tried twice (the groups are atomic), but for what stands
behind the last star.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache


def starred(pieces: Sequence[str], anything: str) -> str:
    """Join regular expressions by stars; `anything` is what one place of a star may be."""
    first, *middle = pieces
    if not middle:
        return first
    *middle, last = middle
    return "".join([first, *(f"(?>(?:{anything})*?{piece})" for piece in middle), f"(?:{anything})*{last}"])


@lru_cache(maxsize=1024)
def compiled(pattern: str, *, one: str = "") -> re.Pattern[str]:
    """Compile a pattern for a whole text; the character `one`, where given, stands for any single one."""
    pieces = (("." if each == one else re.escape(each) for each in piece) for piece in pattern.split("*"))
    return re.compile(starred(["".join(piece) for piece in pieces], "."), re.DOTALL)
