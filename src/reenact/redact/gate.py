"""The gate: whether any of many literals occurs in a text.

Each literal is told by a seldom character of its own, then by what follows, then by what stands before. Most of these
characters are not in a text at all, which the processor's own search for one byte says in no time; for those that are,
a pass runs from one to the next. A literal of common characters alone gets a pass to itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection

_SELDOM = "_-=/KEASIzJxk\\"
"""Characters that prose and JSON hold seldom, those first by which many literals can be told."""
_KELVIN = "\N{KELVIN SIGN}"
"""The one character outside ASCII whose lower case is in it; Python's `İ` becomes two."""


class Gate:
    """Tells whether a text holds any of `words`, or of `folded` in whatever case."""

    __slots__ = ("_alone", "_anchored", "_folded")

    def __init__(self, words: Collection[str], folded: Collection[str] = ()) -> None:
        begun = {word.lower() for word in words if any(word.lower() in other for other in folded)}
        any_case = _least({*folded, *begun})
        given = {word for word in words if not any(other in word.lower() for other in any_case)}
        exact = _least(given | ({_KELVIN} if folded else set()))
        patterns: defaultdict[str, list[str]] = defaultdict(list)
        for anchor, told in _by_anchor(exact).items():
            patterns[anchor].append(_around(anchor, told))
        for anchor, told in _by_anchor(any_case).items():
            for each in {anchor, anchor.upper()}:
                patterns[each].append(_around(each, told, "(?i:{})"))
        self._alone = tuple(word for word in exact if _anchor(word) is None)
        self._folded = tuple(word for word in any_case if _anchor(word) is None)
        self._anchored = tuple(
            (anchor, re.compile(f"{re.escape(anchor)}(?:{'|'.join(each)})").search)
            for anchor, each in sorted(patterns.items())
        )

    def holds(self, text: str) -> bool:
        """Tell whether at least one word occurs in `text`."""
        for anchor, search in self._anchored:
            if anchor in text and search(text) is not None:
                return True
        for word in self._alone:
            if word in text:
                return True
        if self._folded:
            lowered = text.lower()
            for word in self._folded:
                if word in lowered:
                    return True
        return False


def _least(words: Collection[str]) -> list[str]:
    """Leave out what cannot occur without another of them."""
    return sorted(word for word in words if not any(other in word for other in words if other != word))


def _anchor(word: str) -> str | None:
    return next((seldom for seldom in _SELDOM if seldom in word), None)


def _by_anchor(words: list[str]) -> dict[str, list[str]]:
    anchored: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        if (anchor := _anchor(word)) is not None:
            anchored[anchor].append(word)
    return anchored


def _around(anchor: str, words: list[str], spelled: str = "{}") -> str:
    """Make the pattern of what stands around `anchor` in all words that are told by it."""
    ends: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        before, _, after = re.split(f"({re.escape(anchor)})", word, maxsplit=1, flags=re.IGNORECASE)
        ends[after].append(before)
    patterns = [re.escape(after) + _preceded(anchor + after, befores) for after, befores in ends.items()]
    return spelled.format(f"(?:{'|'.join(patterns)})")


def _preceded(tail: str, befores: list[str]) -> str:
    """Ask for any of `befores` in front of `tail`, which was just matched; those of one length at once."""
    lengths: defaultdict[int, list[str]] = defaultdict(list)
    for before in befores:
        lengths[len(before)].append(re.escape(before))
    if 0 in lengths:
        return ""
    looks = [f"(?<=(?:{'|'.join(each)}){re.escape(tail)})" for each in lengths.values()]
    nearest = "".join(sorted({re.escape(before[-1]) for before in befores}))  # most places are told by one character
    return f"(?<=[{nearest}]{re.escape(tail)})(?:{'|'.join(looks)})"
