"""Spans as plain objects of nobody's standard: `{"trace_id", "span_id", "parent_span_id", "name", "attributes", …}`.

What tracing libraries write to files of their own and what test suites keep. An array of spans, lines (with log events
among them), objects `{"spans": […]}` with facts beside them, or a list of such; names in snake case or camel case, ids
in any spelling. What stands beside `spans` is kept with the topmost span as `reenact.envelope`. A single span may have
no ids and no times at all (`{"scopeName", "spanName", "attributes"}`): its ids are then made of what it says, and two
that say the same are two. It is read, not written.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from reenact.contracts.format import Format
from reenact.foreign.json_records import as_objects, each_document
from reenact.foreign.span_dict import has_span_id, is_log, log_of, span_of
from reenact.values.json import Json, compact, digest
from reenact.values.log import Record
from reenact.values.skeleton import holds
from reenact.values.span import SpanRecord

ENVELOPE = "reenact.envelope"
_WHAT = "spans as plain objects"
_SURE = 0.75
_TRACE = "trace_id|traceId|context.trace_id|context.traceId|spanContext.traceId"
_SPAN = "span_id|spanId|context.span_id|context.spanId|spanContext.spanId"
_NAMED = "name|span_name|spanName"


def _recognises(head: bytes) -> float:
    for within in ("", "spans[].", "traces[].spans[].", "data[].spans[].", "trace.spans[]."):
        if _spans(head, within):
            return _SURE if within in ("", "spans[].") else _SURE - 0.1
    if holds(head, "spanName", "attributes", "scopeName"):
        return _SURE - 0.1
    logs = holds(head, "trace_id|traceId", "span_id|spanId", "body", "timeUnixNano|observedTimeUnixNano|timestamp")
    return _SURE - 0.1 if logs and not holds(head, "severity_number") else 0.0


def _spans(head: bytes, within: str) -> bool:
    def here(names: str) -> bool:
        return holds(head, "|".join(f"{within}{name}" for name in names.split("|")))

    trace = here(_TRACE) or (within != "" and holds(head, "trace_id|traceId|trace.trace_id|traces[].trace_id"))
    return trace and here(_SPAN) and here(_NAMED) and here("attributes|span_attributes|events|span_events")


def _records(document: object, counts: Counter[str]) -> Iterator[Record]:
    for item in as_objects(document, "a span"):
        yield from _enveloped(item, counts)


def _enveloped(envelope: Mapping[str, Any], counts: Counter[str]) -> Iterator[Record]:
    for name in ("traces", "data", "trace"):
        if name in envelope and "spans" not in envelope:
            for trace in as_objects(envelope[name], "a trace"):
                yield from _enveloped(trace, counts)
            return
    if not isinstance(envelope.get("spans"), list):
        if is_log(envelope):
            yield log_of(envelope)
            return
        if not envelope.keys() & {"attributes", "span_attributes", "context", "name", "span_name", "spanName"}:
            raise ValueError("neither `spans` nor `attributes` nor `name` is there")
        yield _span(envelope, {}, counts)
        return
    spans = [_span(span, envelope, counts) for span in as_objects(envelope["spans"], "a span") if span]
    beside = {name: cast("Json", value) for name, value in envelope.items() if name != "spans"}
    top = next((number for number, span in enumerate(spans) if span.parent_id is None), 0)
    if beside and spans:
        spans[top] = replace(spans[top], attributes={**spans[top].attributes, ENVELOPE: compact(beside)})
    yield from spans


def _span(fields: Mapping[str, Any], envelope: Mapping[str, Any], counts: Counter[str]) -> SpanRecord:
    span = span_of(fields, above=envelope)
    if has_span_id(fields):
        return span
    counts[span.span_id] += 1
    count = counts[span.span_id]
    return span if count == 1 else replace(span, span_id=digest(f"{span.span_id}:{count}")[:16])


def _decode(stream: BinaryIO, path: Path) -> Iterator[Record]:
    return each_document(stream, path, functools.partial(_records, counts=Counter()), _WHAT)


FORMAT = Format(name="span-dicts", suffix=".spans.json", recognises=_recognises, decode=_decode, most=0.75)
