"""Jaeger's JSON, `/api/traces/{id}` and what its screen downloads: `{"data": [{"traceID", "spans", "processes"}]}`.

Read are that page, a bare trace, a list or lines of traces, and single spans with their `process` inside (as Jaeger's
Elasticsearch store has them). Jaeger keeps attributes, events, status, kind, parents, and of scope and resource name,
version and attributes. It cuts times to microseconds; arrays and objects become their JSON text; null becomes the empty
text; it has no place for schema URLs, attributes of scopes and of links, and counts of what was dropped.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.foreign import ids
from reenact.foreign.json_records import as_objects, each_document
from reenact.foreign.otlp import plain
from reenact.values.json import Json, compact
from reenact.values.losses import LOST, marked
from reenact.values.skeleton import holds
from reenact.values.span import (
    KIND_UNSPECIFIED,
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

_Object = dict[str, Any]
_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_KIND_NAMES = {number: name for name, number in _KINDS.items()}
_CODES = {"OK": STATUS_OK, "ERROR": STATUS_ERROR, "UNSET": STATUS_UNSET}
_KIND, _CODE, _TEXT, _ERROR = "span.kind", "otel.status_code", "otel.status_description", "error"
_STATE, _EVENT, _SERVICE = "w3c.tracestate", "event", "service.name"
_SCOPES = (("otel.scope.name", "otel.scope.version"), ("otel.library.name", "otel.library.version"))
_NAMELESS = "OTLPResourceNoServiceName"
"""What the Collector calls a service without a name."""
_LOSSES = (
    {
        "field": "times",
        "lost": "Jaeger keeps microseconds: instants closer than that have no order",
        "fix": "export OTLP from the emitter, or read Jaeger through its API v3",
    },
    {
        "field": "arrays",
        "lost": "Jaeger keeps arrays and objects among attributes as JSON text",
        "fix": "export OTLP from the emitter, or read Jaeger through its API v3",
    },
)
_SPAN = "spanID", "operationName", "startTime|startTimeMillis"
_MARKS = tuple(
    tuple("|".join(f"{within}{name}" for name in names.split("|")) for names in _SPAN)
    for within in ("data[].spans[].", "spans[].", "", "data.")
)

# ---------------------------------------------------------------------------------------------------- bytes to spans


def _recognises(head: bytes) -> float:
    return 0.95 if any(holds(head, *marks) for marks in _MARKS) else 0.0


def _records(document: object) -> Iterator[SpanRecord]:
    for item in as_objects(document, "a trace"):
        if isinstance(item.get("spans"), list):
            yield from _trace(item)
        elif "data" in item:
            if item["data"] is None:
                raise ValueError(f"Jaeger answered with an error: {compact(cast('Json', item.get('errors')))[:200]}")
            for trace in as_objects(item["data"], "a trace"):
                yield from _trace(trace)
        else:
            yield _span(item, item.get("process") or {})


def _trace(trace: _Object) -> Iterator[SpanRecord]:
    processes = cast("_Object", trace.get("processes") or {})
    resources = {name: _resource(process or {}) for name, process in processes.items()}
    spans: list[SpanRecord] = []
    for span in as_objects(trace["spans"], "a span"):
        within = span.get("process")
        resource = resources.get(str(span.get("processID")))
        spans.append(_span(span, resource or (cast("_Object", within) if isinstance(within, dict) else {})))
    return iter(marked(spans, _LOSSES))


def _span(span: _Object, of: Resource | _Object) -> SpanRecord:
    tags = _tags(span.get("tags"))
    trace_id = _id(span["traceID"], ids.TRACE_DIGITS)
    parent, links = _references(span, trace_id)
    start = _microseconds(span.get("startTime", 0))
    status, message = _status(tags)
    if warnings := span.get("warnings"):
        tags["jaeger.warnings"] = compact(warnings)
    return SpanRecord(
        trace_id=trace_id,
        span_id=_id(span["spanID"], ids.SPAN_DIGITS),
        parent_id=parent,
        name=str(span.get("operationName") or ""),
        start_ns=start,
        end_ns=start + _microseconds(span.get("duration", 0)),
        kind=_KINDS.get(str(tags.pop(_KIND, "")).lower(), KIND_UNSPECIFIED),
        status=status,
        status_message=message,
        events=tuple(_event(log) for log in as_objects(span.get("logs") or [], "a log")),
        links=links,
        resource=of if isinstance(of, Resource) else _resource(of),
        scope=_scope(tags),
        trace_state=str(tags.pop(_STATE, "")),
        attributes=tags,
        flags=int(span.get("flags") or 0),
    )


def _id(value: object, digits: int) -> str:
    read = ids.identity(value, digits, 1)
    if not read:
        raise ValueError(f"{compact(cast('Json', value))[:60]} is not {digits} hexadecimal digits")
    return read


def _microseconds(number: object) -> int:
    value = int(cast("Any", number or 0))
    return max(value, 0) * 1000


def _references(fields: _Object, trace_id: str) -> tuple[str | None, tuple[SpanLink, ...]]:
    """Give the parent and the links: the first CHILD_OF of the trace is the parent, else the first it follows from."""
    if above := fields.get("parentSpanID"):
        parent = _id(above, ids.SPAN_DIGITS)
        return (parent if parent.strip("0") else None), ()
    edges = [
        (str(each.get("refType")), _id(each.get("traceID") or trace_id, ids.TRACE_DIGITS), _id(each["spanID"], 16))
        for each in as_objects(fields.get("references") or [], "a reference")
    ]
    inside = [each for each in edges if each[1] == trace_id and each[2].strip("0")]
    above = next((each for each in inside if each[0] == "CHILD_OF"), inside[0] if inside else None)
    links = [SpanLink(trace_id=trace, span_id=span) for each in edges if each is not above for _, trace, span in [each]]
    return (above[2] if above else None), tuple(links)


def _tags(tags: object) -> dict[str, Attribute]:
    return {str(tag["key"]): _value(tag) for tag in as_objects(tags or [], "a tag")}


def _value(tag: _Object) -> Attribute:
    value = tag.get("value")
    match str(tag.get("type", "")).lower():
        case "int64" | "long" | "int":
            return int(cast("Any", value))
        case "float64" | "double" | "float":
            return float(cast("Any", value))
        case "bool":
            return value if isinstance(value, bool) else str(value).lower() == "true"
        case "binary" | "bytes":
            return base64.b64decode(str(value), validate=True)
        case _:
            return cast("Attribute", value)


def _status(tags: dict[str, Attribute]) -> tuple[int, str]:
    code, message = tags.pop(_CODE, None), str(tags.pop(_TEXT, "") or "")
    failed = tags.get(_ERROR) in (True, "true")
    if isinstance(code, str) and code.upper() in _CODES:
        if failed and code.upper() == "ERROR":
            del tags[_ERROR]
        return _CODES[code.upper()], message
    if isinstance(code, int) and code in (STATUS_OK, STATUS_ERROR):
        return code, message
    return (STATUS_ERROR if failed else STATUS_UNSET), message


def _scope(tags: dict[str, Attribute]) -> Scope:
    candidates = [(str(tags.pop(name, "") or ""), str(tags.pop(version, "") or "")) for name, version in _SCOPES]
    name, version = next((each for each in candidates if any(each)), ("", ""))
    return Scope(name=name, version=version)


def _resource(process: Mapping[str, Any]) -> Resource:
    attributes = _tags(process.get("tags"))
    name = process.get("serviceName")
    service: dict[str, Attribute] = {_SERVICE: name} if isinstance(name, str) and name not in ("", _NAMELESS) else {}
    return Resource(attributes=service | attributes)


def _event(log: _Object) -> SpanEvent:
    fields = _tags(log.get("fields"))
    name = fields.pop(_EVENT, "")
    return SpanEvent(
        name=name if isinstance(name, str) else compact(plain(name)),
        time_ns=_microseconds(log.get("timestamp", 0)),
        attributes=fields,
    )


# ---------------------------------------------------------------------------------------------------- spans to bytes


def _encode(spans: Iterable[SpanRecord]) -> bytes:
    """Spell spans as one page, a trace after another, each with its processes."""
    traces: dict[str, list[SpanRecord]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    data: list[Json] = [_told_trace(trace_id, trace_spans) for trace_id, trace_spans in traces.items()]
    page: dict[str, Json] = {"data": data, "total": len(data), "limit": 0, "offset": 0, "errors": None}
    return compact(page).encode() + b"\n"


def _told_trace(trace_id: str, spans: list[SpanRecord]) -> Json:
    processes: dict[str, Json] = {}
    names: dict[str, str] = {}
    entries: list[Json] = []
    for span in spans:
        process = _told_process(span.resource)
        name = names.setdefault(compact(process), f"p{len(names) + 1}")
        processes[name] = process
        entries.append(_told_span(span, name))
    return {"traceID": trace_id, "spans": entries, "processes": processes, "warnings": None}


def _told_process(resource: Resource) -> Json:
    name = resource.attributes.get(_SERVICE)
    rest = {key: value for key, value in resource.attributes.items() if key != _SERVICE or not isinstance(name, str)}
    return {"serviceName": name if isinstance(name, str) and name else _NAMELESS, "tags": _told_tags(rest)}


def _told_span(span: SpanRecord, process: str) -> Json:
    references: list[dict[str, Json]] = []
    if span.parent_id is not None:
        references.append({"refType": "CHILD_OF", "traceID": span.trace_id, "spanID": span.parent_id})
    references.extend(
        {"refType": "FOLLOWS_FROM", "traceID": link.trace_id, "spanID": link.span_id} for link in span.links
    )
    logs: list[Json] = [
        {"timestamp": event.time_ns // 1000, "fields": _told_tags({_EVENT: event.name, **event.attributes})}
        for event in span.events
    ]
    attributes = {key: value for key, value in span.attributes.items() if key != LOST or not _ours(value)}
    return {
        "traceID": span.trace_id,
        "spanID": span.span_id,
        "flags": span.flags,
        "operationName": span.name,
        "references": [*references],
        "startTime": span.start_ns // 1000,
        "duration": max(span.end_ns // 1000 - span.start_ns // 1000, 0),
        "tags": _told_tags({**attributes, **_facts(span)}),
        "logs": logs,
        "processID": process,
        "warnings": None,
    }


def _ours(lost: Attribute) -> bool:
    """Tell a mark of this very format, which reading makes again."""
    return lost == [*_LOSSES]


def _facts(span: SpanRecord) -> dict[str, Attribute]:
    """Spell what has no field of its own, as the Collector does."""
    (scope_name, scope_version), _ = _SCOPES
    facts: dict[str, Attribute] = {}
    if span.kind in _KIND_NAMES:
        facts[_KIND] = _KIND_NAMES[span.kind]
    if span.status in (STATUS_OK, STATUS_ERROR):
        facts[_CODE] = "OK" if span.status == STATUS_OK else "ERROR"
    if span.status == STATUS_ERROR:
        facts[_ERROR] = True
    texts = {_TEXT: span.status_message, scope_name: span.scope.name, scope_version: span.scope.version}
    return facts | {name: text for name, text in {**texts, _STATE: span.trace_state}.items() if text}


def _told_tags(attributes: Mapping[str, Attribute]) -> list[Json]:
    return [{"key": key, **_told_value(value)} for key, value in attributes.items()]


def _told_value(value: Attribute) -> dict[str, Json]:
    match value:
        case bool():
            return {"type": "bool", "value": value}
        case int():
            if value.bit_length() >= 10_000:
                return {"type": "string", "value": hex(value)}
            return {"type": "int64", "value": value if abs(value) < 1 << 53 else str(value)}
        case float():
            return {"type": "float64", "value": value if math.isfinite(value) else str(value)}
        case bytes():
            return {"type": "binary", "value": base64.b64encode(value).decode()}
        case str():
            return {"type": "string", "value": value}
        case None:
            return {"type": "string", "value": ""}
        case _:
            return {"type": "string", "value": _text(value)}


def _text(value: Attribute) -> str:
    try:
        return compact(plain(value))
    except (TypeError, ValueError, RecursionError):
        return "<nested too deep for JSON>"


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    return cast("Iterator[SpanRecord]", each_document(stream, path, _records, "a trace of Jaeger"))


FORMAT = Format(
    name="jaeger",
    suffix=".jaeger.json",
    recognises=_recognises,
    encode=_encode,
    decode=_decode,
    most=0.95,
    marks=HeadMarks(keys=_MARKS),
)
