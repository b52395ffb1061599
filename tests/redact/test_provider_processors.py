from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, SynchronousMultiSpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor

from reenact.redact import provider_processors
from reenact.redact.engine import Engine
from reenact.redact.exporter import RedactingSpanExporter
from reenact.redact.processor import RedactionSpanProcessor


class Writes(SpanProcessor):
    def on_start(self, span: Span, parent_context: Any = None) -> None:
        """Write nothing, in this test."""


class Ends(SpanProcessor):
    def on_end(self, span: ReadableSpan) -> None:
        """Send nothing, in this test."""


class Holds(SpanProcessor):
    """Holds what vendors' processors hold: another processor, a loop back to itself, and much else."""

    def __init__(self, inner: object) -> None:
        self.inside = [inner]
        self.me, self.client, self.names, self.kind = self, object(), {"a": inner}, ConsoleSpanExporter


def test_exporters_are_found_however_deep() -> None:
    batch = BatchSpanProcessor(ConsoleSpanExporter())
    multi = SynchronousMultiSpanProcessor()
    multi.add_span_processor(batch)
    multi.add_span_processor(SimpleSpanProcessor(RedactingSpanExporter(ConsoleSpanExporter(), Engine())))
    kinds = [type(each) for each in provider_processors.exporters(Holds(Holds(multi)))]
    assert kinds == [ConsoleSpanExporter, RedactingSpanExporter], "what is protected does not count"
    assert provider_processors.processor_name(batch) == "BatchSpanProcessor(ConsoleSpanExporter)"
    batch.shutdown()


def test_who_sends_and_who_is_covered() -> None:
    plain, ours = (
        SimpleSpanProcessor(ConsoleSpanExporter()),
        SimpleSpanProcessor(RedactingSpanExporter(ConsoleSpanExporter(), Engine())),
    )
    around = RedactionSpanProcessor(plain, Engine())
    assert [provider_processors.sends(each) for each in (Writes(), Ends(), plain, ours, Holds(plain))] == [
        False,
        True,
        True,
        True,
        True,
    ]
    both = SynchronousMultiSpanProcessor()
    both.add_span_processor(plain)
    both.add_span_processor(around)
    assert [
        provider_processors.covered(each) for each in (Writes(), Ends(), plain, ours, Holds(ours), around, both)
    ] == [
        False,
        False,
        False,
        True,
        True,
        True,
        False,
    ]
