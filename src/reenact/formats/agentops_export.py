"""AgentOps' export of its dashboard: one trace with its spans, attributes as nested objects instead of dotted names.

They become dotted names again, with numbers for what stood in lists, so that a span is what AgentOps' SDK sent over
OpenTelemetry. The export may be a block of JSON in a page of Markdown; the text around it is passed over.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.documents import documents
from reenact.foreign.made_ids import identified
from reenact.foreign.records import attribute_text, is_said, nanoseconds, originals, rest, span_id, trace_id
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.limits import RAISE_THE_LIMIT, max_record_bytes, spelled
from reenact.values.skeleton import holds
from reenact.values.span import (
    KIND_CLIENT,
    KIND_CONSUMER,
    KIND_INTERNAL,
    KIND_PRODUCER,
    KIND_SERVER,
    STATUS_ERROR,
    STATUS_OK,
    STATUS_UNSET,
    Attribute,
    Resource,
    Scope,
    SpanEvent,
    SpanLink,
    SpanRecord,
)

_MARKS: Final = ("spans[].span_attributes", "spans[].span_name|spans[].span_id")
_FENCED: Final = re.compile(rb"^[ \t]*(?:```|~~~)[ \t]*(?:json)?[ \t]*\r?\n(?=\s*[\[{])", re.MULTILINE | re.IGNORECASE)
_FENCE: Final = re.compile(rb"^[ \t]*(?:```|~~~)[ \t]*\r?$", re.MULTILINE)
_KINDS: Final = {
    "client": KIND_CLIENT,
    "server": KIND_SERVER,
    "producer": KIND_PRODUCER,
    "consumer": KIND_CONSUMER,
    "internal": KIND_INTERNAL,
}
_STATUSES: Final = {"ok": STATUS_OK, "error": STATUS_ERROR}
_TAKEN: Final = frozenset(
    {"span_id", "parent_span_id", "span_name", "span_kind", "start_time", "end_time", "status_code", "status_message",
     "span_attributes", "resource_attributes", "event_timestamps", "event_names", "event_attributes", "link_trace_ids",
     "link_span_ids", "link_trace_states", "link_attributes", "metrics", "trace_id"},
)  # fmt: skip
_DEEPEST: Final = 32

_Object = dict[str, Json]


def _recognises(head: bytes) -> float:
    if holds(head, *_MARKS):
        return 0.96
    fenced = _FENCED.search(head)
    return 0.9 if fenced is not None and holds(head[fenced.end() :], *_MARKS) else 0.0


@identified
def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    first = stream.read(1)
    while first.isspace():
        first = stream.read(1)
    begun = io.BytesIO(first + _whole(stream, str(path)))
    if first not in (b"{", b"[", b"\xef"):
        begun = _block(begun.getvalue(), str(path))
    for line, document in documents(begun, str(path)):
        has_spans = False
        for each in cast("list[Json]", document) if isinstance(document, list) else [document]:
            for span in _spans(as_object(each)):
                has_spans = True
                yield span
        if not has_spans:
            raise InputError(f"{path}:{line}", "this is no export of AgentOps: it has no `spans` with attributes")


def _whole(stream: BinaryIO, place: str) -> bytes:
    limit = max_record_bytes()
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise InputError(place, f"this export is longer than the limit of {spelled(limit)}", hint=RAISE_THE_LIMIT)
    return data


def _block(page: bytes, place: str) -> io.BytesIO:
    """Take the first block of JSON out of a page of Markdown; what was before it stays as empty lines."""
    opened = _FENCED.search(page)
    if opened is None:
        raise InputError(place, "this page holds no block of JSON")
    closed = _FENCE.search(page, opened.end())
    end = closed.start() if closed is not None else len(page)
    return io.BytesIO(b"\n" * page.count(b"\n", 0, opened.end()) + page[opened.end() : end])


def _spans(export: _Object) -> Iterator[SpanRecord]:
    trace = as_object(export.get("trace")) or {key: value for key, value in export.items() if key != "spans"}
    has_root = False
    for span in map(as_object, as_list(export.get("spans"))):
        if not span:
            continue
        is_root = not span.get("parent_span_id") and not has_root
        has_root = has_root or is_root
        yield _span(span, trace, is_root=is_root)


def _span(span: _Object, trace: _Object, *, is_root: bool) -> SpanRecord:
    raw_trace_id = span.get("trace_id") or trace.get("trace_id")
    attributes = _flat(span.get("span_attributes"))
    if is_root:
        attributes |= {
            f"agentops.trace.{name}": attribute_text(value) for name, value in trace.items() if is_said(value)
        }
    attributes |= originals("agentops", raw_trace_id, span.get("span_id"), span.get("parent_span_id"))
    if is_said(metrics := span.get("metrics")):
        attributes["agentops.metrics"] = attribute_text(metrics)
    if left := rest(span, _TAKEN):
        attributes["agentops.record"] = left
    parent = span.get("parent_span_id")
    return SpanRecord(
        trace_id=trace_id(raw_trace_id),
        span_id=span_id(span.get("span_id")),
        parent_id=span_id(parent) if parent else None,
        name=as_text(span.get("span_name")),
        start_ns=nanoseconds(span.get("start_time")),
        end_ns=nanoseconds(span.get("end_time")),
        kind=_KINDS.get(as_text(span.get("span_kind")).lower().rpartition("_")[2], KIND_INTERNAL),
        status=_STATUSES.get(as_text(span.get("status_code")).lower().rpartition("_")[2], STATUS_UNSET),
        status_message=as_text(span.get("status_message")),
        attributes=attributes,
        events=tuple(_events(span)),
        links=tuple(_links(span)),
        resource=Resource(attributes=_flat(span.get("resource_attributes"))),
        scope=Scope(name="agentops"),
    )


def _flat(source: Json, prefix: str = "", depth: int = 0) -> dict[str, Attribute]:
    """Spell nested objects as dotted names, the members of lists of objects by their number."""
    flat: dict[str, Attribute] = {}
    items = as_object(source).items() if isinstance(source, dict) else enumerate(as_list(source))
    for key, value in items:
        name = f"{prefix}.{key}" if prefix else str(key)
        nests = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))
        if nests and value and depth < _DEEPEST:
            flat |= _flat(value, name, depth + 1)
        elif isinstance(value, str | bool | int | float):
            flat[name] = value
        elif value is not None:
            flat[name] = attribute_text(value)
    return flat


def _events(span: _Object) -> Iterator[SpanEvent]:
    names, times = as_list(span.get("event_names")), as_list(span.get("event_timestamps"))
    attributes = as_list(span.get("event_attributes"))
    for index, name in enumerate(names):
        time = times[index] if index < len(times) else None
        fields = attributes[index] if index < len(attributes) else None
        yield SpanEvent(name=as_text(name), time_ns=nanoseconds(time), attributes=_flat(fields))


def _links(span: _Object) -> Iterator[SpanLink]:
    traces, spans = as_list(span.get("link_trace_ids")), as_list(span.get("link_span_ids"))
    attributes = as_list(span.get("link_attributes"))
    for index, (trace, other) in enumerate(zip(traces, spans, strict=False)):
        fields = attributes[index] if index < len(attributes) else None
        yield SpanLink(trace_id=trace_id(trace), span_id=span_id(other), attributes=_flat(fields))


FORMAT = Format(
    name="agentops",
    suffix=".agentops.json",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=(_MARKS,), texts=(("```", "span_attributes"), ("~~~", "span_attributes"))),
)
