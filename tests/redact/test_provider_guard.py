from __future__ import annotations

import logging
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import (
    ConcurrentMultiSpanProcessor,
    ReadableSpan,
    Span,
    SpanProcessor,
    SynchronousMultiSpanProcessor,
    TracerProvider,
)
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import reenact
from reenact.errors import UsageError
from reenact.redact.engine import Engine
from reenact.redact.exporter import RedactingSpanExporter
from reenact.redact.processor import RedactionSpanProcessor
from reenact.redact.provider_guard import redact_everything

SECRET = "ghp_" + "aB3d" * 9


class Writes(SpanProcessor):
    """Only writes to spans, as processors do that copy baggage."""

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        del parent_context
        span.set_attribute("baggage", SECRET)


class Wraps(SpanProcessor):
    """A vendor's processor around a processor of the SDK's."""

    def __init__(self, processor: SpanProcessor) -> None:
        self.processor = processor

    def on_end(self, span: ReadableSpan) -> None:
        self.processor.on_end(span)


class Sends(SpanProcessor):
    """A vendor's processor with a client of its own, in which no exporter can be found."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.sent.append(span.to_json())


def emit(provider: TracerProvider) -> None:
    with provider.get_tracer("t").start_as_current_span(f"s {SECRET}", attributes={"a": SECRET}):
        pass


def made(*processors: SpanProcessor, multi: Any = None) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False, active_span_processor=multi)
    for processor in processors:
        provider.add_span_processor(processor)
    return provider


@pytest.mark.parametrize("multi", [None, ConcurrentMultiSpanProcessor], ids=["one by one", "at once"])
def test_whatever_exports_is_wrapped_now_and_later(multi: Any) -> None:
    exporters = [InMemorySpanExporter() for _ in range(6)]
    nested = SynchronousMultiSpanProcessor()
    nested.add_span_processor(SimpleSpanProcessor(exporters[2]))
    sends, writes = Sends(), Writes()
    provider = made(
        writes,
        SimpleSpanProcessor(exporters[0]),
        Wraps(Wraps(SimpleSpanProcessor(exporters[1]))),
        nested,
        sends,
        RedactionSpanProcessor(SimpleSpanProcessor(exporters[3]), Engine()),
        multi=multi() if multi else None,
    )
    did = redact_everything(provider, Engine())
    assert did.wrapped == (
        "SimpleSpanProcessor(InMemorySpanExporter)",
        "Wraps(InMemorySpanExporter)",
        "SimpleSpanProcessor(InMemorySpanExporter)",
        "Sends()",
    )
    assert did.left == ("Writes()",)
    provider.add_span_processor(SimpleSpanProcessor(exporters[4]))
    nested.add_span_processor(SimpleSpanProcessor(exporters[5]))
    again = redact_everything(provider, Engine())
    assert (again.wrapped, again.left) == ((), ("Writes()",))
    emit(provider)
    for exporter in exporters:
        (span,) = exporter.get_finished_spans()
        assert SECRET not in span.to_json()
        assert "REDACTED_" in span.to_json()
    assert len(sends.sent) == 1
    assert SECRET not in sends.sent[0]


def test_an_exporter_that_we_stand_before_is_not_wrapped_twice() -> None:
    exporter = InMemorySpanExporter()
    batch = BatchSpanProcessor(RedactingSpanExporter(exporter, Engine()))
    provider = made(batch)
    assert redact_everything(provider, Engine()).wrapped == ()
    emit(provider)
    provider.shutdown()
    assert SECRET not in exporter.get_finished_spans()[0].to_json()


def test_what_is_to_be_left_is_left() -> None:
    exporter, sends = InMemorySpanExporter(), Sends()
    kept = SimpleSpanProcessor(exporter)
    provider = made(kept, sends)
    did = redact_everything(provider, Engine(), leave=[kept, Sends])
    assert (did.wrapped, did.left) == ((), ("SimpleSpanProcessor(InMemorySpanExporter)", "Sends()"))
    emit(provider)
    assert SECRET in sends.sent[0]


class Holds:
    """A vendor's provider that stands for one of the SDK's."""

    def __init__(self, provider: TracerProvider) -> None:
        self.provider = provider


def test_a_vendor_s_proxy_is_looked_through() -> None:
    exporter = InMemorySpanExporter()
    provider = made(SimpleSpanProcessor(exporter))
    assert len(redact_everything(Holds(provider), Engine()).wrapped) == 1
    emit(provider)
    assert SECRET not in exporter.get_finished_spans()[0].to_json()


def test_a_logger_provider() -> None:
    exporter, later = InMemoryLogRecordExporter(), InMemoryLogRecordExporter()
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    did = redact_everything(provider, Engine())
    provider.add_log_record_processor(SimpleLogRecordProcessor(later))
    assert did.wrapped == ("SimpleLogRecordProcessor(InMemoryLogRecordExporter)",)
    provider.get_logger("t").emit(body=f"I am {SECRET}")
    for each in (exporter, later):
        assert SECRET not in each.get_finished_logs()[0].to_json()


def test_what_cannot_be_wrapped_is_named_in_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    provider = made(multi=Wraps(SimpleSpanProcessor(InMemorySpanExporter())))
    with caplog.at_level(logging.WARNING, "reenact"):
        did = redact_everything(provider, Engine())
    assert did.left == ("Wraps(InMemorySpanExporter)",)
    assert [record.getMessage() for record in caplog.records] == [
        "reenact: Wraps(InMemorySpanExporter) cannot be wrapped, and what it exports is not redacted"
    ]


def test_the_providers_that_are_set_are_taken_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    provider = made(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    assert reenact.redact_everything().wrapped == ("SimpleSpanProcessor(InMemorySpanExporter)",)
    emit(provider)
    assert SECRET not in exporter.get_finished_spans()[0].to_json()


def test_without_a_provider_of_the_sdk_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    with pytest.raises(UsageError, match="no tracer provider of OpenTelemetry's SDK is set"):
        redact_everything(redactor=Engine())
    with pytest.raises(UsageError, match="a NoOpTracerProvider is no provider"):
        redact_everything(trace.NoOpTracerProvider(), Engine())
