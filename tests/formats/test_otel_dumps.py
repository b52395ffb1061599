"""What the SDK prints of a run reads as what it sends of it, to two microseconds and less the scope."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry._logs import LogRecord as SdkRecord
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import ConsoleLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from reenact.formats import jaeger_v3, otel_python, otlp_proto, span_dicts, tempo_json
from reenact.read.open import open_spans
from reenact.values.log import LogRecord, Record
from reenact.values.span import Scope, SpanRecord


class Emitted:
    """One run, as the SDK has it in memory, prints it and sends it."""

    def __init__(self) -> None:
        printed, logged, memory = io.StringIO(), io.StringIO(), InMemorySpanExporter()
        provider = TracerProvider(resource=Resource({"service.name": "desk", "host.cpus": 4}))
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=printed)))
        provider.add_span_processor(SimpleSpanProcessor(memory))
        logs = LoggerProvider(resource=provider.resource)
        logs.add_log_record_processor(SimpleLogRecordProcessor(ConsoleLogRecordExporter(out=logged)))
        tracer, logger = provider.get_tracer("an.emitter", "1.2.3"), logs.get_logger("an.emitter")
        with tracer.start_as_current_span("invoke_agent desk"):
            given = {"gen_ai.operation.name": "chat", "n": 3, "t": 0.5, "b": True, "stops": ["a", "é\u2028"]}
            with tracer.start_as_current_span("chat", kind=SpanKind.CLIENT, attributes=given) as model:
                model.add_event("gen_ai.content.prompt", {"gen_ai.prompt": "Where?", "n": 1})
                logger.emit(SdkRecord(event_name="gen_ai.user.message", body={"content": "Hi"}, attributes={"n": 1}))
            with tracer.start_as_current_span("tool", links=[Link(model.get_span_context(), {"why": "asked"})]) as tool:
                tool.set_status(Status(StatusCode.ERROR, "no such parcel"))
        self.printed, self.logged = printed.getvalue(), logged.getvalue()
        self.spans: tuple[ReadableSpan, ...] = memory.get_finished_spans()
        request = encode_spans(self.spans)
        self.told = MessageToDict(request)
        self.sent = [
            record
            for record in otlp_proto.FORMAT.decode(io.BytesIO(request.SerializeToString()), Path("sent"))
            if isinstance(record, SpanRecord)
        ]


@pytest.fixture(scope="module")
def emitted() -> Emitted:
    return Emitted()


def agree(read: list[SpanRecord], sent: list[SpanRecord]) -> None:
    """The same, save for the scope and flags, which are not printed, and for times, printed by way of a double."""
    assert [_bare(span) for span in read] == [_bare(span) for span in sent]
    for one, other in zip(read, sent, strict=True):
        pairs = [(one.start_ns, other.start_ns), (one.end_ns, other.end_ns)]
        pairs += [(a.time_ns, b.time_ns) for a, b in zip(one.events, other.events, strict=True)]
        assert all(abs(a - b) <= 2000 and a for a, b in pairs)


def _bare(span: SpanRecord) -> SpanRecord:
    return replace(
        span,
        start_ns=0,
        end_ns=0,
        events=tuple(replace(event, time_ns=0) for event in span.events),
        links=tuple(replace(link, flags=0) for link in span.links),
        scope=Scope(),
        flags=0,
    )


def spans(records: Iterator[Record]) -> list[SpanRecord]:
    return [record for record in records if isinstance(record, SpanRecord)]


def test_what_the_console_exporter_prints(emitted: Emitted, tmp_path: Path) -> None:
    path = tmp_path / "printed"
    path.write_text(emitted.printed)
    agree(spans(open_spans(path)), emitted.sent)


@pytest.mark.parametrize("laid_out", ["lines", "array"])
def test_spans_as_json_in_lines_and_arrays(emitted: Emitted, tmp_path: Path, laid_out: str) -> None:
    told = [json.loads(span.to_json()) for span in emitted.spans]
    path = tmp_path / laid_out
    path.write_text(json.dumps(told) if laid_out == "array" else "\n".join(map(json.dumps, told)))
    assert otel_python.FORMAT.recognises(path.read_bytes()) > 0.9
    agree(spans(open_spans(path)), emitted.sent)


def test_printed_log_events_land_on_their_spans(emitted: Emitted, tmp_path: Path) -> None:
    path = tmp_path / "logged"
    path.write_text(emitted.logged)
    (log,) = open_spans(path)
    assert isinstance(log, LogRecord)
    assert (log.event_name, log.body, log.attributes) == ("gen_ai.user.message", {"content": "Hi"}, {"n": 1})
    assert (log.trace_id, log.span_id) == (emitted.sent[0].trace_id, emitted.sent[0].span_id)
    assert log.at_ns >= emitted.sent[0].start_ns - 2000
    assert log.resource.attributes == {"service.name": "desk", "host.cpus": 4}


@pytest.mark.parametrize("form", ["v1", "v2", "before scopes"])
def test_tempo_with_ids_in_base64_and_enums_by_name(emitted: Emitted, form: str) -> None:
    groups = json.loads(json.dumps(emitted.told["resourceSpans"]))
    if form == "before scopes":
        for group in groups:
            group["instrumentationLibrarySpans"] = group.pop("scopeSpans")
            for entry in group["instrumentationLibrarySpans"]:
                entry["instrumentationLibrary"] = entry.pop("scope")
    document = {"trace": {"resourceSpans": groups}} if form == "v2" else {"batches": groups}
    data = json.dumps(document).encode()
    assert tempo_json.FORMAT.recognises(data) > 0.9
    assert spans(tempo_json.FORMAT.decode(io.BytesIO(data), Path("file"))) == emitted.sent


def test_jaeger_streams_one_object_after_another(emitted: Emitted) -> None:
    data = "".join(json.dumps({"result": {"resourceSpans": [group]}}) for group in emitted.told["resourceSpans"])
    assert jaeger_v3.FORMAT.recognises(data.encode()) > 0.9
    assert spans(jaeger_v3.FORMAT.decode(io.BytesIO(data.encode()), Path("file"))) == emitted.sent


def test_spans_as_plain_objects_with_any_usual_names(emitted: Emitted) -> None:
    told = [
        {
            "traceId": span.trace_id,
            "spanId": span.span_id.lstrip("0"),
            "parentSpanId": span.parent_id,
            "spanName": span.name,
            "startTimeUnixNano": str(span.start_ns),
            "endTimeUnixNano": span.end_ns,
            "kind": span.kind,
            "attributes": dict(span.attributes),
            "events": [
                {"name": event.name, "timeUnixNano": event.time_ns, "attributes": dict(event.attributes)}
                for event in span.events
            ],
            "links": [{"traceId": link.trace_id, "spanId": link.span_id, "attributes": dict(link.attributes)} for link in span.links],  # noqa: E501
            "status": {"code": span.status, "message": span.status_message},
            "scopeName": span.scope.name,
            "scopeVersion": span.scope.version,
            "resource": {"attributes": dict(span.resource.attributes)},
        }
        for span in emitted.sent
    ]  # fmt: skip
    data = json.dumps({"spans": told}).encode()
    assert span_dicts.FORMAT.recognises(data) > 0.7
    read = spans(span_dicts.FORMAT.decode(io.BytesIO(data), Path("file")))
    expected = [
        replace(span, flags=0, links=tuple(replace(link, flags=0) for link in span.links)) for span in emitted.sent
    ]
    assert read == expected
