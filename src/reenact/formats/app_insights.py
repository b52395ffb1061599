"""Rows of Azure Monitor's Application Insights, as its queries, exports and downloads give them: a row a span or event.

Rows of requests and dependencies are spans, rows of traces, events and exceptions are log events of the span that they
name. Columns are named as in a workspace (`OperationId`, `Properties`) or in the classic tables (`operation_Id`,
`customDimensions`). Read are answers of the query API (`tables`), records of a diagnostic export, arrays, lines and
CSV. Every property is a text there, typed again by its name; texts of the greatest length that is kept may have been
cut, and the span says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import ids, map_values, records, tables
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.log import LogRecord, Record
from reenact.values.losses import LOST
from reenact.values.span import (
    KIND_CLIENT,
    KIND_INTERNAL,
    KIND_SERVER,
    STATUS_ERROR,
    STATUS_UNSET,
    Attribute,
    Resource,
    SpanRecord,
)

_LONGEST: Final = 8192
"""Characters of a property that Application Insights keeps."""
_LONGEST_MS: Final = 1e12
"""A duration of thirty years is none."""
_CUT: Final[dict[str, Attribute]] = {
    "field": "attributes",
    "lost": f"the end of texts of {_LONGEST:,} characters: Application Insights keeps no longer ones",
    "fix": "send the same spans to a backend that keeps them whole, as well",
}
_NAMES: Final = {
    "time": ("TimeGenerated", "timestamp", "time"),
    "trace": ("OperationId", "operation_Id"),
    "parent": ("ParentId", "operation_ParentId"),
    "id": ("Id", "id"),
    "name": ("Name", "name"),
    "took": ("DurationMs", "duration"),
    "success": ("Success", "success"),
    "kind": ("DependencyType", "type"),
    "properties": ("Properties", "customDimensions"),
    "measurements": ("Measurements", "customMeasurements"),
    "table": ("Type", "itemType", "$table"),
    "role": ("AppRoleName", "cloud_RoleName"),
    "instance": ("AppRoleInstance", "cloud_RoleInstance"),
    "session": ("SessionId", "session_Id"),
    "user": ("UserId", "user_Id"),
    "message": ("Message", "message", "OuterMessage", "outerMessage"),
    "exception": ("ExceptionType",),
}
"""The columns that hold a thing, in either set of names."""
_ROWS: Final = ((b"OperationId", b"Properties"), (b"operation_Id", b"customDimensions"))


def _recognises(head: bytes) -> float:
    column_names = {name.partition(" [")[0] for name in tables.columns(head)}
    if column_names:
        return 0.95 if any({a.decode(), b.decode()} <= column_names for a, b in _ROWS) else 0.0
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return 0.0
    return 0.95 if any(all(b'"' + name + b'"' in head for name in names) for names in _ROWS) else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[Record]:
    for line, document in tables.rows(stream, str(path)):
        for row in _rows(document, f"{path}:{line}"):
            yield _record(row, f"{path}:{line}")


def _rows(document: Json, place: str) -> Iterator[dict[str, Json]]:
    """Find the rows in a document, whatever it is wrapped into."""
    if isinstance(document, list):
        for each in document:
            yield from _rows(each, place)
        return
    if not isinstance(document, dict):
        raise InputError(place, "this is no row of Application Insights: expected an object")
    if isinstance(table_list := document.get("tables"), list):
        for table in map(as_object, table_list):
            yield from _of_table(table)
    elif isinstance(inner := document.get("records", document.get("value")), list):
        yield from _rows(inner, place)
    else:
        yield {name.partition(" [")[0]: value for name, value in document.items()}


def _of_table(table: dict[str, Json]) -> Iterator[dict[str, Json]]:
    names = [as_text(as_object(each).get("name")) for each in as_list(table.get("columns"))]
    for cells in map(as_list, as_list(table.get("rows"))):
        yield {"$table": table.get("name"), **dict(zip(names, cells, strict=False))}


def _cell(row: Mapping[str, Json], what: str) -> Json:
    return next((value for name in _NAMES[what] if (value := row.get(name)) not in (None, "")), None)


def _record(row: Mapping[str, Json], place: str) -> Record:
    if not records.nanoseconds(_cell(row, "time")):
        raise InputError(place, "this row has no time: a query has to keep `TimeGenerated` or `timestamp`")
    if _cell(row, "took") is not None or _cell(row, "success") is not None:
        return _span(row, place)
    return _log(row)


def _span(row: Mapping[str, Json], place: str) -> SpanRecord:
    operation_id = _cell(row, "trace")
    trace_id, span_id = ids.trace_id(operation_id), ids.span_id(_own(_cell(row, "id")))
    if not trace_id or not span_id:
        raise InputError(place, "this row has no ids: a query has to keep `OperationId` and `Id`")
    parent = _own(_cell(row, "parent"))
    attributes = _attributes(row)
    if any(isinstance(value, str) and len(value) == _LONGEST for value in attributes.values()):
        attributes[LOST] = [dict(_CUT)]
    start = records.nanoseconds(_cell(row, "time"))
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=None if parent in (None, _own(operation_id)) else ids.span_id(parent) or None,
        name=as_text(_cell(row, "name")),
        start_ns=start,
        end_ns=start + _took(_cell(row, "took")),
        kind=_kind(row),
        status=STATUS_ERROR
        if as_text(_cell(row, "success")).lower() == "false" or _cell(row, "success") is False
        else STATUS_UNSET,
        attributes=attributes,
        resource=_resource(row),
    )


def _own(identifier: Json) -> Json:
    """Give the last part of a hierarchical id, `|trace.span.`; any other id as it is."""
    text = as_text(identifier)
    return text.strip("|.").rpartition(".")[2] if text.startswith("|") else identifier


def _took(duration: Json) -> int:
    """Give nanoseconds of a duration in milliseconds."""
    if isinstance(duration, str):
        duration = parsed_or_none(duration)
    if not isinstance(duration, int | float) or isinstance(duration, bool) or not 0 <= duration < _LONGEST_MS:
        return 0
    return round(duration * 1e6)


def _kind(row: Mapping[str, Json]) -> int:
    table, kind = as_text(_cell(row, "table")).lower(), as_text(_cell(row, "kind")).lower()
    if "request" in table:
        return KIND_SERVER
    return KIND_INTERNAL if kind.startswith("inproc") else KIND_CLIENT


def _attributes(row: Mapping[str, Json]) -> dict[str, Attribute]:
    attributes = map_values.attributes(_cell(row, "properties")) | map_values.attributes(_cell(row, "measurements"))
    for name, what in (("session.id", "session"), ("user.id", "user")):
        if text := as_text(_cell(row, what)):
            attributes.setdefault(name, text)
    return attributes


def _resource(row: Mapping[str, Json]) -> Resource:
    service = {"service.name": as_text(_cell(row, "role")), "service.instance.id": as_text(_cell(row, "instance"))}
    return Resource(attributes={name: value for name, value in service.items() if value})


def _log(row: Mapping[str, Json]) -> LogRecord:
    attributes = _attributes(row)
    message = _cell(row, "message")
    parsed = parsed_or_none(message) if isinstance(message, str) and message[:1] in ("{", "[") else None
    event_name = attributes.get("event.name")
    name = (event_name if isinstance(event_name, str) else "") or as_text(_cell(row, "name"))
    if kind := as_text(_cell(row, "exception")):
        name = "exception"
        attributes |= {"exception.type": kind, "exception.message": as_text(message)}
    return LogRecord(
        trace_id=ids.trace_id(_cell(row, "trace")),
        span_id=ids.span_id(_own(_cell(row, "parent"))),
        time_ns=records.nanoseconds(_cell(row, "time")),
        event_name=name,
        body=message if parsed is None else parsed,
        attributes=attributes,
        resource=_resource(row),
    )


FORMAT = Format(
    name="app-insights",
    suffix=".app-insights.json",
    recognises=_recognises,
    decode=_decode,
    most=0.95,
    marks=HeadMarks(
        texts=tuple((f'"{a.decode()}"', f'"{b.decode()}"') for a, b in _ROWS),
        plain=tuple((a.decode().lower(), b.decode().lower()) for a, b in _ROWS),
    ),
)
