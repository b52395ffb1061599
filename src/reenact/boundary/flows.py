"""Draws of installed libraries: held, and taped where what was drawn is seen in what the program gives out.

Theory of operation. An SDK draws a key for every request that it makes and a random time for every retry; nearly all
of that is seen nowhere, and some of it (keys, salts) has no place in a trace. So what a library draws is only held.
When a request is made, the text is looked through for the values that are held: the hexadecimal digits of a uuid or of
bytes, their base 64, the seconds or the date of a clock, and these inside a JSON Web Token. A value that is
seen there is in the trace anyway. It is kept, and so is what was drawn near it by the same module, or for the same call
of the agent's (an id is often made of a clock and of chance).

An alphabet of its own is read as well: a library that chooses signs (`secrets.choice`) and puts them together draws a
byte for each, and none of these is seen alone. So the signs that one site chose are looked for in a row.

Looking is one walk over the words of the text: each window of a word is looked up among the beginnings and ends of what
is held. A value that was turned into something else (hashed, written in another alphabet) is not seen, and not taped.

A clock is another matter: what is given out is how long something took, the difference of two readings, and holds
neither. There is nothing secret in it. So what libraries read of clocks is taped, the first readings of each site.

Where a draw stands is told by its *segment*, all that the libraries of one lane drew between two calls, and by its
number at its site within that.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import re
import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import lru_cache
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import CodeType, FrameType
from typing import Any, Final, cast

from reenact.boundary.lanes import Lane, Reel
from reenact.boundary.own_code import is_own_code
from reenact.values import locks

MOST: Final = 10_000
"""So many draws of one site of a segment are held, and so many in all."""
_MOST_READINGS: Final = 100
"""As many readings of a clock that were seen are kept for one site of a segment."""
_MOST_READ: Final = 500
"""So many readings of a clock are taped for one site of a segment."""
_MOST_LANES: Final = 1_000
"""So many lanes of a run that made no call are told what libraries read of a clock on them."""
_SHORT, _LONG = 8, 10
_LARGEST_TIME, _UUID_BITS = 1 << 64, 128
_GREGORIAN: Final = 0x01B21DD213814000
"""What a UUID of version 1 or 6 counts from, as 100 ns before 1970."""
_NANOSECONDS: Final = 1e12
"""A time since the epoch that is more than so many is told in nanoseconds."""
_WORD: Final = re.compile(r"[0-9A-Za-z+/_-]{8,}")
_DIGITS: Final = re.compile(r"(?:[0-9A-Fa-f]{2})+")
_SPELLED: Final = 66
"""Hexadecimal digits as long as this spell a text: no value that is drawn is as long."""
_LONGEST: Final = 512
"""Characters of one word that are looked at: what is longer is media."""
_MOST_TEXT: Final = 4 << 20
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MOST_NEEDLES: Final = 100_000
_MOST_REMEMBERED: Final = 1 << 20
_OVERLAP: Final = 64
"""Characters: as long as what is drawn is spelled at most."""
_GONE: Final = -1
_NEAR: Final = 200
"""Draws that lie no further apart may be of one making."""
_DEEPEST: Final = 60
"""Frames between a draw and the agent's own code."""
_URL_SAFE: Final = str.maketrans("+/", "-_")
_CROCKFORD: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789ABCDEFGHJKMNPQRSTVWXYZ")
"""From RFC 4648's base 32 to that of ULIDs."""
_ULID_BYTES: Final = 10
_count: Final = itertools.count().__next__
_lock: Final = locks.lock()


class Segment:
    """What the libraries of one lane drew between two calls."""

    __slots__ = ("call", "chosen", "counts", "kept", "lane", "last", "read", "reel")

    def __init__(self, lane: Lane) -> None:
        self.lane, self.reel = lane, lane.reel
        self.call = 0
        """The span of the call, or of the unit of work, that ended it; 0 as long as it is open."""
        self.counts: dict[tuple[int, Any], int] = {}
        """How many draws there were: by the call in which they were made, and by site."""
        self.kept: dict[tuple[int, Any], dict[int, Any]] = {}
        """Those that were seen, by their number."""
        self.read: dict[tuple[int, Any], list[Any]] = {}
        """What clocks said of which a difference may be given out, in order."""
        self.last: _Held | None = None
        """The last draw that is held."""
        self.chosen: dict[tuple[int, Any], str] = {}
        """The last signs that were chosen, by the call and by site."""


class _Held:
    """One draw."""

    __slots__ = ("at", "call", "choice", "making", "number", "segment", "site", "value")

    def __init__(self, segment: Segment, call: int, site: Any, number: int, value: Any) -> None:
        self.making = _making(_getframe(3))
        """The place in a frame of the agent's from where the library was called; 0 where nobody knows."""
        self.segment, self.call, self.site, self.number, self.value = segment, call, site, number, value
        self.choice = ""
        """The sign of an alphabet that was chosen by it."""
        self.at = _count()
        """Which draw it is of all; negative once it is held no more."""


_new: Final[deque[_Held]] = deque(maxlen=MOST)
_held: Final[dict[int, _Held]] = {}
_own: Final[dict[int, tuple[CodeType, bool]]] = {}
"""Whether code is the agent's own, by its identity."""
_index: Final[dict[str, list[_Held]]] = {}
"""By what a text has to hold: eight digits in lower case, ten characters as they are, or a day in words."""
_days: Final[set[str]] = set()
"""Those in words."""


def forget() -> None:
    """Hold nothing any more: a recording begins."""
    with _lock:
        for each in (_new, _held, _index, _days):
            each.clear()


def hold(lane: Lane, call: int, site: Any, value: Any) -> None:
    """Hold what a library drew at `site` on `lane`, inside the span `call`."""
    segment = lane.library
    if segment is None:
        segment = lane.library = Segment(lane)
    where = call, site
    if site.source.measures:
        if not lane.is_aside:  # what is read there is part of a call that a replay does not make
            _read(segment, where, value)
        if not site.source.flows:
            return
    number = segment.counts.get(where, 0)
    segment.counts[where] = number + 1
    if number < MOST:
        segment.last = held = _Held(segment, call, site, number, value)
        _new.append(held)


def last_draw(lane: Lane) -> object:
    """Give what a library drew last on a lane; None where nothing is held."""
    segment: Segment | None = lane.library
    return None if segment is None else segment.last


def note_choice(lane: Lane, before: object, choice: object) -> None:
    """Note which signs a library chose by what it drew since `before`, the last draw until then."""
    segment: Segment | None = lane.library
    if segment is None or segment.last is None or segment.last is before:
        return
    signs = cast("list[object]", choice) if isinstance(choice, list) else [choice]
    segment.last.choice = "".join(each for each in signs if isinstance(each, str) and len(each) == 1)


def _read(segment: Segment, where: tuple[int, Any], value: Any) -> None:
    """Note what a clock said; the first readings of a site are enough for all but a loop that polls."""
    if (readings := segment.read.get(where)) is None:
        reel = segment.reel
        if id(segment.lane) not in reel.read:
            if len(reel.read) >= _MOST_LANES:
                return
            reel.read[id(segment.lane)] = segment.lane
        readings = segment.read[where] = []
    if len(readings) < _MOST_READ:
        readings.append(value)


def are_held() -> bool:
    """Tell whether there is anything to be seen."""
    return bool(_new or _held)


def note_output(text: str, reel: Reel) -> list[Segment]:
    """Keep what stands in a text that is given out on `reel`; gives the segments that it was drawn in.

    What was drawn on another reel, as where the modules of a service were imported, is found by each that gives it out.
    """
    with _lock:
        _take_in()
        draws: dict[int, _Held] = {}
        for needle in _needles_in(_unseen(text[:_MOST_TEXT], reel)):
            for each in _index.get(needle, ()):
                if each.at >= 0:
                    draws[each.at] = each
        if not draws:
            return []
        near_draws = _near(draws)
        for each in near_draws:
            _keep(each, reel)
        return [*{id(each.segment): each.segment for each in near_draws}.values()]


def _near(draws: Mapping[int, _Held]) -> list[_Held]:
    """Add to what was seen what was drawn near it, on the same lane between the same calls."""
    spans: dict[tuple[int, Any], tuple[int, int]] = {}
    for each in draws.values():
        for group in _groups(each):
            first, last = spans.get(group, (each.at, each.at))
            spans[group] = min(first, each.at), max(last, each.at)
    near_draws = list[_Held]()
    for each in _held.values():
        of_it = (spans[group] for group in _groups(each) if group in spans)
        if any(first - _NEAR <= each.at <= last + _NEAR for first, last in of_it):
            near_draws.append(each)
    return near_draws


def _groups(each: _Held) -> list[tuple[int, Any]]:
    segment = id(each.segment)
    module = str(each.site.key).partition(":")[0]
    return [(segment, module), (segment, each.making)] if each.making else [(segment, module)]


def _making(frame: FrameType | None) -> int:
    for _ in range(_DEEPEST):
        if frame is None:
            return 0
        code = frame.f_code
        cache_entry = _own.get(id(code))
        if cache_entry is None:
            if len(_own) >= MOST:
                _own.clear()
            cache_entry = _own[id(code)] = code, is_own_code(code, frame.f_globals)
        if cache_entry[1]:
            return id(frame) + frame.f_lasti
        frame = frame.f_back
    return 0


def _take_in() -> None:
    while _new:
        each = _new.popleft()
        if len(_held) >= MOST:
            _held.pop(next(iter(_held))).at = _GONE
        _held[each.at] = each
        for needle in (*_needles(each.value), *_of_choices(each)):
            if (those := _index.get(needle)) is None:
                _index[needle] = [each]
                if " " in needle:
                    _days.add(needle)
            else:
                those.append(each)
    if len(_index) > _MOST_NEEDLES:
        _tidy()


def _tidy() -> None:
    """Leave out of the index what is held no more."""
    for needle, those in tuple(_index.items()):
        if left := [each for each in those if each.at >= 0]:
            _index[needle] = left
        else:
            del _index[needle]


def _keep(each: _Held, reel: Reel) -> None:
    segment = each.segment
    if segment.reel is reel:
        del _held[each.at]
        each.at = _GONE
    if each.site.source.moment is not None and each.number >= _MOST_READINGS:
        return
    segment.kept.setdefault((each.call, each.site), {})[each.number] = each.value
    if not segment.call:
        segment.reel.drew[id(segment.lane)] = segment.lane


def _unseen(text: str, reel: Reel) -> str:
    """Leave out of a text how the last one began: a conversation goes on, and nothing drawn since stands there."""
    last = reel.looked_at
    low, high = 0, min(len(text), len(last))
    while low < high:
        middle = (low + high + 1) // 2
        if text[low:middle] == last[low:middle]:
            low = middle
        else:
            high = middle - 1
    reel.looked_at = text if len(text) <= _MOST_REMEMBERED else ""
    return text[max(0, low - _OVERLAP) :]


def _needles_in(text: str) -> Iterator[str]:
    """Give all that might be the beginning or the end of a drawn value."""
    for word in _words(text):
        lower = word.lower()
        if lower != word or not word.isalpha():
            yield from (lower[at : at + _SHORT] for at in range(len(word) - _SHORT + 1))
            yield from (word[at : at + _LONG] for at in range(len(word) - _LONG + 1))
    yield from (day for day in _days if day in text)


def _words(text: str) -> Iterator[str]:
    for word in set(_WORD.findall(text)):
        if word.startswith("eyJ"):
            yield from _WORD.findall(_decoded(word))
        elif len(word) >= _SPELLED and _DIGITS.fullmatch(word):  # bytes, as of a column of a database
            yield from (each[:_LONGEST] for each in _WORD.findall(bytes.fromhex(word).decode("latin-1")))
        yield word[:_LONGEST]


def _decoded(word: str) -> str:
    """Read a part of a JSON Web Token (RFC 7519, section 3)."""
    try:
        return base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)).decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return ""


def _needles(value: Any) -> tuple[str, ...]:
    """Say what a text holds that tells of a drawn value."""
    match value:
        case uuid.UUID():
            needles = value.hex[:_SHORT], value.hex[-_SHORT:]
        case bytes():
            needles = _of_bytes(value)
        case int() if value >= _LARGEST_TIME:
            needles = _of_bytes(value.to_bytes(16)) if value.bit_length() <= _UUID_BITS else ()
        case int() | float():
            needles = _of_seconds(int(value if value < _NANOSECONDS else value / 1e9))
        case datetime():
            needles = (*_of_seconds(int(value.timestamp())), *_of_day(value.year, value.month, value.day))
        case date():
            needles = _of_day(value.year, value.month, value.day)
        case time.struct_time():
            needles = _of_day(value.tm_year, value.tm_mon, value.tm_mday)
        case _ if isinstance(data := getattr(value, "bytes", None), bytes):  # a uuid of another making
            needles = _of_bytes(data)
        case _:
            needles = tuple(each[:_LONG] for each in _WORD.findall(str(value)) if len(each) >= _LONG)
    return needles


def _of_choices(each: _Held) -> Iterator[str]:
    """Give what a text holds that was put together of signs, of which this draw chose the last."""
    if not each.choice:
        return
    where = each.call, each.site
    signs = each.segment.chosen.get(where, "") + each.choice.lower()
    each.segment.chosen[where] = signs[1 - _SHORT :]
    yield from (signs[at : at + _SHORT] for at in range(len(signs) - _SHORT + 1))


def _of_bytes(value: bytes) -> tuple[str, ...]:
    if len(value) < _SHORT // 2:
        return ()
    digits = value.hex()
    if len(value) < _SHORT:
        return digits[:_SHORT], digits[-_SHORT:]
    spelled = base64.b64encode(value[:_LONG]).decode()[:_LONG]
    needles = digits[:_SHORT], digits[-_SHORT:], spelled, spelled.translate(_URL_SAFE)
    if len(value) == _ULID_BYTES:
        return *needles, base64.b32encode(value).decode()[:_LONG].translate(_CROCKFORD)
    return needles


@lru_cache(maxsize=1024)
def _of_seconds(seconds: int) -> tuple[str, ...]:
    days = datetime.fromtimestamp(seconds, UTC), datetime.fromtimestamp(seconds).astimezone()
    day_names: Iterable[str] = (name for each in days for name in _of_day(each.year, each.month, each.day))
    # as they begin in ids that are made of a time: RFC 9562 sections 5.6 and 5.7, and an ObjectId of BSON
    ids = (seconds * 10_000_000 + _GREGORIAN) >> 28, (seconds * 1000) >> 16, seconds
    return tuple(dict.fromkeys((str(seconds), *day_names, *(f"{each:08x}" for each in ids))))


@lru_cache(maxsize=64)
def _of_day(year: int, month: int, day: int) -> tuple[str, ...]:
    name = _MONTHS[month - 1]
    words = [f"{name} {day}", f"{name} {day:02}", f"{day} {name}", f"{name[:3]} {day}", f"{day} {name[:3]}"]
    numbers = [f"{year}-{month:02}-{day:02}", f"{year}/{month:02}/{day:02}", f"{year}{month:02}{day:02}"]
    return *words, *numbers, f"{month:02}/{day:02}/{year}", f"{day:02}/{month:02}/{year}"
