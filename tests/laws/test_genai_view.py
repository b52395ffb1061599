from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from genai_spec import KINDS, findings
from golden_cases import case_name, cases, streamed
from golden_spans import span_of
from reenact.contracts.dialect import Around
from reenact.contracts.shape import Shape
from reenact.dialects.genai import DIALECT, _messages
from reenact.dialects.openinference import WRITING
from reenact.discover import members
from reenact.encodings.model_exchange import model_exchange
from reenact.errors import InputError
from reenact.export.backends import backends_from_environment
from reenact.foreign import genai
from reenact.foreign.foreign_call import said_of
from reenact.graph.build import build, interpret
from reenact.keep.flattening import flattened
from reenact.values import mcp_message, tool_schema
from reenact.values.call import (
    Body,
    Call,
    CallKind,
    Chunk,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Returned,
    Streamed,
    StreamEnd,
    Value,
)
from reenact.values.exception_record import ExceptionRecord
from reenact.values.genai_facts import facts
from reenact.values.json import compact, parsed_or_none
from reenact.values.message import Answered, Asked, Message, Part, Text, ToolCall
from reenact.values.semconv import Semconv, as_recorded, semconv_from
from reenact.values.span import KIND_CLIENT, KIND_INTERNAL, SpanRecord
from strategies_call import crossings

SHAPES = {shape.name.replace(".", "_"): shape for shape in members("shapes", Shape)}
SHAPE_CASES = cases("shapes")
OURS = [
    case
    for case in cases("dialects")
    if "reenact.boundary" in json.loads((case / "span.json").read_text(encoding="utf-8"))["attributes"]
]
GENAI = (Semconv.GENAI, Semconv.BOTH)
HOSTS = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}


def span_of_call(call: Call, outcome: Outcome) -> SpanRecord:
    """The span that the recorder would have written."""
    exact = {**WRITING.encode_call(call), **WRITING.encode_outcome(call, outcome)}
    return SpanRecord(
        trace_id="1" * 32,
        span_id="2" * 16,
        parent_id=None,
        name=call.name,
        start_ns=1,
        end_ns=2,
        kind=KIND_CLIENT if isinstance(call.request, HttpRequest) or call.is_mcp else KIND_INTERNAL,
        attributes={**exact, "reenact.schema_version": "1", "reenact.lane": "", "reenact.order.start": 1},
    )


def exchange_of(case: Path) -> tuple[Call, Outcome]:
    """A model's call with the bodies of a golden case."""
    shape = SHAPES[case.parent.name]
    url = f"https://{HOSTS.get(shape.system, 'models.example')}/v1/x"
    request = HttpRequest(shape=shape.name, method="POST", url=url, body=Body((case / "request.json").read_bytes()))
    call = Call(kind=shape.kind, name=shape.span_name, request=request, attributes={"session.id": "s-1"})
    if (case / "reply.json").exists():
        status = 429 if "error" in case.name else 200
        body = Body((case / "reply.json").read_bytes())
        return call, Returned(payload=HttpReply(status=status, headers=(), body=body))
    data = streamed(case) or b""
    pieces = (data[:50], data[50:])
    chunks = tuple(Chunk(offset_us=at * 1000, order=at, data=piece) for at, piece in enumerate(pieces, 1))
    return call, Streamed(chunks=chunks)


@pytest.mark.parametrize("case", SHAPE_CASES, ids=case_name)
def test_a_model_s_call_is_shown_as_the_conventions_have_it(case: Path) -> None:
    span = span_of_call(*exchange_of(case))
    for semconv in Semconv:
        shown = flattened(span, semconv)
        assert semconv is Semconv.OPENINFERENCE or findings(shown) == []
        assert read(shown) == read(span)
    assert as_recorded(flattened(span, Semconv.GENAI)) == span


@pytest.mark.parametrize("case", OURS, ids=case_name)
def test_what_was_recorded_is_read_again_whatever_it_was_shown_in(case: Path) -> None:
    span = span_of(json.loads((case / "span.json").read_text(encoding="utf-8")))
    for semconv in Semconv:
        shown = flattened(span, semconv)
        assert semconv is Semconv.OPENINFERENCE or findings(shown) == []
        assert read(shown) == read(span)


@given(crossing=crossings())
def test_any_call_is_read_again_whatever_it_was_shown_in(crossing: tuple[Call, Outcome]) -> None:
    span = span_of_call(*crossing)
    for semconv in Semconv:
        assert read(flattened(span, semconv, AROUND)) == read(span)


AROUND = Around(
    tool_call_id="call_1",
    tool={"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}},
    graph_node="add",
    graph_parent="boss",
)


def read(span: SpanRecord) -> Any:
    """What a reader of a file makes of a span."""
    ((node,),) = [run.nodes for run in build([span])]
    return node.call, node.outcome, node.span.name, node.span.kind


def bare(span: SpanRecord) -> SpanRecord:
    """What a backend keeps that keeps the conventions' names alone."""
    kept = ("gen_ai.", "openai.", "server.", "error.")
    return replace(
        span, attributes={name: value for name, value in span.attributes.items() if name.startswith(kept)}, events=()
    )


@pytest.mark.parametrize("case", SHAPE_CASES, ids=case_name)
def test_the_conventions_alone_tell_messages_tools_and_tokens(case: Path) -> None:
    call, outcome = exchange_of(case)
    assert isinstance(call.request, HttpRequest)
    exchange = model_exchange(call.request, outcome)
    assert exchange is not None
    span = bare(flattened(span_of_call(call, outcome), Semconv.GENAI))
    embeds = call.kind is CallKind.EMBEDDING
    said = said_of(span)
    asked, answered, _ = _messages(span, said)
    again = genai.completed(asked or Asked(), said) or Asked()
    reply = genai.finished(answered, said) or Answered()
    words = tuple(map(genai.finish_word, exchange.answered.finish_reasons))  # OpenAI's, where a reader knows them
    told = facts(exchange.asked, replace(exchange.answered, finish_reasons=words), embeds=embeds)
    assert dict(facts(again, reply, embeds=False)) == {name: value for name, value in told if name not in UNREAD}
    if call.kind is CallKind.LLM:
        assert spoken(again.messages) == spoken(exchange.asked.messages)
        assert spoken(reply.messages) == spoken(exchange.answered.messages)
        assert names(again) == names(exchange.asked)


UNREAD = {"gen_ai.embeddings.dimension.count", "gen_ai.request.encoding_formats", "gen_ai.output.type"}
"""What the reader of the conventions does not bring back into a body: embeddings come with no texts to embed."""


def names(asked: Asked) -> list[Any]:
    """What is said of tools, whoever defines them."""
    return [
        (function.get("name"), function.get("description"), function.get("parameters"))
        for tool in tool_schema.tools([*asked.tools])
        if isinstance(tool, dict) and isinstance(function := tool.get("function"), dict)
    ]


def spoken(messages: tuple[Message, ...]) -> list[tuple[str, str | None, Part]]:
    """All that was said, part by part, the arguments of tools in one spelling."""
    return [
        (message.role, message.tool_call_id, part)
        for message in messages
        for part in (_one_spelling(each) for each in message.parts)
        if part != Text("")
    ]


def _one_spelling(part: Part) -> Part:
    if not isinstance(part, ToolCall):
        return part
    read_arguments = parsed_or_none(part.arguments)
    return replace(part, arguments=compact(read_arguments)) if isinstance(read_arguments, dict) else part


def function(kind: CallKind, name: str, arguments: Any, **attributes: Any) -> Call:
    return Call(
        kind=kind, name=name, request=FunctionCall(function="m:f", arguments=arguments), attributes=dict(attributes)
    )


def value(json_value: Any) -> Outcome:
    return Returned(payload=Value(json=json_value))


FAILED = Raised(exception=ExceptionRecord(module="m", qualname="ToolError", message="no"))
SERVER = mcp_message.Server(name="desk", transport="tcp", address="desk.example:443", session="s", version="2026-07-28")
FUNCTIONS: Mapping[str, tuple[Call, Outcome]] = {
    "tool": (function(CallKind.TOOL, "add", {"a": 1, "b": 2}, **{"tool.description": "Add."}), value(3)),
    "tool_text": (function(CallKind.TOOL, "add", {}), value("4")),
    "tool_failed": (function(CallKind.TOOL, "add", {"a": 1}), FAILED),
    "agent": (function(CallKind.AGENT, "boss", {"question": "why?"}), value("because")),
    "agent_streams": (
        function(CallKind.AGENT, "boss", {"question": "why?", "depth": 2}),
        Streamed(chunks=(Chunk(offset_us=1, order=1, value="be"), Chunk(offset_us=2, order=2, value="cause"))),
    ),
    "retriever": (
        function(CallKind.RETRIEVER, "look", {"query": "hall 7", "k": 2}),
        value([{"id": 7, "page_content": "Köln", "score": 0.5, "metadata": {"k": 1}}, "plain"]),
    ),
    "chain": (function(CallKind.CHAIN, "steps", {"a": 1}), value(1)),
    "judge": (
        function(CallKind.EVALUATOR, "judge", {"judge": "m", "asks": "is polite", "text": "t", "answer": "a"}),
        value({"holds": True, "score": 0.9, "reason": "It is."}),
    ),
    "mcp_tool": (mcp_message.request(SERVER, "tools/call", {"name": "add", "arguments": {"a": 1}}, 3), value({"x": 1})),
    "mcp_resource": (mcp_message.request(SERVER, "resources/read", {"uri": "file:///a"}, 4), value({"contents": []})),
    "mcp_prompt": (
        mcp_message.request(SERVER, "prompts/get", {"name": "greet", "arguments": {"who": "Ada"}}, 5),
        value({"messages": []}),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_shown_as_the_conventions_have_it(name: str) -> None:
    call, outcome = FUNCTIONS[name]
    span = span_of_call(call, outcome)
    for semconv in GENAI:
        shown = flattened(span, semconv, AROUND if name == "tool" else Around())
        assert findings(shown) == []
        assert read(shown) == read(span)


def test_a_tool_is_shown_with_the_call_that_asked_for_it() -> None:
    shown = flattened(span_of_call(*FUNCTIONS["tool"]), Semconv.BOTH, AROUND)
    assert shown.name == "execute_tool add"
    wanted = {
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.call.arguments": '{"a":1,"b":2}',
        "gen_ai.tool.call.result": "3",
        "gen_ai.tool.description": "Add.",
        "tool.id": "call_1",
        "tool.parameters": '{"type":"object"}',
        "graph.node.id": "add",
        "graph.node.parent_id": "boss",
    }
    assert {name: shown.attributes.get(name) for name in wanted} == wanted


@pytest.mark.parametrize("name", ["tool", "tool_text", "tool_failed"])
def test_the_conventions_alone_tell_a_tool_s_call(name: str) -> None:
    call, outcome = FUNCTIONS[name]
    shown = flattened(span_of_call(call, outcome), Semconv.GENAI)
    again, came = interpret(bare(shown))
    assert (again.kind, again.name) == (CallKind.TOOL, "add")
    assert isinstance(again.request, FunctionCall)
    assert isinstance(call.request, FunctionCall)
    assert again.request.arguments == call.request.arguments
    assert isinstance(outcome, Raised) or came == outcome


def test_an_evaluation_is_told_in_both_words() -> None:
    shown = flattened(span_of_call(*FUNCTIONS["judge"]), Semconv.BOTH)
    (event,) = shown.events
    assert event.name == "gen_ai.evaluation.result"
    assert event.attributes["gen_ai.evaluation.score.value"] == 0.9
    first = "evaluations.0.evaluation"
    wanted = {"name": "is polite", "score": 0.9, "label": "holds", "explanation": "It is.", "annotator_kind": "LLM"}
    assert {name: shown.attributes.get(f"{first}.{name}") for name in wanted} == wanted
    assert as_recorded(shown).events == ()


def test_a_stream_that_broke_says_so_where_no_reason_came() -> None:
    call, outcome = exchange_of(case_of("openai_chat/stream_two_tools"))
    assert isinstance(outcome, Streamed)
    data = b"".join(chunk.data or b"" for chunk in outcome.chunks)
    broken = Chunk(offset_us=250_000, order=1, data=data[: data.index(b"tool_calls", len(data) // 2)])
    shown = flattened(span_of_call(call, Streamed(chunks=(broken,), end=StreamEnd.ABANDONED)), Semconv.GENAI)
    assert findings(shown) == []
    assert shown.attributes["gen_ai.response.time_to_first_chunk"] == 0.25
    assert shown.attributes["gen_ai.response.finish_reasons"] == ["error"]


def case_of(name: str) -> Path:
    return next(case for case in SHAPE_CASES if case_name(case) == name)


WRONG = [
    {"gen_ai.request.top_k": 1.5},
    {"gen_ai.made.up": "x"},
    {"gen_ai.input.messages": compact([{"role": "user", "parts": [{"type": "text"}]}])},
    {"gen_ai.input.messages": "{"},
    {"gen_ai.provider.name": ""},
]


def test_the_validator_finds_what_is_wrong() -> None:
    span = flattened(span_of_call(*exchange_of(case_of("openai_chat/tool_round"))), Semconv.GENAI)
    assert findings(span) == []
    for wrong in WRONG:
        assert findings(replace(span, attributes={**span.attributes, **wrong})) != []
    assert findings(replace(span, name="x")) != []
    assert findings(replace(span, kind=KIND_INTERNAL + 1)) != []


NEWER = {
    *("gen_ai.conversation.compacted", "gen_ai.prompt.version", "gen_ai.request.previous_response.id"),
    *("gen_ai.request.reasoning.level", "gen_ai.retrieval.top_k", "gen_ai.usage.cache_write.input_tokens"),
    *(f"gen_ai.usage.{kind}.{side}_tokens" for kind in ("audio", "image", "text") for side in ("input", "output")),
    *(f"gen_ai.usage.{kind}.cache_read.input_tokens" for kind in ("audio", "image", "text")),
}
"""Names of the conventions that came after those of the package, which has deprecated all it has of them."""


def test_the_names_are_those_of_the_package_and_what_came_after() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    package = {name for key, name in vars(gen_ai_attributes).items() if key.startswith("GEN_AI_")}
    of_spans = {name for kind in KINDS.values() for name in kind.attributes if name.startswith("gen_ai.")}
    assert of_spans - package <= NEWER


@pytest.mark.parametrize("word", ["", "openinference", "GenAI", "both"])
def test_the_setting_names_conventions(word: str) -> None:
    assert semconv_from({"REENACT_SEMCONV": word}) == (word.lower() or "openinference")


def test_a_setting_that_names_none_is_told() -> None:
    with pytest.raises(InputError, match=r"\$REENACT_SEMCONV"):
        backends_from_environment({"REENACT_SEMCONV": "otel", "REENACT_EXPORT": "http://h.example"})


def test_every_shape_has_a_case_that_is_shown() -> None:
    assert DIALECT.view is not None
    assert {case.parent.name for case in SHAPE_CASES} == set(SHAPES)
