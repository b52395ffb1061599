"""The headers of two answers of one unit, held against each other.

Which are compared says `boundary.answer_headers`. Passed over is what differs by nature: a date that lies as long
after the beginning of its run on both sides, a nonce of a content security policy, and what `compare.volatile` names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from email.utils import parsedate_to_datetime
from typing import Final

from reenact.compare.volatile import Side, Volatile
from reenact.values.difference import ABSENT, Absent
from reenact.values.json import Json

_NONCE: Final = re.compile(r"'nonce-[A-Za-z0-9+/=_-]+'")
_DATE: Final = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d[ -][A-Z][a-z]{2}[ -]\d{2,4} \d\d:\d\d:\d\d GMT")
"""A date as HTTP spells it (RFC 9110, section 5.6.7), and as cookies do."""
_SLACK_S: Final = 60.0
Headers = Sequence[tuple[str, str]]


def header_differences(
    before: Headers, now: Headers, a: Side, b: Side
) -> Iterator[tuple[str, Json | Absent, Json | Absent]]:
    """Yield the names of headers that differ, with both values; those of one name stand together."""
    left, right = _by_name(before), _by_name(now)
    volatile = Volatile(a, b)
    for name in dict.fromkeys((*left, *right)):
        one, other = left.get(name), right.get(name)
        if (
            one is None
            or other is None
            or len(one) != len(other)
            or not all(_alike(*pair, volatile, a, b) for pair in zip(one, other, strict=True))
        ):
            yield name, _header_text(one), _header_text(other)


def _by_name(headers: Headers) -> dict[str, list[str]]:
    values_by_name: dict[str, list[str]] = {}
    for name, value in headers:
        values_by_name.setdefault(name, []).append(value)
    return values_by_name


def _header_text(values: list[str] | None) -> Json | Absent:
    return ABSENT if values is None else ", ".join(values)


def _alike(one: str, other: str, volatile: Volatile, a: Side, b: Side) -> bool:
    if one == other:
        return True
    one, other = _NONCE.sub("'nonce'", one), _NONCE.sub("'nonce'", other)
    dates = _DATE.findall(one), _DATE.findall(other)
    if len(dates[0]) == len(dates[1]) and all(_as_far(*pair, a, b) for pair in zip(*dates, strict=True)):
        one, other = _DATE.sub("date", one), _DATE.sub("date", other)
    return volatile.alike(one, other) is not None


def _as_far(one: str, other: str, a: Side, b: Side) -> bool:
    """Tell whether two dates lie as far from the beginnings of their runs, or are one."""
    if one == other:
        return True
    try:
        seconds = [parsedate_to_datetime(each.replace("-", " ")).timestamp() for each in (one, other)]
    except (TypeError, ValueError):
        return False
    lengths = [(side.ended_ns - side.began_ns) / 1e9 for side in (a, b)]
    far = [at - side.began_ns / 1e9 for at, side in zip(seconds, (a, b), strict=True)]
    return abs(far[0] - far[1]) <= _SLACK_S + max(lengths)
