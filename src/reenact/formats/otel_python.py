"""Dumps of the OpenTelemetry SDK for Python: `ReadableSpan.to_json()` and `LogRecord.to_json()`.

What `ConsoleSpanExporter` and `ConsoleLogExporter` print: pretty-printed objects one after another; as well lines and
arrays of them. Ids are `0x` and hex, times ISO 8601 to the microsecond, the kind is `SpanKind.CLIENT`. Such a dump has
no instrumentation scope in most versions of the SDK. It is read, not written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from reenact.contracts.format import Format, HeadMarks
from reenact.foreign.json_records import as_objects, each_document
from reenact.foreign.span_dict import log_of, span_of
from reenact.values.log import Record
from reenact.values.skeleton import holds

_SPAN = "context.trace_id", "context.span_id", "start_time"
_LOG = "trace_id", "severity_number|severity_text", "observed_timestamp|timestamp", "body|attributes"
_WHAT = "a span of OpenTelemetry's SDK for Python"


def _recognises(head: bytes) -> float:
    if holds(head, *_SPAN) and not holds(head, "span_kind"):
        return 0.92 if holds(head, "kind", "parent_id|resource|attributes") else 0.4
    if holds(head, *_LOG):
        return 0.9 if not holds(head, "traceId") else 0.0
    return 0.0


def _records(document: object) -> Iterator[Record]:
    for item in as_objects(document, "a span"):
        if "context" in item:
            yield span_of(item)
        elif "severity_number" in item or "severity_text" in item or "body" in item:
            yield log_of(item)
        else:
            raise ValueError("neither `context` nor `severity_number` is there")


def _decode(stream: BinaryIO, path: Path) -> Iterator[Record]:
    return each_document(stream, path, _records, _WHAT)


FORMAT = Format(
    name="otel-python",
    suffix=".spans.json",
    recognises=_recognises,
    decode=_decode,
    most=0.92,
    marks=HeadMarks(keys=(_SPAN, _LOG)),
)
