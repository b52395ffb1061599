"""One bad number costs the span that it is in: not the request, nor the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reenact.collect.intake import Decoding, Intake, answer, take
from reenact.collect.refusals import Refusal
from reenact.disk import frames
from reenact.formats.otlp_proto import logs_of, spans_of
from reenact.graph.logs import trace_of
from reenact.read.open import open_recording
from reenact.values.span import SpanRecord
from reenact.values.unread_parts import lost_spans

DECODING = Decoding(trace_of=trace_of, logs_of=logs_of)
HUGE = 2**70
BAD: dict[str, dict[str, Any]] = {
    "a time before the epoch": {"startTimeUnixNano": "-1"},
    "a time of 65 bits": {"endTimeUnixNano": str(2**64)},
    "a time in words": {"startTimeUnixNano": "soon"},
    "half a nanosecond": {"startTimeUnixNano": 1.5},
    "a time past all": {"startTimeUnixNano": 1e30},
    "a kind of 41 bits": {"kind": 2**40},
    "a kind nobody knows": {"kind": "NO"},
    "a status of 34 bits": {"status": {"code": 2**33}},
    "an attribute of 71 bits": {"attributes": [{"key": "a", "value": {"intValue": str(HUGE)}}]},
    "an attribute in words": {"attributes": [{"key": "a", "value": {"intValue": "many"}}]},
    "an item in words": {"attributes": [{"key": "a", "value": {"arrayValue": {"values": [{"intValue": "x"}]}}}]},
    "a fraction in words": {"attributes": [{"key": "a", "value": {"doubleValue": "much"}}]},
    "fewer than none dropped": {"droppedAttributesCount": -1},
    "an event before the epoch": {"events": [{"name": "e", "timeUnixNano": "-5"}]},
    "flags of a link": {"links": [{"traceId": "ab" * 16, "spanId": "cd" * 8, "flags": -1}]},
}


def span(number: int, **further: Any) -> dict[str, Any]:
    ids = {"traceId": f"{number:032x}", "spanId": f"{number:016x}"}
    return {**ids, "name": f"s{number}", "startTimeUnixNano": "1", "endTimeUnixNano": "2", **further}


def request(*spans: dict[str, Any], **group: Any) -> bytes:
    entries = [{"scopeSpans": [{"spans": [*spans]}], **group}, {"scopeSpans": [{"spans": [span(9)]}]}]
    return json.dumps({"resourceSpans": entries}).encode()


def names(taken: Intake) -> list[str]:
    read = [frames.read(frame) for frame in taken.frames]
    found = [record for frame in read for record in spans_of(frame.payload, "")]
    return [record.name for record in found if isinstance(record, SpanRecord)]


@pytest.mark.parametrize("bad", BAD)
def test_it_costs_its_span_and_the_answer_says_so(bad: str) -> None:
    taken = take(request(span(1), span(2, **BAD[bad]), span(3)), "traces", is_json=True, decoding=DECODING)
    assert names(taken) == ["s1", "s3", "s9"]
    assert (taken.accepted, taken.rejected) == (3, 1)
    said = json.loads(answer(taken, "traces", is_json=True))["partialSuccess"]
    assert said["rejectedSpans"] == "1"
    assert said["errorMessage"].startswith("1 spans with a number that is none")


def test_beside_the_spans_it_costs_those_that_it_belongs_to() -> None:
    resource = {"attributes": [{"key": "a", "value": {"intValue": "many"}}]}
    taken = take(request(span(1), span(2), resource=resource), "traces", is_json=True, decoding=DECODING)
    assert (names(taken), taken.rejected) == (["s9"], 2)


def test_many_are_counted_and_the_first_is_told_of() -> None:
    spans = [span(number, startTimeUnixNano=f"t{number}") for number in range(10, 210)]
    taken = take(request(*spans), "traces", is_json=True, decoding=DECODING)
    assert (names(taken), taken.rejected) == (["s9"], 200)
    assert "'t10'" in taken.why
    assert "'t11'" not in taken.why


def test_a_log_record_likewise() -> None:
    records = [{"body": {"stringValue": "x"}, "timeUnixNano": time} for time in ("1", "soon", "3")]
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).encode()
    taken = take(body, "logs", is_json=True, decoding=DECODING)
    assert (taken.accepted, taken.rejected) == (2, 1)
    assert json.loads(answer(taken, "logs", is_json=True))["partialSuccess"]["rejectedLogRecords"] == "1"


@pytest.mark.parametrize("body", [b'{"resourceSpans": 1}', request({"traceId": "no", "spanId": "ab" * 8})])
def test_what_is_no_otlp_is_refused_as_before(body: bytes) -> None:
    with pytest.raises(Refusal):
        take(body, "traces", is_json=True, decoding=DECODING)


@pytest.mark.parametrize("bad", ["a time in words", "half a nanosecond", "an item in words", "a fraction in words"])
def test_in_a_file_it_costs_its_span_and_the_verdict_knows(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "some.jsonl"
    path.write_bytes(request(span(1), span(2, **BAD[bad]), span(3)) + b"\n")
    opened = open_recording(path)
    assert [record.name for record in opened.records if isinstance(record, SpanRecord)] == ["s1", "s3", "s9"]
    assert lost_spans(opened.notes) == opened.notes
    assert len(opened.notes) == 1
