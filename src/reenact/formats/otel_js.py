"""Dumps of the OpenTelemetry SDK for JavaScript: `ReadableSpan` as JSON, and what `ConsoleSpanExporter` prints of it.

The first has `spanContext`, times `[seconds, nanoseconds]` and `instrumentationScope` (`instrumentationLibrary` before
2.0); the second has `traceId`, `id`, `timestamp` and `duration` in microseconds. `SpanKind` counts from 0 in both. An
array, lines, or objects one after another. It is read, not written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from reenact.contracts.format import Format, HeadMarks
from reenact.foreign.json_records import as_objects, each_document
from reenact.foreign.span_dict import span_of
from reenact.values.log import Record
from reenact.values.skeleton import holds

_CONTEXT = ("spanContext.traceId|_spanContext.traceId|spans[].spanContext.traceId",)
_EXPORTED = "traceId", "id", "timestamp", "duration", "kind", "name", "instrumentationScope|status.code"
_WHAT = "a span of OpenTelemetry's SDK for JavaScript"


def _recognises(head: bytes) -> float:
    if holds(head, *_CONTEXT):
        return 0.92
    if holds(head, *_EXPORTED):
        return 0.92 if not holds(head, "localEndpoint") else 0.0
    return 0.0


def _records(document: object) -> Iterator[Record]:
    for item in as_objects(document, "a span"):
        for span in as_objects(item["spans"], "a span") if isinstance(item.get("spans"), list) else [item]:
            if not span.keys() & {"spanContext", "_spanContext", "traceId"}:
                raise ValueError("neither `spanContext` nor `traceId` is there")
            yield span_of(span, above=item)


def _decode(stream: BinaryIO, path: Path) -> Iterator[Record]:
    return each_document(stream, path, _records, _WHAT)


FORMAT = Format(
    name="otel-js",
    suffix=".spans.json",
    recognises=_recognises,
    decode=_decode,
    most=0.92,
    marks=HeadMarks(keys=(_CONTEXT, _EXPORTED)),
)
