"""Phoenix's own JSON: what `GET /v1/projects/{project}/spans` gives and `POST` takes, and what tools make of it.

Read are pages `{"data": [span, …], "next_cursor": …}`, one or several in a file, of that and of `…/spans/otlpv1`; lines
and arrays of spans; and the envelopes `{"traceId": …, "spans": […]}` of its command line. Phoenix keeps attributes,
events, status, name, ids and parents. It keeps no resource, scope, link or OpenTelemetry kind; times come back to the
microsecond, as binary fractions in `otlpv1`; the JSON text of `metadata` comes back as one attribute for each of its
leaves, which is undone here; `openinference.span.kind` is the field `span_kind`, and a missing `llm.provider` is filled
in. Bytes and numbers that JSON has no spelling for have none here either, and are left out. What we write keeps the
scope's name and version as an attribute: some dialects are told by nothing else.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.documents import documents, wrong
from reenact.foreign.otlp import plain
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.losses import LOST, marked
from reenact.values.skeleton import holds
from reenact.values.span import KIND_INTERNAL, Attribute, Scope, SpanEvent, SpanLink, SpanRecord

_KIND = "openinference.span.kind"
_METADATA = "metadata"
_SCOPE = "reenact.phoenix.scope"
"""Attribute: JSON text of the name and version of a span's scope."""
_STATUSES = ("UNSET", "OK", "ERROR")
_LONG_OTLP = re.compile(
    rb'\s*\{\s*"data"\s*:\s*\[\s*\{\s*"attributes"\s*:\s*\[\s*\{\s*"key"\s*:\s*"[^"]*"\s*,'
    rb'\s*"value"\s*:\s*\{\s*"(?:array|bool|bytes|double|int|kvlist|string)_value"\s*:'
)
"""A page whose first span has attributes, which come first, that are longer than what is looked at: a vector, say."""
_PAGE = re.compile(rb'\s*\{\s*"(?:data|next_cursor)"\s*:')
_OWN = "context.trace_id|context", "span_kind|status_code", "start_time"
_OTLP = "trace_id", "span_id", "start_time_unix_nano", "attributes"


def _within(place: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("|".join(f"{place}{name}" for name in either.split("|")) for either in names)


_PAGE_OF_OWN, _PAGE_OF_OTLP = _within("data[].", _OWN), _within("data[].", _OTLP)
_SPANS = _within("spans[].", (*_OWN, "span_kind"))
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:?\d\d)?")
_TRACE_ID, _SPAN_ID = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Object = dict[str, Any]


def _recognises(head: bytes) -> float:
    if holds(head, *_PAGE_OF_OWN) or holds(head, *_PAGE_OF_OTLP) or _LONG_OTLP.match(head):
        return 0.97
    if holds(head, *_OWN) or holds(head, *_SPANS):
        return 0.95 if holds(head, "span_kind|spans[].span_kind") else 0.0
    return 0.02 if _PAGE.match(head.removeprefix(b"\xef\xbb\xbf")) else 0.0


# ---------------------------------------------------------------------------------------------------- bytes to spans


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    more: object = None
    trace_ids: set[str] = set()
    for line, document in documents(stream, str(path)):
        try:
            spans = _marked([_span(each) for each in _page(document)], trace_ids)
            more = cast("_Object", document).get("next_cursor") if isinstance(document, dict) else None
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as refusal:
            problem = f"this is not shaped like spans of Phoenix ({wrong(refusal)})"
            raise InputError(f"{path}:{line}", problem) from None
        yield from spans
    if more:
        hint = "append the page that `?cursor=` with its next_cursor gives, or ask with a larger `?limit=`"
        raise InputError(str(path), "the last page says that there are more spans", hint=hint)


_LOSSES = (
    {
        "field": "resource",
        "lost": "Phoenix keeps no resource, scope, links or kind of a span: which process and program it was",
        "fix": "export OTLP from the emitter beside Phoenix, as with REENACT_EXPORT",
    },
    {
        "field": "times",
        "lost": "Phoenix keeps microseconds: instants closer than that have no order",
        "fix": "export OTLP from the emitter beside Phoenix, as with REENACT_EXPORT",
    },
)


def _marked(spans: list[SpanRecord], trace_ids: set[str]) -> list[SpanRecord]:
    """Say once for each trace what Phoenix does not keep: one trace may come in many lines."""
    fresh = [span.trace_id not in trace_ids for span in spans]
    trace_ids.update(span.trace_id for span in spans)
    marked_spans = marked((span for span, new in zip(spans, fresh, strict=True) if new), _LOSSES)
    return [marked_spans.pop(0) if new else span for span, new in zip(spans, fresh, strict=True)]


def _page(document: object) -> list[_Object]:
    """Give the spans of a page, of an envelope, of an array of either or of spans, or a span alone."""
    if isinstance(document, list):
        return [span for item in cast("list[object]", document) for span in _page(item)]
    page = cast("_Object", document) if isinstance(document, dict) else {}
    within = next((page[name] for name in ("data", "spans") if isinstance(page.get(name), list)), None)
    if within is not None:
        return cast("list[_Object]", within)
    if "context" not in page:
        raise ValueError("a page is an object with an array `data`, a span one with `context`")
    return [page]


def _span(fields: _Object) -> SpanRecord:
    span = _own(fields) if "context" in fields else _otlp(fields)
    text = span.attributes.get(_SCOPE)
    scope_fields = parsed_or_none(text) if isinstance(text, str) else None
    if not isinstance(scope_fields, dict):
        return span
    scope = Scope(name=_text(scope_fields.get("name")), version=_text(scope_fields.get("version")))
    rest = {name: value for name, value in span.attributes.items() if name != _SCOPE}
    return replace(span, scope=scope, attributes=rest)


def _own(fields: _Object) -> SpanRecord:
    attributes = _object(fields.get("attributes"))
    kind = fields.get("span_kind")
    if isinstance(kind, str) and _KIND not in attributes and (kind != "UNKNOWN" or "reenact.boundary" in attributes):
        attributes[_KIND] = kind
    parent = fields.get("parent_id")
    return SpanRecord(
        trace_id=_id(fields["context"]["trace_id"], _TRACE_ID),
        span_id=_id(fields["context"]["span_id"], _SPAN_ID),
        parent_id=_id(parent, _SPAN_ID) if parent else None,
        name=_text(fields.get("name")),
        start_ns=_nanoseconds(fields["start_time"]),
        end_ns=_nanoseconds(fields["end_time"]),
        kind=KIND_INTERNAL,
        status=_STATUSES.index(fields.get("status_code") or "UNSET"),
        status_message=_text(fields.get("status_message")),
        attributes=_mended(attributes),
        events=tuple(
            SpanEvent(
                name=_text(event.get("name")),
                time_ns=_nanoseconds(event["timestamp"]),
                attributes=_object(event.get("attributes")),
            )
            for event in fields.get("events") or ()
        ),
    )


def _otlp(fields: _Object) -> SpanRecord:
    """Read a span of `…/spans/otlpv1`: an OTLP span in snake case, every field present, those without a value null."""
    parent, status = fields.get("parent_span_id"), cast("_Object", fields.get("status") or {})
    return SpanRecord(
        trace_id=_id(fields["trace_id"], _TRACE_ID),
        span_id=_id(fields["span_id"], _SPAN_ID),
        parent_id=_id(parent, _SPAN_ID) if parent else None,
        name=_text(fields.get("name")),
        start_ns=int(fields["start_time_unix_nano"]),
        end_ns=int(fields["end_time_unix_nano"]),
        kind=KIND_INTERNAL,
        status=int(status.get("code") or 0),
        status_message=_text(status.get("message")),
        attributes=_mended(_pairs(fields.get("attributes"))),
        events=tuple(
            SpanEvent(
                name=_text(event.get("name")),
                time_ns=int(event.get("time_unix_nano") or 0),
                attributes=_pairs(event.get("attributes")),
                dropped_attributes=int(event.get("dropped_attributes_count") or 0),
            )
            for event in fields.get("events") or ()
        ),
        links=tuple(
            SpanLink(
                trace_id=_id(link["trace_id"], _TRACE_ID),
                span_id=_id(link["span_id"], _SPAN_ID),
                attributes=_pairs(link.get("attributes")),
            )
            for link in fields.get("links") or ()
        ),
    )


def _pairs(pairs: object) -> dict[str, Attribute]:
    return {_text(pair["key"]): _value(pair.get("value")) for pair in cast("list[_Object]", pairs or ())}


def _value(any_value: _Object | None) -> Attribute:
    for name, value in (any_value or {}).items():
        if value is None:
            continue
        match name:
            case "int_value":
                return int(value)
            case "double_value":
                return float(value)
            case "bytes_value":
                return base64.b64decode(value, validate=True)
            case "array_value":
                return [_value(item) for item in value.get("values") or ()]
            case "kvlist_value":
                return _pairs(value.get("values"))
            case _:
                return cast("Attribute", value)
    return None


def _mended(attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    """Put `metadata`, whose JSON text Phoenix takes apart, together again."""
    prefix = f"{_METADATA}."
    leaves = {name: value for name, value in attributes.items() if name.startswith(prefix)}
    if not leaves or _METADATA in attributes:
        return attributes
    whole: _Object = {}
    for name, value in leaves.items():
        *above, last = name.removeprefix(prefix).split(".")
        place = whole
        for step in above:
            below = place.setdefault(step, {})
            if not isinstance(below, dict):
                return attributes
            place = cast("_Object", below)
        place[last] = value
    rest: dict[str, Attribute] = {name: value for name, value in attributes.items() if name not in leaves}
    return {**rest, _METADATA: compact(whole)}


def _object(value: object) -> dict[str, Attribute]:
    if value is None:
        return {}
    if isinstance(value, str):  # its GraphQL gives them as text
        value = parsed_or_none(value)
    if not isinstance(value, dict):
        raise TypeError("attributes are no object")
    attributes = cast("dict[str, Attribute]", value)
    nested = isinstance(attributes.get("openinference"), dict) or isinstance(attributes.get("llm"), dict)
    return dict(_flat("", attributes)) if nested else attributes


def _flat(prefix: str, tree: Attribute) -> Iterator[tuple[str, Attribute]]:
    """Give nested attributes, as Phoenix's screen shows them, under their dotted names."""
    if isinstance(tree, dict) and tree and prefix != f"{_METADATA}.":
        for name, value in tree.items():
            yield from _flat(f"{prefix}{name}.", value)
    elif isinstance(tree, list) and tree and all(isinstance(item, dict) for item in tree):
        for number, item in enumerate(tree):
            yield from _flat(f"{prefix}{number}.", item)
    else:
        yield prefix.removesuffix("."), compact(plain(tree)) if isinstance(tree, dict) else tree


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value


def _id(value: object, pattern: re.Pattern[str]) -> str:
    text = _text(value).lower()
    if not pattern.fullmatch(text):
        try:
            text = base64.b64decode(text, validate=True).hex()
        except binascii.Error:
            text = ""
    if not pattern.fullmatch(text):
        raise ValueError(f"{value!r} is no trace or span id")
    return text


def _nanoseconds(value: object) -> int:
    match = _INSTANT.fullmatch(_text(value))
    if match is None:
        raise ValueError(f"{value!r} is no instant")
    zone = (match[3] or "Z").replace("Z", "+00:00")
    since = datetime.fromisoformat(f"{match[1]}{zone}") - _EPOCH
    return max(0, since.days * 86400 + since.seconds) * 10**9 + int((match[2] or "0").ljust(9, "0"))


# ---------------------------------------------------------------------------------------------------- spans to bytes


def _encode(spans: Iterable[SpanRecord]) -> bytes:
    page: list[Json] = [_document(span) for span in spans]
    return compact({"data": page, "next_cursor": None}).encode() + b"\n"


def _document(span: SpanRecord) -> dict[str, Json]:
    kind = span.attributes.get(_KIND)
    scope: dict[str, Json] = {}
    if span.scope.name or span.scope.version:
        scope[_SCOPE] = compact({"name": span.scope.name, "version": span.scope.version})
    attributes = {name: value for name, value in span.attributes.items() if not _ours(name, value)}
    return {
        "context": {"trace_id": span.trace_id, "span_id": span.span_id},
        "span_kind": kind if isinstance(kind, str) else "UNKNOWN",
        "name": span.name,
        "parent_id": span.parent_id,
        "start_time": _instant(span.start_ns),
        "end_time": _instant(span.end_ns),
        "status_code": _STATUSES[span.status] if span.status < len(_STATUSES) else "UNSET",
        "status_message": span.status_message,
        "attributes": {**_plain(attributes), **scope},
        "events": [
            {"name": event.name, "timestamp": _instant(event.time_ns), "attributes": _plain(event.attributes)}
            for event in span.events
        ],
    }


def _ours(name: str, value: Attribute) -> bool:
    """Tell a mark of this very format, which reading makes again."""
    return name == LOST and value == [*_LOSSES]


def _plain(attributes: Mapping[str, Attribute]) -> dict[str, Json]:
    return {name: cast("Json", value) for name, value in attributes.items() if _has_a_spelling(value)}


def _has_a_spelling(value: Attribute) -> bool:
    if isinstance(value, list):
        return all(map(_has_a_spelling, value))
    if isinstance(value, dict):
        return all(map(_has_a_spelling, value.values()))
    return not isinstance(value, bytes) and not (isinstance(value, float) and not math.isfinite(value))


def _instant(ns: int) -> str:
    seconds, rest = divmod(max(ns, 0), 10**9)
    moment = datetime.fromtimestamp(min(seconds, 253_402_300_799), UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


FORMAT = Format(
    name="phoenix-json",
    suffix=".phoenix.json",
    recognises=_recognises,
    encode=_encode,
    decode=_decode,
    most=0.97,
    marks=HeadMarks(keys=(_PAGE_OF_OWN, _PAGE_OF_OTLP, _OWN, _SPANS, ("data",), ("next_cursor",))),
)
