"""Spans that stand for several calls, and spans of calls that had only begun."""

from __future__ import annotations

from typing import Any

from reenact.graph.build import build
from reenact.values.call import CallKind, Returned, Value
from reenact.values.json import compact
from reenact.values.run import Run
from reenact.values.span import Scope, SpanRecord

TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(number: int, *, parent: int | None = None, name: str = "s", scope: str = "", **said: Any) -> SpanRecord:
    return SpanRecord(
        trace_id=TRACE,
        span_id=f"{number:016x}",
        parent_id=None if parent is None else f"{parent:016x}",
        name=name,
        start_ns=number,
        end_ns=100,
        attributes={key.replace("__", "."): value for key, value in said.items()},
        scope=Scope(name=scope),
    )


def only(*spans: SpanRecord) -> Run:
    (run,) = build(spans)
    return run


def result(call_id: str, port: str, at: str) -> dict[str, Any]:
    origin = {"tool_name": "tide", "arguments": {"port": port}, "id": call_id}
    return {"role": "tool", "content": [{"tool_call_result": {"result": at, "origin": origin, "error": False}}]}


def test_a_span_that_ran_several_tools_is_a_call_for_each() -> None:
    told = {"tool_messages": [result("call_1", "Husum", "14:07"), result("call_2", "Tönning", "15:22")]}
    invoker = span(
        1,
        name="haystack.component.run",
        scope="haystack",
        haystack__component__type="ToolInvoker",
        haystack__component__name="tools",
        haystack__component__output=compact(told),  # type: ignore[arg-type]
    )
    run = only(invoker)
    top, *tools = run.nodes
    assert (top.kind, [node.kind for node in tools]) == (CallKind.CHAIN, [CallKind.TOOL, CallKind.TOOL])
    assert {node.parent for node in tools} == {top.id}
    assert {(node.call.attributes["gen_ai.tool.call.id"], str(node.outcome)) for node in tools} == {
        ("call_1", str(Returned(payload=Value(json="14:07")))),
        ("call_2", str(Returned(payload=Value(json="15:22")))),
    }
    again = only(*(node.span for node in run.nodes))
    assert [(node.id, node.call) for node in again.nodes] == [(node.id, node.call) for node in run.nodes]


def test_a_pending_span_goes_where_its_own_is_there() -> None:
    run = only(
        span(1, name="run"),
        span(2, parent=1, name="chat m"),
        span(3, parent=2, name="chat m", logfire__span_type="pending_span", logfire__pending_parent_id=f"{1:016x}"),
    )
    assert [(node.id[-1], node.parent and node.parent[-1]) for node in run.nodes] == [("1", None), ("2", "1")]


def test_a_pending_span_stands_for_one_that_never_came() -> None:
    run = only(
        span(1, name="run"),
        span(3, parent=2, name="chat m", logfire__span_type="pending_span", logfire__pending_parent_id=f"{1:016x}"),
        span(4, parent=2, name="inside"),
    )
    assert [(node.id[-1], node.parent and node.parent[-1]) for node in run.nodes] == [
        ("1", None),
        ("2", "1"),
        ("4", "2"),
    ]
    assert run.nodes[1].span.attributes["reenact.incomplete"] is True
    top = only(span(3, parent=2, name="run", logfire__span_type="pending_span", logfire__pending_parent_id="0" * 16))
    assert [(node.id[-1], node.parent) for node in top.nodes] == [("2", None)]
