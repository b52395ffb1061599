from __future__ import annotations

import json
from typing import Any

import pytest

from reenact.foreign import ids
from reenact.foreign.otlp import SHAPELESS
from reenact.foreign.span_dict import span_of

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TOLD: dict[str, Any] = {"trace_id": TRACE, "span_id": SPAN, "name": "chat", "attributes": {"a": 1}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (SPAN, SPAN),
        (SPAN.upper(), SPAN),
        (f"0x{SPAN}", SPAN),
        ("7ad6b7169203331", "07ad6b7169203331"),
        (int(SPAN, 16), SPAN),
        ("t61rcWkgMzE=", SPAN),
        ({"type": "Buffer", "data": [*bytes.fromhex(SPAN)]}, SPAN),
        ("", ""),
        (0, ""),
        (True, ""),
        (-1, ""),
        (2**64, ""),
        ("llm-1", ""),
        (None, ""),
        ({"data": "x"}, ""),
    ],
)
def test_an_id_is_read_in_every_spelling(value: object, expected: str) -> None:
    assert ids.span_id(value) == expected


def test_an_id_that_is_none_becomes_a_digest_and_is_told() -> None:
    one = span_of({**TOLD, "span_id": "llm-1", "parent_span_id": "chain-root"})
    other = span_of({**TOLD, "span_id": "chain-root"})
    assert one.parent_id == other.span_id
    assert len(one.span_id) == 16
    assert json.loads(str(one.attributes["reenact.original"])) == {"span_id": "llm-1", "parent_id": "chain-root"}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"start_time": 1_800_000_000_000_000_001, "end_time": 1_800_000_000_000_000_002}, (1, 2)),
        ({"startTime": [1_800_000_000, 1], "endTime": [1_800_000_000, 2]}, (1, 2)),
        ({"start_time": "2027-01-15T08:00:00.000001Z", "end_time": "2027-01-15T08:00:00.000002Z"}, (1000, 2000)),
        ({"start": 1_800_000_000, "duration_ms": 2}, (0, 2_000_000)),
        ({"timestamp": 1_800_000_000_000_000, "duration": 163.5}, (0, 163_500)),
        ({"startTime": [1_800_000_000, 1], "duration": [0, 7]}, (1, 8)),
        ({"startTimeUnixNano": "1800000000000000005"}, (5, -1_800_000_000_000_000_000)),
    ],
)
def test_times_of_every_unit(told: dict[str, Any], expected: tuple[int, int]) -> None:
    span = span_of({**TOLD, **told})
    assert (span.start_ns - 1_800_000_000 * 10**9, span.end_ns - 1_800_000_000 * 10**9) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"startTimeUnixNano": "1000", "endTimeUnixNano": "2000"}, (1000, 2000)),
        ({"start_time_unix_nano": 1000, "end_time_unix_nano": 2000.0}, (1000, 2000)),
        ({"start_time_ns": 1000, "end_time_ns": "2e3"}, (1000, 2000)),
        ({"startTimeUnixNano": "2027-01-15T08:00:00Z"}, (1_800_000_000 * 10**9, 0)),
        ({"start_time": 1000, "end_time": 2000}, (1000 * 10**9, 2000 * 10**9)),
        ({"startTimeUnixNano": float("nan"), "endTimeUnixNano": -5}, (0, 0)),
    ],
)
def test_a_name_that_says_nanoseconds_is_believed(told: dict[str, Any], expected: tuple[int, int]) -> None:
    span = span_of({**TOLD, **told})
    assert (span.start_ns, span.end_ns) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"status": {"status_code": "ERROR", "description": "no"}}, (2, "no")),
        ({"status": {"code": 2, "message": "no"}}, (2, "no")),
        ({"status": {"code": "STATUS_CODE_OK"}}, (1, "")),
        ({"status": "StatusCode.ERROR", "status_message": "no"}, (2, "no")),
        ({"status_code": "OK"}, (1, "")),
        ({"status": None}, (0, "")),
        ({"status": {"code": 99}}, (0, "")),
    ],
)
def test_statuses_of_every_spelling(told: dict[str, Any], expected: tuple[int, str]) -> None:
    span = span_of({**TOLD, **told})
    assert (span.status, span.status_message) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"kind": "SpanKind.CLIENT"}, 3),
        ({"kind": "SPAN_KIND_SERVER"}, 2),
        ({"kind": "internal"}, 1),
        ({"kind": 2, "startTime": [1, 1]}, 3),
        ({"kind": 3, "startTimeUnixNano": "1"}, 3),
        ({"kind": "of another kind"}, 1),
        ({}, 1),
    ],
)
def test_kinds_count_from_none_in_the_sdks_and_from_one_in_otlp(told: dict[str, Any], expected: int) -> None:
    assert span_of({**TOLD, **told}).kind == expected


def test_what_otlp_left_among_plain_attributes_is_read() -> None:
    told = {
        "tools": {"values": [{"stringValue": "a"}, {"intValue": "2"}]},
        "one": {"stringValue": "x"},
        "own": {"a": 1},
    }
    assert span_of({**TOLD, "attributes": told}).attributes == {"tools": ["a", 2], "one": "x", "own": {"a": 1}}
    pairs = [{"key": "k", "value": {"boolValue": True}}]
    assert span_of({**TOLD, "attributes": pairs}).attributes == {"k": True}


def test_names_that_are_not_known_are_kept() -> None:
    span = span_of({**TOLD, "total_tokens": 7, "cost": None})
    assert json.loads(str(span.attributes["reenact.unread"])) == {"total_tokens": 7}


def test_a_span_without_ids_gets_such_as_follow_from_what_it_says() -> None:
    told = {"scopeName": "ai", "spanName": "chat", "attributes": {"a": 1}}
    one, again, other = span_of(told), span_of(dict(told)), span_of({**told, "attributes": {"a": 2}})
    assert (one.trace_id, one.span_id) == (again.trace_id, again.span_id)
    assert one.trace_id != other.trace_id
    assert (len(one.trace_id), len(one.span_id), one.scope.name) == (32, 16, "ai")


@pytest.mark.parametrize(
    "told",
    [{"attributes": 7}, {"events": {"a": 1}}, {"events": ["a"]}, {"startTime": [1]}, {"attributes": [{"value": 1}]}],
)
def test_what_stands_where_it_cannot_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises((ValueError, *SHAPELESS)):
        span_of({**TOLD, **told})


def test_an_id_in_base64_may_begin_as_one_in_hexadecimal_does() -> None:
    assert ids.span_id("0xYqqSA8p+o=") == "d3162aa9203ca7ea"
    assert ids.span_id("0x12ab") == "00000000000012ab"
