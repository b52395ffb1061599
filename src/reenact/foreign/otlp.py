"""The JSON mapping of OTLP's messages, read into spans and log events: what several file formats have inside.

Source: opentelemetry-proto, the OTLP specification's "JSON Protobuf Encoding" and the proto3 JSON mapping. Read as well
is what real writers make of it: snake case, enums as names, 64-bit integers as numbers, as strings or as protobuf.js
has them, ids in base64 or without their leading zeros, the names of before OTLP 0.15, null where a list is empty.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from reenact.foreign import ids
from reenact.values.json import Json, compact
from reenact.values.log import LogRecord, Record
from reenact.values.span import Attribute, Resource, Scope, SpanEvent, SpanLink, SpanRecord
from reenact.values.unread_parts import LINKS, LOG_IDS, LOGS, NUMBERS, PARENTS, SPANS, Told

_CAMEL = {
    "resource_spans": "resourceSpans",
    "resource_logs": "resourceLogs",
    "scope_logs": "scopeLogs",
    "log_records": "logRecords",
    "instrumentationLibraryLogs": "scopeLogs",
    "instrumentation_library_logs": "scopeLogs",
    "observed_time_unix_nano": "observedTimeUnixNano",
    "severity_number": "severityNumber",
    "severity_text": "severityText",
    "event_name": "eventName",
    "scope_spans": "scopeSpans",
    "instrumentationLibrarySpans": "scopeSpans",  # before OTLP 0.15
    "instrumentation_library_spans": "scopeSpans",
    "instrumentationLibrary": "scope",
    "instrumentation_library": "scope",
    "schema_url": "schemaUrl",
    "trace_id": "traceId",
    "span_id": "spanId",
    "parent_span_id": "parentSpanId",
    "trace_state": "traceState",
    "start_time_unix_nano": "startTimeUnixNano",
    "end_time_unix_nano": "endTimeUnixNano",
    "time_unix_nano": "timeUnixNano",
    "dropped_attributes_count": "droppedAttributesCount",
    "dropped_events_count": "droppedEventsCount",
    "dropped_links_count": "droppedLinksCount",
}
_RENAMED = frozenset(_CAMEL)
_OTHER_SIGNALS = frozenset({"resourceMetrics", "resource_metrics", "resourceProfiles", "resource_profiles"})
_KINDS = {"UNSPECIFIED": 0, "INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_STATUSES = {"UNSET": 0, "OK": 1, "ERROR": 2}

_Object = dict[str, Any]
SHAPELESS = (AttributeError, KeyError, TypeError)
"""What reading raises, besides `NotOtlpError`, on JSON that is shaped like nothing here."""


class NotOtlpError(ValueError):
    """JSON that is no OTLP. Becomes an `errors.InputError` where its line is known."""


class OtherShapeError(NotOtlpError):
    """A document is no OTLP at all."""


class _NoIdError(NotOtlpError):
    """What stands where an id should be is none."""


class _NoNumberError(NotOtlpError):
    """What stands where a number should be is none."""


def records(item: object, unread: Told | None = None) -> Iterator[Record]:
    """Read a TracesData, a LogsData or the request that carries one, or one ResourceSpans or ResourceLogs alone.

    With `unread`, a span whose trace or span id is none, or all zeros, is passed over, and so are the other ids that
    are none, and a span or log record with a number that is none; it is told of each. Raises `NotOtlpError`, and on
    odder shapes what `SHAPELESS` names.
    """
    top = _message(item, "a document")
    if "resourceSpans" in top or "resourceLogs" in top:
        for group in _list(top.get("resourceSpans"), "resourceSpans"):
            if group is not None:
                yield from resource_spans(_message(group, "an entry of resourceSpans"), unread)
        for group in _list(top.get("resourceLogs"), "resourceLogs"):
            if group is not None:
                yield from _resource_logs(_message(group, "an entry of resourceLogs"), unread)
    elif "scopeSpans" in top:
        yield from resource_spans(top, unread)
    elif "scopeLogs" in top:
        yield from _resource_logs(top, unread)
    elif top and _OTHER_SIGNALS.isdisjoint(top):
        raise OtherShapeError(
            f"expected OTLP/JSON with `resourceSpans`, found an object with {_keys(cast('_Object', item))}"
        )


def resource_spans(group: object, unread: Told | None = None) -> Iterator[SpanRecord]:
    """Read one ResourceSpans; `records` says what `unread` does.

    Raises `NotOtlpError`, and on odder shapes what `SHAPELESS` names.
    """
    message = _message(group, "an entry of resourceSpans")
    resource = _resource(message)
    for entry in _list(message.get("scopeSpans"), "scopeSpans"):
        if entry is None:
            continue
        under = _message(entry, "an entry of scopeSpans")
        scope = _scope(_message(under.get("scope") or {}, "`scope`"), under)
        for span in _list(under.get("spans"), "spans"):
            if not span:  # null and {} say nothing at all
                continue
            told_span = _message(span, "a span")
            try:
                record = _span(told_span, resource, scope, unread)
            except (_NoIdError, _NoNumberError) as refusal:
                if unread is None:
                    raise
                unread(SPANS if isinstance(refusal, _NoIdError) else NUMBERS, str(refusal))
                continue
            yield record


def _resource_logs(group: _Object, unread: Told | None) -> Iterator[LogRecord]:
    resource = _resource(group)
    for entry in _list(group.get("scopeLogs"), "scopeLogs"):
        if entry is None:
            continue
        under = _message(entry, "an entry of scopeLogs")
        scope = _scope(_message(under.get("scope") or {}, "`scope`"), under)
        for item in _list(under.get("logRecords"), "logRecords"):
            if not item:
                continue
            try:
                record = _log(_message(item, "a log record"), resource, scope, unread)
            except _NoNumberError as refusal:
                if unread is None:
                    raise
                unread(LOGS, str(refusal))
                continue
            yield record


def _resource(group: _Object) -> Resource:
    message = _message(group.get("resource") or {}, "`resource`")
    return Resource(
        attributes=attributes(message.get("attributes")),
        schema_url=_text(group.get("schemaUrl"), "schemaUrl"),
        dropped_attributes=_int(message.get("droppedAttributesCount")),
    )


def _log(message: _Object, resource: Resource, scope: Scope, unread: Told | None) -> LogRecord:
    log_attributes = attributes(message.get("attributes"))
    event_name = log_attributes.get("event.name")
    trace_id, span_id = message.get("traceId"), message.get("spanId")
    return LogRecord(
        trace_id=_log_id(trace_id, 32, "traceId", unread) if _says_something(trace_id) else "",
        span_id=_log_id(span_id, 16, "spanId", unread) if _says_something(span_id) else "",
        time_ns=_int(message.get("timeUnixNano")),
        observed_ns=_int(message.get("observedTimeUnixNano")),
        event_name=_text(message.get("eventName"), "eventName") or (event_name if isinstance(event_name, str) else ""),
        body=plain(_any(message.get("body"))),
        attributes=log_attributes,
        severity=_enum(message.get("severityNumber"), _SEVERITIES, "SEVERITY_NUMBER_"),
        severity_text=_text(message.get("severityText"), "severityText"),
        resource=resource,
        scope=scope,
        flags=_int(message.get("flags")),
        dropped_attributes=_int(message.get("droppedAttributesCount")),
    )


_SEVERITIES = {
    name if number == 0 else f"{name}{number + 1}": base + number
    for base, name in ((1, "TRACE"), (5, "DEBUG"), (9, "INFO"), (13, "WARN"), (17, "ERROR"), (21, "FATAL"))
    for number in range(4)
} | {"UNSPECIFIED": 0}


def _log_id(value: object, digits: int, what: str, unread: Told | None) -> str:
    try:
        return _id(value, digits, what)
    except _NoIdError as refusal:
        if unread is None:
            raise
        unread(LOG_IDS, str(refusal))
        return ""


def _says_something(value: object) -> bool:
    """Tell an id from none at all: absent, empty, all zeros (in hex or base64)."""
    return bool(value) and not (isinstance(value, str) and not value.strip("0A="))


def plain(value: Attribute) -> Json:
    """Give a value as JSON: bytes become their base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def _scope(message: _Object, under: _Object) -> Scope:
    return Scope(
        name=_text(message.get("name"), "scope.name"),
        version=_text(message.get("version"), "scope.version"),
        attributes=attributes(message.get("attributes")),
        schema_url=_text(under.get("schemaUrl"), "schemaUrl"),
        dropped_attributes=_int(message.get("droppedAttributesCount")),
    )


def _span(message: _Object, resource: Resource, scope: Scope, unread: Told | None) -> SpanRecord:
    get = message.get
    status: _Object = get("status") or {}
    events, links = get("events"), get("links")
    trace_id, span_id = _id(get("traceId"), 32, "traceId"), _id(get("spanId"), 16, "spanId")
    if unread is not None and not (trace_id.strip("0") and span_id.strip("0")):
        raise _NoIdError(f"{'spanId' if trace_id.strip('0') else 'traceId'} is all zeros")
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_parent(get("parentSpanId"), unread),
        name=_text(get("name"), "name"),
        start_ns=_int(get("startTimeUnixNano")),
        end_ns=_int(get("endTimeUnixNano")),
        kind=_enum(get("kind"), _KINDS, "SPAN_KIND_"),
        status=_enum(status.get("code"), _STATUSES, "STATUS_CODE_"),
        status_message=_text(status.get("message"), "status.message"),
        attributes=attributes(get("attributes")),
        events=tuple([_event(_message(event, "an event")) for event in events]) if events else (),
        links=_links(links, unread) if links else (),
        resource=resource,
        scope=scope,
        trace_state=_text(get("traceState"), "traceState"),
        flags=_int(get("flags")),
        dropped_attributes=_int(get("droppedAttributesCount")),
        dropped_events=_int(get("droppedEventsCount")),
        dropped_links=_int(get("droppedLinksCount")),
    )


def _event(message: _Object) -> SpanEvent:
    return SpanEvent(
        name=_text(message.get("name"), "event.name"),
        time_ns=_int(message.get("timeUnixNano")),
        attributes=attributes(message.get("attributes")),
        dropped_attributes=_int(message.get("droppedAttributesCount")),
    )


def _links(links: list[object], unread: Told | None) -> tuple[SpanLink, ...]:
    span_links: list[SpanLink] = []
    for link in links:
        try:
            span_links.append(_link(_message(link, "a link")))
        except _NoIdError as refusal:
            if unread is None:
                raise
            unread(LINKS, str(refusal))
    return tuple(span_links)


def _link(message: _Object) -> SpanLink:
    return SpanLink(
        trace_id=_id(message.get("traceId"), 32, "link.traceId"),
        span_id=_id(message.get("spanId"), 16, "link.spanId"),
        attributes=attributes(message.get("attributes")),
        trace_state=_text(message.get("traceState"), "link.traceState"),
        dropped_attributes=_int(message.get("droppedAttributesCount")),
        flags=_int(message.get("flags")),
    )


def _message(value: object, what: str) -> _Object:
    """Give a JSON object under its lowerCamelCase names. A name that is there already is never overwritten."""
    if not isinstance(value, dict):
        raise NotOtlpError(f"expected {what} to be an object, found {_excerpt(value)}")
    message = cast("_Object", value)
    if _RENAMED.isdisjoint(message):
        return message
    renamed = {_CAMEL[name]: part for name, part in message.items() if name in _CAMEL}
    return renamed | {name: part for name, part in message.items() if name not in _CAMEL}


def _list(value: object, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotOtlpError(f"expected {what} to be a list, found {_excerpt(value)}")
    return cast("list[Any]", value)


def _text(value: object, what: str) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise NotOtlpError(f"expected {what} to be a string, found {_excerpt(value)}")


def _id(value: object, digits: int, what: str) -> str:
    read = ids.identity(value, digits, digits // 2)
    if not read or isinstance(value, int):
        raise _NoIdError(f"{what} {_excerpt(cast('Any', value))} is not {digits} hexadecimal digits")
    return read


def _parent(value: object, unread: Told | None) -> str | None:
    """Read the id of a parent; absent, empty and all zeros mean that there is none."""
    if not value or (isinstance(value, str) and not value.strip("0")):
        return None
    try:
        parent = _id(value, 16, "parentSpanId")
    except _NoIdError as refusal:
        if unread is None:
            raise
        unread(PARENTS, str(refusal))
        return None
    return parent if parent.strip("0") else None


def _int(value: object) -> int:
    if isinstance(value, int):
        return value
    if value is None:
        return 0
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    elif isinstance(value, float) and value.is_integer() and abs(value) < 2**64:
        return int(value)
    elif isinstance(value, dict) and cast("_Object", value).keys() >= _LONG:
        return _long(cast("_Object", value))
    raise _NoNumberError(f"expected a whole number of at most 64 bits, found {_excerpt(cast('Any', value))}")


_LONG = frozenset({"low", "high"})


def _long(halves: _Object) -> int:
    """Give the integer of what protobuf.js makes of 64 bits in JSON: two signed halves and whether it is unsigned."""
    whole = (halves["high"] << 32) | (halves["low"] & 0xFFFFFFFF)
    return whole & 0xFFFFFFFFFFFFFFFF if halves.get("unsigned") else whole


def _enum(value: object, names: Mapping[str, int], prefix: str) -> int:
    if isinstance(value, str):
        number = names.get(value.upper().removeprefix(prefix))
        if number is not None:
            return number
    return _int(value)


def _excerpt(value: Any) -> str:
    text = compact(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _keys(message: _Object) -> str:
    names = [f"`{name[:40]}`" for name in list(message)[:5]]
    return ", ".join(names) + (", …" if len(message) > 5 else "")


def attributes(items: object) -> dict[str, Attribute]:
    """Read a list of KeyValue. Raises `NotOtlpError`, and on odder shapes what `SHAPELESS` names."""
    if not items:
        return {}
    values: dict[str, Attribute] = {}
    for item in _list(items, "attributes"):
        value = item.get("value")
        text = value.get("stringValue") if value else None
        values[item["key"]] = text if type(text) is str else _any(value)
    return values


def _any(value: Any) -> Attribute:
    """Read an AnyValue. One of a kind this version does not know is kept as the JSON object it is."""
    if not value:
        return None
    for kind, part in value.items():
        read = _READERS.get(kind)
        if read is not None:
            return None if part is None else read(part)
    return cast("Attribute", value)


def _bool(part: object) -> Attribute:
    if isinstance(part, bool):
        return part
    if part in ("true", "false"):
        return part == "true"
    raise NotOtlpError(f"expected boolValue to be true or false, found {_excerpt(part)}")


def _double(part: Any) -> Attribute:
    try:
        return float(part)
    except ValueError:
        raise _NoNumberError(f"expected doubleValue to be a number, found {_excerpt(part)}") from None


def _bytes(part: Any) -> Attribute:
    standard = part.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except binascii.Error:
        raise NotOtlpError(f"expected bytesValue to be base64, found {_excerpt(part)}") from None


def _array(part: Any) -> Attribute:
    return [_any(value) for value in _list(part.get("values"), "arrayValue.values")]


def _kvlist(part: Any) -> Attribute:
    return attributes(part.get("values"))


_KIND_READERS: dict[str, Callable[[Any], Attribute]] = {
    "stringValue": lambda part: _text(part, "stringValue"),
    "boolValue": _bool,
    "intValue": _int,
    "doubleValue": _double,
    "bytesValue": _bytes,
    "arrayValue": _array,
    "kvlistValue": _kvlist,
}
_READERS = _KIND_READERS | {kind.replace("V", "_v"): read for kind, read in _KIND_READERS.items()}
