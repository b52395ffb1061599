from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from foreign import told
from made import Made
from reenact.formats.otlp_json import FORMAT, encode
from reenact.graph.build import build
from reenact.values.call import CallKind, FunctionCall, Returned, Value
from reenact.values.run import Node, Run
from reenact.values.span import SpanRecord

USER = told.said("user", told.text(told.QUESTION))
TWO = told.said("assistant", told.called("look", {"at": "sky"}, "a"), told.called("look", {"at": "sea"}, "b"))
BACK = [told.said("tool", told.came({"wet": True}, "a")), told.said("tool", told.came("calm", "b"))]
FIRST = told.chat(1, [USER], [TWO])
BOTH = [("look", {"at": "sky"}, {"wet": True}), ("look", {"at": "sea"}, "calm")]
LAST = told.chat(9, [USER, TWO, *BACK], [told.said("assistant", told.text(told.ANSWER))])


def run_of(*spans: SpanRecord) -> Run:
    [run] = build(spans)
    return run


def tools(run: Run) -> list[Node]:
    return [node for node in run.nodes if node.kind is CallKind.TOOL]


def said(node: Node) -> tuple[str, Any, Any]:
    assert isinstance(node.call.request, FunctionCall)
    assert isinstance(node.outcome, Returned)
    assert isinstance(node.outcome.payload, Value)
    return node.call.name, node.call.request.arguments, node.outcome.payload.json


def test_tool_calls_without_a_span_are_told_by_the_model_calls_around_them() -> None:
    run = run_of(FIRST, LAST)
    assert [node.kind.value for node in run.nodes] == ["LLM", "TOOL", "TOOL", "LLM"]
    assert [said(node) for node in tools(run)] == [
        ("look", {"at": "sky"}, {"wet": True}),
        ("look", {"at": "sea"}, "calm"),
    ]
    assert [(node.caused_by, node.tool_call_id) for node in tools(run)] == [(FIRST.span_id, "a"), (FIRST.span_id, "b")]
    assert [node.number for node in run.nodes] == [1, 2, 3, 4]
    assert any("2 tool calls have no span" in note for note in run.notes)


def test_they_are_the_same_when_their_spans_are_written_and_read_again(tmp_path: Path) -> None:
    run = run_of(FIRST, LAST)
    path = tmp_path / "again.jsonl"
    path.write_bytes(encode([node.span for node in run.nodes]))
    with path.open("rb") as stream:
        [again] = build(FORMAT.decode(stream, path))
    assert [said(node) for node in tools(again)] == [said(node) for node in tools(run)]
    assert [node.id for node in again.nodes] == [node.id for node in run.nodes]


def test_a_span_that_is_there_is_not_made_twice() -> None:
    span = told.tool(5, "look", {"at": "sky"}, "seen")
    span = replace(span, attributes={**span.attributes, "gen_ai.tool.call.id": "a"})
    run = run_of(FIRST, span, LAST)
    assert [said(node)[2] for node in tools(run)] == ["calm", "seen"]


def test_a_span_without_arguments_or_result_gets_them() -> None:
    bare = [replace(told.tool(n, "look", None), attributes={**told.tool(n, "look", None).attributes}) for n in (4, 5)]
    run = run_of(FIRST, *bare, LAST)
    assert [said(node) for node in tools(run)] == [
        ("look", {"at": "sky"}, {"wet": True}),
        ("look", {"at": "sea"}, "calm"),
    ]
    assert {node.id for node in tools(run)} == {span.span_id for span in bare}


def test_ids_may_be_lost_altogether() -> None:
    two = told.said("assistant", told.called("look", {"at": "sky"}, None), told.called("look", {"at": "sea"}, None))
    back = [told.said("tool", told.came("wet", None)), told.said("tool", told.came("calm", None))]
    run = run_of(told.chat(1, [USER], [two]), told.chat(9, [USER, two, *back], []))
    assert [said(node)[1:] for node in tools(run)] == [({"at": "sky"}, "wet"), ({"at": "sea"}, "calm")]


def test_what_nobody_says_is_not_made_up() -> None:
    assert tools(run_of(FIRST)) == []
    assert [said(node)[2] for node in tools(run_of(FIRST, told.chat(9, [USER, TWO, BACK[1]], [])))] == ["calm"]


def test_our_own_recordings_are_left_alone() -> None:
    made = Made()
    made.llm([{"role": "user", "content": "x"}], tools=[("look", {})])
    made.llm([{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "c", "content": "y"}], "z")
    assert [node for run in build(made.spans) for node in run.nodes if node.kind is CallKind.TOOL] == []
