"""Langfuse's exports: traces with their observations, rows of blob exports, batches of its SDKs.

Traces come as the screen and the API give them, batches as SDKs sent them before they took up OpenTelemetry.

An observation becomes a span under the names that Langfuse's own OpenTelemetry SDK gives (`langfuse.observation.*`);
what it has no name for stands in `langfuse.record`. The attributes that the span had when Langfuse received it are its
own again, with its resource and scope, as far as Langfuse kept them (`metadata.attributes`). The facts of the trace are
on its root observation, or on a span made for it where it has no root, or several. Blob exports spell names with
underscores, as CSV or JSON; a file of observations alone is read as well, and so is one of traces alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.made_ids import identified
from reenact.foreign.records import attribute_text, is_said, nanoseconds, originals, rest, span_id, trace_id, unwrapped
from reenact.foreign.tables import columns, rows
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.skeleton import holds
from reenact.values.span import STATUS_ERROR, STATUS_UNSET, Attribute, Resource, Scope, SpanRecord

_OBSERVATION: Final = "langfuse.observation."
_NAMES: Final[Mapping[str, str]] = {
    "input": f"{_OBSERVATION}input",
    "output": f"{_OBSERVATION}output",
    "metadata": f"{_OBSERVATION}metadata",
    "level": f"{_OBSERVATION}level",
    "status_message": f"{_OBSERVATION}status_message",
    "model": f"{_OBSERVATION}model.name",
    "provided_model_name": f"{_OBSERVATION}model.name",
    "model_parameters": f"{_OBSERVATION}model.parameters",
    "usage": f"{_OBSERVATION}usage",
    "usage_details": f"{_OBSERVATION}usage_details",
    "provided_usage_details": f"{_OBSERVATION}provided_usage_details",
    "cost_details": f"{_OBSERVATION}cost_details",
    "completion_start_time": f"{_OBSERVATION}completion_start_time",
    "prompt_name": f"{_OBSERVATION}prompt.name",
    "prompt_version": f"{_OBSERVATION}prompt.version",
    "tool_definitions": f"{_OBSERVATION}tool_definitions",
    "tool_calls": f"{_OBSERVATION}tool_calls",
    "environment": "langfuse.environment",
    "release": "langfuse.release",
    "version": "langfuse.version",
    "user_id": "user.id",
    "session_id": "session.id",
    "trace_name": "langfuse.trace.name",
}
"""Fields of an observation, in snake case, and the attributes they are."""
_TRACE_NAMES: Final[Mapping[str, str]] = {
    "name": "langfuse.trace.name",
    "input": "langfuse.trace.input",
    "output": "langfuse.trace.output",
    "metadata": "langfuse.trace.metadata",
    "tags": "langfuse.trace.tags",
    "public": "langfuse.trace.public",
    "environment": "langfuse.environment",
    "release": "langfuse.release",
    "version": "langfuse.version",
    "user_id": "user.id",
    "session_id": "session.id",
    "id": "langfuse.trace.id",
}
_TAKEN: Final = frozenset(
    {"id", "type", "name", "start_time", "end_time", "timestamp", "trace_id", "parent_observation_id"}
)
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_CREATED = re.compile(
    r"(trace|generation|span|event|observation|agent|tool|chain|retriever|evaluator|guardrail|embedding)-(?:create|update)"
)
_MARKS: Final = (
    ("trace.timestamp|trace.userId|trace.projectId", "observations|trace.bookmarked|trace.observations"),
    ("trace.projectId", "trace.timestamp"),
    ("observations[].traceId", "observations[].type"),
    ("id", "observations[].type", "observations[].startTime", "observations[].input|observations[].model"),
    ("data[].id", "data[].observations[].type", "data[].observations[].startTime|data[].observations[].traceId"),
    ("data[].traceId", "data[].type", "data[].startTime"),
    ("data[].htmlPath|data[].observations", "data[].timestamp"),
    ("traceId", "type", "startTime", "parentObservationId|modelParameters|usageDetails|completionStartTime"),
    ("trace_id", "type", "start_time", "parent_observation_id|model_parameters|usage_details|provided_model_name"),
    ("timestamp", "user_id|userId", "session_id|sessionId", "public|bookmarked"),
    ("batch[].type", "batch[].body", "batch[].timestamp"),
    ("body.traceId|body.startTime|body.userId|body.sessionId", "type", "timestamp"),
)
_SURE: Final = 0.96


def _recognises(head: bytes) -> float:
    names = {_snake(name) for name in columns(head)}
    if names >= {"id", "trace_id", "type", "start_time"} or names >= {"id", "timestamp", "session_id", "user_id"}:
        return _SURE
    return _SURE if any(holds(head, *marks) for marks in _MARKS) else 0.0


def _snake(name: str) -> str:
    return _CAMEL.sub(r"_\1", name).lower()


# ---------------------------------------------------------------------------------------------------- rows to records

_Record = dict[str, Json]


class _Trace:
    """A trace while it is gathered: what is said of it, and its observations."""

    def __init__(self) -> None:
        self.facts: _Record = {}
        self.observations: list[_Record] = []
        self.by_id: dict[str, _Record] = {}


@identified
def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    batches: dict[str, _Trace] = {}
    for line, document in rows(stream, str(path)):
        has_traces = False
        for each in cast("list[Json]", document) if isinstance(document, list) else [document]:
            for trace in _traces(as_object(each), batches):
                has_traces = True
                yield from _spans(trace)
        if not has_traces and not batches:
            raise InputError(f"{path}:{line}", "this is neither a trace nor an observation of Langfuse")
    for trace in batches.values():
        yield from _spans(trace)


def _traces(document: _Record, batches: dict[str, _Trace]) -> Iterator[_Trace]:
    """Find the traces in a document: one with its observations, pages of the API, single rows, or sent events."""
    for page in ("data", "traces"):
        if isinstance(document.get(page), list) and "type" not in document:
            yield from _pages(as_list(document[page]), batches)
            return
    if isinstance(document.get("batch"), list):
        for event in as_list(document["batch"]):
            _gather(as_object(event), batches)
        return
    if _CREATED.fullmatch(as_text(document.get("type"))) and isinstance(document.get("body"), dict):
        _gather(document, batches)
        return
    yield from _whole(document)


def _pages(items: list[Json], batches: dict[str, _Trace]) -> Iterator[_Trace]:
    loose = _Trace()
    for item in map(as_object, items):
        if _is_observation(_snaked(item)):
            loose.observations.append(_snaked(item))
        else:
            yield from _traces(item, batches) if not isinstance(item.get("data"), list) else ()
    if loose.observations:
        yield loose


def _whole(document: _Record) -> Iterator[_Trace]:
    trace = _Trace()
    trace_value = document.get("trace")
    facts = as_object(trace_value) if isinstance(trace_value, dict) else {} if "trace" in document else document
    observations = as_list(document.get("observations")) or as_list(facts.get("observations"))
    if not observations and _is_observation(_snaked(document)):
        trace.observations.append(_snaked(document))
        yield trace
        return
    trace.facts = _snaked({name: value for name, value in facts.items() if name != "observations"})
    trace.observations = [_snaked(as_object(each)) for each in observations if isinstance(each, dict)]
    if trace.observations or _is_trace(trace.facts):
        yield trace


def _snaked(record: Mapping[str, Json]) -> _Record:
    return {_snake(name): value for name, value in record.items()}


def _is_observation(record: _Record) -> bool:
    return "type" in record and "trace_id" in record and ("start_time" in record or "parent_observation_id" in record)


def _is_trace(record: _Record) -> bool:
    return "id" in record and ("timestamp" in record or "session_id" in record)


def _gather(event: _Record, batches: dict[str, _Trace]) -> None:
    """Take one event of an ingestion batch: it creates an observation or says more about one."""
    match = _CREATED.fullmatch(as_text(event.get("type")))
    if match is None:
        return
    body = _snaked(as_object(event.get("body")))
    if match[1] == "trace":
        trace = batches.setdefault(as_text(body.get("id")), _Trace())
        trace.facts |= {name: value for name, value in body.items() if value is not None}
        return
    if match[1] != "observation":
        body.setdefault("type", match[1].upper())
    trace = batches.setdefault(as_text(body.get("trace_id")), _Trace())
    observation = trace.by_id.setdefault(as_text(body.get("id")), body)
    if observation is body:
        trace.observations.append(body)
    else:
        observation |= {name: value for name, value in body.items() if value is not None}


# --------------------------------------------------------------------------------------------------- records to spans


def _spans(trace: _Trace) -> Iterator[SpanRecord]:
    tops = sum(not each.get("parent_observation_id") for each in trace.observations)
    facts = _facts_of(trace.facts)
    root = _made_root(trace, facts) if trace.facts and tops != 1 else None
    if root is not None:
        yield root
    by_id = {as_text(each.get("id")): each for each in trace.observations}
    frames = _frames(by_id)
    for each in trace.observations:
        is_top = not each.get("parent_observation_id")
        own = {**facts} if is_top and root is None else {}
        if as_text(each.get("id")) in frames:
            own["langfuse.frame"] = True
        yield _span(each, trace.facts, own, root.span_id if root is not None and is_top else None, _scope(each, by_id))


def _frames(by_id: Mapping[str, _Record]) -> frozenset[str]:
    """Find generations that name no model and hold generations: they show a piece of the program."""
    frame_ids: set[str] = set()
    for each in by_id.values():
        if _is_generation(each):
            for above in _above(each, by_id):
                has_model = any(is_said(above.get(name)) for name in ("model", "provided_model_name", "usage_details"))
                if _is_generation(above) and not has_model:
                    frame_ids.add(as_text(above.get("id")))
    return frozenset(frame_ids)


def _is_generation(record: _Record) -> bool:
    return as_text(record.get("type")).upper() == "GENERATION"


def _above(record: _Record, by_id: Mapping[str, _Record]) -> Iterator[_Record]:
    seen_ids: set[str] = set()
    parent = as_text(record.get("parent_observation_id"))
    while parent in by_id and parent not in seen_ids:
        seen_ids.add(parent)
        yield by_id[parent]
        parent = as_text(by_id[parent].get("parent_observation_id"))


def _scope(record: _Record, by_id: Mapping[str, _Record]) -> Scope:
    """Give who wrote an observation; where Langfuse kept no metadata, who wrote the one that it stands in."""
    for each in (record, *_above(record, by_id)):
        scope = as_object(unwrapped(as_object(unwrapped(each.get("metadata"))).get("scope")))
        if name := as_text(scope.get("name")):
            attributes = _plain(scope.get("attributes")) if each is record else {}
            return Scope(name=name, version=as_text(scope.get("version")), attributes=attributes)
    return Scope(name="langfuse")


def _facts_of(trace: _Record) -> dict[str, Attribute]:
    facts: dict[str, Attribute] = {
        name: _attribute(trace[field]) for field, name in _TRACE_NAMES.items() if is_said(trace.get(field))
    }
    left = rest(trace, _TRACE_NAMES)
    return {**facts, "langfuse.trace.record": left} if left else facts


def _made_root(trace: _Trace, facts: dict[str, Attribute]) -> SpanRecord:
    """Make a span for a trace whose observations have no single root."""
    head = trace.facts
    starts = [nanoseconds(each.get("start_time")) for each in trace.observations] + [nanoseconds(head.get("timestamp"))]
    ends = [nanoseconds(each.get("end_time")) for each in trace.observations]
    return SpanRecord(
        trace_id=trace_id(head.get("id")),
        span_id=span_id(f"langfuse trace {as_text(head.get('id'))}"),
        parent_id=None,
        name=as_text(head.get("name")) or "trace",
        start_ns=min((start for start in starts if start), default=0),
        end_ns=max([*ends, *starts], default=0),
        attributes={**facts, "langfuse.observation.type": "trace", "reenact.synthetic": "trace"},
        scope=Scope(name="langfuse"),
    )


def _span(record: _Record, trace: _Record, facts: dict[str, Attribute], root: str | None, scope: Scope) -> SpanRecord:
    metadata = as_object(unwrapped(record.get("metadata")))
    parent = record.get("parent_observation_id")
    started = nanoseconds(record.get("start_time"))
    level = as_text(record.get("level")).upper()
    return SpanRecord(
        trace_id=trace_id(record.get("trace_id") or trace.get("id")),
        span_id=span_id(record.get("id")),
        parent_id=span_id(parent) if parent else root,
        name=as_text(record.get("name")) or as_text(record.get("type")).lower(),
        start_ns=started,
        end_ns=nanoseconds(record.get("end_time")) or started * (as_text(record.get("type")).upper() == "EVENT"),
        status=STATUS_ERROR if level == "ERROR" else STATUS_UNSET,
        status_message=as_text(record.get("status_message")),
        attributes=_attributes(record, metadata, trace, facts),
        resource=Resource(attributes=_plain(metadata.get("resourceAttributes"))),
        scope=scope,
    )


def _attributes(
    record: _Record, metadata: _Record, trace: _Record, facts: dict[str, Attribute]
) -> dict[str, Attribute]:
    """Spell an observation: what it was when it came to Langfuse, then what Langfuse has made of it."""
    attributes = _plain(metadata.get("attributes"))
    for field in ("user_id", "session_id"):
        if is_said(trace.get(field)):
            attributes[_NAMES[field]] = as_text(trace[field])
    attributes.update(facts)
    attributes[f"{_OBSERVATION}type"] = as_text(record.get("type")).lower() or "span"
    for field, name in _NAMES.items():
        value = record.get(field)
        if field == "metadata" and metadata:
            value = {key: item for key, item in metadata.items() if key not in _TO_THE_SPAN or not _is_object(item)}
        if is_said(value):
            attributes[name] = _attribute(value)
    attributes |= originals("langfuse", record.get("trace_id"), record.get("id"), record.get("parent_observation_id"))
    if left := rest(record, {*_NAMES, *_TAKEN}):
        attributes["langfuse.record"] = left
    return attributes


_TO_THE_SPAN: Final = frozenset({"attributes", "resourceAttributes", "scope"})


def _is_object(value: Json) -> bool:
    return isinstance(unwrapped(value), dict)


def _attribute(value: Json) -> Attribute:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return cast("list[Attribute]", value)
    return attribute_text(value)


def _plain(source: Json) -> dict[str, Attribute]:
    """Give attributes as they were; what they held as objects is their JSON, as OpenTelemetry's SDKs would have it."""
    return {
        name: compact(value) if isinstance(value, dict) else cast("Attribute", value)
        for name, value in as_object(unwrapped(source)).items()
        if value is not None
    }


FORMAT = Format(
    name="langfuse",
    suffix=".langfuse.json",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=_MARKS, plain=(("id", "type", "start"), ("id", "timestamp", "session"))),
)
