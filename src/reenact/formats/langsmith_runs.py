"""LangSmith's runs, one a line, in a list, or in batches.

They come as its API and its bulk exports give them, or as its SDKs send them, where a `patch` says more of a run that
was posted.

A run becomes a span under the names of LangSmith's own OpenTelemetry export: `langsmith.span.kind`, `gen_ai.prompt` and
`gen_ai.completion` with the JSON of inputs and outputs, `langsmith.metadata.*`. What has no name there stands in
`langsmith.record`. Tree and order come from `dotted_order` where ids do not tell them; streamed tokens are events.
A run's `session_id` names a project of LangSmith's, not a conversation: that one is looked for in the metadata.
Runs without ids each stand for themselves: their ids are made of what they say, and those that one document lists are
one trace.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.records import attribute_text, is_said, nanoseconds, originals, rest, span_id, trace_id, unwrapped
from reenact.foreign.tables import columns, rows
from reenact.values.json import Json, canonical, compact
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.skeleton import holds
from reenact.values.span import STATUS_ERROR, STATUS_OK, STATUS_UNSET, Attribute, Scope, SpanEvent, SpanRecord

_MARKS: Final = (
    ("run_type", "dotted_order|trace_id|start_time", "inputs|outputs|extra|serialized"),
    ("runs[].run_type",),
    ("post[].run_type",),
    ("post", "patch"),
    ("dotted_order|post[].dotted_order|patch[].dotted_order|runs[].dotted_order",),
    ("data[].run_type",),
)
_TAKEN: Final = frozenset(
    {"id", "name", "run_type", "start_time", "end_time", "trace_id", "parent_run_id", "dotted_order", "inputs",
     "outputs", "error", "tags", "session_name", "child_runs", "events", "reenact.envelope"},
)  # fmt: skip
_SESSION: Final = ("session_id", "thread_id", "conversation_id")
_USER: Final = ("user_id", "user", "ls_user_id")
_RAISED: Final = re.compile(r"\s*([A-Za-z_][\w.]*)\s*\(")
_LAST_CLASS: Final = re.compile(
    r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Timeout))\b:?\s?(.*)", re.MULTILINE
)
_ORDERED: Final = re.compile(r"\d{8}T\d{6}\d*Z([0-9a-fA-F-]{32,36})")
_DEEPEST: Final = 64
_ENVELOPE: Final = "reenact.envelope"
_PAGING: Final = ("cursors", "search_cursors", "parsed_query", "has_more", "next", "total")

_Run = dict[str, Json]


def _recognises(head: bytes) -> float:
    if columns(head) >= {"run_type", "inputs", "outputs"}:
        return 0.96
    return 0.96 if any(holds(head, *marks) for marks in _MARKS) else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    batches: dict[str, _Run] = {}
    counts: Counter[str] = Counter()
    for line, document in rows(stream, str(path)):
        has_runs = False
        for each in cast("list[Json]", document) if isinstance(document, list) else [document]:
            record = as_object(each)
            if "post" in record or "patch" in record:
                has_runs = True
                _gather(record, batches, counts)
                continue
            for run in _runs(record, counts):
                has_runs = True
                yield _span(run)
        if not has_runs:
            raise InputError(f"{path}:{line}", "this is neither a run nor a batch of runs of LangSmith")
    for run in batches.values():
        yield _span(run)


def _runs(run: _Run, counts: Counter[str], depth: int = 0) -> Iterator[_Run]:
    """Find the runs in a document: itself, those it lists, and those below it."""
    for listed in ("runs", "data"):
        if isinstance(run.get(listed), list) and "run_type" not in run:
            if depth < _DEEPEST:
                yield from _listed(run, listed, counts, depth)
            return
    if "run_type" not in run:
        return
    run = _identified(run, counts)
    yield run
    for child in as_list(unwrapped(run.get("child_runs"))):
        if isinstance(child, dict) and depth < _DEEPEST:
            below = {"parent_run_id": run.get("id"), "trace_id": run.get("trace_id") or run.get("id"), **child}
            yield from _runs(below, counts, depth + 1)


def _listed(page: _Run, listed: str, counts: Counter[str], depth: int) -> Iterator[_Run]:
    """Find the runs that a document lists; what it says beside them goes with the first."""
    trace = _digest(page)
    beside = rest(page, {listed, *_PAGING})
    for item in map(as_object, as_list(page[listed])):
        placed = item if _is_placed(item) else {**item, "trace_id": trace}
        yield from _runs({**placed, _ENVELOPE: beside} if beside else placed, counts, depth + 1)
        beside = ""


def _is_placed(run: _Run) -> bool:
    return any(run.get(name) for name in ("id", "trace_id", "dotted_order")) or "run_type" not in run


def _identified(run: _Run, counts: Counter[str]) -> _Run:
    """Give a run that has no id one of what it says; the second of two equal ones gets another."""
    trace = as_text(run.get("trace_id"))
    if run.get("id") or _ORDERED.search(as_text(run.get("dotted_order"))):
        return run
    if trace and not run.get("parent_run_id") and not counts[trace]:  # the topmost run has its trace's id
        counts[trace] += 1
        return run if not run.get("child_runs") else {**run, "id": trace}
    digest = _digest(run)
    counts[digest] += 1
    made = hashlib.blake2b(f"{digest}:{counts[digest]}".encode(), digest_size=16).hexdigest()
    return {**run, "id": made[:16], "trace_id": trace or made}


def _digest(run: _Run) -> str:
    return hashlib.blake2b(canonical(run), digest_size=16).hexdigest()


def _gather(batch: _Run, batches: dict[str, _Run], counts: Counter[str]) -> None:
    """Take a batch: what is posted begins a run, what is patched says more of it."""
    for kind in ("post", "patch"):
        for record in map(as_object, as_list(batch.get(kind))):
            given = record if _id(record) else _identified(record, counts)
            run = batches.setdefault(_id(given), {})
            run |= {name: value for name, value in given.items() if is_said(value) or name not in run}


def _id(run: _Run) -> str:
    """Give a run's id: a patch may name it by the end of its dotted order alone."""
    order = _ORDERED.findall(as_text(run.get("dotted_order")))
    return as_text(run.get("id")) or (cast("str", order[-1]) if order else as_text(run.get("trace_id")))


def _span(run: _Run) -> SpanRecord:
    order = cast("list[str]", _ORDERED.findall(as_text(run.get("dotted_order"))))
    above = as_list(run.get("parent_run_ids"))
    parent = run.get("parent_run_id") or (above[-1] if above else None) or (order[-2] if len(order) > 1 else None)
    failed = as_text(run.get("error")) or (compact(run["error"]) if is_said(run.get("error")) else "")
    started, ended = nanoseconds(run.get("start_time")), nanoseconds(run.get("end_time"))
    return SpanRecord(
        trace_id=trace_id(run.get("trace_id") or (order[0] if order else "") or run.get("id")),
        span_id=span_id(_id(run)),
        parent_id=span_id(parent) if parent else None,
        name=as_text(run.get("name")) or as_text(run.get("run_type")),
        start_ns=started,
        end_ns=ended,
        status=STATUS_ERROR if failed else STATUS_OK if ended else STATUS_UNSET,
        status_message=failed.partition("\n")[0],
        attributes=_attributes(run),
        events=(*_events(run), *([_exception(failed, ended or started)] if failed else [])),
        scope=Scope(name="langsmith"),
    )


def _attributes(run: _Run) -> dict[str, Attribute]:
    extra = as_object(unwrapped(run.get("extra")))
    metadata = as_object(unwrapped(extra.get("metadata")))
    kind = as_text(run.get("run_type"))
    attributes: dict[str, Attribute] = {
        "langsmith.span.kind": kind,
        "langsmith.trace.name": as_text(run.get("name")),
        **originals("langsmith", run.get("trace_id"), _id(run), run.get("parent_run_id")),
    }
    for name, field in (("gen_ai.prompt", "inputs"), ("gen_ai.completion", "outputs")):
        if is_said(value := run.get(field)):
            attributes[name] = attribute_text(value)
    for name, field in (
        ("langsmith.trace.session_name", "session_name"),
        ("langsmith.dotted_order", "dotted_order"),
        (_ENVELOPE, _ENVELOPE),
    ):
        if isinstance(value := run.get(field), str):
            attributes[name] = value
    if tags := as_list(unwrapped(run.get("tags"))):
        attributes["langsmith.span.tags"] = ", ".join(attribute_text(tag) for tag in tags)
    for name, value in metadata.items():
        if value is not None:
            attributes[f"langsmith.metadata.{name}"] = (
                value if isinstance(value, bool | int | float) else attribute_text(value)
            )
    attributes |= _identity(metadata)
    left = rest(run, _TAKEN - {"events"} if not _is_listed(run.get("events")) else _TAKEN)
    shorter = {**run, "extra": {name: value for name, value in extra.items() if name != "metadata"}}
    if extra and left:
        left = rest(shorter, _TAKEN)
    return {**attributes, "langsmith.record": left} if left else attributes


def _is_listed(events: Json) -> bool:
    return isinstance(unwrapped(events), list) or events is None


def _identity(metadata: _Run) -> dict[str, Attribute]:
    identity: dict[str, Attribute] = {}
    for name, fields in (("session.id", _SESSION), ("user.id", _USER)):
        identifier = next((value for field in fields if is_said(value := metadata.get(field))), None)
        if identifier is not None:
            identity[name] = attribute_text(identifier)
    return identity


def _events(run: _Run) -> Iterator[SpanEvent]:
    """Read what happened in between: mostly tokens of a stream, each with its time."""
    for event in map(as_object, as_list(unwrapped(run.get("events")))):
        name = as_text(event.get("name"))
        time = nanoseconds(event.get("time"))
        attributes: dict[str, Attribute] = {
            key: value if isinstance(value, str | bool | int | float) else compact(value)
            for key, value in event.items()
            if key not in ("name", "time") and value is not None
        }
        yield SpanEvent(name=name or "event", time_ns=time, attributes=attributes)


def _exception(failed: str, time: int) -> SpanEvent:
    """Read an error's text: the `repr` of an exception, perhaps with a traceback behind it."""
    head = failed.partition("Traceback (most recent call last)")[0]
    raised = _RAISED.match(head)
    lines = cast("list[tuple[str, str]]", _LAST_CLASS.findall(failed))
    kind = raised[1] if raised else lines[-1][0] if lines else "Exception"
    message = head[raised.end() :].strip().removesuffix(")").strip("'\"") if raised else head.strip()
    attributes: dict[str, Attribute] = {"exception.type": kind, "exception.message": message or failed}
    return SpanEvent(name="exception", time_ns=time, attributes={**attributes, "exception.stacktrace": failed})


FORMAT = Format(
    name="langsmith",
    suffix=".langsmith.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=_MARKS, plain=(("run_type", "inputs", "outputs"),)),
)
