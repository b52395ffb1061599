"""Two texts side by side, word by word: what both say, and what only one does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

Pieces: TypeAlias = list[tuple[str, str]]
"""Text by what it is: `same`, `other`, or `gap` for what was left out between."""

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_PART = re.compile(r"\w+\Z")
_WORD_LONG = 100
_AROUND = 600
"""Characters shown before and behind what differs."""
_LONGEST = 6000
"""Characters compared word by word; of more, the beginning."""


def side_by_side(a: str, b: str) -> tuple[Pieces, Pieces]:
    """Give both texts in pieces. Long common beginnings and ends are shortened, and so is a very long difference."""
    start = _shared(a, b)
    start -= _within_word(a[max(0, start - _WORD_LONG) : start])
    end = _shared(a[start:][::-1], b[start:][::-1])
    end -= _within_word(a[len(a) - end :][:_WORD_LONG][::-1])
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    left, right = _compared(middle_a, middle_b)
    before, after = a[:start], a[len(a) - end :]
    return _framed(before, left, after), _framed(before, right, after)


def _shared(a: Sequence[str], b: Sequence[str]) -> int:
    """Count the characters that both begin with, by halves: equal slices compare fast."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _within_word(text: str) -> int:
    """Count the characters of the word that a text breaks off in."""
    return len(text) - len(_PART.sub("", text))


def _compared(a: str, b: str) -> tuple[Pieces, Pieces]:
    if not (a and b):
        return _cut(a), _cut(b)
    words_a, words_b = _WORD.findall(a[:_LONGEST]), _WORD.findall(b[:_LONGEST])
    left: Pieces = []
    right: Pieces = []
    for how, i, j, k, m in SequenceMatcher(None, words_a, words_b, autojunk=False).get_opcodes():
        word = "same" if how == "equal" else "other"
        left += [(word, "".join(words_a[i:j]))] if i < j else []
        right += [(word, "".join(words_b[k:m]))] if k < m else []
    return left + _left_out(a), right + _left_out(b)


def _cut(text: str) -> Pieces:
    return [("other", text[:_LONGEST]), *_left_out(text)] if text else []


def _left_out(text: str) -> Pieces:
    return [("gap", f"{len(text) - _LONGEST:,} characters more")] if len(text) > _LONGEST else []


def _framed(before: str, pieces: Pieces, after: str) -> Pieces:
    framed: Pieces = []
    if len(before) > _AROUND:
        framed.append(("gap", f"{len(before) - _AROUND:,} characters alike"))
    framed += [("same", before[-_AROUND:])] if before else []
    framed += pieces
    framed += [("same", after[:_AROUND])] if after else []
    if len(after) > _AROUND:
        framed.append(("gap", f"{len(after) - _AROUND:,} characters alike"))
    return framed
