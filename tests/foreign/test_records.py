from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.foreign.records import attribute_text, is_said, nanoseconds, originals, rest, span_id, trace_id, unwrapped
from strategies_call import json_values

TRACE, SPAN = "6b93ea0491513227854bf6e443d4b279", "a0188de94f8b028d"
INSTANT = 1_767_348_000 * 10**9


@pytest.mark.parametrize(
    "told",
    [
        TRACE,
        TRACE.upper(),
        f"0x{TRACE}",
        f"tr-{TRACE}",
        f"trace_{TRACE}",
        "6b93ea04-9151-3227-854b-f6e443d4b279",
        base64.b64encode(bytes.fromhex(TRACE)).decode(),
    ],
)
def test_every_spelling_of_a_trace_id_is_one(told: str) -> None:
    assert trace_id(told) == TRACE


@pytest.mark.parametrize("told", [SPAN, SPAN.upper(), f"0x{SPAN}", base64.b64encode(bytes.fromhex(SPAN)).decode()])
def test_every_spelling_of_a_span_id_is_one(told: str) -> None:
    assert span_id(told) == SPAN


@given(json_values)
def test_any_id_is_hexadecimal_and_the_same_each_time(told: object) -> None:
    trace, span = trace_id(told), span_id(told)  # type: ignore[arg-type]
    assert re.fullmatch(r"[0-9a-f]{32}", trace)
    assert re.fullmatch(r"[0-9a-f]{16}", span)
    assert (trace, span) == (trace_id(told), span_id(told))  # type: ignore[arg-type]


def test_ids_of_a_kind_of_their_own_are_told_apart() -> None:
    told = ["obs-1", "obs-2", "span_d5ed0c70bef14be3a18aed52", "3f2cd887-7054-40ab-9c05-2a3d9813c1f9", "<span:1>", "1"]
    assert len({span_id(each) for each in told}) == len(told)
    assert span_id(None) == span_id("") == "0" * 16


def test_an_id_that_was_brought_to_another_spelling_is_kept() -> None:
    assert originals("weave", f"tr-{TRACE}", SPAN, "obs-1") == {
        "weave.trace_id": f"tr-{TRACE}",
        "weave.parent_id": "obs-1",
    }


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("2026-01-02T10:00:00Z", INSTANT),
        ("2026-01-02T10:00:00.000001+00:00", INSTANT + 1_000),
        ("2026-01-02 10:00:00.5", INSTANT + 500_000_000),
        ("2026-01-02 10:00:00.123456789 UTC", INSTANT + 123_456_789),
        ("2026-01-02T12:00:00+0200", INSTANT),
        (1_767_348_000, INSTANT),
        (1_767_348_000.25, INSTANT + 250_000_000),
        (1_767_348_000_250, INSTANT + 250_000_000),
        (1_767_348_000_250_001, INSTANT + 250_001_000),
        (INSTANT + 7, INSTANT + 7),
        (str(INSTANT), INSTANT),
        ("yesterday", 0),
        ("2026-13-45T10:00:00Z", 0),
        (None, 0),
        (True, 0),
        (-5, 0),
        (float("nan"), 0),
        (float("inf"), 0),
        ({"seconds": 1}, 0),
    ],
)
def test_instants_of_any_spelling(told: object, expected: int) -> None:
    assert nanoseconds(told) == expected  # type: ignore[arg-type]


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001 - the zone is added
def test_an_instant_in_iso_and_in_microseconds_is_one(moment: datetime) -> None:
    micros = (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution)
    assert nanoseconds(moment.isoformat()) == micros * 1000


@given(json_values)
def test_json_is_read_out_of_strings_however_often_it_was_put_there(value: object) -> None:
    told = value if isinstance(value, dict | list) else [value]
    text = json.dumps(json.dumps(json.dumps(told)))
    assert unwrapped(text) == told


@pytest.mark.parametrize("text", ["42", "null", "true", "plain", '{"cut', '"', "", "{}x"])
def test_a_text_that_only_looks_like_json_stays_text(text: str) -> None:
    assert unwrapped(text) == text


def test_what_is_left_of_a_record() -> None:
    assert rest({"a": 1, "b": None, "c": "", "d": {}, "e": 0, "f": False}, {"a"}) == '{"e":0,"f":false}'
    assert rest({"a": 1}, {"a"}) == ""
    assert [is_said(each) for each in (None, "", [], {}, 0, False)] == [False, False, False, False, True, True]
    assert (attribute_text("x"), attribute_text({"a": 1})) == ("x", '{"a":1}')
