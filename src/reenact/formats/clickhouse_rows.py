"""Rows of the Collector's ClickHouse exporter, tables `otel_traces` and `otel_logs`, as a query gives them in JSON.

`FORMAT JSONEachRow` (a row a line) and `FORMAT JSON` (an object with `data`). A column of type `Map(String, String)`
makes every attribute a text, numbers and arrays too; one of type `JSON` nests dotted names. Attributes that are
numbers, booleans or arrays by the conventions are read back as such; any other text stays one. Nested columns come
flattened (`Events.Name`: an array) or whole (`Events`: an array of objects).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import ids, map_values, records, tables
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_count, as_list, as_object, as_text, text_or_json
from reenact.values.log import LogRecord, Record
from reenact.values.span import Attribute, Resource, Scope, SpanEvent, SpanLink, SpanRecord

_TRACES = (b'"TraceId"', b'"SpanId"', b'"SpanName"')
_LOGS = (b'"Timestamp"', b'"LogAttributes"', b'"Body"')
_KINDS: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")
_STATUSES: Final = ("unset", "ok", "error")


def _recognises(head: bytes) -> float:
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return 0.0
    if all(name in head for name in _TRACES):
        return 0.96
    return 0.94 if all(name in head for name in _LOGS) else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[Record]:
    for line, document in tables.rows(stream, str(path)):
        for row in _rows(document):
            yield _record(row, f"{path}:{line}")


def _rows(document: Json) -> list[Json]:
    if isinstance(document, list):
        return document
    if isinstance(document, dict) and isinstance(document.get("data"), list):
        return as_list(document["data"])
    return [document]


def _record(row: Json, place: str) -> Record:
    if not isinstance(row, dict) or "Timestamp" not in row or not ("SpanId" in row or "Body" in row):
        raise InputError(place, "this is no row of otel_traces or otel_logs: it has no `Timestamp` with `SpanId`")
    return _span(row, place) if "SpanName" in row or "Body" not in row else _log(row)


def _span(row: Mapping[str, Json], place: str) -> SpanRecord:
    trace_id, span_id = ids.trace_id(row.get("TraceId")), ids.span_id(row.get("SpanId"))
    if not trace_id or not span_id:
        raise InputError(place, "this row has no trace and span id")
    start = records.nanoseconds(row.get("Timestamp"))
    took = row.get("Duration")
    ns = int(took) if isinstance(took, str) and took.isascii() and took.isdigit() else as_count(took)
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=ids.span_id(row.get("ParentSpanId")) or None,
        name=as_text(row.get("SpanName")),
        start_ns=start,
        end_ns=start + ns if ns is not None and ns >= 0 else 0,
        kind=_place(row.get("SpanKind"), _KINDS, "span_kind_"),
        status=_place(row.get("StatusCode"), _STATUSES, "status_code_"),
        status_message=as_text(row.get("StatusMessage")),
        attributes=map_values.attributes(row.get("SpanAttributes")),
        events=tuple(
            SpanEvent(
                name=as_text(each.get("Name")),
                time_ns=records.nanoseconds(each.get("Timestamp")),
                attributes=map_values.attributes(each.get("Attributes")),
            )
            for each in _nested(row, "Events")
        ),
        links=tuple(
            SpanLink(
                trace_id=ids.trace_id(each.get("TraceId")),
                span_id=ids.span_id(each.get("SpanId")),
                attributes=map_values.attributes(each.get("Attributes")),
                trace_state=as_text(each.get("TraceState")),
            )
            for each in _nested(row, "Links")
            if ids.trace_id(each.get("TraceId")) and ids.span_id(each.get("SpanId"))
        ),
        resource=_resource(row),
        scope=Scope(name=as_text(row.get("ScopeName")), version=as_text(row.get("ScopeVersion"))),
        trace_state=as_text(row.get("TraceState")),
    )


def _log(row: Mapping[str, Json]) -> LogRecord:
    body = row.get("Body")
    parsed = parsed_or_none(body) if isinstance(body, str) and body[:1] in ("{", "[") else None
    attributes = map_values.attributes(row.get("LogAttributes"))
    return LogRecord(
        trace_id=ids.trace_id(row.get("TraceId")),
        span_id=ids.span_id(row.get("SpanId")),
        time_ns=records.nanoseconds(row.get("Timestamp")),
        event_name=as_text(row.get("EventName")) or text_or_json(_json(attributes.get("event.name"))),
        body=body if parsed is None else parsed,
        attributes=attributes,
        severity=as_count(row.get("SeverityNumber")) or 0,
        severity_text=as_text(row.get("SeverityText")),
        resource=_resource(row),
        scope=Scope(name=as_text(row.get("ScopeName")), version=as_text(row.get("ScopeVersion"))),
    )


def _json(value: Attribute) -> Json:
    return value if isinstance(value, str | int | float) else None


def _resource(row: Mapping[str, Json]) -> Resource:
    attributes = map_values.attributes(row.get("ResourceAttributes"))
    if service := as_text(row.get("ServiceName")):
        attributes.setdefault("service.name", service)
    return Resource(attributes=attributes)


def _place(value: Json, names: tuple[str, ...], prefix: str) -> int:
    """Read an enumeration: `Client`, `SPAN_KIND_CLIENT`, `client`, or its number."""
    if (number := as_count(value)) is not None:
        return number if 0 <= number < len(names) else 0
    word = as_text(value).lower().removeprefix(prefix)
    return names.index(word) if word in names else 0


def _nested(row: Mapping[str, Json], name: str) -> list[dict[str, Json]]:
    """Read a nested column, whole or flattened into one array for each of its fields."""
    whole = row.get(name)
    if isinstance(whole, list):
        return [as_object(each) for each in whole]
    prefix = f"{name}."
    columns = {field.removeprefix(prefix): as_list(value) for field, value in row.items() if field.startswith(prefix)}
    length = max(map(len, columns.values()), default=0)
    return [
        {field: values[place] for field, values in columns.items() if place < len(values)} for place in range(length)
    ]


FORMAT = Format(
    name="clickhouse",
    suffix=".clickhouse.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(texts=(tuple(map(bytes.decode, _TRACES)), tuple(map(bytes.decode, _LOGS)))),
)
