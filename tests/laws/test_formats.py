from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carried import as_jaeger_keeps_them, told_to_have_lost
from golden_cases import expected
from reenact.contracts.format import Format
from reenact.discover import members
from reenact.errors import InputError
from reenact.formats import otlp_json, otlp_proto, phoenix_json
from reenact.read.unpack import looked_at, unpacked
from reenact.values.log import LogRecord, Record
from reenact.values.span import Resource, Scope, SpanEvent, SpanLink, SpanRecord
from strategies import RAGGED_TEXT, TEXT, span_lists

FORMATS = {member.name: member for member in members("formats", Format)}
GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "formats"
SPAN = SpanRecord(
    trace_id="0af7651916cd43dd8448eb211c80319c",
    span_id="b7ad6b7169203331",
    parent_id=None,
    name="chat",
    start_ns=1,
    end_ns=2,
)
WRITTEN = {name: member for name, member in FORMATS.items() if member.encode is not None}
every_format = pytest.mark.parametrize("member", FORMATS.values(), ids=FORMATS)
every_written_format = pytest.mark.parametrize("member", WRITTEN.values(), ids=WRITTEN)
patient = settings(suppress_health_check=list(HealthCheck))


def records(member: Format, data: bytes) -> list[Record]:
    return list(member.decode(io.BytesIO(data), Path("file")))


def decoded(member: Format, data: bytes) -> list[SpanRecord]:
    return [record for record in records(member, data) if isinstance(record, SpanRecord)]


def encoded(member: Format, spans: Sequence[SpanRecord]) -> bytes:
    assert member.encode is not None
    return member.encode(spans)


def refused_or_decoded(member: Format, data: bytes) -> InputError | list[Record]:
    try:
        return records(member, data)
    except InputError as refusal:
        return refusal


def carried(member: Format, spans: Sequence[SpanRecord]) -> list[SpanRecord]:
    """What of any spans a format is made to carry: all of it, save for a process's own journal, and for Phoenix."""
    if member.name == "jaeger":
        return list(as_jaeger_keeps_them(spans))
    if member.name == "phoenix-json":
        return told_to_have_lost([_as_phoenix_keeps_it(span) for span in spans], "Phoenix")
    return list(_as_a_journal_keeps_them(spans)) if member.name == "journal" else list(spans)


def _as_phoenix_keeps_it(span: SpanRecord) -> SpanRecord:
    events = [
        SpanEvent(name=each.name, time_ns=each.time_ns, attributes=_spelled(each.attributes)) for each in span.events
    ]
    return SpanRecord(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_id=span.parent_id,
        name=span.name,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        status=min(span.status, 2),
        status_message=span.status_message,
        attributes=_spelled(span.attributes),
        events=tuple(events),
        scope=Scope(name=span.scope.name, version=span.scope.version),
    )


def _spelled(value: Any) -> Any:
    """Without bytes and infinities, which JSON has no spelling for."""
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_spelled(item) for item in value]
    return "" if isinstance(value, bytes) else _finite(value)


def _as_a_journal_keeps_them(spans: Sequence[SpanRecord]) -> Iterator[SpanRecord]:
    for number, span in enumerate({span.span_id: span for span in spans}.values()):
        yield SpanRecord(
            trace_id=span.trace_id,
            span_id=span.span_id,
            parent_id=span.parent_id,
            name=span.name,
            start_ns=span.start_ns,
            end_ns=max(span.start_ns, span.end_ns, number + 1),
            kind=span.kind,
            status=span.status,
            status_message=span.status_message,
            attributes=_finite(span.attributes),
            events=tuple(
                SpanEvent(name=event.name, time_ns=event.time_ns, attributes=_finite(event.attributes))
                for event in span.events
            ),
            links=tuple(
                SpanLink(trace_id=link.trace_id, span_id=link.span_id, attributes=_finite(link.attributes))
                for link in span.links
            ),
            resource=Resource(attributes=_finite(span.resource.attributes)),
            scope=Scope(name=span.scope.name, version=span.scope.version),
        )


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return 0.0 if isinstance(value, float) and math.isinf(value) else value


# -------------------------------------------------------------------------------------------------------------- laws


@pytest.mark.sample(2)
@every_written_format
@patient
@given(spans=span_lists())
def test_what_was_encoded_is_decoded_in_its_order(member: Format, spans: list[SpanRecord]) -> None:
    spans = carried(member, spans)
    assert repr(decoded(member, encoded(member, spans))) == repr(spans)  # repr tells True from 1 and 0.0 from -0.0


@every_written_format
def test_a_number_and_a_flag_that_are_equal_stay_two_resources(member: Format) -> None:
    common = {"trace_id": "0af7651916cd43dd8448eb211c80319c", "parent_id": None, "name": "", "start_ns": 0, "end_ns": 0}
    values = (1, True, 0.0, -0.0)
    spans = carried(
        member,
        [
            SpanRecord(**common, span_id=f"{number:016x}", attributes={}, resource=Resource(attributes={"n": value}))
            for number, value in enumerate(values, 1)
        ],
    )
    assert repr(decoded(member, encoded(member, spans))) == repr(spans)


@pytest.mark.sample(2)
@every_written_format
@patient
@given(spans=span_lists())
def test_a_format_knows_its_own_and_nobody_elses(member: Format, spans: list[SpanRecord]) -> None:
    head = encoded(member, carried(member, spans))[: 64 << 10]
    certainties = {name: other.recognises(head) for name, other in FORMATS.items()}
    assert max(certainties, key=lambda name: certainties[name]) == member.name
    assert certainties[member.name] >= 0.5


@every_format
@patient
@given(noise=st.binary(max_size=200) | TEXT.map(str.encode))
def test_noise_is_never_claimed_with_certainty_and_never_read_as_nothing(member: Format, noise: bytes) -> None:
    assert 0 <= member.recognises(noise) < 1
    came = refused_or_decoded(member, noise)
    assert isinstance(came, InputError) or not came


@pytest.mark.sample(2)
@every_written_format
@patient
@given(spans=span_lists(), data=st.data())
def test_damage_is_an_input_error_or_other_spans_but_never_another_exception(
    member: Format, spans: list[SpanRecord], data: st.DataObject
) -> None:
    good = bytearray(encoded(member, carried(member, spans)))
    place = data.draw(st.integers(0, len(good) - 1))
    good[place] = data.draw(st.integers(0, 255))
    came = refused_or_decoded(member, bytes(good))
    assert not isinstance(came, InputError) or came.place.startswith("file")


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("*/*")), ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_what_earlier_versions_wrote_stays_readable(folder: Path) -> None:
    member = next(member for name, member in FORMATS.items() if name.replace("-", "_") == folder.parent.name)
    (source,) = folder.glob("input.*")
    found = records(member, source.read_bytes())
    fields = [_fields(record) for record in found]
    assert fields == expected(folder / "spans.json", fields)


def _fields(record: Record) -> dict[str, Any]:
    """Give the fields that a format holds. Where a record came from it cannot say: none makes a span the user's own."""
    fields = told(asdict(record))
    if isinstance(record, SpanRecord):
        assert (fields.pop("own"), fields.pop("sent")) == (False, False)
    return fields


_CLAIMED_BY = {
    "length_fixed": "collector-proto",  # of the same messages in a row
    "spans_and_logs": "collector-proto",
}


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("*/*")), ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_a_golden_file_is_claimed_by_its_format_alone(folder: Path) -> None:
    (source,) = folder.glob("input.*")
    expected = folder.parent.name
    if source.suffix == ".pb":
        expected = _CLAIMED_BY.get(folder.name, expected).replace("-", "_")
    ranked = claims(source.read_bytes())
    assert ranked[0][1].replace("-", "_") == expected, ranked[:3]
    assert ranked[0][0] >= 0.4
    assert ranked[0][0] > ranked[1][0], ranked[:3]


def claims(data: bytes) -> list[tuple[float, str]]:
    return sorted(((other.recognises(data[: 64 << 10]), name) for name, other in FORMATS.items()), reverse=True)


def test_a_real_file_is_claimed_by_one_format_alone(shared_data: Path) -> None:
    claimed: dict[str, int] = {}
    for path in sorted((shared_data / "traces").rglob("*")):
        if path.is_file():
            _, stream = looked_at(unpacked(io.BytesIO(path.read_bytes()), path.name), 8)
            ranked = claims(stream.read(64 << 10))
            if ranked[0][0] < 0.3:
                continue  # what no format is sure of is refused with what was expected
            assert ranked[0][0] > ranked[1][0], (path.name, ranked[:3])
            claimed[ranked[0][1]] = claimed.get(ranked[0][1], 0) + 1
    assert sum(claimed.values()) > 90, claimed
    assert claimed.keys() >= {"otlp-json", "jaeger", "jaeger-v3", "tempo", "otel-js", "otel-python", "span-dicts"}


def told(value: Any) -> Any:
    """The JSON of a span's fields, as golden files have it."""
    if isinstance(value, dict):
        return {key: told(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [told(item) for item in value]
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    return {"$float": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value


# --------------------------------------------------------------------------------------------------------- OTLP/JSON


def lines(text: str) -> list[SpanRecord]:
    return decoded(otlp_json.FORMAT, text.encode("utf-8", "surrogatepass"))


def document(**changed: Any) -> dict[str, Any]:
    span = {"traceId": SPAN.trace_id, "spanId": SPAN.span_id, "name": "chat", "kind": 1} | changed
    span |= {"startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


@patient
@given(spans=span_lists(RAGGED_TEXT, st.integers(-(2**200), 2**200)))
def test_json_carries_lone_surrogates_and_long_integers(spans: list[SpanRecord]) -> None:
    assert repr(decoded(otlp_json.FORMAT, otlp_json.encode(spans))) == repr(spans)


def test_json_is_spelled_as_the_specification_has_it() -> None:
    span = replace(SPAN, parent_id="00f067aa0ba902b7", attributes={"n": 1, "b": b"\xff", "x": math.nan, "l": [None]})
    (line,) = otlp_json.encode([span]).splitlines()
    (group,) = json.loads(line)["resourceSpans"]
    (told_span,) = group["scopeSpans"][0]["spans"]
    assert told_span == {
        "traceId": SPAN.trace_id,
        "spanId": SPAN.span_id,
        "parentSpanId": "00f067aa0ba902b7",
        "name": "chat",
        "kind": 1,
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
        "attributes": [
            {"key": "n", "value": {"intValue": "1"}},
            {"key": "b", "value": {"bytesValue": "/w=="}},
            {"key": "x", "value": {"doubleValue": "NaN"}},
            {"key": "l", "value": {"arrayValue": {"values": [{}]}}},
        ],
    }


def test_json_has_a_line_for_each_trace_and_resource_in_a_row() -> None:
    other = replace(SPAN, trace_id="f" * 32)
    elsewhere = replace(SPAN, resource=Resource(attributes={"service.name": "b"}))
    data = otlp_json.encode([SPAN, SPAN, other, elsewhere])
    assert len(data.splitlines()) == 3
    assert decoded(otlp_json.FORMAT, data) == [SPAN, SPAN, other, elsewhere]


def test_json_ends_a_line_before_it_grows_past_a_readers_limit() -> None:
    spans = [replace(SPAN, attributes={"text": "x" * (1 << 20)})] * 10
    assert max(len(line) for line in otlp_json.encode(spans).splitlines()) < 8 << 20


@pytest.mark.parametrize(
    "laid_out",
    [
        lambda one, two: json.dumps(one) + "\n" + json.dumps(two),
        lambda one, two: "\ufeff" + json.dumps(one) + "\r\n\r\n  " + json.dumps(two) + "\n",
        lambda one, two: json.dumps([one, two]),
        lambda one, two: json.dumps([one, two], indent=2),
        lambda one, two: "[\n" + json.dumps(one) + ",\n" + json.dumps(two) + "\n]",
        lambda one, two: json.dumps(one, indent=1) + json.dumps(two, indent="\t") + "\n",
        lambda one, two: json.dumps(one) + json.dumps(two),
        lambda one, two: json.dumps(one) + "\n" + json.dumps(two, indent=2),
    ],
    ids=["lines", "lines with a mark", "array", "pretty array", "array of lines", "pretty", "joined", "mixed"],
)
def test_json_may_be_laid_out_in_any_way(laid_out: Any) -> None:
    one, two = document(name='a "{" \\'), document(name="}é\n]")
    assert [span.name for span in lines(laid_out(one, two))] == ['a "{" \\', "}é\n]"]


def test_json_names_may_be_in_snake_case() -> None:
    renamed = json.dumps(document(parentSpanId="00f067aa0ba902b7", attributes=[{"key": "a", "value": {"intValue": 3}}]))
    for camel, snake in (
        ("resourceSpans", "resource_spans"),
        ("scopeSpans", "scope_spans"),
        ("traceId", "trace_id"),
        ("parentSpanId", "parent_span_id"),
        ("spanId", "span_id"),
        ("startTimeUnixNano", "start_time_unix_nano"),
        ("endTimeUnixNano", "end_time_unix_nano"),
        ("intValue", "int_value"),
    ):
        renamed = renamed.replace(camel, snake)
    assert lines(renamed) == [replace(SPAN, parent_id="00f067aa0ba902b7", attributes={"a": 3})]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"stringValue": "x"}, "x"),
        ({"boolValue": False}, False),
        ({"boolValue": "true"}, True),
        ({"intValue": "-9223372036854775808"}, -(2**63)),
        ({"intValue": 7}, 7),
        ({"intValue": 7.0}, 7),
        ({"intValue": {"low": -1, "high": 0, "unsigned": False}}, 2**32 - 1),
        ({"doubleValue": 1}, 1.0),
        ({"doubleValue": "Infinity"}, math.inf),
        ({"doubleValue": "-Infinity"}, -math.inf),
        ({"doubleValue": "1e3"}, 1000.0),
        ({"bytesValue": "_-8"}, b"\xff\xef"),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]),
        ({"arrayValue": {}}, []),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}, {"k": "v"}),
        ({}, None),
        (None, None),
        ({"stringValue": None}, None),
        ({"newValue": {"of": "a kind to come"}}, {"newValue": {"of": "a kind to come"}}),
    ],
)
def test_json_values_of_every_kind(value: Any, expected: Any) -> None:
    (span,) = lines(json.dumps(document(attributes=[{"key": "a", "value": value}])))
    assert repr(span.attributes["a"]) == repr(expected)


def test_json_enums_may_be_names_and_ids_base64_and_times_numbers() -> None:
    told_span = document(
        kind="SPAN_KIND_CLIENT",
        status={"code": "STATUS_CODE_ERROR", "message": "no"},
        traceId=base64.b64encode(bytes.fromhex(SPAN.trace_id)).decode(),
        spanId=base64.b64encode(bytes.fromhex(SPAN.span_id)).decode(),
        parentSpanId="AAAAAAAAAAA=",
    )
    (span,) = lines(json.dumps(told_span))
    assert (span.kind, span.status, span.status_message) == (3, 2, "no")
    assert (span.trace_id, span.span_id, span.parent_id) == (SPAN.trace_id, SPAN.span_id, None)


def test_json_passes_over_what_says_nothing_and_over_other_signals() -> None:
    empty = {"resourceSpans": [None, {}, {"scopeSpans": None}, {"scopeSpans": [None, {"spans": [None, {}]}]}]}
    text = "\n".join(json.dumps(each) for each in (empty, {}, {"resourceLogs": []}, document()))
    assert lines(text) == [replace(SPAN, kind=1)]


def log_document(**changed: Any) -> dict[str, Any]:
    said = [
        {"key": "index", "value": {"intValue": "0"}},
        {"key": "message", "value": {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "Hi"}}]}}},
        {"key": "raw", "value": {"bytesValue": "/w=="}},
    ]
    attributes = [
        {"key": "gen_ai.system", "value": {"stringValue": "openai"}},
        {"key": "n", "value": {"intValue": 3}},
    ]
    record = {
        "traceId": SPAN.trace_id,
        "spanId": SPAN.span_id,
        "observedTimeUnixNano": "7",
        "eventName": "gen_ai.choice",
        "severityNumber": 9,
        "body": {"kvlistValue": {"values": said}},
        "attributes": attributes,
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}]}
    scoped = {"scope": {"name": "an.emitter"}, "logRecords": [record | changed]}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [scoped]}]}


def test_json_holds_spans_and_log_events_in_one_document_or_in_lines() -> None:
    for text in (
        json.dumps(log_document() | document()),
        json.dumps(document()) + "\n" + json.dumps(log_document()),
        json.dumps([log_document(), document()]),
    ):
        found = records(otlp_json.FORMAT, text.encode())
        assert sorted(found, key=repr) == [LOG, replace(SPAN, kind=1)]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"timeUnixNano": "5"}, {"time_ns": 5}),
        (
            {"eventName": "", "attributes": [{"key": "event.name", "value": {"stringValue": "e"}}]},
            {"event_name": "e", "attributes": {"event.name": "e"}},
        ),
        ({"eventName": None}, {"event_name": ""}),
        ({"body": {"stringValue": '{"a": 1}'}}, {"body": '{"a": 1}'}),
        ({"body": {}}, {"body": None}),
        ({"severityNumber": "SEVERITY_NUMBER_WARN2"}, {"severity": 14}),
        ({"traceId": "", "spanId": None}, {"trace_id": "", "span_id": ""}),
        ({"traceId": "0" * 32, "spanId": "AAAAAAAAAAA="}, {"trace_id": "", "span_id": ""}),
        ({"traceId": SPAN.trace_id.upper()}, {}),
    ],
)
def test_json_log_events_of_every_kind(changed: dict[str, Any], expected: dict[str, Any]) -> None:
    (log,) = records(otlp_json.FORMAT, json.dumps(log_document(**changed)).encode())
    assert log == replace(LOG, **expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0AF7651916CD43DD8448EB211C80319C", SPAN.trace_id),
        ("0x0af7651916cd43dd8448eb211c80319c", SPAN.trace_id),
        ("af7651916cd43dd8448eb211c80319c", SPAN.trace_id),
        ("0af76519-16cd-43dd-8448-eb211c80319c", SPAN.trace_id),
        (base64.b64encode(bytes.fromhex(SPAN.trace_id)).decode(), SPAN.trace_id),
        ("8448eb211c80319c", "0" * 16 + "8448eb211c80319c"),
        ({"type": "Buffer", "data": [*bytes.fromhex(SPAN.trace_id)]}, SPAN.trace_id),
    ],
)
def test_json_ids_in_every_spelling(value: Any, expected: str) -> None:
    assert [span.trace_id for span in lines(json.dumps(document(traceId=value)))] == [expected]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ('{"resourceSpans":[]}\n{"resourceSpans":[{"res', "file:2", "cut off"),
        ('{"resourceSpans":[{"resource":{"a\n{"resourceSpans":[]}\n', "file:1", "cut off"),
        ('{"resourceSpans":[\n{"resourceSpans":[]}\n', "file:1", "cut off"),
        ('{"resourceSpans":[\n\n', "file:1", "file ends"),
        ('\n{"resourceSpans":[1 2]}', "file:2", "not JSON"),
        ("plain text", "file:1", "not JSON"),
        ("{}\n5\n", "file:2", "expected a document to be an object"),
        ('{}\n"text"', "file:2", "expected a document to be an object"),
        ('{"spans": []}', "file:1", "found an object with `spans`"),
        ('{"resourceSpans": {}}', "file:1", "expected resourceSpans to be a list"),
        ("[" * 10_000, "file:1", "file ends"),
        ("[" * 10_000 + "]" * 10_000, "file:1", "1,024 levels"),
        (json.dumps(document(traceId="xyz")), "file:1", 'traceId "xyz" is not 32 hexadecimal digits'),
        (json.dumps(document(spanId="0af7651916cd43dd8448eb211c80319c")), "file:1", "is not 16 hexadecimal digits"),
        (json.dumps(document(parentSpanId="12")), "file:1", "parentSpanId"),
        (json.dumps(document(kind="SPAN_KIND_MADE_UP")), "file:1", "SPAN_KIND_MADE_UP"),
        (json.dumps(document(name=5)), "file:1", "expected name to be a string"),
        (json.dumps(document(attributes={"a": 1})), "file:1", "expected attributes to be a list"),
        (json.dumps(document(attributes=[7])), "file:1", "not shaped like OTLP/JSON"),
        (json.dumps(document(attributes=[{"key": "a", "value": {"intValue": "1" * 5000}}])), "file:1", "whole number"),
        (json.dumps(document(attributes=[{"key": "a", "value": {"bytesValue": "!"}}])), "file:1", "base64"),
    ],
)
def test_json_that_is_broken_is_refused_by_line(text: str, place: str, said: str) -> None:
    with pytest.raises(InputError) as refusal:
        lines(text)
    assert refusal.value.place == place
    assert said in refusal.value.problem
    assert "\n" not in refusal.value.problem


def test_json_that_is_not_utf8_is_refused_by_line() -> None:
    data = b'{"resourceSpans":[]}\n' + json.dumps(document(name="caf@")).encode().replace(b"@", b"\xe9")
    with pytest.raises(InputError, match="file:2: byte 0xe9 is not UTF-8"):
        decoded(otlp_json.FORMAT, data)


# ----------------------------------------------------------------------------------------------------- OTLP protobuf


@patient
@given(spans=span_lists(RAGGED_TEXT, st.integers(-(2**200), 2**200)))
def test_protobuf_takes_anything_and_marks_what_it_cannot_carry(spans: list[SpanRecord]) -> None:
    back = decoded(otlp_proto.FORMAT, otlp_proto.encode(spans))
    assert [span.span_id for span in back] == [span.span_id for span in spans]
    for before, after in zip(spans, back, strict=True):
        assert len(after.name) == len(before.name)
        assert all(new in (old, "\ufffd") for old, new in zip(before.name, after.name, strict=True))


def test_values_nested_too_deep_for_a_receiver_become_their_json_text() -> None:
    deep: Any = "bottom"
    for _ in range(2000):
        deep = [deep]
    for member in (otlp_json.FORMAT, otlp_proto.FORMAT):
        deepest_kept: Any = {"a": [{"b": 1}]}
        (span,) = decoded(member, encoded(member, [replace(SPAN, attributes={"deep": deep, "kept": deepest_kept})]))
        assert span.attributes["kept"] == deepest_kept
        value: Any = span.attributes["deep"]
        while isinstance(value, list):
            (value,) = value
        assert isinstance(value, str)


FRAMINGS = {
    "bare": lambda one, two: one + two,
    "four bytes": lambda one, two: b"".join(len(part).to_bytes(4, "big") + part for part in (one, two)),
    "varint": lambda one, two: b"".join(_varint(len(part)) + part for part in (one, two)),
}


def _varint(number: int) -> bytes:
    data = b""
    while number > 0x7F:
        data += bytes([number & 0x7F | 0x80])
        number >>= 7
    return data + bytes([number])


@pytest.mark.sample(2)
@pytest.mark.parametrize("framing", FRAMINGS)
@patient
@given(one=span_lists(), two=span_lists())
def test_protobuf_in_every_framing(framing: str, one: list[SpanRecord], two: list[SpanRecord]) -> None:
    messages = [otlp_proto.to_request(spans).SerializeToString() for spans in (one, two)]
    data = FRAMINGS[framing](*messages)
    assert otlp_proto.FORMAT.recognises(data[: 64 << 10]) > 0.5
    assert repr(decoded(otlp_proto.FORMAT, data)) == repr(one + two)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_protobuf_that_is_cut_off_is_refused(framing: str) -> None:
    message = otlp_proto.to_request([SPAN]).SerializeToString()
    data = FRAMINGS[framing](message, message)
    at_the_seam = data[: len(data) // 2]
    for end in range(1, len(data)):
        if data[:end] != at_the_seam:
            with pytest.raises(InputError, match="file: byte"):
                decoded(otlp_proto.FORMAT, data[:end])


def _metrics() -> bytes:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="requests", unit="1")
    metric.sum.data_points.add(as_int=1)
    return request.SerializeToString()


LOG = LogRecord(
    trace_id=SPAN.trace_id,
    span_id=SPAN.span_id,
    observed_ns=7,
    event_name="gen_ai.choice",
    body={"index": 0, "message": {"content": "Hi"}, "raw": "/w=="},
    attributes={"gen_ai.system": "openai", "n": 3},
    severity=9,
    resource=Resource(attributes={"service.name": "s"}),
    scope=Scope(name="an.emitter"),
)


def _logs() -> bytes:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    request = ExportLogsServiceRequest()
    group = request.resource_logs.add()
    group.resource.attributes.add(key="service.name").value.string_value = "s"
    scoped = group.scope_logs.add()
    scoped.scope.name = "an.emitter"
    log = scoped.log_records.add(observed_time_unix_nano=7, event_name="gen_ai.choice", severity_number=9)
    log.trace_id, log.span_id = bytes.fromhex(SPAN.trace_id), bytes.fromhex(SPAN.span_id)
    log.attributes.add(key="gen_ai.system").value.string_value = "openai"
    log.attributes.add(key="n").value.int_value = 3
    told = log.body.kvlist_value.values
    told.add(key="index").value.int_value = 0
    told.add(key="message").value.kvlist_value.values.add(key="content").value.string_value = "Hi"
    told.add(key="raw").value.bytes_value = b"\xff"
    return request.SerializeToString()


def test_protobuf_logs_are_read_in_every_framing() -> None:
    for framing in FRAMINGS.values():
        (spans, logs) = (otlp_proto.to_request([SPAN]).SerializeToString(), _logs())
        assert records(otlp_proto.FORMAT, framing(logs, spans)) == [LOG, SPAN]
        assert records(otlp_proto.FORMAT, framing(spans, logs)) == [SPAN, LOG]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(_metrics(), id="metrics"),
        pytest.param(b"\x0a\x02\x0a\x00", id="a resource without spans"),
        pytest.param(b"\x0a\x04\xc2\x3e\x01\x00", id="only an unknown field"),
        pytest.param(b"", id="nothing"),
        pytest.param(b'\n{\n "resourceMetrics": []}', id="JSON after a newline"),
    ],
)
def test_protobuf_of_another_kind_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="file: byte"):
        decoded(otlp_proto.FORMAT, data)


def test_a_message_over_the_limit_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REENACT_MAX_LINE_BYTES", "1000")
    data = otlp_proto.encode([replace(SPAN, attributes={"text": "x" * 2000})])
    with pytest.raises(InputError, match="over the limit of 1000 bytes"):
        decoded(otlp_proto.FORMAT, data)


# --------------------------------------------------------------------------------------------------------- real files


def test_real_files_of_both_kinds_decode_and_survive_a_round_trip(shared_data: Path) -> None:
    counts: dict[str, int] = {}
    for path in sorted(shared_data.glob("traces/**/*.otlp.jsonl")):
        spans = decoded(otlp_json.FORMAT, path.read_bytes())
        assert repr(decoded(otlp_json.FORMAT, otlp_json.encode(spans))) == repr(spans)
        assert repr(decoded(otlp_proto.FORMAT, otlp_proto.encode(spans))) == repr(spans)
        counts[path.name] = len(spans)
    assert counts
    assert all(counts.values())


# ------------------------------------------------------------------------------------------------------ Phoenix JSON


def phoenix(*pages: dict[str, Any]) -> InputError | list[SpanRecord]:
    return refused_or_decoded(phoenix_json.FORMAT, b"\n".join(json.dumps(page).encode() for page in pages))


def own(**changed: Any) -> dict[str, Any]:
    times = {"start_time": "2026-11-20T09:04:00+00:00", "end_time": "2026-11-20T10:04:00.5+01:00"}
    context = {"trace_id": SPAN.trace_id, "span_id": SPAN.span_id}
    span = {"id": "U3Bhbjox", "name": "chat", "context": context, "span_kind": "LLM", "status_code": "OK", **times}
    return {"data": [span | changed], "next_cursor": None}


def test_pages_of_phoenix_are_read_one_after_another_and_a_missing_one_is_told() -> None:
    (first, second) = (own(), own(name="second"))
    assert [span.name for span in phoenix({**first, "next_cursor": "abc"}, second)] == ["chat", "second"]  # type: ignore[union-attr]
    came = phoenix(first, {**second, "next_cursor": "abc"})
    assert isinstance(came, InputError)
    assert "more spans" in str(came)


def test_a_span_of_phoenix_has_its_kind_and_times() -> None:
    (span,) = phoenix(own())  # type: ignore[misc]
    assert span.attributes.keys() == {"openinference.span.kind", "reenact.lost"}
    assert span.attributes["openinference.span.kind"] == "LLM"
    assert (span.start_ns, span.end_ns) == (1_795_165_440 * 10**9, 1_795_165_440 * 10**9 + 5 * 10**8)
    (span,) = phoenix(own(span_kind="UNKNOWN", attributes={"a": 1}))  # type: ignore[misc]
    assert span.attributes.keys() == {"a", "reenact.lost"}
    assert span.attributes["a"] == 1


def test_metadata_that_phoenix_took_apart_is_put_together() -> None:
    (span,) = phoenix(own(attributes={"metadata.a.b": 1, "x": 2, "metadata.c": [True]}))  # type: ignore[misc]
    assert json.loads(str(span.attributes["metadata"])) == {"a": {"b": 1}, "c": [True]}
    (span,) = phoenix(own(attributes={"metadata.a": 1, "metadata.a.b": 2}))  # type: ignore[misc]
    assert "metadata.a.b" in span.attributes


@pytest.mark.parametrize(
    "changed",
    [
        {"context": {"trace_id": "x", "span_id": SPAN.span_id}},
        {"context": None},
        {"start_time": "yesterday"},
        {"start_time": None},
        {"status_code": "FINE"},
        {"attributes": [1]},
        {"name": 7},
    ],
    ids=str,
)
def test_what_is_not_shaped_like_phoenix_is_told_with_its_line(changed: dict[str, Any]) -> None:
    came = phoenix(own(), own(**changed))
    assert isinstance(came, InputError)
    assert came.place == "file:2"


def test_a_length_that_fits_two_framings_is_taken_for_the_smaller() -> None:
    other = Resource(attributes={"n": 1})
    span = replace(SPAN, name="", parent_id=None, attributes={}, events=(), links=(), status_message="", trace_state="")
    for letters in range(200):
        message = otlp_proto.to_request(
            [replace(span, resource=other, name="x" * letters), replace(span, resource=Resource())]
        ).SerializeToString()
        data = _varint(len(message)) + message
        read = decoded(otlp_proto.FORMAT, data)
        assert [(each.name, each.resource) for each in read] == [("x" * letters, other), ("", Resource())], data[:8]
