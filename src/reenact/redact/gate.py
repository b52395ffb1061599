"""The gate: where in a text anything may stand that a detector looks for, told by automata.

Three passes in compiled code tell all places: an automaton over the text for literals (anchors of detectors, exact
secrets, the beginnings of escapes, characters that hide others), one over its *shape* (every digit a `0`, every letter
an `A`) for what is made of digits, and a search for long runs of letters and digits, which may be base64.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
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
_SHAPES: Final = bytes(48 if 48 <= c <= 57 else 65 if 65 <= c <= 90 or 97 <= c <= 122 else c for c in range(256))
_ENDLESS: Final = b"0" * 32
_NUMBERLESS: Final = b"x" * 32
_RUNS: Final = bytes(98 if chr(c).isascii() and chr(c).isalnum() else 120 for c in range(256))
SLACK: Final = 2
"""How far behind `after` a pattern may look."""
_LONG: Final = 16
"""The shortest run of letters and digits that may be a text encoded."""
_RUN: Final = b"b" * _LONG
_LETTER: Final = re.compile(rb"[A-Za-z]")
_NO_DIGIT: Final = re.compile(rb"[^0]|\Z")
_APART: Final = (
    *("(?<![A-Za-z0-9]", "(?<![0-9A-Za-z]", "(?:(?<![A-Za-z0-9])|", r"(?<![\w", r"\b", "(?i:(?<![a-z])"),
    *("(?i:(?<![A-Za-z0-9]", "(?i:(?<![a-z0-9]"),
)
"""How patterns begin that match at no place behind a letter (some: or digit)."""

_ALONE: Final = ("(?<![A-Za-z0-9", "(?<![0-9A-Za-z", r"(?<![\w")
_LETTERS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_OF_WORDS: Final = frozenset(b"0A")

Entry = tuple[int, bytes, int, bool, bytes, int]
"""What a literal in the automaton says: a detector's number or one of `ESCAPE`, `KNOWN`, `KEY`, `HIDING`; how it is
spelled, empty where it is meant in any case; its length; whether it counts only where no letter stands before it; what
must stand behind it, empty for nothing; and within so many bytes."""
_WIDEST: Final = 4
"""Bytes of a character in UTF-8, at most."""


class Gate:
    """Finds the places of anchors. Immutable, and shared by threads."""

    __slots__ = ("_digits", "_entries", "_fewest", "_shape_entries", "_shapes", "_words")

    def __init__(
        self,
        detectors: Sequence[Detector],
        keys: Iterable[str] = (),
        known: Iterable[str] = (),
        hiding: Iterable[bytes] = (),
    ) -> None:
        words: defaultdict[bytes, dict[Entry, None]] = defaultdict(dict)
        shapes: defaultdict[bytes, dict[Entry, None]] = defaultdict(dict)

        def put(row: int, anchor: str, *, any_case: bool = False, apart: bool = False) -> None:
            spelled = anchor.encode()
            lowered = spelled.lower()
            exact = b"" if any_case or (spelled == lowered and not _LETTER.search(spelled)) else spelled
            needs = detectors[row].needs.encode() if row >= 0 else b""
            within = _WIDEST * (detectors[row].after + SLACK) if needs else 0
            words[lowered][row, exact, len(anchor), apart, needs, within] = None

        for row, detector in enumerate(detectors):
            apart = detector.pattern.startswith(_APART)
            for anchor in detector.anchors:
                if detector.run:
                    alone = not detector.before and _alone(detector)
                    shapes[anchor.encode()][row, b"", len(anchor), alone, b"", 0] = None
                else:
                    put(row, anchor, any_case=detector.any_case, apart=apart and not detector.before)
        for row, anchors in ((KEY, keys), (ESCAPE, _ESCAPES)):
            for anchor in anchors:
                put(row, anchor, any_case=True)
        put(ESCAPE, "\\N{")
        for literal in hiding:
            words[literal][HIDING, b"", 1, False, b"", 0] = None
        for secret in known:
            put(KNOWN, secret)
        self._words, self._entries = _automaton(words)
        digits = [anchor for anchor in shapes if not anchor.strip(b"0")]
        self._digits = sorted((len(anchor), tuple(shapes.pop(anchor))) for anchor in digits)
        self._fewest = b"0" * self._digits[0][0] if digits else b""
        self._shapes, self._shape_entries = _automaton(shapes) if shapes else (None, ())

    def anchors(self, data: bytes) -> list[tuple[int, Entry]]:
        """Give the starts of all anchors in a text in UTF-8, those of literals in order, then those of shapes in order.

        Of an anchor that begins at one character after another only the first counts.
        """
        found: list[tuple[int, Entry]] = []
        put = found.append
        entries = self._entries
        before, ended = -1, -2
        escapes = b"\\" in data or b"%" in data
        for index, start, end in self._words.find_matches_as_indexes(data.lower(), overlapping=True):
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
                put((start, entry))
                before, ended = index, start
        if self._shapes is not None or self._fewest:
            found += self._of_shapes(data.translate(_SHAPES))
        return found

    def _of_shapes(self, shape: bytes) -> list[tuple[int, Entry]]:
        found: list[tuple[int, Entry]] = []
        put = found.append
        if _ENDLESS in shape:  # a number without end is nobody's, and would be looked at digit by digit
            shape = shape.replace(_ENDLESS, _NUMBERLESS)
        entries = self._shape_entries
        for index, start, _ in self._shapes.find_matches_as_indexes(shape, overlapping=True) if self._shapes else ():
            inside = start and shape[start - 1] in _OF_WORDS
            for entry in entries[index]:
                if not (inside and entry[3]):
                    put((start, entry))
        if self._fewest and self._fewest in shape:
            found += self._of_digits(shape)
            found.sort(key=_start_of)
        return found

    def _of_digits(self, shape: bytes) -> Iterator[tuple[int, Entry]]:
        """Give the starts of anchors that are digits alone. An automaton would tell of each digit of a long number."""
        start = shape.find(self._fewest)
        while start >= 0:
            end = _end_of_digits(shape, start)
            inside = start and shape[start - 1] in _OF_WORDS
            for length, entries in self._digits:
                for entry in entries:
                    first = start + 1 if inside and entry[3] else start
                    last = start if entry[3] else end - length
                    if length <= end - start:
                        yield from ((at, entry) for at in range(first, last + 1))
            start = shape.find(self._fewest, end)


def _end_of_digits(shape: bytes, start: int) -> int:
    match = _NO_DIGIT.search(shape, start)
    return match.start() if match else len(shape)


def _start_of(anchor: tuple[int, Entry]) -> int:
    return anchor[0]


def _alone(detector: Detector) -> bool:
    """Tell whether a pattern matches at no place behind a letter or a digit."""
    return detector.pattern.startswith(_ALONE)


def _escaped(data: bytes, start: int) -> bool:
    """Tell whether an escape may end where a word seems to go on."""
    low = start - 6 if start > 6 else 0
    return data.find(b"\\", low, start) >= 0 or data.find(b"%", low, start) >= 0


def runs(data: bytes) -> list[tuple[int, int]]:
    """Give the runs of letters and digits that are long enough for an encoded text."""
    classes = data.translate(_RUNS)
    start = classes.find(_RUN)
    if start < 0:
        return []
    found: list[tuple[int, int]] = []
    while start >= 0:
        end = classes.find(b"x", start)
        end = len(classes) if end < 0 else end
        found.append((start, end))
        start = classes.find(_RUN, end)
    return found


def latin(text: str) -> bytes:
    """Give one byte for each character; what is not Latin-1 becomes `?`."""
    return text.encode("latin-1", "replace")


def _automaton(
    words: dict[bytes, dict[Entry, None]],
) -> tuple[BytesAhoCorasick, tuple[tuple[Entry, ...], ...]]:
    made = BytesAhoCorasick(list(words), matchkind=MatchKind.Standard, implementation=Implementation.DFA)
    return made, tuple(tuple(entries) for entries in words.values())
