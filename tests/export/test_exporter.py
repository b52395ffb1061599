from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from receivers import Receiver, rejecting
from reenact.export.delivery import Patience
from reenact.export.exporter import OtlpSpanExporter
from reenact.export.otlp_http import HttpTarget, OtlpHttpSender
from reenact.export.readable import from_readable
from reenact.formats import otlp_json, otlp_proto
from reenact.values.span import SpanRecord

_PATH = Path("request")
_stream = io.BytesIO
REMOTE = SpanContext(
    trace_id=0x0AF7651916CD43DD8448EB211C80319C,
    span_id=0x00F067AA0BA902B7,
    is_remote=True,
    trace_flags=TraceFlags(1),
    trace_state=TraceState([("vendor", "1"), ("other", "2")]),
)


def provider_into(*exporters: Any) -> TracerProvider:
    resource = Resource.create({"service.name": "weather", "numbers": [1, 2]}, schema_url="https://schemas.test/1")
    provider = TracerProvider(resource=resource, id_generator=RandomIdGenerator())
    for exporter in exporters:
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


def emit(provider: TracerProvider) -> None:
    tracer = provider.get_tracer("agent", "1.2", schema_url="https://schemas.test/2", attributes={"a": "b"})
    parent = set_span_in_context(NonRecordingSpan(REMOTE))
    with tracer.start_as_current_span("run", parent, SpanKind.SERVER, links=[Link(REMOTE, {"why": "replay"})]) as run:
        run.set_attributes({"text": "é😀\0", "n": -(2**63), "x": 0.5, "yes": True, "list": ["a", "b"], "raw": b"\xff"})
        run.add_event("seen", {"k": 1}, timestamp=7)
        with tracer.start_as_current_span("chat", kind=SpanKind.CLIENT) as chat:
            chat.set_status(Status(StatusCode.ERROR, "no"))
    provider.get_tracer("other").start_span("alone").end()


def test_the_stock_exporters_request_and_ours_say_the_same(receiver: Receiver) -> None:
    stock = OTLPSpanExporter(endpoint=receiver.url)
    emit(provider_into(stock, OtlpSpanExporter(OtlpHttpSender(HttpTarget(url=receiver.url)))))
    told: dict[str, list[SpanRecord]] = {"stock": [], "ours": []}
    for request, headers in zip(receiver.requests, receiver.headers, strict=True):
        (record,) = otlp_proto.FORMAT.decode(_stream(request.SerializeToString()), _PATH)
        told["ours" if "reenact" in headers["user-agent"] else "stock"].append(record)
    assert len(told["ours"]) == 3
    assert [_as_stock(record) for record in told["ours"]] == told["stock"]
    assert told["ours"][1].links[0].trace_state == "vendor=1,other=2"
    assert all(record.flags & 1 for record in told["ours"])  # sampled


def _as_stock(record: SpanRecord) -> SpanRecord:
    """Less what the stock exporter leaves out: the W3C trace flags, and the trace state of links."""
    links = tuple(replace(link, flags=link.flags & 0x300, trace_state="") for link in record.links)
    return replace(record, flags=record.flags & 0x300, links=links)


def finished(spans: Sequence[Any]) -> list[ReadableSpan]:
    memory = InMemorySpanExporter()
    tracer = provider_into(memory).get_tracer("t")
    for name, attributes in spans:
        tracer.start_span(name, attributes=attributes).end()
    return list(memory.get_finished_spans())


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
_VALUE = _TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.lists(_TEXT)


@settings(suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(_TEXT, st.dictionaries(_TEXT.filter(bool), _VALUE, max_size=4)), min_size=1, max_size=3))
def test_the_stock_encoder_and_ours_agree_on_any_attributes(spans: list[Any]) -> None:
    readable = finished(spans)
    ours = otlp_proto.to_request(from_readable(span) for span in readable).SerializeToString()
    stock = encode_spans(readable).SerializeToString()
    back, expected = (list(otlp_proto.FORMAT.decode(_stream(data), _PATH)) for data in (ours, stock))
    assert [_as_stock(record) for record in back] == expected
    assert list(otlp_json.FORMAT.decode(_stream(otlp_json.FORMAT.encode(back)), _PATH)) == back


def test_a_span_that_never_ended_has_no_end() -> None:
    span = provider_into().get_tracer("t").start_span("open")
    assert isinstance(span, ReadableSpan)
    record = from_readable(span)
    assert (record.end_ns, record.parent_id, record.kind) == (0, None, 1)


def test_one_bad_string_costs_neither_its_neighbours_nor_the_batch(receiver: Receiver) -> None:
    exporter = OtlpSpanExporter(OtlpHttpSender(HttpTarget(url=receiver.url)))
    assert exporter.export(finished([("good", {}), ("cut \ud83d", {"v": "\ud800"})])) is SpanExportResult.SUCCESS
    assert receiver.names == ["good", "cut \ufffd"]


# --------------------------------------------------------------------------------------------------------- the truth


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ((200, {"Content-Type": "application/x-protobuf"}, b""), True),
        ((200, {"Content-Type": "application/x-protobuf"}, rejecting(1, "bad")), False),
        ((200, {"Content-Type": "text/html"}, b"<html>Sign in</html>"), False),
        ((302, {"Location": "/login"}, b""), False),
        ((400, {}, b""), False),
        ((503, {"Retry-After": "100"}, b""), False),
    ],
)
def test_success_is_said_only_where_everything_was_accepted(receiver: Receiver, answer: Any, truth: bool) -> None:  # noqa: FBT001
    receiver.behave = lambda *_: answer
    exporter = OtlpSpanExporter(OtlpHttpSender(HttpTarget(url=receiver.url)), patience=Patience(total_s=1))
    result = exporter.export(finished([("a", {}), ("b", {})]))
    assert (result is SpanExportResult.SUCCESS) is truth
    assert exporter.force_flush() is truth
    assert exporter.force_flush() is True
    (report,) = exporter.reports
    assert report.sent + report.rejected + report.undelivered == 2
    assert report.complete is truth


def test_one_backend_that_refuses_makes_it_a_failure(receiver: Receiver) -> None:
    dead = OtlpHttpSender(HttpTarget(url="http://127.0.0.1:9/"))
    exporter = OtlpSpanExporter(OtlpHttpSender(HttpTarget(url=receiver.url)), dead, patience=Patience(total_s=0.3))
    assert exporter.export(finished([("a", {})])) is SpanExportResult.FAILURE
    assert receiver.names == ["a"]


def test_after_shutdown_nothing_is_sent(receiver: Receiver) -> None:
    exporter = OtlpSpanExporter(OtlpHttpSender(HttpTarget(url=receiver.url)))
    exporter.shutdown()
    assert exporter.export(finished([("late", {})])) is SpanExportResult.FAILURE
    assert not receiver.requests
