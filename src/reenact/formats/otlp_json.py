"""OTLP/JSON: the proto3 JSON mapping of `opentelemetry.proto.trace.v1.TracesData`, a document a line.

The spelling is that of the OTLP specification 1.11, "JSON Protobuf Encoding": ids in hex instead of base64, enums as
numbers, 64-bit integers as decimal strings, lowerCamelCase keys, unknown fields ignored. It is the lossless format:
whatever a `SpanRecord` holds comes back, lone surrogates (as JSON escapes) and integers over 64 bit included. Three
things are folded: values nested deeper than 64 levels become their JSON text, an integer over 10,000 bit becomes its
hexadecimal text, and a high surrogate that a low one follows becomes the character that both spell.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from reenact.contracts.format import Format
from reenact.errors import InputError, UnknownShapeError
from reenact.foreign.documents import documents, wrong
from reenact.foreign.otlp import SHAPELESS, NotOtlpError, OtherShapeError, records
from reenact.values.json import compact
from reenact.values.log import Record
from reenact.values.skeleton import holds
from reenact.values.span import Attribute, Resource, Scope, SpanEvent, SpanLink, SpanRecord
from reenact.values.unread_parts import Unread

_LINE_BYTES = 4 << 20
"""A line is ended once it has grown to this size, so that no reader's line limit is ever met by many small spans."""
_DEEPEST = 64

# ---------------------------------------------------------------------------------------------------- bytes to spans

_KEYS = (
    "resourceSpans|resource_spans|scopeSpans|scope_spans|instrumentationLibrarySpans|instrumentation_library_spans"
    "|resourceLogs|resource_logs|scopeLogs|scope_logs|instrumentationLibraryLogs|resourceMetrics|resource_metrics"
)


def _recognises(head: bytes) -> float:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] not in (b"{", b"["):
        return 0.0
    if holds(head, _KEYS):
        return 0.95
    return 0.05  # any JSON: claimed only where nobody else does, so that the error can say what is missing


def _decode(stream: BinaryIO, path: Path, unread: Unread | None = None) -> Iterator[Record]:
    has_records = False
    for line, document in documents(stream, str(path)):
        reporter = unread.at(f"line {line}") if unread is not None else None
        try:
            line_records = [record for item in _items(document) for record in records(item, reporter)]
        except NotOtlpError as refusal:
            kind = UnknownShapeError if isinstance(refusal, OtherShapeError) and not has_records else InputError
            raise kind(f"{path}:{line}", str(refusal)) from None
        except SHAPELESS as refusal:
            problem = f"this is not shaped like OTLP/JSON ({wrong(refusal)})"
            raise InputError(f"{path}:{line}", problem) from None
        except RecursionError:
            raise InputError(f"{path}:{line}", "an attribute is nested too deep to be read") from None
        has_records = has_records or bool(line_records)
        yield from line_records


def _items(document: object) -> list[object]:
    return cast("list[object]", document) if isinstance(document, list) else [document]


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
            fields: dict[str, Any] = {"resource": _described(span.resource)}
            if span.resource.schema_url:
                fields["schemaUrl"] = span.resource.schema_url
            self._resource = (span.resource, _dumps(fields)[1:-1])
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


def _described(entity: Resource | Scope) -> dict[str, Any]:
    fields: dict[str, Any] = {"attributes": _pairs(entity.attributes)} if entity.attributes else {}
    if entity.dropped_attributes:
        fields["droppedAttributesCount"] = entity.dropped_attributes
    return fields


def _scope_told(scope: Scope) -> dict[str, Any]:
    fields: dict[str, Any] = {"scope": {"name": scope.name, "version": scope.version} | _described(scope)}
    if scope.schema_url:
        fields["schemaUrl"] = scope.schema_url
    return fields


def _span_told(span: SpanRecord) -> dict[str, Any]:
    fields: dict[str, Any] = {
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
    return _filled(fields)


def _event_told(event: SpanEvent) -> dict[str, Any]:
    fields = {"timeUnixNano": str(event.time_ns), "name": event.name, "attributes": _pairs(event.attributes)}
    return _filled(fields | {"droppedAttributesCount": event.dropped_attributes})


def _link_told(link: SpanLink) -> dict[str, Any]:
    fields = {"traceId": link.trace_id, "spanId": link.span_id, "traceState": link.trace_state, "flags": link.flags}
    pairs = _pairs(link.attributes)
    return _filled(fields | {"attributes": pairs, "droppedAttributesCount": link.dropped_attributes})


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out what holds its proto3 default."""
    return {name: value for name, value in fields.items() if value}


def _pairs(attributes: Mapping[str, Attribute], depth: int = 0) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value, depth)} for key, value in attributes.items()]


def _value(value: Any, depth: int) -> dict[str, Any]:
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


def _nested(value: Any, depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        try:
            return {"stringValue": compact(value)}
        except (TypeError, ValueError, RecursionError):
            return {"stringValue": f"<nested deeper than {_DEEPEST} levels>"}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": _pairs(cast("Mapping[str, Attribute]", value), depth)}}
    return {"arrayValue": {"values": [_value(item, depth) for item in value]}}


def encode(spans: Iterable[SpanRecord]) -> bytes:
    """Spell spans as OTLP/JSON lines."""
    return b"".join(encode_lines(spans))


FORMAT = Format(
    name="otlp-json",
    suffix=".otlp.jsonl",
    recognises=_recognises,
    encode=encode,
    decode=_decode,
    tolerant=_decode,
    most=0.95,
)
