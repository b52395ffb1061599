"""Zipkin v2 JSON: arrays of `{"traceId", "id", "parentId", "name", "kind", "timestamp", "duration", "tags", …}`.

One array for a trace, an array of such arrays (`/api/v2/traces`), or one span a line. Every tag is a text, so numbers
and truths come back as texts, and arrays as their JSON text; times are microseconds. It is read, not written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.foreign import ids
from reenact.foreign.json_records import as_objects, each_document
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.losses import marked
from reenact.values.skeleton import holds
from reenact.values.span import (
    KIND_INTERNAL,
    STATUS_ERROR,
    STATUS_OK,
    STATUS_UNSET,
    Attribute,
    Resource,
    Scope,
    SpanEvent,
    SpanRecord,
)

_Object = dict[str, Any]
_WITHIN = "", "[][].", "[]."
_KINDS = {"SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_CODES = {"OK": STATUS_OK, "ERROR": STATUS_ERROR, "UNSET": STATUS_UNSET}
_LOSSES = (
    {
        "field": "attributes",
        "lost": "Zipkin keeps every attribute as text, and times to the microsecond",
        "fix": "export OTLP from the emitter",
    },
)


def _recognises(head: bytes) -> float:
    for within in _WITHIN:
        if holds(head, f"{within}traceId", f"{within}id") and not holds(head, f"{within}spanId"):
            if holds(head, f"{within}localEndpoint|{within}remoteEndpoint|{within}annotations"):
                return 0.93
            ours = holds(head, f"{within}timestamp", f"{within}duration", f"{within}name")
            return 0.5 if ours and not holds(head, f"{within}attributes") else 0.0
    return 0.0


def _records(document: object) -> Iterator[SpanRecord]:
    items = cast("list[object]", document) if isinstance(document, list) else [document]
    yield from marked((_span(span) for item in items for span in as_objects(item, "a span")), _LOSSES)


def _span(span: _Object) -> SpanRecord:
    tags: dict[str, Attribute] = dict(cast("_Object", span.get("tags") or {}))
    parent = span.get("parentId")
    start = int(span.get("timestamp") or 0) * 1000
    status, message = _status(tags)
    name = str(tags.pop("otel.scope.name", "") or tags.pop("otel.library.name", "") or "")
    version = str(tags.pop("otel.scope.version", "") or tags.pop("otel.library.version", "") or "")
    local = cast("_Object", span.get("localEndpoint") or {})
    for side in ("localEndpoint", "remoteEndpoint"):
        if rest := {key: value for key, value in cast("_Object", span.get(side) or {}).items() if key != "serviceName"}:
            tags[f"zipkin.{side}"] = compact(rest)
    service: dict[str, Attribute] = {"service.name": local["serviceName"]} if local.get("serviceName") else {}
    return SpanRecord(
        trace_id=_id(span["traceId"], ids.TRACE_DIGITS),
        span_id=_id(span["id"], ids.SPAN_DIGITS),
        parent_id=_id(parent, ids.SPAN_DIGITS) if parent else None,
        name=str(span.get("name") or ""),
        start_ns=max(start, 0),
        end_ns=max(start, 0) + max(int(span.get("duration") or 0), 0) * 1000,
        kind=_KINDS.get(str(span.get("kind") or "").upper(), KIND_INTERNAL),
        status=status,
        status_message=message,
        attributes=tags,
        events=tuple(map(_event, as_objects(span.get("annotations") or [], "an annotation"))),
        resource=Resource(attributes=service),
        scope=Scope(name=name, version=version),
    )


def _id(value: object, digits: int) -> str:
    read = ids.identity(value, digits, 1)
    if not read:
        raise ValueError(f"{compact(cast('Json', value))[:60]} is not {digits} hexadecimal digits")
    return read


def _status(tags: dict[str, Attribute]) -> tuple[int, str]:
    code, message = tags.pop("otel.status_code", None), tags.pop("otel.status_description", None)
    error = tags.get("error")
    if isinstance(code, str) and code.upper() in _CODES:
        if code.upper() == "ERROR" and "error" in tags:
            del tags["error"]
            message = message or (None if error in ("true", True, "") else error)
        return _CODES[code.upper()], str(message or "")
    if error is None:
        return STATUS_UNSET, str(message or "")
    return STATUS_ERROR, str(message or ("" if error in ("true", True) else error))


def _event(annotation: _Object) -> SpanEvent:
    """Read an annotation; the exporters of OpenTelemetry write `"name": {attributes}` into its text."""
    text = str(annotation.get("value") or "")
    time = max(int(annotation.get("timestamp") or 0), 0) * 1000
    name, colon, rest = text.partition('": ')
    if colon and name.startswith('"'):
        return SpanEvent(name=name[1:], time_ns=time, attributes=_attributes(rest))
    return SpanEvent(name=text, time_ns=time)


def _attributes(text: str) -> dict[str, Attribute]:
    read = parsed_or_none(text)
    return cast("dict[str, Attribute]", read) if isinstance(read, dict) else {"value": text}


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    return cast("Iterator[SpanRecord]", each_document(stream, path, _records, "spans of Zipkin"))


FORMAT = Format(
    name="zipkin",
    suffix=".zipkin.json",
    recognises=_recognises,
    decode=_decode,
    most=0.93,
    marks=HeadMarks(keys=tuple((f"{within}traceId", f"{within}id") for within in _WITHIN)),
)
