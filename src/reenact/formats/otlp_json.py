"""OTLP/JSON: the proto3 JSON mapping of `opentelemetry.proto.trace.v1.TracesData`, a document a line.

The spelling is that of the OTLP specification 1.11, "JSON Protobuf Encoding": ids in hex instead of base64, enums as
numbers, 64-bit integers as decimal strings, lowerCamelCase keys, unknown fields ignored. It is the lossless format:
whatever a `SpanRecord` holds comes back, lone surrogates (as JSON escapes) and integers over 64 bit included. Three
things are folded: values nested deeper than 64 levels become their JSON text, an integer over 10,000 bit becomes its
hexadecimal text, and a high surrogate that a low one follows becomes the character that both spell.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from reenact.contracts.format import Format
from reenact.errors import InputError
from reenact.values.documents import documents
from reenact.values.json import compact
from reenact.values.span import Attribute, Resource, Scope, SpanEvent, SpanLink, SpanRecord

_LINE_BYTES = 4 << 20
"""A line is ended once it has grown to this size, so that no reader's line limit is ever met by many small spans."""
_DEEPEST = 64

# ---------------------------------------------------------------------------------------------------- bytes to spans

_HEAD = re.compile(
    rb'"(?:resourceSpans|resource_spans|scopeSpans|scope_spans|instrumentationLibrarySpans|batches)"\s*:\s*[\[n]'
)
_CAMEL = {
    "resource_spans": "resourceSpans",
    "batches": "resourceSpans",  # Grafana Tempo's name for the same field
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
_OTHER_SIGNALS = frozenset({"resourceLogs", "resource_logs", "resourceMetrics", "resource_metrics", "resourceProfiles"})
_HEX = re.compile(r"[0-9a-fA-F]*")
_KINDS = {"UNSPECIFIED": 0, "INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_STATUSES = {"UNSET": 0, "OK": 1, "ERROR": 2}

_Object = dict[str, Any]


class _NotOtlp(ValueError):
    """A document that is JSON and not OTLP; becomes an `InputError` where its line is known."""


def _recognises(head: bytes) -> float:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] not in (b"{", b"["):
        return 0.0
    if _HEAD.search(text):
        return 0.9 if b'"batches"' in text else 0.95
    return 0.05  # any JSON: claimed only where nobody else does, so that the error can say what is missing


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    for line, document in documents(stream, str(path)):
        try:
            spans = [span for item in _items(document) for span in _traces(item)]
        except _NotOtlp as refusal:
            raise InputError(f"{path}:{line}", str(refusal)) from None
        except (AttributeError, KeyError, TypeError) as refusal:
            problem = f"this is not shaped like OTLP/JSON ({type(refusal).__name__}: {refusal})"
            raise InputError(f"{path}:{line}", problem) from None
        except RecursionError:
            raise InputError(f"{path}:{line}", "an attribute is nested too deep to be read") from None
        yield from spans


def _items(document: object) -> list[object]:
    return cast("list[object]", document) if isinstance(document, list) else [document]


def _traces(item: object) -> Iterator[SpanRecord]:
    """Read a TracesData or ExportTraceServiceRequest, or one ResourceSpans that stands alone."""
    top = _message(item, "a document")
    if "resourceSpans" in top:
        for group in _list(top["resourceSpans"], "resourceSpans"):
            if group is not None:
                yield from _resource_spans(_message(group, "an entry of resourceSpans"))
    elif "scopeSpans" in top:
        yield from _resource_spans(top)
    elif top and _OTHER_SIGNALS.isdisjoint(top):
        raise _NotOtlp(f"expected OTLP/JSON with `resourceSpans`, found an object with {_keys(cast('_Object', item))}")


def _resource_spans(group: _Object) -> Iterator[SpanRecord]:
    told = _message(group.get("resource") or {}, "`resource`")
    resource = Resource(
        attributes=_attributes(told.get("attributes")),
        schema_url=_text(group.get("schemaUrl"), "schemaUrl"),
        dropped_attributes=_int(told.get("droppedAttributesCount")),
    )
    for entry in _list(group.get("scopeSpans"), "scopeSpans"):
        if entry is None:
            continue
        under = _message(entry, "an entry of scopeSpans")
        scope = _scope(_message(under.get("scope") or {}, "`scope`"), under)
        for span in _list(under.get("spans"), "spans"):
            if span:  # null and {} say nothing at all
                yield _span(_message(span, "a span"), resource, scope)


def _scope(told: _Object, under: _Object) -> Scope:
    return Scope(
        name=_text(told.get("name"), "scope.name"),
        version=_text(told.get("version"), "scope.version"),
        attributes=_attributes(told.get("attributes")),
        schema_url=_text(under.get("schemaUrl"), "schemaUrl"),
        dropped_attributes=_int(told.get("droppedAttributesCount")),
    )


def _span(told: _Object, resource: Resource, scope: Scope) -> SpanRecord:
    get = told.get
    status: _Object = get("status") or {}
    events, links = get("events"), get("links")
    return SpanRecord(
        trace_id=_id(get("traceId"), 32, "traceId"),
        span_id=_id(get("spanId"), 16, "spanId"),
        parent_id=_parent(get("parentSpanId")),
        name=_text(get("name"), "name"),
        start_ns=_int(get("startTimeUnixNano")),
        end_ns=_int(get("endTimeUnixNano")),
        kind=_enum(get("kind"), _KINDS, "SPAN_KIND_"),
        status=_enum(status.get("code"), _STATUSES, "STATUS_CODE_"),
        status_message=_text(status.get("message"), "status.message"),
        attributes=_attributes(get("attributes")),
        events=tuple([_event(_message(event, "an event")) for event in events]) if events else (),
        links=tuple([_link(_message(link, "a link")) for link in links]) if links else (),
        resource=resource,
        scope=scope,
        trace_state=_text(get("traceState"), "traceState"),
        flags=_int(get("flags")),
        dropped_attributes=_int(get("droppedAttributesCount")),
        dropped_events=_int(get("droppedEventsCount")),
        dropped_links=_int(get("droppedLinksCount")),
    )


def _event(told: _Object) -> SpanEvent:
    return SpanEvent(
        name=_text(told.get("name"), "event.name"),
        time_ns=_int(told.get("timeUnixNano")),
        attributes=_attributes(told.get("attributes")),
        dropped_attributes=_int(told.get("droppedAttributesCount")),
    )


def _link(told: _Object) -> SpanLink:
    return SpanLink(
        trace_id=_id(told.get("traceId"), 32, "link.traceId"),
        span_id=_id(told.get("spanId"), 16, "link.spanId"),
        attributes=_attributes(told.get("attributes")),
        trace_state=_text(told.get("traceState"), "link.traceState"),
        dropped_attributes=_int(told.get("droppedAttributesCount")),
        flags=_int(told.get("flags")),
    )


def _message(value: object, what: str) -> _Object:
    """Give a JSON object under its lowerCamelCase names. A name that is there already is never overwritten."""
    if not isinstance(value, dict):
        raise _NotOtlp(f"expected {what} to be an object, found {_shown(value)}")
    told = cast("_Object", value)
    if _RENAMED.isdisjoint(told):
        return told
    renamed = {_CAMEL[name]: part for name, part in told.items() if name in _CAMEL}
    return renamed | {name: part for name, part in told.items() if name not in _CAMEL}


def _list(value: object, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _NotOtlp(f"expected {what} to be a list, found {_shown(value)}")
    return cast("list[Any]", value)


def _text(value: object, what: str) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise _NotOtlp(f"expected {what} to be a string, found {_shown(value)}")


def _id(value: object, digits: int, what: str) -> str:
    """Read an id: hex as OTLP has it, or base64 as plain proto3 JSON (and Tempo) would have it."""
    if isinstance(value, str):
        if len(value) == digits and _HEX.fullmatch(value):
            return value.lower()
        if len(value) == (digits // 2 + 2) // 3 * 4:
            raw = _base64(value)
            if len(raw) == digits // 2:
                return raw.hex()
    elif isinstance(value, dict) and len(_buffer(cast("_Object", value))) == digits:
        return _buffer(cast("_Object", value))
    raise _NotOtlp(f"{what} {_shown(cast('Any', value))} is not {digits} hexadecimal digits")


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _parent(value: object) -> str | None:
    """Read the id of a parent; absent, empty and all zeros mean that there is none."""
    if not value or (isinstance(value, str) and not value.strip("0")):
        return None
    parent = _id(value, 16, "parentSpanId")
    return parent if parent.strip("0") else None


def _buffer(told: _Object) -> str:
    """Give the hex of what JavaScript makes of bytes in JSON: `{"type": "Buffer", "data": [1, 2, …]}`."""
    data = told.get("data")
    try:
        return bytes(cast("list[int]", data)).hex() if isinstance(data, list) else ""
    except (TypeError, ValueError):
        return ""


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
    raise _NotOtlp(f"expected a whole number of at most 64 bits, found {_shown(cast('Any', value))}")


_LONG = frozenset({"low", "high"})


def _long(told: _Object) -> int:
    """Give the integer of what protobuf.js makes of 64 bits in JSON: two signed halves and whether it is unsigned."""
    whole = (told["high"] << 32) | (told["low"] & 0xFFFFFFFF)
    return whole & 0xFFFFFFFFFFFFFFFF if told.get("unsigned") else whole


def _enum(value: object, names: Mapping[str, int], prefix: str) -> int:
    if isinstance(value, str):
        known = names.get(value.upper().removeprefix(prefix))
        if known is not None:
            return known
    return _int(value)


def _shown(value: Any) -> str:
    text = compact(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _keys(told: _Object) -> str:
    names = [f"`{name[:40]}`" for name in list(told)[:5]]
    return ", ".join(names) + (", …" if len(told) > 5 else "")


# ---------------------------------------------------------------------------------------------------- attributes in


def _attributes(items: object) -> dict[str, Attribute]:
    if not items:
        return {}
    attributes: dict[str, Attribute] = {}
    for item in _list(items, "attributes"):
        value = item.get("value")
        text = value.get("stringValue") if value else None
        attributes[item["key"]] = text if type(text) is str else _any(value)
    return attributes


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
    raise _NotOtlp(f"expected boolValue to be true or false, found {_shown(part)}")


def _double(part: Any) -> Attribute:
    try:
        return float(part)
    except ValueError:
        raise _NotOtlp(f"expected doubleValue to be a number, found {_shown(part)}") from None


def _bytes(part: Any) -> Attribute:
    standard = part.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except binascii.Error:
        raise _NotOtlp(f"expected bytesValue to be base64, found {_shown(part)}") from None


def _array(part: Any) -> Attribute:
    return [_any(value) for value in _list(part.get("values"), "arrayValue.values")]


def _kvlist(part: Any) -> Attribute:
    return _attributes(part.get("values"))


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


# ---------------------------------------------------------------------------------------------------- spans to bytes


def encode_lines(spans: Iterable[SpanRecord]) -> Iterator[bytes]:
    """Spell spans as lines of OTLP/JSON, each with its newline and each a whole ExportTraceServiceRequest.

    A line holds neighbouring spans of one trace and one resource, so the order of the spans is kept.
    """
    line = _Line()
    for span in spans:
        head = line.head_of(span)
        if line.size and (head != line.head or span.trace_id != line.trace_id or line.size > _LINE_BYTES):
            yield line.ended()
        line.head, line.trace_id = head, span.trace_id
        line.add(span)
    if line.size:
        yield line.ended()


class _Line:
    """One line while it grows: the head (resource), and per scope the text of its spans."""

    def __init__(self) -> None:
        self.head = b""
        self.trace_id = ""
        self.size = 0
        self._scopes: list[tuple[bytes, list[bytes]]] = []
        self._resource: tuple[Resource | None, bytes] = (None, b"")
        self._scope: tuple[Scope | None, bytes] = (None, b"")

    def head_of(self, span: SpanRecord) -> bytes:
        # Compared by their bytes, as equality in Python takes True for 1; asked for again only for another object.
        if self._resource[0] is not span.resource:
            told: _Object = {"resource": _described(span.resource)}
            if span.resource.schema_url:
                told["schemaUrl"] = span.resource.schema_url
            self._resource = (span.resource, _dumps(told)[1:-1])
        return self._resource[1]

    def add(self, span: SpanRecord) -> None:
        if self._scope[0] is not span.scope:
            self._scope = (span.scope, _dumps(_scope_told(span.scope))[1:-1])
        if not self._scopes or self._scopes[-1][0] != self._scope[1]:
            self._scopes.append((self._scope[1], []))
        text = _dumps(_span_told(span))
        self._scopes[-1][1].append(text)
        self.size += len(text)

    def ended(self) -> bytes:
        scopes = b",".join(b'{%b,"spans":[%b]}' % (scope, b",".join(spans)) for scope, spans in self._scopes)
        line = b'{"resourceSpans":[{%b,"scopeSpans":[%b]}]}\n' % (self.head, scopes)
        self._scopes, self.size = [], 0
        return line


def _dumps(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):  # a lone surrogate: the standard library escapes it
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def _described(entity: Resource | Scope) -> _Object:
    told: _Object = {"attributes": _pairs(entity.attributes)} if entity.attributes else {}
    if entity.dropped_attributes:
        told["droppedAttributesCount"] = entity.dropped_attributes
    return told


def _scope_told(scope: Scope) -> _Object:
    told: _Object = {"scope": {"name": scope.name, "version": scope.version} | _described(scope)}
    if scope.schema_url:
        told["schemaUrl"] = scope.schema_url
    return told


def _span_told(span: SpanRecord) -> _Object:
    told: _Object = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _pairs(span.attributes),
        "events": [_event_told(event) for event in span.events],
        "links": [_link_told(link) for link in span.links],
        "status": _filled({"code": span.status, "message": span.status_message}),
        "traceState": span.trace_state,
        "flags": span.flags,
        "droppedAttributesCount": span.dropped_attributes,
        "droppedEventsCount": span.dropped_events,
        "droppedLinksCount": span.dropped_links,
    }
    return _filled(told)


def _event_told(event: SpanEvent) -> _Object:
    told = {"timeUnixNano": str(event.time_ns), "name": event.name, "attributes": _pairs(event.attributes)}
    return _filled(told | {"droppedAttributesCount": event.dropped_attributes})


def _link_told(link: SpanLink) -> _Object:
    told = {"traceId": link.trace_id, "spanId": link.span_id, "traceState": link.trace_state, "flags": link.flags}
    pairs = _pairs(link.attributes)
    return _filled(told | {"attributes": pairs, "droppedAttributesCount": link.dropped_attributes})


def _filled(told: _Object) -> _Object:
    """Leave out what holds its proto3 default."""
    return {name: value for name, value in told.items() if value}


def _pairs(attributes: Mapping[str, Attribute], depth: int = 0) -> list[_Object]:
    return [{"key": key, "value": _value(value, depth)} for key, value in attributes.items()]


def _value(value: Any, depth: int) -> _Object:
    if isinstance(value, str):
        return {"stringValue": value}
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        # Python spells no decimal of more than 4,300 digits; hexadecimal it does.
        return {"intValue": str(value)} if value.bit_length() < 10_000 else {"stringValue": hex(value)}
    if isinstance(value, float):
        return {"doubleValue": value if math.isfinite(value) else _NOT_FINITE.get(value, "NaN")}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    return _nested(value, depth + 1)


_NOT_FINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}


def _nested(value: Any, depth: int) -> _Object:
    if depth > _DEEPEST:
        try:
            return {"stringValue": compact(value)}
        except (TypeError, ValueError, RecursionError):
            return {"stringValue": f"<nested deeper than {_DEEPEST} levels>"}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": _pairs(cast("Mapping[str, Attribute]", value), depth)}}
    return {"arrayValue": {"values": [_value(item, depth) for item in value]}}


def _encode(spans: Iterable[SpanRecord]) -> bytes:
    return b"".join(encode_lines(spans))


FORMAT = Format(name="otlp-json", suffix=".otlp.jsonl", recognises=_recognises, encode=_encode, decode=_decode)
