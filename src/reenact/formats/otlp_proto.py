"""OTLP protobuf: `opentelemetry.proto.trace.v1.TracesData`, the bytes that OTLP senders put on the wire.

A file may hold one message or several in any of three framings, told apart by content: set one after another (which
protobuf reads as one message), each after its length as a varint (`writeDelimitedTo`), or each after its length as
four bytes, big-endian (the Collector's file exporter). ExportTraceServiceRequest and TracesData are the same bytes.

Protobuf strings are UTF-8 and its integers have 64 bits, so this is not the lossless format; `otlp_json` is. On the
way out a lone surrogate becomes U+FFFD, an integer over 64 bit becomes the string of its digits, and a value nested so
deep that receivers refuse the whole batch (protobuf stops at 100 messages) becomes its JSON text.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from reenact.contracts.format import Format
from reenact.errors import InputError
from reenact.foreign.otlp import plain
from reenact.values.json import compact
from reenact.values.limits import RAISE_THE_LIMIT, max_record_bytes, spelled
from reenact.values.log import LogRecord, Record
from reenact.values.span import Attribute, Resource, Scope, SpanEvent, SpanLink, SpanRecord
from reenact.values.unread_parts import SPANS, Unread

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogMessage
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

_RESOURCE_SPANS = 0x0A
"""Tag of `TracesData.resource_spans`: field 1, length-delimited. Neither message has another field."""
_INSIDE = frozenset({0x0A, 0x12, 0x1A})
"""Tags of ResourceSpans: resource, scope_spans, schema_url."""
_MESSAGE_BYTES = 4 << 20
_HEAD_BYTES = 64 << 10
_WHAT_IT_IS = "Expected OTLP traces or logs in protobuf; files of metrics or of another program hold neither."

# ---------------------------------------------------------------------------------------------------- bytes to spans


def _recognises(head: bytes) -> float:
    """Judge by how the first lengths fit into each other. Never certain: other protobuf can look the same."""
    return 0.8 if _framing(head) else 0.0


def _framing(head: bytes) -> str:
    """Name the framing that the first bytes fit: `bare`, `fixed`, `varint`, or nothing at all."""
    if _opens_message(head, None):
        return "bare"
    fits: dict[int, str] = {}
    length, start = _varint(head, 0)
    if length and _opens_message(head[start:], length):
        fits[length] = "varint"
    if len(head) > 4 and _opens_message(head[4:], length := int.from_bytes(head[:4], "big")):
        fits[length] = "fixed"
    return fits[min(fits)] if fits else ""  # read in the other framing, a length is most often absurd


def _opens_message(head: bytes, size: int | None) -> bool:
    """Tell whether a TracesData of `size` bytes can begin like this."""
    if head[:1] != bytes([_RESOURCE_SPANS]):
        return False
    length, start = _varint(head, 1)
    if not length or (size is not None and start + length > size):
        return False
    end, at = start + length, start
    while at < min(end, len(head)):  # every field of the first ResourceSpans, as far as it can be seen
        inner, inside = _varint(head, at + 1)
        if head[at] not in _INSIDE or (not inside and at + 10 < len(head)) or inside + inner > end:
            return False
        at = inside + inner if inside else end
    return start > 0 and at > start


def _varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Read a base-128 varint; give it and the position after it, or (0, 0) where there is none."""
    value = 0
    for index, byte in enumerate(data[position : position + 10]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    return 0, 0


class _Source:
    """Counted, exact reads of a stream, with a look at its head."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream, self._path, self._limit = stream, path, max_record_bytes()
        self._head = stream.read(_HEAD_BYTES)
        self.framing = _framing(self._head)
        self.position = self._head_offset = 0

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes, fewer only at the end of the stream."""
        data = self._head[self._head_offset : self._head_offset + size]
        self._head_offset += len(data)
        while len(data) < size and (more := self._stream.read(size - len(data))):
            data += more
        self.position += len(data)
        return data

    def message(self, size: int) -> bytes:
        """Read a whole message; refuse one over the limit before reading it."""
        if size > self._limit:
            problem = f"a message of {spelled(size)} is over the limit of {spelled(self._limit)}"
            raise self.error(problem, RAISE_THE_LIMIT)
        data = self.read(size)
        if len(data) < size:
            raise self.error(f"the file ends {size - len(data)} bytes before its last message does")
        return data

    def varint(self) -> int | None:
        """Read a base-128 varint, or None at the end of the stream."""
        data = b""
        while byte := self.read(1):
            data += byte
            if byte[0] < 0x80:
                return _varint(data, 0)[0]
            if len(data) == 10:
                raise self.error("a length has more than 64 bits", _WHAT_IT_IS)
        if data:
            raise self.error("the file ends inside a length")
        return None

    def error(self, problem: str, hint: str = "") -> InputError:
        return InputError(self.place, problem, hint=hint)

    @property
    def place(self) -> str:
        return f"{self._path}: byte {self.position}"


def _decode(stream: BinaryIO, path: Path, unread: Unread | None = None) -> Iterator[Record]:
    source = _Source(stream, path)
    if not source.framing:
        raise source.error("this is not OTLP protobuf", _WHAT_IT_IS)
    has_records = False
    for data in _groups(source):
        for record in _read_logs(data, source) if _holds_logs(data) else _read_group(data, source, unread):
            has_records = True
            yield record
    if not has_records and not unread:
        raise source.error("this protobuf holds no spans", _WHAT_IT_IS)


def _groups(source: _Source) -> Iterator[bytes]:
    """Give the bytes of each ResourceSpans."""
    if source.framing == "bare":
        while (tag := source.varint()) is not None:
            if tag != _RESOURCE_SPANS:
                raise source.error(f"expected resource_spans, found field {tag >> 3}", _WHAT_IT_IS)
            if (size := source.varint()) is None:
                raise source.error("the file ends before a length")
            yield source.message(size)
        return
    while (size := _frame_size(source)) is not None:
        frame = memoryview(source.message(size))
        at = 0
        while at < size:
            length, start = _varint(frame, at + 1)
            if frame[at] != _RESOURCE_SPANS or not start or start + length > size:
                raise source.error("the frame that ends here holds no OTLP traces", _WHAT_IT_IS)
            at = start + length
            yield bytes(frame[start:at])


def _frame_size(source: _Source) -> int | None:
    if source.framing == "varint":
        return source.varint()
    prefix = source.read(4)
    if prefix and len(prefix) < 4:
        raise source.error("the file ends inside a length")
    return int.from_bytes(prefix, "big") if prefix else None


def _read_group(data: bytes, source: _Source, unread: Unread | None) -> Iterator[SpanRecord]:
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

    group = _message(ResourceSpans, data, source.place, "the message that ends here is not OTLP traces", _WHAT_IT_IS)
    if data and not group.ListFields():
        raise source.error("the message that ends here has only unknown fields", _WHAT_IT_IS)
    for span, resource, scope in _entries(group, group.scope_spans, "spans"):
        if not (wrong := _wrong_id(span, zeros=unread is not None)):
            yield _read_span(span, resource, scope)
        elif unread is None:
            raise source.error(wrong)
        else:
            unread.at(f"byte {source.position}")(SPANS, wrong)


def _entries(group: Any, scoped: Iterable[Any], name: str) -> Iterator[tuple[Any, Resource, Scope]]:
    """Give each span or log record of a group with the resource and scope it came under."""
    resource = _read_resource(group.resource, group.schema_url)
    for entry in scoped:
        scope = _read_scope(entry.scope, entry.schema_url)
        yield from ((item, resource, scope) for item in getattr(entry, name))


def _wrong_id(span: Span, *, zeros: bool) -> str:
    """Say which id of a span is none, all `zeros` perhaps among them; empty for none."""
    for name, value, size in (("trace id", span.trace_id, 16), ("span id", span.span_id, 8)):
        if len(value) != size:
            return f"a {name} in the message that ends here has {len(value)} bytes, not {size}"
        if zeros and not any(value):
            return f"a {name} in the message that ends here is all zeros"
    return ""


def _holds_logs(data: bytes) -> bool:
    """Tell ResourceLogs from ResourceSpans, whose outer fields are the same.

    By the first record in it: the times of a log record are fixed 64-bit numbers in its fields 1 and 11, where a span
    has its trace id and its events.
    """
    for _, scoped in _fields(data, _SCOPED):
        for _, record in _fields(scoped, _SCOPED):
            return any(tag in _LOG_TIMES for tag, _ in _fields(record))
    return False


_SCOPED = 0x12
"""Tag of scope_spans or scope_logs in a resource's group, and of a span or log record below."""
_LOG_TIMES = frozenset({0x09, 0x59})
_SKIPPED = {1: 8, 5: 4}


def _fields(data: bytes | memoryview, wanted: int | None = None) -> Iterator[tuple[int, memoryview]]:
    """Give tag and content of each field of a message, up to where it is none; content of the bytes fields alone."""
    view, at = memoryview(data), 0
    while at < len(view):
        tag, at = _varint(view, at)
        size = 0
        if tag & 7 in (0, 2):
            size, at = _varint(view, at)
            size = size if tag & 7 == 2 else 0
        if not tag or not at or at + size > len(view) or tag & 7 in (3, 4, 6, 7):
            return
        if wanted in (None, tag):
            yield tag, view[at : at + size]
        at += size + _SKIPPED.get(tag & 7, 0)


def _read_logs(data: bytes, source: _Source) -> Iterator[LogRecord]:
    from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs

    group = _message(ResourceLogs, data, source.place, "the message that ends here is not OTLP logs", _WHAT_IT_IS)
    yield from (_read_log(*each) for each in _entries(group, group.scope_logs, "log_records"))


def _read_log(log: LogMessage, resource: Resource, scope: Scope) -> LogRecord:
    attributes = attributes_of(log.attributes)
    event_name = attributes.get("event.name")
    return LogRecord(
        trace_id=log.trace_id.hex() if len(log.trace_id) == 16 and log.trace_id.strip(b"\0") else "",
        span_id=log.span_id.hex() if len(log.span_id) == 8 and log.span_id.strip(b"\0") else "",
        time_ns=log.time_unix_nano,
        observed_ns=log.observed_time_unix_nano,
        event_name=log.event_name or (event_name if isinstance(event_name, str) else ""),
        body=plain(_any(log.body)),
        attributes=attributes,
        severity=int(log.severity_number),
        severity_text=log.severity_text,
        resource=resource,
        scope=scope,
        flags=log.flags,
        dropped_attributes=log.dropped_attributes_count,
    )


def spans_of(request: bytes, place: str) -> Iterator[SpanRecord]:
    """Read the spans of one ExportTraceServiceRequest whose ids were checked. Raises `InputError` at `place`."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    for group in _message(ExportTraceServiceRequest, request, place).resource_spans:
        yield from (_read_span(*each) for each in _entries(group, group.scope_spans, "spans"))


def logs_of(request: bytes, place: str) -> Iterator[LogRecord]:
    """Read the records of one ExportLogsServiceRequest. Raises `InputError` at `place`."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    for group in _message(ExportLogsServiceRequest, request, place).resource_logs:
        yield from (_read_log(*each) for each in _entries(group, group.scope_logs, "log_records"))


def _message(kind: Any, data: bytes, place: str, wrong: str = "this is not an OTLP request", hint: str = "") -> Any:
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(data)
    except DecodeError as refusal:
        raise InputError(place, f"{wrong} ({refusal})", hint=hint) from None


def _read_resource(resource: ResourceMessage, schema_url: str) -> Resource:
    return Resource(
        attributes=attributes_of(resource.attributes),
        schema_url=schema_url,
        dropped_attributes=resource.dropped_attributes_count,
    )


def _read_scope(scope: InstrumentationScope, schema_url: str) -> Scope:
    return Scope(
        name=scope.name,
        version=scope.version,
        attributes=attributes_of(scope.attributes),
        schema_url=schema_url,
        dropped_attributes=scope.dropped_attributes_count,
    )


def _read_span(span: Span, resource: Resource, scope: Scope) -> SpanRecord:
    return SpanRecord(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() if span.parent_span_id.strip(b"\0") else None,
        name=span.name,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        kind=int(span.kind),
        status=int(span.status.code),
        status_message=span.status.message,
        attributes=attributes_of(span.attributes),
        events=tuple(_read_event(event) for event in span.events),
        links=tuple(_read_link(link) for link in span.links),
        resource=resource,
        scope=scope,
        trace_state=span.trace_state,
        flags=span.flags,
        dropped_attributes=span.dropped_attributes_count,
        dropped_events=span.dropped_events_count,
        dropped_links=span.dropped_links_count,
    )


def _read_event(event: Span.Event) -> SpanEvent:
    return SpanEvent(
        name=event.name,
        time_ns=event.time_unix_nano,
        attributes=attributes_of(event.attributes),
        dropped_attributes=event.dropped_attributes_count,
    )


def _read_link(link: Span.Link) -> SpanLink:
    return SpanLink(
        trace_id=link.trace_id.hex(),
        span_id=link.span_id.hex(),
        attributes=attributes_of(link.attributes),
        trace_state=link.trace_state,
        dropped_attributes=link.dropped_attributes_count,
        flags=link.flags,
    )


def attributes_of(pairs: Iterable[Any]) -> dict[str, Attribute]:
    """Read KeyValue messages."""
    return {pair.key: _any(pair.value) for pair in pairs}


def _any(value: AnyValue) -> Attribute:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_any(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return attributes_of(value.kvlist_value.values)
    return cast("Attribute", getattr(value, kind))


# ---------------------------------------------------------------------------------------------------- spans to bytes


def to_request(spans: Iterable[SpanRecord]) -> ExportTraceServiceRequest:
    """Build the request of OTLP's `TraceService/Export` that carries `spans`, in their order.

    Never raises on what a `SpanRecord` can hold; what protobuf cannot carry is folded as the module says. Neighbours
    with the same resource and scope share their ResourceSpans and ScopeSpans.
    """
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    group: ResourceSpans | None = None
    entry: ScopeSpans | None = None
    resource, scope = _Same(), _Same()
    for span in spans:
        if resource.differs(span.resource) or group is None:
            group = request.resource_spans.add(schema_url=_utf8(span.resource.schema_url))
            _write_entity(group.resource, span.resource)
            entry = None
        if scope.differs(span.scope) or entry is None:
            entry = group.scope_spans.add(schema_url=_utf8(span.scope.schema_url))
            entry.scope.name, entry.scope.version = _utf8(span.scope.name), _utf8(span.scope.version)
            _write_entity(entry.scope, span.scope)
        _write_span(entry.spans.add(), span)
    return request


class _Same:
    """Tells a resource or scope from the one before it; by spelling, as equality in Python takes True for 1."""

    def __init__(self) -> None:
        self._last: Resource | Scope | None = None
        self._text = ""

    def differs(self, entity: Resource | Scope) -> bool:
        if entity is self._last:
            return False
        self._last, before, self._text = entity, self._text, repr(entity)
        return self._text != before


def _write_entity(message: Any, entity: Resource | Scope) -> None:
    write_attributes(message.attributes, entity.attributes, _DEPTH)
    message.dropped_attributes_count = _clamped(entity.dropped_attributes, 32)


def _write_span(message: Span, span: SpanRecord) -> None:
    message.trace_id, message.span_id = bytes.fromhex(span.trace_id), bytes.fromhex(span.span_id)
    message.parent_span_id = bytes.fromhex(span.parent_id or "")
    message.name = _utf8(span.name)
    message.start_time_unix_nano, message.end_time_unix_nano = _clamped(span.start_ns, 64), _clamped(span.end_ns, 64)
    message.kind = cast("Any", _clamped(span.kind, 31))
    message.trace_state = _utf8(span.trace_state)
    message.flags = _clamped(span.flags, 32)
    message.status.code = cast("Any", _clamped(span.status, 31))
    message.status.message = _utf8(span.status_message)
    message.dropped_attributes_count = _clamped(span.dropped_attributes, 32)
    message.dropped_events_count = _clamped(span.dropped_events, 32)
    message.dropped_links_count = _clamped(span.dropped_links, 32)
    write_attributes(message.attributes, span.attributes, _DEPTH)
    _write_events(message, span.events)
    _write_links(message, span.links)


def _write_events(message: Span, events: Sequence[SpanEvent]) -> None:
    for event in events:
        added = message.events.add(name=_utf8(event.name), time_unix_nano=_clamped(event.time_ns, 64))
        added.dropped_attributes_count = _clamped(event.dropped_attributes, 32)
        write_attributes(added.attributes, event.attributes, _DEPTH)


def _write_links(message: Span, links: Sequence[SpanLink]) -> None:
    for link in links:
        added = message.links.add(trace_id=bytes.fromhex(link.trace_id), span_id=bytes.fromhex(link.span_id))
        added.trace_state, added.flags = _utf8(link.trace_state), _clamped(link.flags, 32)
        added.dropped_attributes_count = _clamped(link.dropped_attributes, 32)
        write_attributes(added.attributes, link.attributes, _DEPTH)


_DEPTH = 7
"""Messages around a value: request, ResourceSpans, ScopeSpans, Span, Event or Link, KeyValue, AnyValue."""
_DEEPEST = 96
"""Protobuf runtimes stop at 100 messages inside each other; a few are left to whoever wraps the request."""


def write_attributes(pairs: Any, attributes: Mapping[str, Attribute], depth: int = _DEPTH) -> None:
    """Add KeyValue messages to a repeated field of a span, log record, resource or scope, `depth` messages deep."""
    for key, value in attributes.items():
        pair = pairs.add()
        pair.key = _utf8(key)
        _write_value(pair.value, value, depth)


def _write_value(message: AnyValue, value: Any, depth: int) -> None:
    if isinstance(value, str):
        message.string_value = _utf8(value)
    elif value is None:
        return
    elif isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int):
        if -(2**63) <= value < 2**63:
            message.int_value = value
        else:
            message.string_value = str(value) if value.bit_length() < 10_000 else hex(value)
    elif isinstance(value, float):
        message.double_value = value
    elif isinstance(value, bytes):
        message.bytes_value = value
    else:
        _write_nested(message, value, depth)


def _write_nested(message: AnyValue, value: Any, depth: int) -> None:
    if depth + 3 > _DEEPEST:
        message.string_value = _folded(value)
    elif isinstance(value, Mapping):
        message.kvlist_value.SetInParent()
        write_attributes(message.kvlist_value.values, cast("Mapping[str, Attribute]", value), depth + 3)
    else:
        message.array_value.SetInParent()
        for item in value:
            _write_value(message.array_value.values.add(), item, depth + 2)


def _folded(value: Any) -> str:
    try:
        return _utf8(compact(value))
    except (TypeError, ValueError, RecursionError):
        return f"<nested deeper than {_DEEPEST} protobuf messages>"


def _utf8(text: str) -> str:
    if text.isascii():
        return text
    # Through UTF-16, so that two surrogates that make a character make it; one alone becomes U+FFFD.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _clamped(number: int, bits: int) -> int:
    return min(max(number, 0), (1 << bits) - 1)


def encode(spans: Iterable[SpanRecord]) -> bytes:
    """Spell spans as messages set one after another, each of some megabytes at most unless one span alone is more."""
    return b"".join(_messages(spans))


def _messages(spans: Iterable[SpanRecord]) -> Iterator[bytes]:
    left = iter(spans)
    while batch := list(islice(left, 64)):
        yield from _serialised(batch)


def _serialised(batch: list[SpanRecord]) -> list[bytes]:
    request: Message = to_request(batch)
    if len(batch) > 1 and request.ByteSize() > _MESSAGE_BYTES:
        middle = len(batch) // 2
        return _serialised(batch[:middle]) + _serialised(batch[middle:])
    return [request.SerializeToString()]


def _encode_framed(spans: Iterable[SpanRecord]) -> bytes:
    """Spell spans as the Collector's file exporter does with `format: proto`: each message after its length."""
    return b"".join(len(message).to_bytes(4, "big") + message for message in _messages(spans))


def _encode_packed(spans: Iterable[SpanRecord]) -> bytes:
    """Spell spans as the Collector's file exporter does with `compression: zstd`: each message a frame of its own."""
    from zstandard import ZstdCompressor

    packed = (ZstdCompressor().compress(message) for message in _messages(spans))
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in packed)


_ZSTD = b"\x28\xb5\x2f\xfd"


def _decode_packed(stream: BinaryIO, path: Path, unread: Unread | None = None) -> Iterator[Record]:
    """Read what `_encode_packed` spells. A file is unpacked before a format sees it; this is for bytes as they are."""
    from zstandard import ZstdDecompressor, ZstdError

    limit, position = max_record_bytes(), 0
    while prefix := stream.read(4):
        frame = stream.read(min(int.from_bytes(prefix, "big"), limit))
        place = f"{path}: byte {position}"
        position += 4 + len(frame)
        if len(prefix) < 4 or len(frame) < int.from_bytes(prefix, "big"):
            problem = "the file ends inside a message, or the message is over the limit"
            raise InputError(place, problem, hint=_WHAT_IT_IS)
        try:
            with ZstdDecompressor().stream_reader(frame) as reader:
                message = reader.read(limit + 1)
        except ZstdError as failure:
            raise InputError(place, f"the zstd data is damaged ({failure})") from None
        if len(message) > limit:
            raise InputError(place, f"a message is over the limit of {spelled(limit)}", hint=RAISE_THE_LIMIT)
        yield from _decode(io.BytesIO(message), path, unread)


FORMAT = Format(
    name="otlp-proto",
    suffix=".otlp.pb",
    recognises=_recognises,
    encode=encode,
    decode=_decode,
    tolerant=_decode,
    most=0.8,
)
COLLECTOR = Format(
    name="collector-proto",
    suffix=".collector.pb",
    recognises=lambda head: 0.85 if _framing(head) == "fixed" else 0.0,
    encode=_encode_framed,
    decode=_decode,
    tolerant=_decode,
    most=0.85,
)
COLLECTOR_ZSTD = Format(
    name="collector-zstd",
    suffix=".collector.zstd",
    recognises=lambda head: 0.85 if head[4:8] == _ZSTD else 0.0,
    encode=_encode_packed,
    decode=_decode_packed,
    tolerant=_decode_packed,
    most=0.85,
)
