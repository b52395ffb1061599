"""MLflow's traces as its API, its artifacts and `Trace.to_json` give them: version 3, and version 2 before it.

Spans keep their attributes as MLflow spells them, each value the JSON text of itself. What `info` says of the trace is
on its root span, under `mlflow.trace.*`; ids of any spelling (base64, `0x…`, `tr-…`) become hexadecimal.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.made_ids import identified
from reenact.foreign.records import (
    attribute_text,
    is_said,
    nanoseconds,
    nanoseconds_of,
    originals,
    rest,
    span_id,
    trace_id,
    unwrapped,
)
from reenact.foreign.tables import rows
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.skeleton import holds
from reenact.values.span import STATUS_ERROR, STATUS_OK, STATUS_UNSET, Attribute, Scope, SpanEvent, SpanLink, SpanRecord

_MARKS: Final = (
    ("info.trace_id|info.request_id", "data.spans|info.trace_metadata|info.request_metadata"),
    ("traces[].info.trace_id|traces[].info.request_id",),
    ("trace_id|request_id", "trace_metadata|request_metadata", "spans"),
)
_SPAN_TAKEN: Final = frozenset(
    {"trace_id", "span_id", "parent_span_id", "parent_id", "context", "name", "start_time_unix_nano", "start_time",
     "start_time_ns", "end_time_unix_nano", "end_time", "end_time_ns", "status", "status_code", "status_message",
     "attributes", "events", "links"},
)  # fmt: skip
_IN_INFO: Final = frozenset({"trace_metadata", "request_metadata"})

_Object = dict[str, Json]


def _recognises(head: bytes) -> float:
    return 0.96 if any(holds(head, *marks) for marks in _MARKS) else 0.0


@identified
def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    for line, document in rows(stream, str(path)):
        has_traces = False
        for each in cast("list[Json]", document) if isinstance(document, list) else [document]:
            for trace in _traces(as_object(each)):
                has_traces = True
                yield from _spans(trace)
        if not has_traces:
            raise InputError(f"{path}:{line}", "this is no trace of MLflow: it has no `info` with an id, or no spans")


def _traces(trace: _Object) -> Iterator[_Object]:
    for listed in ("traces", "data"):
        if isinstance(trace.get(listed), list):
            for item in as_list(trace[listed]):
                yield from _traces(as_object(item))
            return
    inside = as_object(unwrapped(trace.get("trace")))  # a row of `search_traces`
    if "info" in inside:
        trace = inside
    info = as_object(unwrapped(trace.get("info")))
    if info or _spans_of(trace):
        yield {**trace, "info": info} if info else {**trace, "info": {k: v for k, v in trace.items() if k != "spans"}}


def _spans_of(trace: _Object) -> list[Json]:
    data = as_object(unwrapped(trace.get("data")))
    return as_list(unwrapped(data.get("spans"))) or as_list(unwrapped(trace.get("spans")))


def _spans(trace: _Object) -> Iterator[SpanRecord]:
    info = as_object(trace.get("info"))
    spans = [as_object(unwrapped(each)) for each in _spans_of(trace)]
    facts = _facts(info, as_object(unwrapped(trace.get("data"))), trace)
    has_root = False
    for span in spans:
        is_root = _parent(span) is None and not has_root
        has_root = has_root or is_root
        yield _span(span, info, facts if is_root else _identity(facts))
    if not has_root:
        yield _root(info, facts)


def _parent(span: _Object) -> str | None:
    parent = span.get("parent_span_id") or span.get("parent_id")
    parent_id = span_id(parent)
    return parent_id if parent and parent_id.strip("0") else None


def _facts(info: _Object, data: _Object, trace: _Object) -> dict[str, Attribute]:
    metadata = as_object(unwrapped(info.get("trace_metadata"))) or as_object(unwrapped(info.get("request_metadata")))
    facts: dict[str, Attribute] = {name: attribute_text(value) for name, value in metadata.items() if is_said(value)}
    for name, field in (("session.id", "mlflow.trace.session"), ("user.id", "mlflow.trace.user")):
        if is_said(value := metadata.get(field)):
            facts[name] = attribute_text(value)
    if left := rest(info, _IN_INFO):
        facts["mlflow.trace.info"] = left
    fields: _Object = {name: value for name, value in data.items() if name != "spans"}
    fields |= {name: value for name, value in trace.items() if name not in ("info", "data", "spans") and info != trace}
    if left := rest(fields, ()):
        facts["mlflow.trace.record"] = left
    return facts


def _identity(facts: dict[str, Attribute]) -> dict[str, Attribute]:
    return {name: facts[name] for name in ("session.id", "user.id") if name in facts}


def _span(span: _Object, info: _Object, facts: dict[str, Attribute]) -> SpanRecord:
    context = as_object(span.get("context"))
    status = as_object(span.get("status"))
    code = as_text(status.get("code")) or as_text(span.get("status_code")) or as_text(span.get("status"))
    code = code.upper().rpartition("_")[2]
    attributes: dict[str, Attribute] = {
        name: value if isinstance(value, str | bool | int | float) else compact(value)
        for name, value in as_object(unwrapped(span.get("attributes"))).items()
        if value is not None
    }
    raw_ids = span.get("trace_id") or context.get("trace_id"), span.get("span_id") or context.get("span_id")
    attributes |= originals("mlflow", *raw_ids, span.get("parent_span_id") or span.get("parent_id"))
    if left := rest(span, _SPAN_TAKEN):
        attributes["mlflow.record"] = left
    return SpanRecord(
        trace_id=trace_id(
            span.get("trace_id") or context.get("trace_id") or info.get("trace_id") or info.get("request_id")
        ),
        span_id=span_id(span.get("span_id") or context.get("span_id")),
        parent_id=_parent(span),
        name=as_text(span.get("name")),
        start_ns=_time(span, "start_time"),
        end_ns=_time(span, "end_time"),
        status={"OK": STATUS_OK, "ERROR": STATUS_ERROR}.get(code, STATUS_UNSET),
        status_message=as_text(status.get("message")) or as_text(span.get("status_message")),
        attributes={**facts, **attributes},
        events=tuple(_event(as_object(event)) for event in as_list(span.get("events"))),
        links=tuple(
            SpanLink(trace_id=trace_id(link.get("trace_id")), span_id=span_id(link.get("span_id")))
            for link in map(as_object, as_list(span.get("links")))
        ),
        scope=Scope(name="mlflow"),
    )


def _time(span: _Object, field: str) -> int:
    return nanoseconds_of(span, f"{field}_unix_nano", f"{field}_ns", field)


def _event(event: _Object) -> SpanEvent:
    return SpanEvent(
        name=as_text(event.get("name")),
        time_ns=nanoseconds_of(event, "time_unix_nano", "timestamp"),
        attributes={
            name: value if isinstance(value, str | bool | int | float) else compact(value)
            for name, value in as_object(event.get("attributes")).items()
            if value is not None
        },
    )


def _root(info: _Object, facts: dict[str, Attribute]) -> SpanRecord:
    """Make a span for a trace none of whose spans is its root, or that came without spans."""
    raw_id = info.get("trace_id") or info.get("request_id")
    started = nanoseconds(info.get("request_time") or info.get("timestamp_ms"))
    took = info.get("execution_duration_ms") or info.get("execution_time_ms")
    return SpanRecord(
        trace_id=trace_id(raw_id),
        span_id=span_id(f"mlflow trace {attribute_text(raw_id)}"),
        parent_id=None,
        name="trace",
        start_ns=started,
        end_ns=started + round(took * 1e6) if isinstance(took, int | float) else started,
        attributes={**facts, "mlflow.spanType": '"TRACE"', "reenact.synthetic": "trace"},
        scope=Scope(name="mlflow"),
    )


FORMAT = Format(
    name="mlflow",
    suffix=".mlflow.json",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=_MARKS),
)
