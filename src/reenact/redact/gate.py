"""The gate: where in a text anything may stand that a detector looks for, told by automata.

Three passes in compiled code tell all places: an automaton over the text for literals (anchors of detectors, exact
secrets, the beginnings of escapes, characters that hide others), one over its *shape* (every digit one
character, every letter another) for what is made of digits, and a search for long runs of letters and digits, which
may be base64.
"""

from __future__ import annotations

import re
import string
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from reenact.contracts.detector import Detector

ESCAPE: Final = -1
KNOWN: Final = -2
KEY: Final = -3
HIDING: Final = -4
_ESCAPES: Final = (
    *("\\U000", "\\/", "\\\n", "\\\r\n", "&#", "=\n", "=\r\n"),
    *(f"\\u{digit}" for digit in "{0123456789abcdef"),
    *(f"\\x{digit}" for digit in ("2", "3", "4", "5", "6", "7", "a0", "ad")),  # of Latin-1: spaces and hyphens alone
    *("%20", "%22", "%25", "%27", "%2B", "%2D", "%2E", "%3", "%4", "%5", "%6", "%7", "%E2%80", "%EF%B", "%C2%A"),
    *("&commat", "&period", "&lowbar", "&colon", "&equals", "&quot", "&amp", "&sol", "&dash", "&hyphen", "&plus"),
    *("&num", "&nbsp", "&lt", "&gt", "&apos", "&tab", "&newline"),
    *("=40", "=3D", "=2E", "=2D", "=5F", "=3A", "=20", "=E2=80", *(f"={c:02X}=" for c in range(0x21, 0x7F))),
)
"""Spellings behind which what a detector looks for may hide."""
_DIGIT: Final = b"Q"
"""Stands for every digit in a shape. The automaton leaps to the rarest byte of its anchors, and holds Q for rare."""
_A_DIGIT: Final = _DIGIT[0]
_LETTER: Final = b"A"
_SHAPES: Final = bytes.maketrans(
    (string.digits + string.ascii_letters).encode(), _DIGIT * len(string.digits) + _LETTER * len(string.ascii_letters)
)
_LONGEST: Final = 31
"""Digits of a number that may be somebody's, at most."""
_ENDLESS: Final = _DIGIT * (_LONGEST + 1)
_NUMBERLESS: Final = b"x" * (_LONGEST + 1)
SLACK: Final = 2
"""How far behind `after` a pattern may look."""
_LONG: Final = 16
"""The shortest run of letters and digits that may be a text encoded."""
_RUN: Final = _LETTER * _LONG
_NO_RUN: Final = re.compile(rb"[^A]|\Z")
_IN_ANY_CASE: Final = re.compile(rb"[A-Za-z]")
_APART: Final = (
    *("(?<![A-Za-z0-9]", "(?<![0-9A-Za-z]", "(?:(?<![A-Za-z0-9])|", r"(?<![\w", r"\b", "(?i:(?<![a-z])"),
    *("(?i:(?<![A-Za-z0-9]", "(?i:(?<![a-z0-9]"),
)
"""How patterns begin that match at no place behind a letter (some: or digit)."""

_ALONE: Final = ("(?<![A-Za-z0-9", "(?<![0-9A-Za-z", r"(?<![\w")
_LETTERS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_OF_WORDS: Final = frozenset(_DIGIT + _LETTER)

Entry = tuple[int, bytes, int, bool, bytes, int]
"""What a literal in the automaton says: a detector's number or one of `ESCAPE`, `KNOWN`, `KEY`, `HIDING`; how it is
spelled, empty where it is meant in any case; its length; whether it counts only where no letter stands before it; what
must stand behind it, empty for nothing; and within so many bytes."""
_WIDEST: Final = 4
"""Bytes of a character in UTF-8, at most."""
_Automaton = tuple[BytesAhoCorasick, tuple[tuple[Entry, ...], ...]]
"""What finds literals, and what each of them says."""
_Digits = tuple[tuple[Entry, ...], tuple[tuple[int, Entry], ...]]


class Gate:
    """Finds the places of anchors. Immutable, and shared by threads."""

    __slots__ = ("_any", "_ascii", "_digits", "_fewest", "_lettered", "_moving", "_shapes", "_words")

    def __init__(
        self,
        detectors: Sequence[Detector],
        keys: Iterable[str] = (),
        secrets: Iterable[str] = (),
        hiding: Iterable[bytes] = (),
    ) -> None:
        words: defaultdict[bytes, dict[Entry, None]] = defaultdict(dict)
        shapes: defaultdict[bytes, dict[Entry, None]] = defaultdict(dict)

        def add_word(row: int, anchor: str, *, any_case: bool = False, apart: bool = False) -> None:
            spelled = anchor.encode()
            lowered = spelled.lower()
            exact = b"" if any_case or (spelled == lowered and not _IN_ANY_CASE.search(spelled)) else spelled
            needs = detectors[row].needs.encode() if row >= 0 else b""
            within = _WIDEST * (detectors[row].after + SLACK) if needs else 0
            words[lowered][row, exact, len(anchor), apart, needs, within] = None

        for row, detector in enumerate(detectors):
            apart = detector.pattern.startswith(_APART)
            for anchor in _least(detector.anchors):
                if detector.run:
                    alone = detector.apart or (not detector.before and _alone(detector))
                    shapes[shape_of(anchor.encode())][row, b"", len(anchor), alone, b"", 0] = None
                else:
                    add_word(row, anchor, any_case=detector.any_case, apart=apart and not detector.before)
        for row, anchors in ((KEY, keys), (ESCAPE, _ESCAPES)):
            for anchor in anchors:
                add_word(row, anchor, any_case=True)
        add_word(ESCAPE, "\\N{")
        for literal in hiding:
            words[literal][HIDING, b"", 1, False, b"", 0] = None
        for secret in secrets:
            add_word(KNOWN, secret)
        self._words = words
        self._ascii = _automaton({literal: entries for literal, entries in words.items() if literal.isascii()})
        self._any: _Automaton | None = None
        digits = [anchor for anchor in shapes if not anchor.strip(_DIGIT)]
        self._digits = _by_length([(len(anchor), entry) for anchor in digits for entry in shapes.pop(anchor)])
        self._fewest = _DIGIT * min(map(len, digits), default=0)
        self._moving = any(moving for _, moving in self._digits)
        self._lettered = any(_DIGIT not in anchor for anchor in shapes)
        self._shapes = _automaton(shapes)

    def anchors(self, data: bytes, shape: bytes) -> list[tuple[int, Entry]]:
        """Give the starts of all anchors in a text in UTF-8 that has this shape.

        Those of literals come in order, then those of shapes in order. Of an anchor that begins at one character after
        another only the first counts.
        """
        places: list[tuple[int, Entry]] = []
        add_place = places.append
        literals, entries = self._ascii if data.isascii() else self._of_all()
        before, ended = -1, -2
        escapes = b"\\" in data or b"%" in data
        for index, start, end in literals.find_matches_as_indexes(data.lower(), overlapping=True):
            if index == before and start == ended + 1:
                ended = start
                continue
            before = -1
            for entry in entries[index]:
                if entry[1] and data[start:end] != entry[1]:
                    continue
                if entry[3] and start and data[start - 1] in _LETTERS and not (escapes and _escaped(data, start)):
                    continue
                if entry[4] and data.find(entry[4], end, end + entry[5]) < 0:
                    continue
                add_place((start, entry))
                before, ended = index, start
        if self._lettered or _DIGIT in shape:
            self._of_shapes(shape, places, data if escapes else b"")
        return places

    def _of_all(self) -> _Automaton:
        """Give the automaton for texts in any script, whose table is some times as large: most texts need none."""
        if self._any is None:
            self._any = _automaton(self._words)
        return self._any

    def _of_shapes(self, shape: bytes, places: list[tuple[int, Entry]], escaping: bytes) -> None:
        """Take in what begins at digits. `escaping` is the text where it holds escapes: one may end in a letter."""
        first, add_place = len(places), places.append
        start = shape.find(self._fewest) if self._fewest else -1
        if start >= 0 and _ENDLESS in shape:  # a number without end is nobody's, and would be looked at digit by digit
            shape = shape.replace(_ENDLESS, _NUMBERLESS)
            start = shape.find(self._fewest)
        shapes, entries = self._shapes
        for index, at, _ in shapes.find_matches_as_indexes(shape, overlapping=True):
            inside = at and shape[at - 1] in _OF_WORDS and not (escaping and _escaped(escaping, at))
            for entry in entries[index]:
                if not (inside and entry[3]):
                    add_place((at, entry))
        if start >= 0:
            of_others = len(places)
            self._of_digits(shape, start, places, escaping)
            if of_others > first or self._moving:
                places[first:] = sorted(places[first:], key=_start_of)

    def _of_digits(self, shape: bytes, start: int, places: list[tuple[int, Entry]], escaping: bytes) -> None:
        """Take in what begins at numbers, from the first. An automaton would tell of each digit of a long one."""
        size = len(shape)
        while start >= 0:
            end = start + len(self._fewest)
            while end < size and shape[end] == _A_DIGIT:
                end += 1
            alone, moving = self._digits[end - start]
            if not start or shape[start - 1] not in _OF_WORDS or (escaping and _escaped(escaping, start)):
                places += [(start, entry) for entry in alone]
            for length, entry in moving:
                places += [(at, entry) for at in range(start, end - length + 1)]
            start = shape.find(self._fewest, end)


def shape_of(data: bytes) -> bytes:
    """Give the shape of a text: every digit is one character in it, every letter another one."""
    return data.translate(_SHAPES)


def _by_length(of_digits: Sequence[tuple[int, Entry]]) -> tuple[_Digits, ...]:
    """Give, by the length of a number, what begins at its first digit alone, and what at any."""

    def of(size: int) -> _Digits:
        fitting = [each for each in sorted(of_digits, key=_start_of) if each[0] <= size]
        return tuple(entry for _, entry in fitting if entry[3]), tuple(each for each in fitting if not each[1][3])

    return tuple(of(size) for size in range(_LONGEST + 1))


def _least(anchors: Iterable[str]) -> list[str]:
    """Leave out anchors that begin with another one of the same detector: they tell of no other place."""
    prefixes: list[str] = []
    for anchor in sorted(anchors):
        if not prefixes or not anchor.startswith(prefixes[-1]):
            prefixes.append(anchor)
    return prefixes


def _start_of(anchor: tuple[int, Entry]) -> int:
    return anchor[0]


def _alone(detector: Detector) -> bool:
    """Tell whether a pattern matches at no place behind a letter or a digit."""
    return detector.pattern.startswith(_ALONE)


def _escaped(data: bytes, start: int) -> bool:
    """Tell whether an escape may end where a word seems to go on."""
    low = start - 6 if start > 6 else 0
    return data.find(b"\\", low, start) >= 0 or data.find(b"%", low, start) >= 0


def runs(shape: bytes) -> list[tuple[int, int]]:
    """Give the runs of letters and digits that are long enough for an encoded text, in a text of this shape."""
    classes = shape.replace(_DIGIT, _LETTER)
    start = classes.find(_RUN)
    spans: list[tuple[int, int]] = []
    while start >= 0:
        match = _NO_RUN.search(classes, start)
        end = match.start() if match else len(classes)
        spans.append((start, end))
        start = classes.find(_RUN, end)
    return spans


def latin(text: str) -> bytes:
    """Give one byte for each character; what is not Latin-1 becomes `?`."""
    return text.encode("latin-1", "replace")


def _automaton(words: Mapping[bytes, Iterable[Entry]]) -> _Automaton:
    automaton = BytesAhoCorasick(list(words), matchkind=MatchKind.Standard, implementation=Implementation.DFA)
    return automaton, tuple(map(tuple, words.values()))
