"""Spans as SDKs and tools dump them: one JSON object a span, under names that differ from one to the next.

What the OpenTelemetry SDKs of Python (`ReadableSpan.to_json`, `LogRecord.to_json`) and JavaScript (`ReadableSpan`) make
of a span, and what test suites and tracing libraries made of those, is one object with a dozen facts under a handful of
names each. All are read here; a name that nobody knows is kept, as JSON under `reenact.unread`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from reenact.foreign import ids, records
from reenact.foreign.otlp import attributes as otlp_attributes
from reenact.foreign.otlp import plain
from reenact.values.json import Json, compact, digest
from reenact.values.log import LogRecord
from reenact.values.span import (
    KIND_INTERNAL,
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
UNREAD = "reenact.unread"
"""Attribute that holds, as JSON text, what a span dump says under names that are not known."""
_ORIGINAL = "reenact.original"
_CONTEXTS = ("context", "spanContext", "_spanContext", "span_context")
_TRACE = ("trace_id", "traceId", "traceID", "trace.id")
_SPAN = ("span_id", "spanId", "spanID", "id", "span.id")
_PARENT = ("parent_id", "parent_span_id", "parentSpanId", "parentId", "parent_spanId", "parentSpanID")
_PARENT_CONTEXTS = ("parent", "parentSpanContext", "parent_context", "parent_span_context")
_NAME = ("name", "span_name", "spanName", "operationName", "operation_name", "_name")
_START = (
    "start_time_unix_nano", "startTimeUnixNano", "start_time_ns", "start_time", "startTime", "start", "start_timestamp",
    "started_at", "startTimestamp", "timestamp", "time",
)  # fmt: skip
_END = (
    "end_time_unix_nano", "endTimeUnixNano", "end_time_ns", "end_time", "endTime", "end", "end_timestamp", "ended_at",
    "endTimestamp",
)  # fmt: skip
_DURATIONS = (("duration_ns", 1), ("durationNano", 1), ("duration_ms", 10**6), ("durationMs", 10**6), ("duration", 0))
_KIND = ("kind", "span_kind", "spanKind")
_STATUS = ("status", "_status")
_STATUS_CODE, _STATUS_TEXT = ("status_code", "statusCode", "code"), ("status_message", "statusMessage")
_ATTRIBUTES = ("attributes", "span_attributes", "spanAttributes")
_EVENTS, _LINKS = ("events", "span_events", "spanEvents"), ("links", "span_links", "spanLinks")
_RESOURCE = ("resource", "resource_attributes", "resourceAttributes", "_resource")
_SCOPE = ("scope", "instrumentation_scope", "instrumentationScope", "instrumentationLibrary", "instrumentation_info")
_SCOPE_NAME, _SCOPE_VERSION = ("scopeName", "scope_name"), ("scopeVersion", "scope_version")
_STATE = ("trace_state", "traceState")
_FLAGS = ("trace_flags", "traceFlags", "flags")
_DROPPED = (
    ("dropped_attributes", "droppedAttributesCount", "dropped_attributes_count"),
    ("dropped_events", "droppedEventsCount", "dropped_events_count"),
    ("dropped_links", "droppedLinksCount", "dropped_links_count"),
)
_KNOWN = frozenset(
    name
    for names in (
        _CONTEXTS, _TRACE, _SPAN, _PARENT, _PARENT_CONTEXTS, _NAME, _START, _END, _KIND, _STATUS, _STATUS_CODE,
        _STATUS_TEXT, _ATTRIBUTES, _EVENTS, _LINKS, _RESOURCE, _SCOPE, _SCOPE_NAME, _SCOPE_VERSION, _STATE, _FLAGS,
        *_DROPPED, [name for name, _ in _DURATIONS], ("ended", "_ended", "_duration", "instrumentationScope"),
    )
    for name in names
)  # fmt: skip
_EVENT_NAME, _EVENT_TIME = ("name", "event_name", "eventName"), (
    "timestamp", "time", "time_unix_nano", "timeUnixNano", "timestamp_ns", "observed_timestamp", "observedTimeUnixNano",
)  # fmt: skip
_EVENT_KNOWN = frozenset({*_EVENT_NAME, *_EVENT_TIME, *_DROPPED[0], "attributes", "body"})
_KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_CODES = {"UNSET": STATUS_UNSET, "OK": STATUS_OK, "ERROR": STATUS_ERROR, "UNSPECIFIED": STATUS_UNSET}


def span_of(fields: Mapping[str, Any], *, above: Mapping[str, Any] | None = None) -> SpanRecord:
    """Read one span. `above` is the object that it came in, which may say the trace's id for all its spans.

    Ids that are none of OpenTelemetry's become digests of themselves, and the span says what it had as
    `reenact.original`; a span without ids gets such as follow from what it says. A kind that is a number counts from 0,
    as in the SDKs, unless the times are named as in OTLP. Raises `ValueError` where something stands where it cannot,
    and on odder shapes what `otlp.SHAPELESS` names.
    """
    context = _first_object(fields, _CONTEXTS)
    parent_context = _first_object(fields, _PARENT_CONTEXTS)
    raw_trace = _first(context, _TRACE) or _first(fields, _TRACE) or _first(above or {}, _TRACE)
    raw_span = _first(context, _SPAN) or _first(fields, _SPAN)
    raw_parent = _first(fields, _PARENT) or _first(parent_context, _SPAN)
    attributes = _attributes(_first(fields, _ATTRIBUTES))
    if unread := {name: value for name, value in fields.items() if name not in _KNOWN and records.is_said(value)}:
        attributes[UNREAD] = compact(cast("Json", unread))
    originals: dict[str, Json] = {}
    trace_id = _id(raw_trace, ids.TRACE_DIGITS, "trace_id", originals) or digest(cast("Json", dict(fields)))
    span_id = _id(raw_span, ids.SPAN_DIGITS, "span_id", originals) or digest(cast("Json", dict(fields)))[:16]
    parent_id = _id(raw_parent, ids.SPAN_DIGITS, "parent_id", originals) or None
    if originals:
        attributes[_ORIGINAL] = compact(originals)
    start_ns, end_ns = _times(fields)
    code, message = _status(fields)
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        name=_text(_first(fields, _NAME)),
        start_ns=start_ns,
        end_ns=end_ns,
        kind=_kind(_first(fields, _KIND), otlp=_first(fields, _START[:2]) is not None),
        status=code,
        status_message=message,
        attributes=attributes,
        events=tuple(_event(event) for event in _objects(_first(fields, _EVENTS))),
        links=tuple(_link(link) for link in _objects(_first(fields, _LINKS))),
        resource=_resource(fields),
        scope=_scope(fields),
        trace_state=_state(_first(context, _STATE) or _first(fields, _STATE)),
        flags=_count(_first(context, _FLAGS)),
        dropped_attributes=_count(_first(fields, _DROPPED[0])),
        dropped_events=_count(_first(fields, _DROPPED[1])),
        dropped_links=_count(_first(fields, _DROPPED[2])),
    )


def has_span_id(fields: Mapping[str, Any]) -> bool:
    """Tell whether a span came with an id of its own."""
    return bool(_first(_first_object(fields, _CONTEXTS), _SPAN) or _first(fields, _SPAN))


def is_log(fields: Mapping[str, Any]) -> bool:
    """Tell a log event from a span: it has a body, and no name of its own but that of an event."""
    return "body" in fields and _first(fields, _NAME) is None and _first(fields, _START[:10]) is None


def log_of(log: Mapping[str, Any]) -> LogRecord:
    """Read one log event, as the Python SDK and log services spell it. Raises `ValueError` as `span_of` does."""
    attributes = _attributes(log.get("attributes"))
    event_name = log.get("event_name") or log.get("eventName") or attributes.get("event.name")
    trace_id = ids.trace_id(_first(log, _TRACE), least=1)
    span_id = ids.span_id(_first(log, _SPAN[:3]), least=1)
    return LogRecord(
        trace_id=trace_id if trace_id.strip("0") else "",
        span_id=span_id if span_id.strip("0") else "",
        time_ns=_instant(log, ("timestamp", "timeUnixNano", "time_unix_nano")),
        observed_ns=_instant(
            log, ("observed_timestamp", "observedTimestamp", "observedTimeUnixNano", "observed_time_unix_nano")
        ),
        event_name=event_name if isinstance(event_name, str) else "",
        body=cast("Json", log.get("body")),
        attributes=attributes,
        severity=_count(_first(log, ("severity_number", "severityNumber"))),
        severity_text=_text(_first(log, ("severity_text", "severityText"))),
        resource=_resource(log),
        scope=_scope(log),
        flags=_count(_first(log, _FLAGS)),
        dropped_attributes=_count(log.get("dropped_attributes")),
    )


def _first(fields: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((value for name in names if (value := fields.get(name)) is not None), None)


def _first_object(fields: Mapping[str, Any], names: Iterable[str]) -> _Object:
    empty: _Object = {}
    return next((cast("_Object", value) for name in names if isinstance(value := fields.get(name), dict)), empty)


def _objects(entries: object) -> list[_Object]:
    if not entries:
        return []
    if not isinstance(entries, list) or not all(isinstance(item, dict) for item in cast("list[object]", entries)):
        raise ValueError("expected a list of objects")
    return cast("list[_Object]", entries)


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else compact(cast("Json", value))


def _count(value: object) -> int:
    if isinstance(value, dict):  # {"value": 1}
        value = cast("_Object", value).get("value")
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _state(state: object) -> str:
    if isinstance(state, dict):
        entries = cast("_Object", state).get("entries", state)
        return ",".join(f"{name}={value}" for name, value in cast("_Object", entries).items()) if entries else ""
    return state if isinstance(state, str) and state != "[]" else ""


def _id(value: object, digits: int, name: str, originals: dict[str, Json]) -> str:
    """Read an id, or make one of what stands in its place; nothing for none."""
    if value in (None, "", 0) or isinstance(value, bool):
        return ""
    read = ids.identity(value, digits, 1)
    if read:
        return read if read.strip("0") else ""
    originals[name] = plain(cast("Attribute", value))
    converter = records.trace_id if digits == ids.TRACE_DIGITS else records.span_id
    return converter(cast("Json", value))


def _times(fields: Mapping[str, Any]) -> tuple[int, int]:
    start, end = _instant(fields, _START), _instant(fields, _END)
    if not end and start:
        for name, unit in _DURATIONS:
            if (lasted := fields.get(name)) is not None:
                return start, start + _length(lasted, unit)
    return start, end


def _length(duration: object, unit: int) -> int:
    """Give nanoseconds; a bare `duration` is microseconds, as the exporters of the SDKs print it, or seconds and ns."""
    if isinstance(duration, list):
        return _pair(cast("list[Any]", duration))
    if isinstance(duration, int | float) and not isinstance(duration, bool) and 0 <= duration < 1e18:
        return round(duration * (unit or 1000))
    return 0


def _instant(fields: Mapping[str, Any], names: tuple[str, ...]) -> int:
    value = _first(fields, names)
    return _pair(cast("list[Any]", value)) if isinstance(value, list) else records.nanoseconds_of(fields, *names)


def _pair(pair: list[Any]) -> int:
    """Give the nanoseconds of JavaScript's `[seconds, nanoseconds]`."""
    if len(pair) != 2 or not all(isinstance(part, int) and not isinstance(part, bool) for part in pair):
        raise ValueError("a time is no pair of seconds and nanoseconds")
    return max(0, pair[0] * 10**9 + pair[1])


def _kind(kind: object, *, otlp: bool) -> int:
    if isinstance(kind, str):
        word = kind.upper().rsplit(".", 1)[-1].removeprefix("SPAN_KIND_")
        return _KINDS.index(word) if word in _KINDS else KIND_INTERNAL
    if isinstance(kind, bool) or not isinstance(kind, int):
        return KIND_INTERNAL
    return min(max(kind if otlp else kind + 1, 0), len(_KINDS) - 1)


def _status(fields: Mapping[str, Any]) -> tuple[int, str]:
    status = _first(fields, _STATUS)
    whole: Mapping[str, Any] = cast("_Object", status) if isinstance(status, dict) else {"code": status}
    code = _first(whole, _STATUS_CODE)
    code = _first(fields, _STATUS_CODE[:2]) if code is None else code
    message = _first(whole, ("description", "message")) or _first(fields, _STATUS_TEXT)
    if isinstance(code, str):
        word = code.upper().rsplit(".", 1)[-1].removeprefix("STATUS_CODE_")
        return _CODES.get(word, STATUS_UNSET), _text(message)
    is_valid = isinstance(code, int) and not isinstance(code, bool) and STATUS_UNSET <= code <= STATUS_ERROR
    return code if is_valid else STATUS_UNSET, _text(message)


def _attributes(source: object) -> dict[str, Attribute]:
    if not source:
        return {}
    if isinstance(source, list):
        return otlp_attributes(cast("Any", source))
    if not isinstance(source, dict):
        raise ValueError("attributes are no object")  # noqa: TRY004 - as every other wrong shape
    return {name: _value(value) for name, value in cast("_Object", source).items()}


_ANY = frozenset({"stringValue", "boolValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue"})


def _value(value: Any) -> Attribute:
    """Read a plain value. What is left of OTLP's AnyValue in some dumps is read as that."""
    if not isinstance(value, dict):
        return cast("Attribute", value)
    fields = cast("_Object", value)
    if len(fields) == 1 and not _ANY.isdisjoint(fields):
        return otlp_attributes([{"key": "", "value": fields}])[""]
    listed = fields.get("values")
    if len(fields) == 1 and isinstance(listed, list) and all(_is_any(item) for item in cast("list[object]", listed)):
        return otlp_attributes([{"key": "", "value": {"arrayValue": fields}}])[""]
    return cast("Attribute", fields)


def _is_any(item: object) -> bool:
    return isinstance(item, dict) and len(cast("_Object", item)) == 1 and not _ANY.isdisjoint(cast("_Object", item))


def _event(event: _Object) -> SpanEvent:
    attributes = _attributes(event.get("attributes"))
    if (body := event.get("body")) is not None and "body" not in attributes:  # a log event that was put with its span
        attributes |= {"body": compact(body), "reenact.log": True}
    if unread := {name: value for name, value in event.items() if name not in _EVENT_KNOWN and records.is_said(value)}:
        attributes[UNREAD] = compact(cast("Json", unread))
    event_name = _first(event, _EVENT_NAME) or attributes.get("event.name")
    return SpanEvent(
        name=_text(event_name),
        time_ns=_instant(event, _EVENT_TIME),
        attributes=attributes,
        dropped_attributes=_count(_first(event, _DROPPED[0])),
    )


def _link(link: _Object) -> SpanLink:
    context = _first_object(link, _CONTEXTS) or link
    return SpanLink(
        trace_id=_id(_first(context, _TRACE), ids.TRACE_DIGITS, "", {}) or "0" * ids.TRACE_DIGITS,
        span_id=_id(_first(context, _SPAN), ids.SPAN_DIGITS, "", {}) or "0" * ids.SPAN_DIGITS,
        attributes=_attributes(link.get("attributes")),
        trace_state=_state(_first(context, _STATE)),
    )


def _resource(fields: Mapping[str, Any]) -> Resource:
    value = _first(fields, _RESOURCE)
    if not isinstance(value, dict):
        return Resource(attributes=_attributes(cast("object", value))) if isinstance(value, list) else Resource()
    resource = cast("_Object", value)
    if not resource.keys() & {"attributes", "_attributes"}:
        return Resource(attributes=_attributes(resource))
    return Resource(
        attributes=_attributes(_first(resource, ("attributes", "_attributes"))),
        schema_url=_text(_first(resource, ("schema_url", "schemaUrl"))),
    )


def _scope(fields: Mapping[str, Any]) -> Scope:
    value = _first(fields, _SCOPE)
    if isinstance(value, str):
        return Scope(name=value)
    scope = cast("_Object", value) if isinstance(value, dict) else {}
    return Scope(
        name=_text(scope.get("name") or _first(fields, _SCOPE_NAME)),
        version=_text(scope.get("version") or _first(fields, _SCOPE_VERSION)),
        attributes=_attributes(scope.get("attributes")),
        schema_url=_text(_first(scope, ("schema_url", "schemaUrl"))),
    )
