"""The search: which secrets and personal data are in a text, and where; each place once.

The gate tells the places of anchors. Each detector's pattern is tried there and nowhere else, at every beginning once,
and the tries are counted: a text made to be slow is given up (`TooHard`) before it is. What is spelled otherwise, or
encoded, is opened round its marks and searched again; a finding in it is one in the text.

To compile all patterns takes 0.1 s, which every process would pay at its start; most texts hold anchors of a few. So a
built-in pattern is compiled where its first anchor is met (8 ms at most). No lock guards that: threads that meet it at
once compile it each, to the same row.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus

from reenact.contracts.detector import Detector
from reenact.redact import decode, tables
from reenact.redact.fields import BYTES_KEYS, SENSITIVE_KEYS, TOKEN, TOKEN_MARK
from reenact.redact.gate import ESCAPE, HIDING, KEY, KNOWN, SLACK, Entry, Gate, runs, shape_of
from reenact.redact.names import CLASSES, Finder
from reenact.redact.plan import KEYED, built_in_patterns
from reenact.redact.plan import KNOWN as KNOWN_SECRET

_OF_NAMES: Final = 95_000
"""The order of what a model holds for a name: behind all that has a form."""
_OF_TABLES: Final = 83_000
"""The order of a cell under its heading: before what a word in front of a value says."""
_DEEPEST: Final = 8
"""Spellings inside of spellings are undone so often."""
_TRIES: Final = 20_000
_TRIES_PER_CHARACTER: Final = 2
"""What a search may cost, in tries of a short pattern."""
_SECONDS: Final = 10.0
_SECONDS_PER_MEGABYTE: Final = 10.0
"""A ceiling for what cannot be foreseen, in processor time of the thread that searches; ordinary texts stay a thousand
times below. By the clock, a busy machine would lose texts that cost nothing."""
_WORD: Final = re.compile(r"[A-Za-z0-9_\-]{1,4096}")
_IN_A_WORD: Final = re.compile(r"[A-Za-z0-9_\-]{2}")
_PLAIN: Final = re.compile(r"[ !#-.0-\[\]-~]+")
"""Characters that JSON spells in one way only."""
_OF_A_BREAK: Final = 3
"""Characters in a line's end that is escaped, at most."""
_BREAK: Final = re.compile(r"\\[abfnrtv]|\\x0[9ADad]|%0[9ADad]")
"""What stands for a line's end or a tab in texts of Python, JSON and URLs, and ends in a letter or digit."""
_LONGEST_BREAK: Final = 4
_OF_PACKED: Final = 90
_CONTINUED: Final = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 with which no character begins."""
_OTHER_LETTERS: Final = tuple(bytes([c]) for c in (0xCE, 0xCF, *range(0xD0, 0xD5), 0xC9, 0xC4, 0xC5, 0xC7))
"""How letters begin, in UTF-8, of which some look like those of ASCII."""


class TooHard(Exception):
    """A text takes too long to search."""


class Inner(NamedTuple):
    """What was found in a text that is encoded in another."""

    text: str
    found: list[Detection]
    encode: Callable[[str], str] | None


class Detection(NamedTuple):
    """A value in a text that must go."""

    start: int
    end: int
    name: str
    secret: str
    order: int
    inner: Inner | None = None


class Budget:
    """What the search of one text may still cost, whatever is opened in it."""

    __slots__ = ("_balance", "_until", "_when")

    def __init__(self, size: int) -> None:
        self._balance = self._when = _TRIES + _TRIES_PER_CHARACTER * size
        self._until = 0.0 if size < 0 else time.thread_time() + _SECONDS + _SECONDS_PER_MEGABYTE * size / 1e6

    def spend(self, tries: int) -> None:
        """Pay for something. Raises `TooHard`."""
        self._balance -= tries
        if self._balance < self._when - _TRIES or self._balance < 0:
            self._when = self._balance
            if self._balance < 0 or time.thread_time() > self._until:
                raise TooHard


class _Row(NamedTuple):
    name: str
    credential: bool
    match: Callable[[str, int, int], re.Match[str] | None]
    before: int
    after: int
    check: Callable[[str], bool] | None
    order: int
    grouped: bool
    cost: int


def _row(number: int, detector: Detector) -> _Row:
    pattern = re.compile(detector.pattern, re.ASCII)
    if detector.before:  # the search is left to `re`, and still begins nowhere behind the anchor
        pattern = re.compile(f"(?s:.{{0,{detector.before}}}?)(?P<whole_>{detector.pattern})", re.ASCII)
    return _Row(
        name=detector.name,
        credential=detector.group == "credentials",
        match=pattern.match,
        before=detector.before,
        after=detector.after + SLACK,
        check=detector.check,
        order=detector.order * 1000 + number,
        grouped="secret" in pattern.groupindex,
        cost=1 + (detector.before + detector.after) // 256,
    )


class Scanner:
    """Searches texts for what some detectors know, and for exact secrets. Shared by threads.

    Raises `re.error` for a pattern that does not compile, be it a policy's or a plug-in's.
    """

    def __init__(self, detectors: Sequence[Detector], secrets: Iterable[str] = (), named: Finder | None = None) -> None:
        self._name_finder = named
        self._detectors = tuple(detectors)
        built_in = built_in_patterns()
        self._rows: list[_Row | None] = [
            None if each.pattern in built_in else _row(number, each) for number, each in enumerate(detectors)
        ]
        """None until the first anchor of a built-in detector is met. Only ever filled."""
        self._groups: Mapping[str, bool] = {
            **dict.fromkeys(CLASSES.values(), False),
            **{each.name: each.group == "credentials" for each in detectors},
        }
        self._spellings = _spellings(secrets)
        self._everywhere = [
            (_row(number, each), re.compile(each.pattern, re.ASCII))
            for number, each in enumerate(detectors)
            if each.run == "text"
        ]
        words = {marks: None for spelled in self._spellings if (marks := _marks(spelled))}
        self._unmarked = [secret for spelled, secret in self._spellings.items() if not _marks(spelled)]
        self._marked: dict[str, list[tuple[str, str]]] = {word: [] for word in words}
        for spelled, secret in self._spellings.items():
            if marks := _marks(spelled):
                self._marked[marks].append((spelled, secret))
        self._gated = not (self._unmarked or self._everywhere or named)
        """All that can be found has an anchor."""
        self._gate = Gate(detectors, SENSITIVE_KEYS | BYTES_KEYS | tables.HEADINGS, words, decode.hiding())

    def places(self, text: str) -> list[int] | None:
        """Give, in order, the places in a text of JSON where a leaf, a key or a number is to be looked at.

        None where a known secret cannot be told from the text as it stands.
        """
        if not self._gated:
            return None
        data = text.encode("utf-8", "surrogatepass")
        shape = shape_of(data)
        anchors = self._gate.anchors(data, shape)
        offsets = [at for at, _ in anchors]
        if long := runs(shape):
            offsets += decode.looks_packed(data, long)
        if len(data) != len(text):
            offsets.sort()
            offsets = list(map(_Characters(data).before, offsets))
            if _has_other_letters(data):
                offsets += decode.before_ascii(text)
        offsets.sort()
        return offsets

    def is_clean(self, text: str) -> bool:
        """Tell at a glance that nothing can be found in a text; False says nothing."""
        return self.places(text) == []

    def all_in(self, joined: str, budget: Budget) -> list[Detection]:
        """Give all that any detector finds in texts that are put together with `glance.BETWEEN`, in no order.

        Some of it may read over what stands between two texts. Raises `TooHard`.
        """
        return self._findings(joined, budget, None, 0)

    def is_context(self, key: str) -> bool:
        """Tell whether a key holds an anchor of any detector."""
        data = f"{key}: ".encode("utf-8", "surrogatepass")
        return any(entry[0] >= 0 for _, entry in self._gate.anchors(data, shape_of(data)))

    def find(
        self,
        text: str,
        budget: Budget | None = None,
        *,
        keep: Callable[[str], bool] | None = None,
        depth: int = 0,
    ) -> list[Detection]:
        """Find what must go, in order and each place once. Raises `TooHard`.

        `keep` tells classes that stay.
        """
        spent = Budget(len(text)) if budget is None else budget
        findings = self._findings(text, spent, keep, depth)
        if findings and keep is not None:
            findings = [each for each in findings if not keep(each.name)]
        return self.resolved(text, findings) if findings else []

    def _findings(self, text: str, budget: Budget, keep: Callable[[str], bool] | None, depth: int) -> list[Detection]:  # noqa: C901, PLR0912, PLR0915 - the inner loop
        data = text.encode("utf-8", "surrogatepass")
        findings: list[Detection] = []
        hidden: list[int] = []
        keyed: list[int] = []
        tried: dict[int, int] = {}
        rows, size, shape = self._rows, len(text), shape_of(data)
        anchors = self._gate.anchors(data, shape)
        for at, (number, _, long, *_) in anchors if len(data) == size else _in_characters(data, anchors):
            if number >= 0:
                tried_end = tried.get(number, 0)
                if at < tried_end:
                    continue
                row = rows[number] or self._row(number)
                low, high = max(tried_end, at - row.before), at + long + row.after
                tried[number] = at + 1
                match = row.match(text, low, high)
                if match is None:
                    budget.spend(row.cost)
                    self._matched_behind(text, row, at, high, findings, budget)
                elif (end := self._take_match(text, row, match, low, high, findings, budget)) > at:
                    tried[number] = end
            elif number == ESCAPE:
                if long > _OF_A_BREAK or decode.may_hide(text, at, long):
                    hidden.append(at)
            elif number == HIDING and decode.hides(text, at):
                hidden.append(at)
            elif number == KNOWN:
                self._find_secret(text, at, text[at : at + long], findings)
            elif number == KEY:
                keyed.append(at)
        if keyed:
            findings += [Detection(a, b, KEYED, text[a:b], _OF_TABLES) for a, b in tables.cells(text, keyed)]
        if not self._gated:
            self._without_gate(text, depth, findings, budget)
        if depth < _DEEPEST:
            if len(data) != size and _has_other_letters(data):
                hidden += decode.before_ascii(text)
            if hidden:
                self._open(text, hidden, findings, lambda inner: self._findings(inner, budget, keep, depth + 1))
            if depth == 0 and (form := decode.of_form(text)) is not None:  # of the same length: every place is the same
                findings += self._findings(form, budget, keep, depth + 1)
            if long := runs(shape):
                find = partial(self.find, budget=budget, keep=keep, depth=depth + 1)
                characters = None if len(data) == size else _Characters(data)
                self._unpack(decode.texts_in(data, long), characters, findings, budget, find)
        return findings

    def _row(self, number: int) -> _Row:
        """Compile the pattern of a detector, and keep it."""
        row = self._rows[number] = _row(number, self._detectors[number])
        return row

    def _without_gate(self, text: str, depth: int, findings: list[Detection], budget: Budget) -> None:
        """Find what has no anchor."""
        for secret in self._unmarked:
            findings += [Detection(*m.span(), KNOWN_SECRET, secret, -1) for m in re.finditer(re.escape(secret), text)]
        for row, pattern in self._everywhere:
            for match in pattern.finditer(text):
                self._take_match(text, row._replace(before=0), match, 0, -1, findings, budget)
        if self._name_finder is not None and depth == 0:
            findings += [Detection(a, b, name, text[a:b], _OF_NAMES) for a, b, name in self._name_finder(text)]

    def _take_match(
        self, text: str, row: _Row, match: re.Match[str], low: int, high: int, findings: list[Detection], budget: Budget
    ) -> int:
        """Take a match, and give where it ends; -1 where it is none."""
        if match.end() == high < len(text):  # it may go on
            match = row.match(text, low, high + 4 * row.after) or match
        start, end = match.span("secret") if row.grouped else match.span("whole_") if row.before else match.span()
        secret = text[start:end]
        if not secret or (
            row.check is not None and not row.check(secret) and "\x1f" not in match["whole_" if row.before else 0]
        ):
            budget.spend(row.cost)
            return -1
        if findings and findings[-1].order == row.order and findings[-1].start <= start and end <= findings[-1].end:
            return end  # it is in the rest of the one before, which is gone as a whole
        after = end
        if row.credential and _IN_A_WORD.match(text, end - 1, end + 1):  # a repeat has its end, a secret may go on
            rest = _WORD.match(text, end)
            end = rest.end() if rest else end
            secret = text[start:end]
        findings.append(Detection(start, end, row.name, secret, row.order))
        return after

    def _matched_behind(
        self, text: str, row: _Row, at: int, high: int, findings: list[Detection], budget: Budget
    ) -> None:
        """Take a match that a spelled-out line end hides, backslash and `n`: no word begins with that `n`."""
        before = text[max(0, at - row.before - _LONGEST_BREAK) : at]
        if "\\" not in before and "%" not in before:
            return
        ends = [match.end() for match in _BREAK.finditer(before)]
        if not ends or ends[-1] < len(before) - row.before:
            return
        low = at - len(before) + ends[-1]
        window, shift = f"  {text[low : high + 4 * row.after]}", low - 2
        if (match := row.match(window, 2, high - shift)) is not None:
            there: list[Detection] = []
            self._take_match(window, row, match, 2, high - shift, there, budget)
            findings += [each._replace(start=each.start + shift, end=each.end + shift) for each in there]

    def _find_secret(self, text: str, at: int, marks: str, findings: list[Detection]) -> None:
        for spelled, secret in self._marked.get(marks, ()):
            start = at - spelled.index(marks)
            if start >= 0 and text.startswith(spelled, start):
                findings.append(Detection(start, start + len(spelled), KNOWN_SECRET, secret, -len(spelled)))

    def _open(
        self, text: str, places: list[int], findings: list[Detection], find: Callable[[str], list[Detection]]
    ) -> None:
        places.sort()
        for quoted in (False, True) if any(text[at] == "=" for at in places) else (False,):  # `q=20%3A` is either
            view = decode.opened(text, places, quoted_printable=quoted)
            for inner in find(view.text):
                start, end, hidden = view.span(inner.start, inner.end)
                if end > start and (hidden or text[start:end] == inner.secret):
                    findings.append(inner._replace(start=start, end=end))

    def _unpack(
        self,
        packed: Iterable[tuple[int, int, decode.Packed | None]],
        characters: _Characters | None,
        findings: list[Detection],
        budget: Budget,
        find: Callable[[str], list[Detection]],
    ) -> None:
        inner_findings: dict[str, list[Detection]] = {}
        for start, end, run in packed:
            if characters is not None:
                start, end = characters.before(start), characters.before(end)  # noqa: PLW2901 - from here on characters are meant
            if run is None:
                findings[:] = [each for each in findings if not start < each.start < each.end <= end]
                continue
            budget.spend(1 + len(run.text) // 64)
            inner = inner_findings.get(run.text)
            if inner is None:
                inner = inner_findings[run.text] = find(run.text)
            if inner:
                first = inner[0]
                contents = Inner(run.text, inner, run.encode)
                findings.append(Detection(start, end, first.name, first.secret, _OF_PACKED * 1000, contents))

    def resolved(self, text: str, findings: list[Detection]) -> list[Detection]:
        """Let each place have one finding: the lower order first, then the longer. Tokens are nobody's."""
        stretches: list[tuple[int, int, bool]] = []
        winners: list[Detection] = []
        if TOKEN_MARK.lower() in text.lower():
            stretches = [(*match.span(), True) for match in TOKEN.finditer(text)]
            findings = [each for each in findings if not _touches(each, stretches)]
        for each in sorted(findings, key=lambda item: (item.order // 1000, item.start, -item.end, item.order)):
            credential = self._groups.get(each.name, True)
            free, by_credential = _free(each.start, each.end, stretches)
            if free == [(each.start, each.end)]:
                winners.append(each)
            elif credential or not by_credential:
                for start, end in free:
                    if any(map(str.isalnum, text[start:end])):
                        winners.append(Detection(start, end, each.name, text[start:end], each.order))
            else:
                continue
            for start, end in free:
                insort(stretches, (start, end, credential))
        winners.sort()
        return winners


class _Characters:
    """Turns places in a text in UTF-8, asked for in order, into places in the text."""

    __slots__ = ("_at", "_count", "_data")

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._count = data, 0, 0

    def before(self, place: int) -> int:
        """Count the characters before a place."""
        if place != self._at:
            self._count += len(self._data[self._at : place].translate(None, _CONTINUED))
            self._at = place
        return self._count


def _in_characters(data: bytes, anchors: list[tuple[int, Entry]]) -> list[tuple[int, Entry]]:
    anchors.sort(key=_start_of)
    before = _Characters(data).before
    return [(before(at), entry) for at, entry in anchors]


def _has_other_letters(data: bytes) -> bool:
    return any(first in data for first in _OTHER_LETTERS)


def _start_of(anchor: tuple[int, Entry]) -> int:
    return anchor[0]


def _touches(finding: Detection, stretches: list[tuple[int, int, bool]]) -> bool:
    at = bisect_right(stretches, (finding.start, finding.start, False))
    return any(a < finding.end and finding.start < b for a, b, _ in stretches[max(0, at - 1) : at + 2])


def _free(start: int, end: int, stretches: list[tuple[int, int, bool]]) -> tuple[list[tuple[int, int]], bool]:
    """Give what of a stretch nobody has taken, and whether a credential has taken any of it."""
    free: list[tuple[int, int]] = []
    by_credential = False
    at = max(0, bisect_right(stretches, (start, start, False)) - 1)
    low = start
    for a, b, credential in stretches[at:]:
        if a >= end:
            break
        if b <= low:
            continue
        by_credential = by_credential or credential
        if a > low:
            free.append((low, a))
        low = max(low, b)
    if low < end:
        free.append((low, end))
    return free, by_credential


def _spellings(secrets: Iterable[str]) -> dict[str, str]:
    """Give every spelling in which exact secrets are looked for, the longest first, and what each stands for."""
    spellings: dict[str, str] = {}
    for secret in sorted(set(secrets), key=lambda each: (-len(each), each)):
        for spelled in (secret, quote(secret, safe=""), quote_plus(secret), quote(secret)):
            spellings.setdefault(spelled, secret)
    return spellings


def _marks(spelled: str) -> str:
    """Give the longest stretch of a secret that JSON spells as it is; empty where none is long enough."""
    marks = max(_PLAIN.findall(spelled), key=len, default="")
    return marks if len(marks) >= 4 else ""


__all__ = ["KEY", "Budget", "Detection", "Inner", "Scanner", "TooHard"]
