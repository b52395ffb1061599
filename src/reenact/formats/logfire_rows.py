"""Rows of Logfire's `records`, as its query API and its exports give them: a row a span.

An array of rows, an object with `data` or `rows`, columns with their `values`, lines of rows, or a stream of lines that
say their `type` (`schema`, `data`, `end`, `error`). Logfire gives back as nested JSON what spans carried as JSON text;
it is text again here. A row of kind `pending_span` announces a span that may have its own row; both are given, and
`logfire.span_type` says which is which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import ids, records, tables
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.span import (
    KIND_INTERNAL,
    STATUS_ERROR,
    Attribute,
    Resource,
    Scope,
    SpanEvent,
    SpanLink,
    SpanRecord,
)

_STATUSES: Final = ("UNSET", "OK", "ERROR")
_KINDS: Final = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_OWN: Final = frozenset(
    {
        "start_timestamp",
        "end_timestamp",
        "duration",
        "trace_id",
        "span_id",
        "parent_span_id",
        "span_name",
        "kind",
        "attributes",
        "otel_events",
        "otel_links",
        "otel_status_code",
        "otel_status_message",
        "otel_scope_name",
        "otel_scope_version",
        "otel_scope_attributes",
        "otel_resource_attributes",
        "otel_span_kind",
        "attributes_json_schema",
    }
)


def _recognises(head: bytes) -> float:
    column_names = tables.columns(head)
    if column_names:
        return 0.95 if {"start_timestamp", "span_name", "trace_id"} <= column_names else 0.0
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return 0.0
    if b'"start_timestamp"' in head and b'"span_name"' in head and b'"trace_id"' in head:
        return 0.96
    return 0.6 if b'"type"' in head[:200] and b'"schema"' in head[:200] and b'"start_timestamp"' in head else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    for line, document in tables.rows(stream, str(path)):
        for row in _rows(document, f"{path}:{line}"):
            yield _span(row, f"{path}:{line}")


def _rows(document: Json, place: str) -> Iterator[Mapping[str, Json]]:
    """Find the rows in a document, whatever it is wrapped into."""
    if isinstance(document, list):
        for each in document:
            yield from _rows(each, place)
        return
    if not isinstance(document, dict):
        raise InputError(place, "this is no row of Logfire's records: expected an object")
    if "span_id" in document or "start_timestamp" in document:
        yield document
        return
    kind = document.get("type")
    if kind == "error":
        problem = f"the stream ends in an error: {compact(document)[:200]}"
        raise InputError(place, problem, hint="ask for it again")
    columns = [as_object(each) for each in as_list(document.get("columns"))]
    if columns and all(isinstance(each.get("values"), list) for each in columns):
        yield from _across(columns)
        return
    inner = next((document[name] for name in ("data", "rows", "row", "records") if name in document), None)
    if inner is not None:
        yield from _rows(inner, place)
    elif kind not in ("schema", "end", "data") and "columns" not in document:
        raise InputError(place, "this is no row of Logfire's records: it has no `span_id`")


def _across(columns: list[dict[str, Json]]) -> Iterator[dict[str, Json]]:
    """Turn columns with their values into rows."""
    series = [(as_text(each.get("name")), as_list(each.get("values"))) for each in columns]
    for place in range(max(len(values) for _, values in series)):
        yield {name: values[place] for name, values in series if place < len(values)}


def _span(row: Mapping[str, Json], place: str) -> SpanRecord:
    trace_id, span_id = ids.trace_id(row.get("trace_id")), ids.span_id(row.get("span_id"))
    if not trace_id or not span_id:
        raise InputError(place, "this row has no trace and span id")
    start, end = (records.nanoseconds(row.get(name)) for name in ("start_timestamp", "end_timestamp"))
    failed = row.get("is_exception") in (True, "true", "True") or bool(row.get("exception_type"))
    status = as_text(row.get("otel_status_code")).upper()
    resource = _attributes(row.get("otel_resource_attributes"))
    if service := as_text(row.get("service_name")):
        resource.setdefault("service.name", service)
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=ids.span_id(row.get("parent_span_id")) or None,
        name=as_text(row.get("span_name")),
        start_ns=start,
        end_ns=end,
        kind=_kind(row.get("otel_span_kind")),
        status=_STATUSES.index(status) if status in _STATUSES else STATUS_ERROR if failed else 0,
        status_message=as_text(row.get("otel_status_message")),
        attributes=_span_attributes(row),
        events=(*_events(row), *(_exception(row, end or start) if failed else ())),
        links=tuple(_links(row)),
        resource=Resource(attributes=resource),
        scope=Scope(
            name=as_text(row.get("otel_scope_name")),
            version=as_text(row.get("otel_scope_version")),
            attributes=_attributes(row.get("otel_scope_attributes")),
        ),
    )


def _kind(kind: Json) -> int:
    word = as_text(kind).upper().removeprefix("SPAN_KIND_")
    return _KINDS.index(word) if word in _KINDS else KIND_INTERNAL


def _span_attributes(row: Mapping[str, Json]) -> dict[str, Attribute]:
    attributes = _attributes(row.get("attributes"))
    if kind := as_text(row.get("kind")):
        attributes.setdefault("logfire.span_type", kind)
    if message := as_text(row.get("message")):
        attributes.setdefault("logfire.msg", message)
    for name, value in row.items():
        if name in _OWN or name in ("message", "service_name") or value in (None, "", [], {}):
            continue
        attributes.setdefault(f"logfire.{name}", _carried(value))
    return attributes


def _attributes(cell: Json) -> dict[str, Attribute]:
    return {name: _carried(value) for name, value in as_object(records.unwrapped(cell)).items() if value is not None}


def _carried(value: Json) -> Attribute:
    """Spell nested JSON as the text that the span carried; an array of plain values is one."""
    if isinstance(value, dict):
        return compact(value)
    if isinstance(value, list):
        plain = [each for each in value if not isinstance(each, dict | list)]
        return [*plain] if len(plain) == len(value) else compact(value)
    return value


def _events(row: Mapping[str, Json]) -> Iterator[SpanEvent]:
    for each in as_list(records.unwrapped(row.get("otel_events"))):
        event = as_object(each)
        time_ns = records.nanoseconds(event.get("event_timestamp", event.get("timestamp", event.get("time"))))
        name = as_text(event.get("event_name")) or as_text(event.get("name"))
        yield SpanEvent(name=name, time_ns=time_ns, attributes=_attributes(event.get("attributes")))


def _exception(row: Mapping[str, Json], time_ns: int) -> Iterator[SpanEvent]:
    """Make the event of an exception of its columns, where the row has no events of its own."""
    if _says(row.get("otel_events")) or not _says(row.get("exception_type")):
        return
    names = ("type", "message", "stacktrace")
    facts = {f"exception.{name}": as_text(row.get(f"exception_{name}")) for name in names}
    yield SpanEvent(
        name="exception", time_ns=time_ns, attributes={name: value for name, value in facts.items() if value}
    )


def _says(value: Json) -> bool:
    return value not in (None, "", [], {}, "[]")


def _links(row: Mapping[str, Json]) -> Iterator[SpanLink]:
    for each in as_list(records.unwrapped(row.get("otel_links"))):
        link = as_object(each)
        context = as_object(link.get("context")) or link
        trace_id, span_id = ids.trace_id(context.get("trace_id")), ids.span_id(context.get("span_id"))
        if trace_id and span_id:
            yield SpanLink(trace_id=trace_id, span_id=span_id, attributes=_attributes(link.get("attributes")))


FORMAT = Format(
    name="logfire",
    suffix=".logfire.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(texts=(('"start_timestamp"',),), plain=(("start_timestamp", "span_name", "trace_id"),)),
)
