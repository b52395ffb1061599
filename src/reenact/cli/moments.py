"""Times as people type them: with or without seconds and zone, as a count since the epoch, or as a while ago."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from reenact.errors import UsageError

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COUNT = re.compile(r"\d{10}|\d{13}|\d{16}|\d{19}", re.ASCII)
_SPELLED = re.compile(
    r"(?P<day>\d{4}-?\d\d-?\d\d)"
    r"(?:[Tt ]+(?P<hour>\d\d)(?::?(?P<minute>\d\d)(?::?(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?)?)?"
    r"\s*(?P<zone>[Zz]|UTC|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
AROUND = timedelta(minutes=5)
"""How far `--at` reaches to both sides where it names a minute or less."""


def window(at: str | None, within: str | None, since: str | None, until: str | None) -> tuple[int, int] | None:
    """Give the first and last nanosecond since the epoch that the options mean together; None where none was given.

    A time stands for all of what it names: `2026-11-20T09:04` for that minute, `2026-11-20` for that day. `--at`
    reaches further by `--within` to both sides: by 5 minutes, or not at all where it names an hour or a day.
    Raises `UsageError`.
    """
    first, last = -(2**63), 2**63 - 1
    if at is not None:
        begin, end = moment_bounds("--at", at)
        reach = _span(within) if within is not None else (AROUND if end - begin <= 60 * 10**9 else timedelta(0))
        first, last = begin - _ns(reach), end + _ns(reach)
    elif within is not None:
        raise UsageError("--within says how far --at reaches; there is no --at")
    if since is not None:
        first = max(first, moment_bounds("--since", since)[0])
    if until is not None:
        last = min(last, moment_bounds("--until", until)[1])
    return None if at is None and since is None and until is None else (first, last)


def moment_bounds(option: str, text: str) -> tuple[int, int]:
    """Give the first and last nanosecond of what a time names.

    A time without zone is local time (TZ); one that the clocks showed twice, when summer time ended, means both. `2h`
    is two hours ago. Ten, 13, 16 or 19 digits are seconds, milli-, micro- or nanoseconds since the epoch.
    """
    text = text.strip()
    if _SPAN.fullmatch(text):
        instant = _ns(datetime.now(UTC) - _EPOCH - _span(text))
        return instant, instant
    if _COUNT.fullmatch(text):
        unit = 10 ** (19 - len(text))
        return int(text) * unit, int(text) * unit + unit - 1
    spelled = _SPELLED.fullmatch(text)
    hint = "also 2026-11-20, 2026-11-20T09:04:31Z, 2026-11-20T09:04+01:00, 2h (ago), or seconds since the epoch"
    refusal = UsageError(f"{option} takes a time such as 2026-11-20T09:04, not {text!r}", hint=hint)
    if spelled is None:
        raise refusal
    try:
        return _interval(spelled)
    except (ValueError, OverflowError) as error:  # a 13th month, a zone of 25 hours
        raise refusal from error


def _interval(spelled: re.Match[str]) -> tuple[int, int]:
    hour, minute, second, part = spelled["hour"], spelled["minute"], spelled["second"], spelled["part"]
    clock = time(int(hour or 0), int(minute or 0), int(second or 0))
    moment = datetime.combine(date.fromisoformat(spelled["day"]), clock)
    if part is not None:
        length = 10 ** (9 - len(part))
    elif second is not None:
        length = 10**9
    else:
        length = 60 * 10**9 if minute is not None else 3600 * 10**9
    begins = [_ns(each - _EPOCH) + int((part or "0").ljust(9, "0")) for each in _instants(moment, spelled["zone"])]
    if hour is None:
        following = [_ns(each - _EPOCH) for each in _instants(moment + timedelta(days=1), None)]
        return min(begins), max(following) - 1  # a day has 23 or 25 hours where summer time begins or ends
    return min(begins), max(begins) + length - 1


def _instants(moment: datetime, zone: str | None) -> list[datetime]:
    if zone is None:
        return [moment.replace(fold=fold).astimezone() for fold in (0, 1)]
    if zone in {"Z", "z", "UTC"}:
        return [moment.replace(tzinfo=UTC)]
    return [datetime.strptime(f"{moment.isoformat()}{zone.ljust(5, '0')}", "%Y-%m-%dT%H:%M:%S%z")]


def _span(text: str) -> timedelta:
    match = _SPAN.fullmatch(text)
    if match is None:
        raise UsageError(f"--within takes a span such as 30s, 5m, 2h or 1d, not {text!r}")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _ns(span: timedelta) -> int:
    return (span.days * 86400 + span.seconds) * 10**9 + span.microseconds * 1000
