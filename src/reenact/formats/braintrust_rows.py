"""Braintrust's rows: the export of spans as lines of JSON, the rows that its SDKs send, and pages of its API.

A row becomes a span under the names of Braintrust's OpenTelemetry dialect (`braintrust.input_json`,
`braintrust.metadata`, …), its other fields in `braintrust.record`. Rows that are marked as merging are merged, object
by object, into the row with their id. Of the export's two kinds the one of spans is meant: "Logs (traces)" has but one
row a trace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.records import attribute_text, is_said, nanoseconds, originals, rest, span_id, trace_id, unwrapped
from reenact.foreign.tables import columns, rows
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.skeleton import holds, skeleton
from reenact.values.span import STATUS_ERROR, STATUS_UNSET, Attribute, Scope, SpanEvent, SpanRecord

_NAMES: Final = {
    "input": "braintrust.input_json",
    "output": "braintrust.output_json",
    "expected": "braintrust.expected",
    "metadata": "braintrust.metadata",
    "metrics": "braintrust.metrics",
    "span_attributes": "braintrust.span_attributes",
    "scores": "braintrust.scores",
    "tags": "braintrust.tags",
    "error": "braintrust.error",
    "id": "braintrust.row_id",
    "type": "braintrust.type",
}
_TAKEN: Final = frozenset({*_NAMES, "span_id", "root_span_id", "span_parents", "name", "_is_merge"})
_MARKS: Final = (
    "span_attributes|rows[].span_attributes",
    "span_parents|metrics|project_id|rows[].metrics|rows[].id",
)
_SENT: Final = frozenset({"input", "output", "metadata", "name", "metrics", "type", "error", "tags", "scores"})
"""The fields of rows from which the ids were taken, as in records of what an SDK sent."""
_SESSION: Final = ("session_id", "thread_id", "conversation_id", "session.id")
_USER: Final = ("user_id", "user", "user.id")
_DEEPEST: Final = 6

_Row = dict[str, Json]


def _recognises(head: bytes) -> float:
    if columns(head) >= {"root_span_id", "span_id"}:
        return 0.96
    paths = skeleton(head)
    if any(path == "root_span_id" or path.endswith((".root_span_id", "[].root_span_id")) for path in paths):
        return 0.96
    if holds(head, *_MARKS):
        return 0.95
    top = {path for path in paths if "." not in path and "[" not in path}
    return 0.8 if top <= _SENT and top >= {"name", "metadata"} else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    gathered: dict[str, _Row] = {}
    number = 0
    for line, document in rows(stream, str(path)):
        has_rows = False
        anonymous = ""
        for row in _rows(document):
            has_rows = True
            number += 1
            if not is_said(row.get("span_id")):
                anonymous = anonymous or _named_by_content(document)
                row["root_span_id"] = row.get("root_span_id") or anonymous
                row["span_id"] = row.get("id") or f"{anonymous} {number}"
            _gather(row, gathered)
        if not has_rows:
            raise InputError(f"{path}:{line}", "this is no row of Braintrust: it has neither span ids nor a name")
    timed = any(_started(row) for row in gathered.values())
    for place, row in enumerate(gathered.values(), 1):
        span = _span(row)
        if not timed:  # the times were masked: the rows stand in the order of their telling
            span = replace(span, attributes={**span.attributes, "reenact.order.start": place})
        yield span


def _named_by_content(document: Json) -> str:
    """Give rows that were stripped of their ids a trace of their own."""
    return f"braintrust {hashlib.blake2b(compact(document).encode('utf-8', 'replace'), digest_size=8).hexdigest()}"


def _rows(document: Json, depth: int = 0) -> Iterator[_Row]:
    """Find the rows: themselves, listed under `rows`, `events` or `data`, or grouped under names of any kind."""
    if isinstance(document, list):
        for item in document:
            yield from _rows(item, depth)
        return
    fields = as_object(document)
    if "root_span_id" in fields or "span_id" in fields or (depth == 0 and "name" in fields and fields.keys() <= _SENT):
        yield dict(fields)
        return
    if "id" in fields and ("span_attributes" in fields or fields.get("_is_merge") is True):
        yield dict(fields)
        return
    for item in fields.values():
        if isinstance(item, dict | list) and depth < _DEEPEST:
            yield from _rows(item, depth + 1)


def _gather(row: _Row, gathered: dict[str, _Row]) -> None:
    """Take a row: the first of its id begins a span, any other says more of it, whether it is marked so or not."""
    key = as_text(row.get("id")) or attribute_text(row.get("span_id"))
    base = gathered.get(key)
    if base is None:
        gathered[key] = row
    elif base.get("_is_merge") is True and row.get("_is_merge") is not True:
        gathered[key] = _merged(row, base, 0)  # the row that begins it came after one that says more
    else:
        gathered[key] = _merged(base, row, 0)


def _merged(base: _Row, more: _Row, depth: int) -> _Row:
    """Merge object by object; anything else is replaced, and null takes nothing away."""
    merged = dict(base)
    for name, value in more.items():
        before = merged.get(name)
        if isinstance(before, dict) and isinstance(value, dict) and depth < 64:
            merged[name] = _merged(before, value, depth + 1)
        elif value is not None and name not in ("_is_merge", "span_id", "root_span_id"):
            merged[name] = value
        else:
            merged.setdefault(name, value)
    return merged


def _started(row: _Row) -> int:
    return nanoseconds(as_object(unwrapped(row.get("metrics"))).get("start")) or nanoseconds(row.get("created"))


def _span(row: _Row) -> SpanRecord:
    span_attributes = as_object(unwrapped(row.get("span_attributes")))
    metrics = as_object(unwrapped(row.get("metrics")))
    parents = as_list(unwrapped(row.get("span_parents")))
    started = _started(row)
    error = row.get("error")
    own = attribute_text(row.get("span_id"))
    parent = next((each for each in parents if is_said(each) and attribute_text(each) != own), None)
    failed = is_said(error)
    return SpanRecord(
        trace_id=trace_id(row.get("root_span_id") or row.get("span_id")),
        span_id=span_id(own),
        parent_id=span_id(parent) if parent is not None else None,
        name=as_text(span_attributes.get("name")) or as_text(row.get("name")) or "span",
        start_ns=started,
        end_ns=nanoseconds(metrics.get("end")) or started,
        status=STATUS_ERROR if failed else STATUS_UNSET,
        status_message=_first_line(error),
        attributes=_attributes(row),
        events=(_exception(error, nanoseconds(metrics.get("end"))),) if failed else (),
        scope=Scope(name="braintrust"),
    )


def _first_line(error: Json) -> str:
    fields = as_object(unwrapped(error))
    text = as_text(fields.get("message")) or (attribute_text(error) if is_said(error) else "")
    return text.partition("\n")[0]


def _exception(error: Json, time: int) -> SpanEvent:
    fields = as_object(unwrapped(error))
    text = attribute_text(error)
    line = _first_line(error)
    kind, colon, message = line.partition(": ")
    type_name = as_text(fields.get("name")) or (kind if colon and kind.replace(".", "").isidentifier() else "Exception")
    attributes: dict[str, Attribute] = {"exception.type": type_name, "exception.message": message if colon else line}
    if text != line:
        attributes["exception.stacktrace"] = as_text(fields.get("stack")) or text
    return SpanEvent(name="exception", time_ns=time, attributes=attributes)


def _attributes(row: _Row) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {}
    for field, name in _NAMES.items():
        if is_said(value := row.get(field)):
            as_json = (
                field in ("input", "output")
                and isinstance(value, str)
                and not isinstance(unwrapped(value), dict | list)
            )
            attributes[name] = compact(value) if as_json else attribute_text(value)
    metadata = as_object(unwrapped(row.get("metadata")))
    for name, fields in (("session.id", _SESSION), ("user.id", _USER)):
        identifier = next((value for field in fields if is_said(value := metadata.get(field))), None)
        if identifier is not None:
            attributes[name] = attribute_text(identifier)
    parents = as_list(unwrapped(row.get("span_parents")))
    attributes |= originals("braintrust", row.get("root_span_id"), row.get("span_id"), parents[0] if parents else None)
    if len(parents) > 1:
        attributes["braintrust.span_parents"] = compact(parents)
    if left := rest(row, _TAKEN):
        attributes["braintrust.record"] = left
    return attributes


FORMAT = Format(
    name="braintrust",
    suffix=".braintrust.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=(_MARKS, ("name", "metadata")), texts=(('root_span_id"',),), plain=(("root_span_id",),)),
)
