from __future__ import annotations

import io
from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from reenact.redact.engine import Engine
from reenact.redact.exporter import RedactingSpanExporter

SECRET = "ghp_" + "aB3d" * 9


def test_what_it_exports_is_redacted_and_what_it_was_given_is_not() -> None:
    exporter, out, plain = InMemorySpanExporter(), io.StringIO(), InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(RedactingSpanExporter(exporter, Engine())))
    provider.add_span_processor(SimpleSpanProcessor(RedactingSpanExporter(ConsoleSpanExporter(out=out), Engine())))
    provider.add_span_processor(SimpleSpanProcessor(plain))
    provider.get_tracer("t").start_span(f"s {SECRET}", attributes={"a": SECRET}).end()
    assert provider.force_flush()
    for said in (exporter.get_finished_spans()[0].to_json(), out.getvalue()):
        assert SECRET not in said
        assert said.count("REDACTED_github_token") == 2
    assert plain.get_finished_spans()[0].to_json().count(SECRET) == 2
    provider.shutdown()


class Refuses(SpanExporter):
    def __init__(self) -> None:
        self.stopped = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        del spans
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self.stopped = True

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return timeout_millis > 5


def test_answers_are_the_protected_exporter_s() -> None:
    inner = Refuses()
    exporter = RedactingSpanExporter(inner, Engine())
    assert exporter.export([]) is SpanExportResult.FAILURE
    assert (exporter.force_flush(5), exporter.force_flush(6)) == (False, True)
    exporter.shutdown()
    assert inner.stopped
