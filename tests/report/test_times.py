from __future__ import annotations

import pytest

from reenact.report.times import duration, instant, milliseconds


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (None, "?"),
        (0.25, "0.2 ms"),
        (1, "1 ms"),
        (840.4, "840 ms"),
        (999.6, "1.0 s"),
        (59_940, "59.9 s"),
        (59_960, "1 min 00 s"),
        (125_000, "2 min 05 s"),
        (3_720_000, "1 h 02 min"),
    ],
)
def test_a_duration_is_said_for_a_person(ms: float | None, said: str) -> None:
    assert duration(ms) == said


def test_an_instant_keeps_its_milliseconds_and_no_number_is_too_large() -> None:
    assert instant(1_790_000_000_123_999_999) == "2026-09-21T14:13:20.123Z"
    assert instant(2**64 - 1).startswith("2554-")
    assert instant(10**30).startswith("9999-12-31T")
    assert instant(-5) == "1970-01-01T00:00:00.000Z"


def test_a_duration_without_an_end_is_not_known() -> None:
    assert milliseconds(10, 0) is None
    assert milliseconds(0, 10) is None
    assert milliseconds(1_000_000, 2_500_000) == 1.5
