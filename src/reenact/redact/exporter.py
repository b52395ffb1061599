"""`RedactingSpanExporter`: the engine around any OpenTelemetry span exporter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from reenact.contracts.redactor import Redactor
from reenact.redact.process_redactor import copies


class RedactingSpanExporter(SpanExporter):
    """Hands `inner` redacted copies of spans and nothing else.

        provider.add_span_processor(BatchSpanProcessor(reenact.RedactingSpanExporter(OTLPSpanExporter())))

    Under a `BatchSpanProcessor` the work is done in its thread and not in the program's; until then its queue holds
    spans as they are. `policy` is a file, else what is configured holds; `redactor` is what does it instead.
    """

    def __init__(self, inner: SpanExporter, redactor: Redactor | None = None, *, policy: str | Path = "") -> None:
        self._inner, self._copies = inner, copies(redactor, policy)

    @property
    def inner(self) -> SpanExporter:
        """The exporter that is protected."""
        return self._inner

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export redacted copies."""
        return self._inner.export(self._copies.spans(spans))

    def shutdown(self) -> None:
        """Shut the protected exporter down."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the protected exporter and give its answer."""
        return self._inner.force_flush(timeout_millis) is not False
