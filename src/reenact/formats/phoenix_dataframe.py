"""Rows of Phoenix's and Arize's dataframes: a row a span, a column an attribute, `attributes.llm.model_name`.

What OpenTelemetry spells flat (`llm.input_messages.0.message.role`) is here a list of objects whose keys are dotted
(`message.role`). They come as Parquet (`read.parquet`), as lines of JSON or as CSV. Arize drops leading zeros of span
ids. Neither keeps resource, scope, links or OpenTelemetry's span kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import ids, records, tables
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.span import KIND_INTERNAL, Attribute, SpanEvent, SpanRecord

_KIND: Final = "openinference.span.kind"
_SPAN_IDS: Final = ("context.span_id", "span_id", "__index_level_0__", "index")
_TRACE_IDS: Final = ("context.trace_id", "trace_id")
_PREFIX: Final = "attributes."
_STATUSES: Final = ("UNSET", "OK", "ERROR")
_AS_TEXT = re.compile(r"(?:^|\.)(?:metadata|variables|invocation_parameters|json_schema|arguments|parameters|value)$")
"""Attributes that OpenInference has as JSON text, and that a dataframe may hold taken apart."""
_COLUMN = re.compile(rb'"(?:attributes\.[\w.]+|context\.trace_id)"\s*:')
_NAMED: Final = frozenset(
    {
        *_SPAN_IDS,
        *_TRACE_IDS,
        "name",
        "span_kind",
        "parent_id",
        "start_time",
        "end_time",
        "status_code",
        "status_message",
        "events",
        "attributes",
    }
)


def _recognises(head: bytes) -> float:
    names = tables.columns(head)
    if names:
        return 0.95 if names & set(_TRACE_IDS) and any(name.startswith(_PREFIX) for name in names) else 0.0
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start not in (b"{", b"["):
        return 0.0
    if not _COLUMN.search(head) or b'"start_time"' not in head:
        return 0.0
    return 0.96 if b'"context.trace_id"' in head else 0.9 if b'"span_kind"' in head else 0.5


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    for line, document in tables.rows(stream, str(path)):
        for row in as_list(document) if isinstance(document, list) else [document]:
            if not isinstance(row, dict):
                raise InputError(f"{path}:{line}", "this is no row of a dataframe: expected an object")
            yield _span(row, f"{path}:{line}")


def _span(row: Mapping[str, Json], place: str) -> SpanRecord:
    trace_id = next((each for name in _TRACE_IDS if (each := ids.trace_id(row.get(name)))), "")
    span_id = next((each for name in _SPAN_IDS if (each := ids.span_id(row.get(name)))), "")
    if not trace_id or not span_id:
        raise InputError(place, "this row has no trace and span id (`context.trace_id`, `context.span_id`)")
    attributes = _attributes(row)
    kind = as_text(row.get("span_kind"))
    if kind and kind != "UNKNOWN":
        attributes.setdefault(_KIND, kind)
    status = as_text(row.get("status_code")).upper()
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=ids.span_id(row.get("parent_id")) or None,
        name=as_text(row.get("name")),
        start_ns=records.nanoseconds(row.get("start_time")),
        end_ns=records.nanoseconds(row.get("end_time")),
        kind=KIND_INTERNAL,
        status=_STATUSES.index(status) if status in _STATUSES else 0,
        status_message=as_text(row.get("status_message")),
        attributes=attributes,
        events=tuple(_events(row.get("events"))),
    )


def _attributes(row: Mapping[str, Json]) -> dict[str, Attribute]:
    facts: dict[str, Attribute] = {}
    for name, value in row.items():
        if value is None or value == "":
            continue
        if name.startswith(_PREFIX):
            _flatten(facts, name.removeprefix(_PREFIX), records.unwrapped(value) if _is_table(name, value) else value)
        elif name == "attributes":
            for inner, item in as_object(records.unwrapped(value)).items():
                _flatten(facts, inner, item)
        elif name not in _NAMED:
            facts[f"phoenix.{name}"] = _carried(value)
    return facts


def _is_table(name: str, value: Json) -> bool:
    """Tell a list of objects that CSV had to spell as text from an attribute that is text."""
    return isinstance(value, str) and name.endswith(("_messages", ".tools", ".documents", ".embeddings", "_documents"))


def _flatten(facts: dict[str, Attribute], name: str, value: Json) -> None:
    """Spell a value under flat names, as OpenTelemetry has them."""
    if isinstance(value, dict):
        if _AS_TEXT.search(name):
            facts[name] = compact(value)
            return
        for inner, item in value.items():
            if item is not None:
                _flatten(facts, f"{name}.{inner}", item)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        if _AS_TEXT.search(name):
            facts[name] = compact(value)
            return
        for place, each in enumerate(value):
            _flatten(facts, f"{name}.{place}", each)
    elif value is not None:
        facts[name] = _carried(value)


def _carried(value: Json) -> Attribute:
    if isinstance(value, list):
        return [_carried(each) for each in value if each is not None]
    return compact(value) if isinstance(value, dict) else value


def _events(events: Json) -> Iterator[SpanEvent]:
    for each in as_list(records.unwrapped(events)):
        event = as_object(each)
        attributes: dict[str, Attribute] = {}
        for name, value in as_object(records.unwrapped(event.get("attributes"))).items():
            _flatten(attributes, name, value)
        time_ns = records.nanoseconds(event.get("timestamp"))
        yield SpanEvent(name=as_text(event.get("name")), time_ns=time_ns, attributes=attributes)


FORMAT = Format(
    name="phoenix-dataframe",
    suffix=".phoenix.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(
        texts=(('"start_time"', '"attributes.'), ('"start_time"', '"context.trace_id"')), plain=(("attributes.",),)
    ),
)
