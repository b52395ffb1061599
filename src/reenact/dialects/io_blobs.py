"""Emitters that keep a call as a pair of attributes, one that holds all its input and one that holds all its output.

Mastra, Genkit, LiveKit agents, Laminar, VoltAgent and Flue, from the code of those who read them. What the blobs hold
is told by its structure; the kind of a call by the emitter's own word for it, which stands in an attribute, in the name
of the pair, or in the span's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import native, tool_io
from reenact.foreign.foreign_call import CALL_ID, function_call, marked, model_call, provider_of, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, structured
from reenact.values.message import Answered, Asked, Message, Text, ToolCall, Usage
from reenact.values.span import SpanRecord

_NAME: Final = "io-blobs"
_KINDS: Final[Mapping[str, CallKind]] = {
    "model": CallKind.LLM,
    "model_generation": CallKind.LLM,
    "model_step": CallKind.LLM,
    "model_inference": CallKind.LLM,
    "llm": CallKind.LLM,
    "llm_request": CallKind.LLM,
    "llm_generation": CallKind.LLM,
    "generation": CallKind.LLM,
    "tool": CallKind.TOOL,
    "tool_call": CallKind.TOOL,
    "mcp_tool_call": CallKind.TOOL,
    "function_tool": CallKind.TOOL,
    "embedder": CallKind.EMBEDDING,
    "embedding": CallKind.EMBEDDING,
    "retriever": CallKind.RETRIEVER,
    "indexer": CallKind.CHAIN,
    "reranker": CallKind.RERANKER,
    "evaluator": CallKind.EVALUATOR,
    "guardrail": CallKind.GUARDRAIL,
    "agent": CallKind.AGENT,
    "agent_run": CallKind.AGENT,
    "agent_turn": CallKind.AGENT,
    "flow": CallKind.CHAIN,
    "turn": CallKind.AGENT,
}
"""An emitter's word to what such a call is; any other is structure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spelling:
    """One emitter's names."""

    emitter: str
    pair: re.Pattern[str]
    """The names of the two attributes; a group `kind` gives the word where the name holds it."""
    kinds: tuple[str, ...] = ()
    """Attributes that hold the word for what the call is."""
    names: tuple[str, ...] = ()
    """Attributes that hold what was called."""
    models: tuple[str, ...] = ("gen_ai.request.model", "gen_ai.response.model")
    ids: tuple[str, ...] = ()


_SPELLINGS: Final = (
    _Spelling(
        emitter="mastra",
        pair=re.compile(r"mastra\.(?:span\.|(?P<kind>[a-z_]+)\.)(?P<side>input|output)"),
        kinds=("mastra.span.type", "mastra.span_type"),
        names=("gen_ai.tool.name", "mastra.tool.id", "mastra.entity.name", "gen_ai.agent.name"),
        ids=("gen_ai.tool.call.id", "mastra.tool.call.id"),
    ),
    _Spelling(
        emitter="genkit",
        pair=re.compile(r"genkit:(?P<side>input|output)"),
        kinds=("genkit:metadata:subtype", "genkit:type"),
        names=("genkit:name",),
        models=("genkit:name", "gen_ai.request.model"),
    ),
    _Spelling(
        emitter="livekit",
        pair=re.compile(
            r"lk\.(?:(?P<kind>function_tool)\.)?(?P<side>chat_ctx|arguments|response\.text|output|response)"
        ),
        names=("lk.function_tool.name",),
        ids=("lk.function_tool.id",),
    ),
    _Spelling(
        emitter="laminar",
        pair=re.compile(r"lmnr\.span\.(?P<side>input|output)"),
        kinds=("lmnr.span.type",),
    ),
    _Spelling(
        emitter="flue",
        pair=re.compile(r"flue\.(?P<kind>[a-z_]+)\.(?P<side>input|output)"),
        names=("flue.tool.name", "flue.agent.name"),
        models=("flue.model", "gen_ai.request.model"),
    ),
    _Spelling(
        emitter="voltagent",
        pair=re.compile(r"(?P<side>input|output)"),
        kinds=("span.type", "entity.type"),
        names=("tool.name", "entity.name"),
        models=("llm.model", "ai.model.name", "gen_ai.request.model"),
        ids=("tool.call.id",),
    ),
)
_OUTPUTS: Final = frozenset({"output", "response.text", "response"})


def _pairs(span: SpanRecord) -> Iterator[tuple[_Spelling, str, re.Match[str]]]:
    for name in span.attributes:
        for spelling in _SPELLINGS:
            if (match := spelling.pair.fullmatch(name)) is not None:
                yield spelling, name, match


def _spelling(span: SpanRecord) -> _Spelling | None:
    scope, attributes = span.scope.name.lower(), span.attributes
    for spelling, _, _ in _pairs(span):
        if spelling.emitter != "voltagent" or "voltagent" in scope or "voltagent.version" in attributes:
            return spelling
    return None


def _recognises(span: SpanRecord) -> float:
    if (spelling := _spelling(span)) is None:
        return 0.0
    has_messages = any(name in span.attributes for name in ("gen_ai.input.messages", "gen_ai.prompt.0.role"))
    return 0.4 if has_messages and spelling.emitter in ("mastra", "laminar", "flue") else 0.82


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = marked(said_of(span), _NAME)
    spelling = _spelling(span)
    if spelling is None:
        return function_call(span, CallKind.UNKNOWN, None, None, attributes=attributes)
    sides: dict[str, Json] = {}
    word = next((text for name in spelling.kinds if (text := as_text(attributes.get(name)))), "").lower()
    for each, name, match in _pairs(span):
        if each is spelling:
            sides.setdefault("output" if match["side"] in _OUTPUTS else "input", attributes[name])
            word = word or (match.groupdict().get("kind") or "")
    kind = _KINDS.get(word) or _KINDS.get(span.name.partition(" ")[0].lower()) or _by_side(attributes)
    name = next((text for each in spelling.names if (text := as_text(attributes.get(each)))), "")
    payload, output = tool_io.read(sides.get("input")), tool_io.read(sides.get("output"))
    if kind is CallKind.LLM:
        model = next((text for each in spelling.models if (text := as_text(attributes.get(each)))), "")
        return _model(span, attributes, payload, output, model)
    if kind is CallKind.TOOL:
        if called := next((text for each in spelling.ids if (text := as_text(attributes.get(each)))), ""):
            attributes.setdefault(CALL_ID, called)
        output = tool_io.result(output)[0]
    return function_call(span, kind, payload, output, attributes=attributes, name=name, has_result="output" in sides)


def _by_side(attributes: Mapping[str, Json]) -> CallKind:
    return CallKind.LLM if "lk.chat_ctx" in attributes and "lk.response.text" in attributes else CallKind.CHAIN


def _model(
    span: SpanRecord, attributes: dict[str, Json], payload: Json, output: Json, model: str
) -> tuple[Call, Outcome]:
    asked = native.native_request(_items(payload)) or Asked()
    read = native.answered(output)
    if (calls := as_list(structured(attributes.get("lk.response.function_calls")))) and read is not None:
        tool_calls = [_called(as_object(call)) for call in calls]
        first = read.messages[0] if read.messages else Message(role="assistant")
        read = Answered(messages=(Message(role=first.role, parts=(*first.parts, *tool_calls)),), usage=read.usage)
    elif read is None and isinstance(output, str) and output:
        read = Answered(messages=(Message(role="assistant", parts=(Text(output),)),))
    usage = native.usage(
        {
            "input_tokens": attributes.get("gen_ai.usage.input_tokens"),
            "output_tokens": attributes.get("gen_ai.usage.output_tokens"),
        }
    )
    question = Asked(
        model=asked.model or model or None,
        messages=asked.messages,
        tools=asked.tools,
        parameters=asked.parameters,
        stream=asked.stream,
    )
    answer = read or Answered()
    answer = Answered(
        model=answer.model or as_text(attributes.get("gen_ai.response.model")) or model or None,
        id=answer.id or as_text(attributes.get("gen_ai.response.id")) or None,
        messages=answer.messages,
        finish_reasons=answer.finish_reasons,
        usage=answer.usage if answer.usage != Usage() else usage,
    )
    system = (
        as_text(attributes.get("gen_ai.provider.name"))
        or as_text(attributes.get("gen_ai.system"))
        or provider_of(model)
    )
    return model_call(span, question, answer, attributes=attributes, system=system)


def _items(payload: Json) -> Json:
    """Open LiveKit's chat context, whose items are messages, calls of functions and their outputs."""
    items = as_object(payload).get("items")
    return items if isinstance(items, list) else payload


def _called(call: dict[str, Json]) -> ToolCall:
    arguments = call.get("arguments", call.get("args"))
    text = arguments if isinstance(arguments, str) else ""
    return ToolCall(
        id=as_text(call.get("call_id")) or as_text(call.get("id")), name=as_text(call.get("name")), arguments=text
    )


DIALECT = Dialect(
    name=_NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=("input", "output"), beginnings=("mastra.", "genkit:", "lk.", "lmnr.span.", "flue.")),
    most=0.82,
)
