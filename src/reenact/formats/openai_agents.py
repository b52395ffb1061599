"""The OpenAI Agents SDK's own tracing: the records of traces and spans that it exports, one a line or in batches.

A span's data stands under `openai_agents.` and the field's name, objects as their JSON. A trace's record may come
before its spans or after them; what it says is on the root span, and session and user on every span.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.made_ids import identified
from reenact.foreign.records import attribute_text, is_said, nanoseconds, originals, rest, span_id, trace_id, unwrapped
from reenact.foreign.tables import rows
from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text
from reenact.values.skeleton import holds
from reenact.values.span import STATUS_ERROR, STATUS_UNSET, Attribute, Scope, SpanEvent, SpanRecord

_MARKS: Final = (
    ("span_data.type", "trace_id", "started_at|object"),
    ("data[].span_data",),
    ("object", "workflow_name", "group_id|metadata"),
    ("data[].workflow_name", "data[].object"),
)
_TAKEN: Final = frozenset({"object", "id", "trace_id", "parent_id", "started_at", "ended_at", "span_data", "error"})
_USER: Final = ("user_id", "user")

_Record = dict[str, Json]


def _recognises(head: bytes) -> float:
    return 0.96 if any(holds(head, *marks) for marks in _MARKS) else 0.0


@identified
def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    traces: dict[str, _Record] = {}
    spans: list[_Record] = []
    for line, document in rows(stream, str(path)):
        has_records = False
        for record in _records(document):
            has_records = True
            if "span_data" in record:
                spans.append(record)
            else:
                facts = traces.setdefault(as_text(record.get("id")), {})
                facts |= {name: value for name, value in record.items() if is_said(value)}
        if not has_records:
            raise InputError(f"{path}:{line}", "this is neither a trace nor a span of the OpenAI Agents SDK")
    rooted_ids: set[str] = set()
    for span in spans:
        trace = traces.get(as_text(span.get("trace_id")), {})
        is_root = not span.get("parent_id") and as_text(span.get("trace_id")) not in rooted_ids
        rooted_ids |= {as_text(span.get("trace_id"))} if is_root else set()
        yield _span(span, _facts(trace, whole=is_root))
    for id_, trace in traces.items():
        if id_ not in rooted_ids:
            yield _root(id_, trace, [span for span in spans if span.get("trace_id") == id_])


def _records(document: Json) -> Iterator[_Record]:
    if isinstance(document, list):
        for item in document:
            yield from _records(item)
        return
    record = as_object(document)
    if isinstance(record.get("data"), list) and "span_data" not in record:
        yield from _records(record["data"])
    elif "span_data" in record or record.get("object") == "trace" or "workflow_name" in record:
        yield record


def _facts(trace: _Record, *, whole: bool) -> dict[str, Attribute]:
    metadata = as_object(unwrapped(trace.get("metadata")))
    user = next((metadata[name] for name in _USER if is_said(metadata.get(name))), None)
    facts: dict[str, Attribute] = {
        name: attribute_text(value)
        for name, value in (("session.id", trace.get("group_id")), ("user.id", user))
        if is_said(value)
    }
    if whole:
        for field, value in trace.items():
            if is_said(value) and field not in ("object", "id"):
                facts[f"openai_agents.trace.{field}"] = attribute_text(value)
    return facts


def _span(record: _Record, facts: dict[str, Attribute]) -> SpanRecord:
    data = as_object(unwrapped(record.get("span_data")))
    kind = as_text(data.get("type"))
    parent = record.get("parent_id")
    error = as_object(unwrapped(record.get("error")))
    message = as_text(error.get("message")) or (attribute_text(record["error"]) if is_said(record.get("error")) else "")
    ended = nanoseconds(record.get("ended_at"))
    attributes: dict[str, Attribute] = {**facts, "openai_agents.type": kind}
    for field, value in data.items():
        if is_said(value) and field != "type":
            attributes[f"openai_agents.{field}"] = attribute_text(value)
    attributes |= originals("openai_agents", record.get("trace_id"), record.get("id"), parent)
    if left := rest(record, _TAKEN):
        attributes["openai_agents.record"] = left
    if is_said(error.get("data")):
        attributes["openai_agents.error.data"] = attribute_text(error["data"])
    return SpanRecord(
        trace_id=trace_id(record.get("trace_id")),
        span_id=span_id(record.get("id")),
        parent_id=span_id(parent) if parent else None,
        name=_name(kind, data),
        start_ns=nanoseconds(record.get("started_at")),
        end_ns=ended,
        status=STATUS_ERROR if message else STATUS_UNSET,
        status_message=message,
        attributes=attributes,
        events=(_exception(message, as_object(error.get("data")), ended),) if message else (),
        scope=Scope(name="openai_agents"),
    )


def _name(kind: str, data: _Record) -> str:
    """Name a span as people know it: by its own name, else by what it is."""
    details = as_object(data.get("data"))
    if details.get("sdk_span_type") == "task" and (name := as_text(details.get("name"))):
        return name
    if name := as_text(data.get("name")):
        return name
    if kind == "handoff":
        return f"{as_text(data.get('from_agent'))} -> {as_text(data.get('to_agent'))}"
    return as_text(data.get("server")) if kind == "mcp_tools" and data.get("server") else kind or "span"


def _exception(message: str, data: _Record, time: int) -> SpanEvent:
    text = as_text(data.get("error")) or message
    kind, colon, rest_of = text.partition(": ")
    type_name = kind if colon and kind.replace(".", "").isidentifier() else "Exception"
    attributes: dict[str, Attribute] = {
        "exception.type": type_name,
        "exception.message": rest_of if type_name == kind else text,
    }
    return SpanEvent(name="exception", time_ns=time, attributes=attributes)


def _root(raw_id: str, trace: _Record, spans: list[_Record]) -> SpanRecord:
    """Make a span for a trace whose root was not exported."""
    starts = [time for span in spans if (time := nanoseconds(span.get("started_at")))]
    return SpanRecord(
        trace_id=trace_id(raw_id),
        span_id=span_id(f"openai_agents trace {raw_id}"),
        parent_id=None,
        name=as_text(trace.get("workflow_name")) or "trace",
        start_ns=min(starts, default=0),
        end_ns=max((nanoseconds(span.get("ended_at")) for span in spans), default=0),
        attributes={
            **_facts(trace, whole=True),
            **originals("openai_agents", raw_id, None),
            "openai_agents.type": "trace",
            "reenact.synthetic": "trace",
        },
        scope=Scope(name="openai_agents"),
    )


FORMAT = Format(
    name="openai-agents",
    suffix=".openai-agents.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=_MARKS),
)
