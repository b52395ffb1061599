"""Instants and durations, spelled for people and for JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS = 253_402_300_799 * 10**9
"""The end of the year 9999, the last that RFC 3339 can spell."""


def instant(ns: int) -> str:
    """Spell nanoseconds since the epoch as RFC 3339 in UTC, to the millisecond."""
    moment = _EPOCH + timedelta(milliseconds=min(max(ns, 0), _LAST_NS) // 1_000_000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(start_ns: int, end_ns: int) -> float | None:
    """Give a duration in milliseconds, to the microsecond; None where the end is not known."""
    return round((end_ns - start_ns) / 1e6, 3) if end_ns >= start_ns > 0 else None


def duration(ms: float | None) -> str:
    """Spell a duration for a person: `840 ms`, `3.2 s`, `2 min 05 s`, `1 h 02 min`; `?` where it is not known."""
    if ms is None:
        return "?"
    if ms < 999.5:
        return f"{ms:.0f} ms" if ms >= 1 else f"{ms:.1g} ms"
    seconds = ms / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
