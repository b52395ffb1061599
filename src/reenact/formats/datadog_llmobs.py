"""Datadog's LLM observability: events as its tracer sends them, and as its intake and export APIs have them.

Datadog has no OpenTelemetry dialect of its own for them, so a field stands under `datadog.` and its name: of `meta`,
`datadog.meta.input` and so on, each its JSON. Ids are decimal or hexadecimal; the parent of a root is `undefined`.
Documented only, and not tried on real data: the export API's spelling (`data[].attributes`) and the intake API's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.made_ids import identified
from reenact.foreign.records import attribute_text, is_said, nanoseconds_of, originals, rest, unwrapped
from reenact.foreign.records import span_id as any_span_id
from reenact.foreign.records import trace_id as any_trace_id
from reenact.foreign.tables import rows
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, text_or_json
from reenact.values.skeleton import holds
from reenact.values.span import STATUS_ERROR, STATUS_OK, Attribute, Resource, Scope, SpanEvent, SpanRecord

_MARKS: Final = (
    ("meta.span|meta.kind|meta.span.kind|meta.input|meta.output|meta.metadata", "start_ns", "span_id"),
    ("spans[].meta", "spans[].start_ns", "spans[].span_id"),
    ("data.attributes.spans",),
    ("data[].attributes.span_id", "data[].attributes.span_kind|data[].attributes.ml_app|data[].attributes.trace_id"),
    ("span_kind", "span_id", "ml_app", "start_ms|start_ns"),
)
_META: Final = (
    "input", "output", "metadata", "tool_definitions", "model_name", "model_provider", "expected_output", "error",
    "intent", "agent_manifest",
)  # fmt: skip
_TAKEN: Final = frozenset(
    {"trace_id", "span_id", "parent_id", "name", "start_ns", "start_ms", "duration", "status", "meta", "session_id",
     "metrics", "tags", "span_kind", *_META},
)  # fmt: skip
_DECIMAL: Final = re.compile(r"\d{1,20}")
_ROOTS: Final = frozenset({"", "0", "undefined", "none", "null"})

_Event = dict[str, Json]


def _recognises(head: bytes) -> float:
    return 0.96 if any(holds(head, *marks) for marks in _MARKS) else 0.0


@identified
def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    for line, document in rows(stream, str(path)):
        has_events = False
        for each in cast("list[Json]", document) if isinstance(document, list) else [document]:
            for event in _events(as_object(each), {}):
                has_events = True
                yield _span(event)
        if not has_events:
            raise InputError(f"{path}:{line}", "this is no LLM observability event of Datadog: it has no span id")


def _events(event: _Event, around: _Event) -> Iterator[_Event]:
    """Find the events: themselves, those in an envelope of the tracer, and those of both APIs."""
    if "span_id" in event:
        yield {**around, **event}
        return
    if isinstance(listed := event.get("spans"), list):
        shared: _Event = {name: event[name] for name in ("session_id", "ml_app", "tags") if is_said(event.get(name))}
        for item in listed:
            yield from _events(as_object(item), {**around, **shared})
        return
    data = event.get("data")
    for item in map(as_object, data if isinstance(data, list) else [data]):
        if isinstance(attributes := item.get("attributes"), dict):
            identified = {"datadog_id": item["id"]} if is_said(item.get("id")) else {}
            yield from _events(attributes, {**around, **identified})


def _span_id(value: Json) -> str:
    text = text_or_json(value).strip()
    if _DECIMAL.fullmatch(text) and int(text) < 2**64:
        return f"{int(text):016x}"
    return any_span_id(value)


def _trace_id(value: Json) -> str:
    text = text_or_json(value).strip()
    if len(text) != 32 and text.isdigit() and len(text) <= 39 and int(text) < 2**128:
        return f"{int(text):032x}"
    return any_trace_id(value)


def _span(event: _Event) -> SpanRecord:
    meta = _meta(event)
    parent = text_or_json(event.get("parent_id")).strip()
    started = nanoseconds_of(event, "start_ns", "start_ms")
    took = event.get("duration")
    error = _error(meta)
    failed = as_text(event.get("status")).lower() == "error" or bool(error)
    return SpanRecord(
        trace_id=_trace_id(event.get("trace_id")),
        span_id=_span_id(event.get("span_id")),
        parent_id=None if parent.lower() in _ROOTS else _span_id(parent),
        name=as_text(event.get("name")),
        start_ns=started,
        end_ns=started + (int(took) if isinstance(took, int | float) and took > 0 else 0),
        status=STATUS_ERROR if failed else STATUS_OK,
        status_message=error.get("exception.message", ""),
        attributes=_attributes(event, meta, parent),
        events=(SpanEvent(name="exception", time_ns=started, attributes=dict(error)),) if error else (),
        resource=Resource(attributes=_service(event)),
        scope=Scope(name="datadog"),
    )


def _meta(event: _Event) -> _Event:
    """Give `meta`; the export API has its fields beside the span's own."""
    meta = as_object(unwrapped(event.get("meta")))
    return {**{name: event[name] for name in _META if name in event}, **meta}


def _kind(event: _Event, meta: _Event) -> str:
    nested = as_object(meta.get("span")).get("kind")
    return (
        as_text(nested)
        or as_text(meta.get("span.kind"))
        or as_text(meta.get("kind"))
        or as_text(event.get("span_kind"))
    )


def _error(meta: _Event) -> dict[str, str]:
    error = as_object(unwrapped(meta.get("error")))
    exception: dict[str, str] = {}
    for name in ("message", "type", "stack"):
        text = as_text(error.get(name)) or as_text(meta.get(f"error.{name}"))
        if text:
            exception[f"exception.{'stacktrace' if name == 'stack' else name}"] = text
    return exception


def _tags(event: _Event) -> dict[str, str]:
    tags = event.get("tags")
    if isinstance(tags, dict):
        return {name: attribute_text(value) for name, value in tags.items()}
    listed = as_list(tags) if isinstance(tags, list) else as_text(tags).split(",")
    parted = [as_text(tag).partition(":") for tag in listed]
    return {name: value for name, colon, value in parted if colon and value}


def _service(event: _Event) -> dict[str, Attribute]:
    tags = _tags(event)
    names = {"service": "service.name", "env": "deployment.environment", "version": "service.version"}
    return {name: tags[tag] for tag, name in names.items() if tags.get(tag)}


def _attributes(event: _Event, meta: _Event, parent: str) -> dict[str, Attribute]:
    tags = _tags(event)
    attributes: dict[str, Attribute] = {"datadog.kind": _kind(event, meta)}
    attributes |= originals("datadog", event.get("trace_id"), event.get("span_id"))
    if parent.lower() not in _ROOTS:
        attributes |= originals("datadog", None, None, parent)
    for name, value in meta.items():
        if is_said(value) and name not in ("span", "kind", "span.kind"):
            attributes[f"datadog.meta.{name}"] = attribute_text(value)
    for name in ("metrics", "tags"):
        if is_said(value := event.get(name)):
            attributes[f"datadog.{name}"] = attribute_text(value)
    session = text_or_json(event.get("session_id")) or tags.get("session_id", "")
    user = tags.get("user_id") or tags.get("user") or tags.get("usr.id") or ""
    attributes |= {name: value for name, value in (("session.id", session), ("user.id", user)) if value}
    if left := rest(event, _TAKEN):
        attributes["datadog.record"] = left
    return attributes


FORMAT = Format(
    name="datadog",
    suffix=".datadog.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=_MARKS),
)
