from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from reenact.cli.moments import moment_bounds, window
from reenact.errors import UsageError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = 60 * 10**9


def ns(text: str) -> int:
    return (datetime.fromisoformat(text).astimezone(UTC) - EPOCH) // timedelta(microseconds=1) * 1000


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Local time as in Berlin: summer time ended on 2026-10-25 and began on 2026-03-29."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "first", "length"),
    [
        ("2026-11-20T09:04Z", "2026-11-20T09:04:00+00:00", MINUTE),
        ("2026-11-20 09:04 Z", "2026-11-20T09:04:00+00:00", MINUTE),
        ("2026-11-20T09:04:31z", "2026-11-20T09:04:31+00:00", 10**9),
        ("2026-11-20 09:04:31 UTC", "2026-11-20T09:04:31+00:00", 10**9),
        ("2026-11-20T09:04:31.25Z", "2026-11-20T09:04:31.250+00:00", 10**7),
        ("2026-11-20T09:04:31,250Z", "2026-11-20T09:04:31.250+00:00", 10**6),
        ("2026-11-20T09:04+01:00", "2026-11-20T08:04:00+00:00", MINUTE),
        ("2026-11-20T09:04-0530", "2026-11-20T14:34:00+00:00", MINUTE),
        ("2026-11-20T09:04+02", "2026-11-20T07:04:00+00:00", MINUTE),
        ("20261120T0904Z", "2026-11-20T09:04:00+00:00", MINUTE),
        ("2026-11-20T09Z", "2026-11-20T09:00:00+00:00", 60 * MINUTE),
        ("1795165440", "2026-11-20T09:04:00+00:00", 10**9),
        ("1795165440000", "2026-11-20T09:04:00+00:00", 10**6),
        ("1795165440000000", "2026-11-20T09:04:00+00:00", 10**3),
        ("1795165440000000000", "2026-11-20T09:04:00+00:00", 1),
    ],
)
def test_a_time_with_a_zone_names_all_that_its_spelling_leaves_open(text: str, first: str, length: int) -> None:
    assert moment_bounds("--at", text) == (ns(first), ns(first) + length - 1)


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2026-11-20T09:04", "2026-11-20T08:04:00+00:00", "2026-11-20T08:05:00+00:00"),
        ("2026-07-20T09:04", "2026-07-20T07:04:00+00:00", "2026-07-20T07:05:00+00:00"),
        ("2026-11-20", "2026-11-19T23:00:00+00:00", "2026-11-20T23:00:00+00:00"),
        ("2026-10-25", "2026-10-24T22:00:00+00:00", "2026-10-25T23:00:00+00:00"),
        ("2026-03-29", "2026-03-28T23:00:00+00:00", "2026-03-29T22:00:00+00:00"),
        ("2026-10-25T02:30", "2026-10-25T00:30:00+00:00", "2026-10-25T01:31:00+00:00"),
    ],
    ids=["winter", "summer", "a day", "a day of 25 hours", "a day of 23 hours", "a minute that came twice"],
)
def test_a_time_without_a_zone_is_local(text: str, first: str, last: str) -> None:
    assert moment_bounds("--at", text) == (ns(first), ns(last) - 1)


def test_a_while_ago() -> None:
    before = time.time_ns()
    first, last = moment_bounds("--since", "2h")
    assert first == last
    assert before <= first + 2 * 3600 * 10**9 <= time.time_ns()


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "2026-11-20T25:00", "09:04", "2026-11-20T09:04+25:00", "9" * 40]
)
def test_what_is_no_time_is_told_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match="--until takes a time") as error:
        moment_bounds("--until", text)
    assert "2026-11-20T09:04:31Z" in str(error.value)


def test_how_far_at_reaches() -> None:
    minute, hour = ns("2026-11-20T09:04+00:00"), ns("2026-11-20T09:00+00:00")
    assert window("2026-11-20T09:04Z", None, None, None) == (minute - 5 * MINUTE, minute + 6 * MINUTE - 1)
    assert window("2026-11-20T09:04Z", "0s", None, None) == (minute, minute + MINUTE - 1)
    assert window("2026-11-20T09:04Z", "1h", None, None) == (minute - 60 * MINUTE, minute + 61 * MINUTE - 1)
    assert window("2026-11-20T09Z", None, None, None) == (hour, hour + 60 * MINUTE - 1)


def test_bounds_join() -> None:
    nine, ten = ns("2026-11-20T09:00+00:00"), ns("2026-11-20T10:00+00:00")
    assert window(None, None, None, None) is None
    assert window(None, None, "2026-11-20T09:00Z", "2026-11-20T10:00Z") == (nine, ten + MINUTE - 1)
    assert window("2026-11-20T09:00Z", "1d", "2026-11-20T09:00Z", None) == (nine, ns("2026-11-21T09:01+00:00") - 1)
    assert window(None, None, None, "2026-11-20T10:00Z") == (-(2**63), ten + MINUTE - 1)


def test_a_reach_wants_a_time_and_a_unit() -> None:
    with pytest.raises(UsageError, match="there is no --at"):
        window(None, "5m", None, None)
    for wrong in ("5", "m", "-5m", "5 minutes", "\u0665m"):
        with pytest.raises(UsageError, match="--within takes"):
            window("2026-11-20", wrong, None, None)
