"""What belongs to a trace, gathered from frames of many traces, each record once."""

from __future__ import annotations

from collections.abc import Iterable

from reenact.disk import envelopes, frames
from reenact.disk.envelopes import Part
from reenact.disk.frames import Frame


class Gathering:
    """Takes frames in the order in which they were written."""

    def __init__(self, wanted: Iterable[bytes]) -> None:
        self._spans: dict[bytes, dict[Part, None]] = {trace: {} for trace in wanted}
        self._logs: dict[bytes, dict[Part, None]] = {trace: {} for trace in self._spans}

    def add(self, frame: Frame) -> None:
        """Take what a frame of a segment has of the wanted traces. Raises `FrameDamagedError`, `NotSplitError`.

        A frame of spans may be of several traces and each span says of which; one of log records is of one trace.
        """
        if frame.kind == frames.SPANS:
            for part in envelopes.parts(frame.payload):
                trace_parts = self._spans.get(envelopes.trace_of(part[2]))
                if trace_parts is not None:
                    trace_parts[part] = None
        elif frame.kind == frames.LOGS:
            for trace in frame.traces:
                if (trace_parts := self._logs.get(trace)) is not None:
                    trace_parts.update(dict.fromkeys(envelopes.parts(frame.payload)))

    def add_whole(self, trace: bytes, spans: bytes, logs: bytes) -> None:
        """Take what is known of a trace already."""
        self._spans[trace].update(dict.fromkeys(envelopes.parts(spans)))
        self._logs[trace].update(dict.fromkeys(envelopes.parts(logs)))

    def whole(self, trace: bytes) -> tuple[bytes, bytes]:
        """Give the spans and the log records of a trace, each as the body of a request."""
        return envelopes.joined(self._spans[trace]), envelopes.joined(self._logs[trace])

    def count(self, trace: bytes) -> int:
        """Count its spans and log records."""
        return len(self._spans[trace]) + len(self._logs[trace])
