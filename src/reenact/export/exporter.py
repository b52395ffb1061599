"""The SDK's exporter interface over our senders, telling the truth."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from reenact.export.delivery import Patience, Report
from reenact.export.fanout import FanOut
from reenact.export.readable import from_readable
from reenact.export.sender import Sender

_log = logging.getLogger("reenact.export")


class OtlpSpanExporter(SpanExporter):
    """An exporter that reports success only where every backend accepted every span.

    `reports` holds what became of the last batch. Nothing is raised into the processor that drives it.
    """

    def __init__(self, *senders: Sender, patience: Patience | None = None) -> None:
        self._backends = FanOut(senders, patience)
        self._all_well = True
        self._shut_down = False
        self.reports: tuple[Report, ...] = ()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Deliver a batch; FAILURE unless every backend accepted all of it."""
        if self._shut_down:
            _log.warning("%d spans came after the exporter was shut down", len(spans))
            return SpanExportResult.FAILURE
        try:
            self.reports = self._backends.deliver([from_readable(span) for span in spans])
        except Exception as failure:
            _log.warning("%d spans were not exported: %s: %s", len(spans), type(failure).__name__, failure)
            self._all_well = False
            return SpanExportResult.FAILURE
        for report in self.reports:
            if not report.complete:
                _log.warning(
                    "%s: %d spans accepted, %d rejected, %d not delivered: %s",
                    report.backend,
                    report.sent,
                    report.rejected,
                    report.undelivered,
                    "; ".join(report.reasons),
                )
        well = all(report.complete for report in self.reports)
        self._all_well = self._all_well and well
        return SpanExportResult.SUCCESS if well else SpanExportResult.FAILURE

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Tell whether everything exported since the last flush was accepted. Nothing is held back, so none waits."""
        del timeout_millis
        well, self._all_well = self._all_well, True
        return well

    def shutdown(self) -> None:
        """Close the senders; what is exported from now on fails."""
        self._shut_down = True
        self._backends.close()
