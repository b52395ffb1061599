"""Opik's exports: a trace with its spans as its command line writes it, pages of its API, what its SDKs send and find.

A span becomes a span under `opik.` and the names of its fields; what has no name there stands in `opik.record`. A trace
is no span of Opik's: its facts (`opik.trace.*`) are on its one top span, or on a span made for it where it has none, or
several. A thread is the session. Records of one id are one: an SDK sends what it knows at the start, then all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.documents import documents
from reenact.foreign.made_ids import identified
from reenact.foreign.records import attribute_text, is_said, nanoseconds, originals, rest, span_id, trace_id, unwrapped
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.skeleton import holds
from reenact.values.span import STATUS_ERROR, STATUS_UNSET, Attribute, Scope, SpanEvent, SpanRecord

_OF_A_SPAN: Final = ("type", "parent_span_id")
_OF_A_TRACE: Final = ("thread_id", "visibility_mode", "span_count", "llm_span_count", "source")
_OF_EITHER: Final = ("project_id", "project_name", "source", "error_info", "total_estimated_cost", "created_by")


def _spelled(at: str, *names: str) -> str:
    return "|".join(f"{at}{name}" for name in names)


def _marks_of(at: str) -> tuple[tuple[str, ...], ...]:
    """Give what marks a span and what marks a trace that stand at a path."""
    either = (f"{at}id", f"{at}start_time", _spelled(at, *_OF_EITHER))
    return (*either, f"{at}trace_id", _spelled(at, *_OF_A_SPAN)), (*either, _spelled(at, *_OF_A_TRACE), f"{at}name")


_MARKS: Final = (
    _marks_of("trace.")[1],
    ("trace.start_time", "spans[].trace_id", "spans[].start_time", "spans[].type"),
    *(marks for at in ("spans[].", "traces[].", "content[].", "") for marks in _marks_of(at)),
)
_OF_LANGFUSE: Final = "parent_observation_id"
_NAMES: Final = ("type", "input", "output", "metadata", "model", "provider", "usage", "tags", "error_info")
_TAKEN: Final = frozenset({*_NAMES, "id", "trace_id", "parent_span_id", "name", "start_time", "end_time"})
_TRACE_NAMES: Final = ("name", "input", "output", "metadata", "tags", "id", "start_time", "end_time")
_TRACE_TAKEN: Final = frozenset({*_TRACE_NAMES, "thread_id"})
_USER: Final = ("user_id", "userId", "user.id")

_Record = dict[str, Json]


@dataclass(slots=True)
class _Trace:
    """A trace while it is gathered: what is said of it, and its spans by their ids."""

    facts: _Record = field(default_factory=dict[str, Json])
    spans: dict[str, _Record] = field(default_factory=dict[str, _Record])


def _recognises(head: bytes) -> float:
    if holds(head, _OF_LANGFUSE):  # its rows are named much alike
        return 0.0
    return 0.95 if any(holds(head, *marks) for marks in _MARKS) else 0.0


@identified
def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    traces: dict[str, _Trace] = {}
    for line, document in documents(stream, str(path)):
        has_records = False
        for each in cast("list[Json]", document) if isinstance(document, list) else [document]:
            for record in _records(as_object(each)):
                has_records = True
                _gather(record, traces)
        if not has_records:
            raise InputError(f"{path}:{line}", "this is neither a trace nor a span of Opik")
    for trace in traces.values():
        yield from _spans(trace)


def _records(document: _Record) -> Iterator[_Record]:
    """Find the records in a document: a trace with its spans, a page, a batch, or one record."""
    if isinstance(trace := document.get("trace"), dict):
        around = {name: value for name, value in document.items() if not isinstance(value, dict | list)}
        yield {**around, **trace}
    listed = [name for name in ("traces", "spans", "content") if isinstance(document.get(name), list)]
    for name in listed:
        yield from (record for record in map(as_object, as_list(document[name])) if "start_time" in record)
    if not listed and "start_time" in document and "id" in document:
        yield document


def _gather(record: _Record, traces: dict[str, _Trace]) -> None:
    """Take a record: the first of its id begins it, any other says more of it."""
    name = as_text(record.get("trace_id"))
    trace = traces.setdefault(name or as_text(record.get("id")), _Trace())
    known = trace.spans.setdefault(as_text(record.get("id")), {}) if name else trace.facts
    known |= {key: value for key, value in record.items() if is_said(value) or key not in known}


# --------------------------------------------------------------------------------------------------- records to spans


def _spans(trace: _Trace) -> Iterator[SpanRecord]:
    facts = _facts(trace.facts)
    identity = _identity(trace)
    tops = sum(not span.get("parent_span_id") for span in trace.spans.values())
    root = _made_root(trace, {**identity, **facts}) if trace.facts and tops != 1 else None
    if root is not None:
        yield root
    for span in trace.spans.values():
        is_top = not span.get("parent_span_id")
        above = root.span_id if root is not None and is_top else None
        yield _span(span, {**identity, **(facts if is_top and root is None else {})}, above)


def _facts(trace: _Record) -> dict[str, Attribute]:
    facts: dict[str, Attribute] = {
        f"opik.trace.{name}": attribute_text(trace[name]) for name in _TRACE_NAMES if is_said(trace.get(name))
    }
    left = rest(trace, _TRACE_TAKEN)
    return {**facts, "opik.trace.record": left} if left else facts


def _identity(trace: _Trace) -> dict[str, Attribute]:
    metadata = as_object(unwrapped(trace.facts.get("metadata")))
    user = next((value for name in _USER if is_said(value := metadata.get(name))), None)
    identity = {"session.id": trace.facts.get("thread_id"), "user.id": user}
    return {name: attribute_text(value) for name, value in identity.items() if is_said(value)}


def _made_root(trace: _Trace, facts: dict[str, Attribute]) -> SpanRecord:
    """Make a span for a trace whose spans have no single root."""
    head = trace.facts
    starts = [nanoseconds(each.get("start_time")) for each in (head, *trace.spans.values())]
    ends = [nanoseconds(each.get("end_time")) for each in (head, *trace.spans.values())]
    status, message, events = _failure(head)
    return SpanRecord(
        trace_id=trace_id(head.get("id")),
        span_id=span_id(f"opik trace {as_text(head.get('id'))}"),
        parent_id=None,
        name=as_text(head.get("name")) or "trace",
        start_ns=min((start for start in starts if start), default=0),
        end_ns=max(ends, default=0),
        status=status,
        status_message=message,
        attributes={
            **originals("opik", head.get("id"), None),
            **facts,
            "opik.type": "trace",
            "reenact.synthetic": "trace",
        },
        events=events,
        scope=Scope(name="opik"),
    )


def _span(span: _Record, facts: Mapping[str, Attribute], root: str | None) -> SpanRecord:
    parent = span.get("parent_span_id")
    status, message, events = _failure(span)
    attributes: dict[str, Attribute] = {**facts, "opik.type": as_text(span.get("type")) or "general"}
    attributes |= {f"opik.{name}": attribute_text(span[name]) for name in _NAMES if is_said(span.get(name))}
    attributes |= originals("opik", span.get("trace_id"), span.get("id"), parent)
    if left := rest(span, _TAKEN):
        attributes["opik.record"] = left
    return SpanRecord(
        trace_id=trace_id(span.get("trace_id")),
        span_id=span_id(span.get("id")),
        parent_id=span_id(parent) if parent else root,
        name=as_text(span.get("name")) or as_text(span.get("type")) or "span",
        start_ns=nanoseconds(span.get("start_time")),
        end_ns=nanoseconds(span.get("end_time")),
        status=status,
        status_message=message,
        attributes=attributes,
        events=events,
        scope=Scope(name="opik"),
    )


def _failure(record: _Record) -> tuple[int, str, tuple[SpanEvent, ...]]:
    """Give status, message and event of a record that tells of an error."""
    error = as_object(unwrapped(record.get("error_info")))
    if not error:
        return STATUS_UNSET, "", ()
    traceback = as_text(error.get("traceback"))
    message = as_text(error.get("message"))
    attributes: dict[str, Attribute] = {
        "exception.type": as_text(error.get("exception_type")) or "Exception",
        "exception.message": message,
        **({"exception.stacktrace": traceback} if traceback else {}),
    }
    event = SpanEvent(name="exception", time_ns=nanoseconds(record.get("end_time")), attributes=attributes)
    return STATUS_ERROR, message.partition("\n")[0], (event,)


FORMAT = Format(
    name="opik",
    suffix=".opik.json",
    recognises=_recognises,
    decode=_decode,
    most=0.95,
    marks=HeadMarks(keys=_MARKS),
)
