from __future__ import annotations

from dataclasses import replace
from typing import Any

from reenact.boundary.reading import answered
from reenact.graph.build import build
from reenact.graph.tool_call_spans import with_calls_below
from reenact.values.message import ToolCall
from reenact.values.span import Scope, SpanRecord

TRACE = "1" * 32


def span(number: int, name: str, parent: int | None, attributes: dict[str, Any], scope: str = "openai") -> SpanRecord:
    return SpanRecord(
        trace_id=TRACE,
        span_id=f"{number:016x}",
        parent_id=f"{parent:016x}" if parent else None,
        name=name,
        start_ns=number,
        end_ns=number + 10,
        attributes=attributes,
        scope=Scope(name=scope),
    )


MODEL = span(
    1,
    "openai.chat.completion",
    None,
    {
        "gen_ai.system": "OpenAI",
        "gen_ai.request.model": "small",
        "gen_ai.request.streaming": False,
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Where are A-1 and A-2?",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.finish_reason": "tool_calls",
    },
)


def call(number: int, known: str, arguments: str, parent: int = 1) -> SpanRecord:
    attributes = {"tool.name": "find_order", "tool.parameters": arguments, "tool.call.id": known}
    return span(number, "tool_call.find_order", parent, attributes, "agentops.instrumentation")


def test_calls_below_a_model_go_into_its_reply_in_their_order() -> None:
    spans = [call(3, "c2", '{"order": "A-2"}'), MODEL, call(2, "c1", '{"order": "A-1"}')]
    (run,) = build(spans)
    (node,) = run.nodes
    reply = answered(node)
    assert reply is not None
    assert [part for message in reply.messages for part in message.parts] == [
        ToolCall(id="c1", name="find_order", arguments='{"order": "A-1"}'),
        ToolCall(id="c2", name="find_order", arguments='{"order": "A-2"}'),
    ]


def test_a_tool_that_ran_stays_a_call_of_its_own() -> None:
    ran = replace(call(2, "c1", "{}"), attributes={**call(2, "c1", "{}").attributes, "tool.result": "shipped"})
    spans = {each.span_id: each for each in (MODEL, ran)}
    assert with_calls_below(spans) == spans


def test_a_reply_that_tells_its_calls_itself_is_left_alone() -> None:
    told = replace(MODEL, attributes={**MODEL.attributes, "gen_ai.completion.0.tool_calls.0.name": "find_order"})
    spans = {each.span_id: each for each in (told, call(2, "c1", "{}"))}
    assert list(with_calls_below(spans).values()) == [told]


def test_what_stands_below_a_call_that_goes_is_lifted() -> None:
    below = span(4, "inner", 2, {})
    spans = {each.span_id: each for each in (MODEL, call(2, "c1", "{}"), below)}
    assert with_calls_below(spans)[below.span_id].parent_id == MODEL.span_id


def test_calls_below_anything_else_stay() -> None:
    spans = {
        each.span_id: each for each in (replace(MODEL, attributes={}), call(2, "c1", "{}"), call(3, "c2", "{}", 9))
    }
    assert with_calls_below(spans) == spans
