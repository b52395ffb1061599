"""The gate: whether any of many literals occurs in a text, in fewer passes over it than there are literals.

Literals that share a rare character are looked for together: one pass runs from one occurrence of that character to the
next and looks around it. A literal without a rare character gets a pass of its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial

_RARE = "_-=:KEASI\\zJxw.kc"
"""Characters that natural text and JSON hold seldom, those first that many literals share."""

_Search = Callable[[str], object]


class Gate:
    """Tells whether a text holds any of `words`."""

    __slots__ = ("_searches", "_shortest")

    def __init__(self, words: Iterable[str]) -> None:
        given = set(words)
        least = {word for word in given if not any(other in word for other in given if other != word)}
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for word in sorted(least):
            groups[next((rare for rare in _RARE if rare in word), word)].append(word)
        self._searches = tuple(_search(anchor, members) for anchor, members in groups.items())
        self._shortest = min(map(len, least), default=1)

    def holds(self, text: str) -> bool:
        """Tell whether at least one word occurs in `text`."""
        if len(text) < self._shortest:
            return False
        for search in self._searches:  # noqa: SIM110 - a generator costs more than the whole loop
            if search(text):
                return True
        return False


def _search(anchor: str, words: list[str]) -> _Search:
    """Make one pass: from anchor to anchor, telling words apart by what follows, then by what stands before."""
    if words == [anchor]:
        return partial(_contains, anchor)
    ends: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        before, _, after = word.partition(anchor)
        ends[after].append(before)
    around = "|".join(re.escape(after) + _preceded(anchor + after, befores) for after, befores in ends.items())
    return re.compile(f"{re.escape(anchor)}(?:{around})").search


def _preceded(tail: str, befores: list[str]) -> str:
    """Ask for any of `befores` in front of `tail`, which was just matched; those of one length at once."""
    lengths: defaultdict[int, list[str]] = defaultdict(list)
    for before in befores:
        lengths[len(before)].append(re.escape(before))
    if 0 in lengths:
        return ""
    looks = [f"(?<=(?:{'|'.join(each)}){re.escape(tail)})" for each in lengths.values()]
    return f"(?:{'|'.join(looks)})"


def _contains(word: str, text: str) -> bool:
    return word in text
