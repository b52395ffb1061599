"""Records that came without ids: each stands for itself, none is folded into another, and an export reads back."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from reenact.contracts.format import Format
from reenact.discover import members
from reenact.formats import otlp_json
from reenact.graph.build import build
from reenact.graph.logs import joined
from reenact.values.span import SpanRecord

FORMATS = {member.name: member for member in members("formats", Format)}
START, END = "2026-03-04T08:00:00Z", "2026-03-04T08:00:01Z"
RUN = {"run_type": "tool", "name": "weigh", "inputs": {"apples": 3}, "start_time": START, "end_time": END}
CALL = {"op_name": "weave:///orchard/op/weigh:1", "inputs": {"apples": 3}, "output": 1, "started_at": START}
LONE = {"spanName": "weigh", "scopeName": "orchard", "attributes": {"apples": 3}}
AGENTS = {"object": "trace.span", "span_data": {"type": "function", "name": "weigh"}, "started_at": START}
OBSERVATION = {"type": "TOOL", "name": "weigh", "startTime": START, "traceId": "grove", "parentObservationId": None}


def spans(name: str, document: Any) -> list[SpanRecord]:
    read = FORMATS[name].decode(io.BytesIO(json.dumps(document).encode()), Path("file"))
    return [record for record in read if isinstance(record, SpanRecord)]


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("langsmith", {"runs": [RUN, RUN, {**RUN, "error": "no scales"}]}),
        ("langsmith", [RUN, RUN, {**RUN, "name": "count"}]),
        ("langsmith", {"post": [RUN, RUN, {**RUN, "name": "count"}], "patch": []}),
        ("langsmith", {**RUN, "child_runs": [{**RUN, "name": "count"}, {**RUN, "name": "count"}]}),
        ("langsmith", [{**RUN, "trace_id": "grove"}, {**RUN, "trace_id": "grove"}, {**RUN, "trace_id": "grove"}]),
        ("weave", [CALL, CALL, {**CALL, "output": 2}]),
        ("span-dicts", [LONE, LONE, {**LONE, "spanName": "count"}]),
        ("openai-agents", [AGENTS, AGENTS, {**AGENTS, "ended_at": END}]),
        ("langfuse", {"data": [OBSERVATION, OBSERVATION, {**OBSERVATION, "name": "count"}]}),
    ],
)
def test_records_without_ids_are_as_many_spans(name: str, document: Any) -> None:
    read = spans(name, document)
    assert len({span.span_id for span in read if not span.attributes.get("reenact.synthetic")}) == 3
    assert all(span.trace_id.strip("0") and span.span_id.strip("0") for span in read)
    assert spans(name, document) == read  # the same ids whenever the file is read
    assert otlp_json.FORMAT.encode is not None
    again = list(otlp_json.FORMAT.decode(io.BytesIO(otlp_json.FORMAT.encode(read)), Path("file")))
    assert len(again) == len(read)
    assert not [note for run in build(joined(read)) for note in run.notes if "folded" in note]


def test_runs_that_one_document_lists_are_one_trace() -> None:
    read = spans("langsmith", {"task": "weigh them", "runs": [RUN, {**RUN, "name": "count"}]})
    assert len({span.trace_id for span in read}) == 1
    assert json.loads(str(read[0].attributes["reenact.envelope"])) == {"task": "weigh them"}


def test_an_error_of_a_run_without_an_end_stands_at_its_start() -> None:
    (span,) = spans("langsmith", [{**RUN, "end_time": None, "error": "no scales"}])
    assert [event.time_ns for event in span.events] == [span.start_ns]


def test_a_run_below_one_without_an_id_hangs_in_it() -> None:
    above, below = spans("langsmith", {**RUN, "child_runs": [{**RUN, "name": "count"}]})
    assert (below.trace_id, below.parent_id) == (above.trace_id, above.span_id)
