from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import orjson
import pytest

from golden_cases import GOLDEN
from reenact.formats import otlp_json
from reenact.read.span_facts import Row, add, by_kind, of_record, of_told, status_word
from reenact.values.span import SpanRecord

FILES = sorted(path for path in GOLDEN.rglob("*.jsonl") if b'"resourceSpans"' in path.read_bytes()[:200])


def told(**changed: Any) -> dict[str, Any]:
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in changed.pop("said", {}).items()]
    return {"name": "chat", "startTimeUnixNano": "5", "endTimeUnixNano": "9", "attributes": attributes, **changed}


def row_of(*spans: dict[str, Any]) -> Row:
    row = Row()
    for span in spans:
        add(row, of_told(span))
    return row


@pytest.mark.parametrize("path", FILES, ids=lambda path: "-".join(path.relative_to(GOLDEN).parts))
def test_a_glance_at_a_line_sees_what_a_glance_at_its_spans_sees(path: Path) -> None:
    data = path.read_bytes()
    read = [of_record(each) for each in otlp_json.FORMAT.decode(io.BytesIO(data), path) if isinstance(each, SpanRecord)]
    seen = [
        of_told(span)
        for line in data.splitlines()
        if b"\\ud" not in line.lower()  # a lone surrogate: the index reads such a line the long way
        for group in orjson.loads(line).get("resourceSpans", ())
        for scope in group["scopeSpans"]
        for span in scope["spans"]
    ]
    assert seen == read or path.parent.name == "lone_surrogate"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"openinference.span.kind": "LLM"}, "llm"),
        ({"gen_ai.operation.name": "execute_tool"}, "tool"),
        ({"traceloop.span.kind": "workflow"}, "chain"),
        ({"ai.operationId": "ai.streamText.doStream"}, "llm"),
        ({"langfuse.observation.type": "generation"}, "llm"),
        ({"openinference.span.kind": "TOOL", "gen_ai.operation.name": "chat"}, "tool"),
        ({"gen_ai.operation.name": "of another kind"}, "other"),
        ({}, "other"),
    ],
)
def test_a_call_is_counted_by_the_emitters_own_word(said: dict[str, str], kind: str) -> None:
    assert by_kind(row_of(told(said=said)).counts) == {kind: 1}


def test_a_section_of_a_framework_is_no_call() -> None:
    said = {"reenact.section": "langgraph", "openinference.span.kind": "CHAIN"}
    row = row_of(told(parentSpanId="b7ad6b7169203331", said=said), told(said={"openinference.span.kind": "LLM"}))
    assert by_kind(row.counts) == {"llm": 1}
    span = SpanRecord(trace_id="1", span_id="2", parent_id="3", name="plan", start_ns=1, end_ns=2, attributes={**said})
    add(row, of_record(span))
    assert by_kind(row.counts) == {"llm": 1}


def test_the_topmost_span_names_a_run_and_says_how_it_ended() -> None:
    below = told(parentSpanId="b7ad6b7169203331", startTimeUnixNano="2", status={"code": 2})
    row = row_of(below, told(name="run", endTimeUnixNano="20", status={"code": "STATUS_CODE_OK"}), below)
    assert (row.name, row.started, row.ended, row.spans) == ("run", 2, 20, 3)
    assert status_word(row.failed, rooted=bool(row.rooted)) == "ok"
    assert status_word(row_of(below).failed, rooted=False) == "error"
    assert status_word(row_of(told(status={"code": 2})).failed, rooted=True) == "error"
    assert status_word(Row().failed, rooted=False) == "unset"


def test_sessions_users_and_models_are_kept_once_each() -> None:
    first = told(said={"session.id": "s-1", "user.id": "ada", "gen_ai.request.model": "m-1"})
    other = told(said={"gen_ai.conversation.id": "s-2", "user.id": "ada", "llm.model_name": "m-2"})
    row = row_of(first, other, first)
    assert (row.session, row.user, row.models) == ("s-1\ns-2", "ada", "m-1\nm-2")
