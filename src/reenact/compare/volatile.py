"""What may differ between two runs of one program by nature, in the texts that it gave out: a closed list.

- a time that lies within its own run, on both sides; in names and in what `logging` writes a date of the run as well
- the process id of its own run
- a name that `tempfile` made in its own run
- a version 4 UUID (RFC 9562, section 5.4)
- the address of an object, as its default `repr` tells it (`at 0x…`)
- the id of a thread of its own run, as `threading.get_ident` gives it
- which thread of a pool it was: the number behind the pool's name
- the day in a line of absl's log
- whether a line of rich's log has its time, which the line before may have as well
- in what `logging` writes the same two, the milliseconds of a time and those since the start, where its format has them

Both sides must have such a value at the same place. Names and UUIDs have to map one to one, throughout two runs, where
they are the same included; a thread takes over the id of one that has ended, or does not. A UUID that the program was
told by an answer is none that it made, and one of the recording that the replay gives in another's place comes from the
tape, and not by chance. Everything else is a difference: any other number, a date outside the run,
wording.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final

_SECOND: Final = 1_000_000_000
_DAY: Final = 86_400 * _SECOND
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH: Final = "|".join(_MONTHS)
_WEEKDAY: Final = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_CLOCK: Final = r"(?P<h{0}>\d\d)[:-](?P<mi{0}>\d\d)(?:[:-](?P<s{0}>\d\d)(?:[.,](?P<f{0}>\d{{1,9}}))?)?"
_ZONE: Final = r"(?: ?(?P<z{0}>Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_FORMS: Final = (
    r"(?P<uuid>(?i:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}))",
    r"(?P<address>(?<=\bat )0x[0-9a-f]{6,16})",
    r"(?P<redacted>REDACTED_[a-z0-9_]+)",
    rf"(?:(?:{_WEEKDAY}),? )?(?P<d1>\d\d?)[ /-](?P<m1>{_MONTH})[ /-](?P<y1>\d{{4}})[ :]"
    + _CLOCK.format(1)
    + _ZONE.format(1),
    rf"(?:{_WEEKDAY}) (?P<m2>{_MONTH}) (?P<d2>[ \d]\d) {_CLOCK.format(2)} (?P<y2>\d{{4}})",
    rf"(?P<y3>\d{{4}})[-/](?P<n3>\d\d)[-/](?P<d3>\d\d)(?:[T _]{_CLOCK.format(3)}{_ZONE.format(3)})?",
    r"(?P<y4>\d{4})(?P<n4>\d\d)(?P<d4>\d\d)[T_-]?(?P<h4>\d\d)(?P<mi4>\d\d)(?P<s4>\d\d)(?P<z4>Z)?(?!\d)",
    rf"(?P<n6>\d\d)/(?P<d6>\d\d)/(?P<y6>\d\d) {_CLOCK.format(6)}",
    rf"(?P<y7>\d\d)(?P<n7>\d\d)(?P<d7>\d\d) {_CLOCK.format(7)}",
    r"(?P<h5>\d\d):(?P<mi5>\d\d):(?P<s5>\d\d)(?:[.,](?P<f5>\d{1,9}))?",
    r"(?P<chain>\d+(?:\.\d+){2,})",
    r"(?P<number>\d+(?:\.\d+)?)",
)
_VALUE: Final = re.compile("|".join(rf"(?<![0-9A-Za-z.])(?:{form})(?![0-9A-Za-z])" for form in _FORMS))
_UUID: Final = re.compile(_FORMS[0].replace("?P<uuid>", "?:"))
_FIELD: Final = re.compile(r"%\((\w+)(?::([^)]*))?\)[-#0 +]*\d*(?:\.\d+)?[sdfiu]|%%")
_POOL: Final = re.compile(r"\b(?:ThreadPoolExecutor-\d+|asyncio)_(?P<number>\d+)\b")
_MAILDIR: Final = re.compile(r"\b\d+\.(?:[A-Z]\d+)*P(?P<process>\d+)Q\d+\.")
"""The name of a message in a Maildir, as `mailbox` makes it."""
_SHORT: Final = 2
"""Digits of a year of our century, as `%x` of `time.strftime` gives it."""
_RICH: Final = re.compile(r"(?:\[(?P<time>[\d/: ]+)\]| {10}| {19})(?= [A-Z]{4,8} )")
"""How a line of rich's log begins: the time, or blanks where the line before has the same."""
_ABSL: Final = re.compile(r"[A-Z](?P<day>\d{4}) \d\d:\d\d:\d\d\.\d+ ")
"""How a line of absl's log begins: a letter, and the month and day, with the time behind."""
_SHORT_FOR: Final = {
    "%c": "%a %b %e %H:%M:%S %Y",
    "%x": "%D",
    "%X": "%T",
    "%F": "%Y-%m-%d",
    "%D": "%m/%d/%y",
    "%h": "%b",
    "%T": "%H:%M:%S",
    "%R": "%H:%M",
    "%r": "%I:%M:%S %p",
    "%e": "%d",
}
"""Letters of `time.strftime` that stand for others in the locale C; a day below ten has a blank or a zero."""
_LETTER_PATTERNS: Final = {
    **dict.fromkeys("mHIMSy", r"\d\d"),
    "d": r"[ \d]\d",
    "Y": r"\d{4}",
    "f": r"\d{6}",
    "j": r"\d{3}",
    "z": r"[+-]\d{4}",
    "%": "%",
    **dict.fromkeys("abp", r"[^\W\d]{2,4}"),
    **dict.fromkeys("AB", r"[^\W\d]+"),
}
_LENGTHS: Final = {"f": 1_000, "S": _SECOND, "M": 60 * _SECOND, "HI": 3600 * _SECOND}
"""How long a time lasts by its finest letter, in nanoseconds."""
_OF_A_LINE: Final = {
    "thread": r"(?P<thread>\d+)",
    "relativeCreated": r"(?P<relative>\d+(?:\.\d+)?)",
    "msecs": r"(?P<msecs>\d{1,3}(?:\.\d+)?)",
    "threadName": r"(?:\S+_(?P<worker>\d+)|\S.*?)",
}
_NUMBERS: Final = frozenset({"process", "lineno", "levelno", "created", *_OF_A_LINE} - {"threadName"})
_WORDS: Final = frozenset({"levelname", "name", "module", "funcName", "filename", "pathname", "processName"})
"""Fields of a log line (`logging.LogRecord`) that hold a number, or no blank."""
_REPLACED: Final = frozenset({"replaced", "thread ids", "times"})
"""What a placeholder may stand for: a long number: redaction takes one, by chance, for an identity number or a card."""
_UNITS: Final = {10: _SECOND, 13: 1_000_000, 16: 1_000, 19: 1}
"""Nanoseconds that one stands for, by the number of digits of a time since the epoch in our century."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one run could not help to differ in."""

    began_ns: int
    ended_ns: int
    offset_s: int = 0
    processes: frozenset[int] = frozenset()
    temporary: frozenset[str] = frozenset()
    threads: frozenset[int] = frozenset()
    """Their ids."""

    def holds(self, begin: int, end: int) -> bool:
        """Tell whether some time between two lies within the run; a clock is told in parts of its span."""
        return begin <= self.ended_ns and end >= self.began_ns


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a text: what stands there, and what it may be."""

    text: str
    kinds: frozenset[str] = frozenset()


@dataclass(slots=True)
class Volatile:
    """Tells texts of two runs alike, and counts what it passed over."""

    a: Side
    b: Side
    known: frozenset[str] = frozenset()
    """UUIDs that the recorded program was told."""
    drawn: frozenset[str] = frozenset()
    """UUIDs that it drew, or gave out."""
    _to: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _from: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def alike(self, a: str, b: str, *, log: str | None = None, dates: bool = False) -> Counter[str] | None:
        """Say what was passed over for two lines to be one, by kind; None where they differ.

        `log` is the format of the lines where `logging` wrote them, `dates` lets a date of the run stand for a time.
        """
        volatile = self._volatile(a, b, log, dates=dates)
        return volatile[0] if volatile is not None and self._maps(volatile[1]) else None

    def are_swapped(self, a: str, b: str, *, log: str | None = None) -> bool:
        """Tell that two lines differ only in which of several names stands where: these come in any run alike."""
        volatile = self._volatile(a, b, log, dates=False)
        return volatile is not None and bool(volatile[1]) and not self._maps(volatile[1])

    def _volatile(
        self, a: str, b: str, log: str | None, *, dates: bool
    ) -> tuple[Counter[str], list[tuple[str, str, str]]] | None:
        """Say what may be passed over by its kind, and which names stand for which; None where more differs."""
        if a == b:
            return Counter(), [("uuids", each, each) for each in _UUID.findall(a)]
        left = [*_parts(a, self.a, log, dates=dates or log is not None)]
        right = [*_parts(b, self.b, log, dates=dates or log is not None)]
        if len(left) != len(right):
            return None
        counts: Counter[str] = Counter()
        pairs: list[tuple[str, str, str]] = []
        for one, other in zip(left, right, strict=True):
            if one.text == other.text:
                continue
            shared = one.kinds & other.kinds
            if not shared or "replaced" in shared:  # of two placeholders nobody knows what they stand for
                return None
            kind = next(each for each in _KINDS if each in shared)
            if self._is_known(kind, one.text, other.text):
                return None
            counts[kind] += 1
            if kind in _ONE_TO_ONE:
                pairs.append((kind, one.text, other.text))
        return counts, pairs

    def _is_known(self, kind: str, one: str, other: str) -> bool:
        """Tell that what stands in the place of `one` is another value of the recording, and no new one."""
        if kind == "temporary names":  # those of own code come again in a replay
            return other in self.a.temporary
        one, other = one.lower(), other.lower()
        return kind == "uuids" and (other in self.drawn or not self.known.isdisjoint((one, other)))

    def _maps(self, pairs: list[tuple[str, str, str]]) -> bool:
        """Learn which name stands for which; False where one stood for another before."""
        to, back = dict[tuple[str, str], str](), dict[tuple[str, str], str]()
        for kind, one, other in pairs:
            counterpart = to.get((kind, one), self._to.get((kind, one), other))
            reverse = back.get((kind, other), self._from.get((kind, other), one))
            if counterpart != other or reverse != one:
                return False
            to[kind, one], back[kind, other] = other, one
        self._to.update(to)
        self._from.update(back)
        return True


def uuids_in(texts: Iterable[str]) -> frozenset[str]:
    """Find the UUIDs in texts, in lower case."""
    return frozenset(each.lower() for text in texts for each in _UUID.findall(text))


_KINDS: Final = (
    *("temporary names", "uuids", "addresses", "thread ids", "threads of a pool"),
    *("relative times", "process ids", "times"),
)
_ONE_TO_ONE: Final = frozenset({"temporary names", "uuids"})


def _parts(text: str, side: Side, log: str | None, *, dates: bool) -> Iterator[_Part]:
    at = 0
    for begin, end, kinds in _marked(text, side, log, dates=dates):
        if begin < at:
            continue
        yield _Part(text[at:begin])
        yield _Part(text[begin:end], kinds)
        at = end
    yield _Part(text[at:])


def _marked(text: str, side: Side, log: str | None, *, dates: bool) -> list[tuple[int, int, frozenset[str]]]:
    """Find the values in a text, in their order, each with what it may be.

    Those that are nothing volatile are among them: what is found by its form alone parts two texts alike.
    """
    marks = [*_of_log_line(text, side, log)]
    for name in side.temporary:
        at = text.find(name) if name else -1
        while at >= 0:
            marks.append((at, at + len(name), frozenset({"temporary names"})))
            at = text.find(name, at + len(name))
    marks += [(*match.span("number"), frozenset({"threads of a pool"})) for match in _POOL.finditer(text)]
    marks += [(*match.span("process"), _of_number(match["process"], side)) for match in _MAILDIR.finditer(text)]
    for match in _VALUE.finditer(text):
        if match["chain"]:
            marks += _links(match, side)
        else:
            kinds = _kinds(match, side, dates=dates)
            marks.append((*(_quoted(text, *match.span()) if "thread ids" in kinds else match.span()), kinds))
    order = {begin: number for number, (begin, _, _) in enumerate(marks)}
    return sorted(marks, key=lambda each: (each[0], order[each[0]]))


def _of_log_line(text: str, side: Side, log: str | None) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Find what a line of a log has by its format, or by being rich's."""
    if log and (fields := _line(log)) is not None and (match := fields.fullmatch(text)) is not None:
        groups = match.groupdict()
        if groups.get("thread") is not None:
            yield *match.span("thread"), frozenset({"thread ids"})
        if groups.get("relative") is not None and _is_within(groups["relative"], side):
            yield *match.span("relative"), frozenset({"relative times"})
        if groups.get("asctime") is not None and _is_time_of_run(groups["asctime"], _date_format(log), side):
            yield *match.span("asctime"), frozenset({"times"})
        if groups.get("msecs") is not None:
            yield *match.span("msecs"), frozenset({"times"})
        if groups.get("worker") is not None:
            yield *match.span("worker"), frozenset({"threads of a pool"})
    if (line := _RICH.match(text)) is not None and _is_of_run(line["time"], side):
        yield *line.span(), frozenset({"times"})
    if (line := _ABSL.match(text)) is not None and (int(line["day"][:2]), int(line["day"][2:])) in _months(side):
        yield *line.span("day"), frozenset({"times"})


def _date_format(log: str) -> str:
    """Give the format of dates that the first time of a log's format has."""
    return next((dates for match in _FIELD.finditer(log) if (dates := match.group(2)) is not None), "")


def _long_form(dates: str) -> str:
    """Write out the letters that stand for several."""
    for short, letters in _SHORT_FOR.items():
        dates = dates.replace(short, letters)
    return dates


def _time_pattern(dates: str) -> str:
    """Make the pattern of the times that a format of dates spells; nothing where it has other letters."""
    pattern, at, whole = "", 0, _long_form(dates)
    for match in re.finditer(r"%(.)", whole):
        if match[1] not in _LETTER_PATTERNS:
            return ""
        pattern += re.escape(whole[at : match.start()]) + _LETTER_PATTERNS[match[1]]
        at = match.end()
    return rf"\s*(?P<asctime>{pattern}{re.escape(whole[at:])})\s*" if pattern else ""


def _is_time_of_run(text: str, dates: str, side: Side) -> bool:
    """Tell whether a text is what a format of dates makes of a time of the run's."""
    whole = _long_form(dates)
    try:
        moment = datetime.strptime(text, whole)  # noqa: DTZ007 - its zone is tried below
    except ValueError:
        return False
    length = next((size for letters, size in _LENGTHS.items() if any(f"%{each}" in whole for each in letters)), _DAY)
    clock = moment.hour, moment.minute, moment.second, moment.microsecond * 1000
    for zone in (UTC, timezone(timedelta(seconds=side.offset_s))):
        for day in _days(zone, side):
            candidate = datetime(*day, *clock[:3], moment.microsecond, tzinfo=zone)
            if candidate.strftime(dates) == text and _falls(zone, [day], clock, length, side):
                return True
    return False


def _is_of_run(time: str | None, side: Side) -> bool:
    """Tell whether a text is a time of the run's, or left out."""
    match = _VALUE.fullmatch(time) if time else None
    return not time or (match is not None and _is_time(match.groupdict(), side, dates=True))


def _quoted(text: str, begin: int, end: int) -> tuple[int, int]:
    """Take the quotes around a value along: a number of JSON that redaction replaces becomes a text."""
    for quote in ('\\"', '"'):
        if text[:begin].endswith(quote) and text.startswith(quote, end):
            return begin - len(quote), end + len(quote)
    return begin, end


def _links(match: re.Match[str], side: Side) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Find the numbers between dots, as an id of a message has them: a process id of the run's may be among them."""
    begin = match.start()
    for number in match["chain"].split("."):
        yield begin, begin + len(number), _of_number(number, side) & {"process ids"}
        begin += len(number) + 1


def _is_within(milliseconds: str, side: Side) -> bool:
    return float(milliseconds) * 1_000_000 <= side.ended_ns - side.began_ns + 60 * _SECOND


@lru_cache(maxsize=64)
def _line(log: str) -> re.Pattern[str] | None:
    """Make the pattern of the lines of a format in which a thread or such a time stands; None where none does."""
    pattern, at, has_time = "", 0, False
    field_names: set[str] = set()
    for match in _FIELD.finditer(log):
        name = match.group(1) or ""
        pattern += re.escape(log[at : match.start()])
        at = match.end()
        fresh, dates = name not in field_names, match.group(2)
        time_pattern = _time_pattern(dates) if fresh and dates else ""
        pattern += time_pattern or _pattern(name, fresh=fresh)
        has_time = has_time or bool(time_pattern)
        field_names.add(name)
    return re.compile(pattern + re.escape(log[at:]), re.DOTALL) if has_time or field_names & _OF_A_LINE.keys() else None


def _pattern(name: str, *, fresh: bool) -> str:
    """Give the pattern of a field; it may be filled up with blanks."""
    if not name:
        return "%"
    if name in _OF_A_LINE and fresh:
        return rf"\s*{_OF_A_LINE[name]}\s*"
    if name in _NUMBERS:
        return r"\s*\d+(?:\.\d+)?\s*"
    return r"\s*\S+\s*" if name in _WORDS else ".*" if name == "message" else ".+?"


def _kinds(match: re.Match[str], side: Side, *, dates: bool) -> frozenset[str]:
    groups = match.groupdict()
    if groups["uuid"]:
        return frozenset({"uuids"})
    if groups["address"]:
        return frozenset({"addresses"})
    if groups["redacted"]:
        return _REPLACED
    if groups["number"]:
        return _of_number(groups["number"], side)
    return frozenset({"times"}) if _is_time(groups, side, dates=dates) else frozenset()


def _of_number(text: str, side: Side) -> frozenset[str]:
    whole, _, fraction = text.partition(".")
    if not fraction and int(whole) in side.processes:
        return frozenset({"process ids"})
    if not fraction and int(whole) in side.threads:
        return frozenset({"thread ids"})
    unit = _UNITS.get(len(whole))
    if unit is None or whole.startswith("0"):
        return frozenset()
    ns = int(whole) * unit + int(fraction.ljust(9, "0")[:9]) * unit // _SECOND if fraction else int(whole) * unit
    return frozenset({"times"}) if side.holds(ns, ns + (0 if fraction else unit)) else frozenset()


def _is_time(groups: dict[str, str | None], side: Side, *, dates: bool) -> bool:
    def of(name: str) -> str | None:
        return next((groups[f"{name}{at}"] for at in range(1, 8) if groups.get(f"{name}{at}")), None)

    hour, year = of("h"), of("y")
    if hour is None and not dates:
        return False
    clock = int(hour or 0), int(of("mi") or 0), int(of("s") or 0), int((of("f") or "0").ljust(9, "0"))
    length = _DAY if hour is None else 60 * _SECOND if of("s") is None else 0 if of("f") else _SECOND
    month = _MONTHS.index(of("m") or "") + 1 if of("m") else int(of("n") or 1)
    zones = [_zone(of("z"))] if of("z") else [UTC, timezone(timedelta(seconds=side.offset_s))]
    days = [(int(year) + 2000 * (len(year) == _SHORT), month, int(of("d") or 1))] if year else None
    return any(_falls(each, days, clock, length, side) for each in zones)


def _falls(
    zone: timezone, days: list[tuple[int, int, int]] | None, clock: tuple[int, int, int, int], length: int, side: Side
) -> bool:
    for year, month, day in days or _days(zone, side):
        try:
            moment = datetime(year, month, day, *clock[:3], tzinfo=zone)
        except ValueError:  # no such day
            continue
        ns = int(moment.timestamp()) * _SECOND + clock[3]
        if side.holds(ns, ns + length):
            return True
    return False


def _days(zone: timezone, side: Side) -> set[tuple[int, int, int]]:
    ends = (datetime.fromtimestamp(ns / _SECOND, zone) for ns in (side.began_ns, side.ended_ns))
    return {(each.year, each.month, each.day) for each in ends}


def _months(side: Side) -> set[tuple[int, int]]:
    zones = (UTC, timezone(timedelta(seconds=side.offset_s)))
    return {(month, day) for zone in zones for _, month, day in _days(zone, side)}


def _zone(spelled: str | None) -> timezone:
    if not spelled or spelled[0] not in "+-":
        return UTC
    digits = spelled[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return timezone(timedelta(minutes=minutes if spelled[0] == "+" else -minutes) % timedelta(days=1))
