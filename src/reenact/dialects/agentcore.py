"""Spans that came by AWS's distribution of OpenTelemetry (ADOT), such as those of Bedrock AgentCore.

It moves content into log events whose body is `{"input": {"messages": […]}, "output": {"messages": […]}}`, adds
`aws.*` attributes, and hands through what the instrumentation below it wrote, among it objects as Python's `repr`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import events, native, parts, python_repr, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import carried, plain, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, structured
from reenact.values.message import Answered, Asked, Message, Part, Text, ToolCall
from reenact.values.span import SpanRecord

NAME: Final = "agentcore"
_KINDS: Final = {
    "LLM": CallKind.LLM,
    "AGENT": CallKind.AGENT,
    "TOOL": CallKind.TOOL,
    "CHAIN": CallKind.CHAIN,
    "RETRIEVER": CallKind.RETRIEVER,
    "EMBEDDING": CallKind.EMBEDDING,
}
_OPENINFERENCE: Final = "openinference.span.kind"
_ITS_CONTENT: Final = ("input.value", "output.value", "llm.input_messages", "llm.output_messages")
_LONGEST: Final = 1_000_000


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    ours = any(name.startswith(("aws.genai.", "aws.local.")) for name in attributes) or "PlatformType" in attributes
    if _OPENINFERENCE in attributes and not any(name.startswith(_ITS_CONTENT) for name in attributes):
        return 0.93 if any(_may_hold(event.attributes.get("body")) for event in span.events) else 0.0
    has_genai = any(name.startswith(("gen_ai.", "traceloop.")) for name in attributes)
    if ours and has_genai:
        return 0.87
    if ours and "aws.genai.span_kind" in attributes:
        return 0.5
    return 0.5 if any(_may_hold(event.attributes.get("body")) for event in span.events) else 0.0


def _may_hold(body: object) -> bool:
    """Tell bodies that are worth reading from others, and then read them."""
    is_candidate = "messages" in body if isinstance(body, str) else isinstance(body, dict)
    return is_candidate and bool(_body(body))


def _body(value: object) -> dict[str, Json]:
    body = as_object(structured(carried(value)))
    messages = as_object(body.get("input")).get("messages") or as_object(body.get("output")).get("messages")
    return body if isinstance(messages, list) else {}


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = genai.kind_of(attributes)
    if kind is CallKind.UNKNOWN:
        mark = as_text(attributes.get(_OPENINFERENCE)) or as_text(attributes.get("aws.genai.span_kind"))
        kind = _KINDS.get(mark.upper(), kind)
        kind = CallKind.TOOL if kind is CallKind.UNKNOWN and attributes.get("traceloop.span.kind") == "tool" else kind
    bodies = [body for event in span.events if (body := _body(event.attributes.get("body")))]
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        asked, answered = _messages(span, attributes, bodies)
        return semconv.call(span, attributes, NAME, Reading(kind=kind, asked=asked, answered=answered))
    arguments, result = _moved(bodies, "input"), _moved(bodies, "output")
    if kind is CallKind.TOOL and "gen_ai.tool.call.result" in attributes:
        result = plain(attributes["gen_ai.tool.call.result"])
    if kind is CallKind.TOOL and "gen_ai.tool.call.arguments" in attributes:
        arguments = plain(attributes["gen_ai.tool.call.arguments"])
    mark = True if result is not None else None
    return semconv.call(span, attributes, NAME, Reading(kind=kind, arguments=arguments, result=result, has_result=mark))


def _messages(
    span: SpanRecord, attributes: dict[str, Json], bodies: list[dict[str, Json]]
) -> tuple[Asked | None, Answered | None]:
    asked, answered = parts.parts_exchange(attributes)
    event_reading = events.exchange_of_events(span.events)
    asked, answered = semconv.either(asked, event_reading[0]), semconv.or_else(answered, event_reading[1])
    for body in bodies:
        question = native.messages(_words(body.get("input")))
        reply = native.messages(_words(body.get("output")), "assistant")
        asked = semconv.either(asked, Asked(messages=question) if question else None)
        answered = semconv.or_else(answered, Answered(messages=reply) if reply else None)
    if answered is not None:
        answered = replace(answered, messages=tuple(map(_opened, answered.messages)))
    if asked is not None:
        asked = replace(asked, messages=tuple(map(_opened, asked.messages)))
    return asked, answered


def _words(side: Json) -> Json:
    """Give the messages of one side; their contents are often JSON text, or an object around a text or messages."""
    messages: list[Json] = []
    for message in map(as_object, as_list(as_object(side).get("messages"))):
        content = _read(message.get("content"))
        block = as_object(content)
        inner = block.get("content", block.get("message")) if block and "role" not in block else content
        inner_content = _read(inner) if inner is not None else content
        state = as_object(
            as_object(inner_content).get("inputs") or as_object(inner_content).get("outputs") or inner_content
        )
        if isinstance(several := state.get("messages"), list):
            messages += several
            continue
        role = as_text(message.get("role"))
        messages.append({"role": role if role not in ("", "unknown") else "user", "content": inner_content})
    return messages


def _read(value: Json) -> Json:
    """Read JSON text, or a state of LangGraph as Python's `repr`, its messages by their classes."""
    read = structured(value)
    if read is value and isinstance(value, str) and value[:1] in ("{", "[") and len(value) <= _LONGEST:
        literal = python_repr.read(value)
        return value if literal is None else _spelled(literal)
    return read


def _spelled(literal: Json, depth: int = 0) -> Json:
    if depth > 32:
        return literal
    if isinstance(literal, list):
        return [_spelled(item, depth + 1) for item in literal]
    if not isinstance(literal, dict):
        return literal
    fields = {name: _spelled(item, depth + 1) for name, item in literal.items() if name != "$class"}
    kind = as_text(literal.get("$class"))
    return {"role": kind, **fields} if kind.endswith(("Message", "MessageChunk")) else fields


def _moved(bodies: list[dict[str, Json]], side: str) -> Json:
    for body in bodies:
        for message in map(as_object, as_list(as_object(body.get(side)).get("messages"))):
            if (content := message.get("content")) is not None:
                return plain(content)
    return None


def _opened(message: Message) -> Message:
    """Read a text that is the `repr` of the SDK's own call of a function as that call."""
    return replace(message, parts=tuple(_part(part) for part in message.parts))


def _part(part: Part) -> Part:
    if not isinstance(part, Text) or not part.text.startswith("ResponseFunctionToolCall("):
        return part
    fields = as_object(python_repr.read(part.text)) if len(part.text) <= _LONGEST else {}
    name = as_text(fields.get("name"))
    call_id = as_text(fields.get("call_id")) or as_text(fields.get("id"))
    return ToolCall(id=call_id, name=name, arguments=as_text(fields.get("arguments"))) if name else part


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=("PlatformType",), beginnings=("aws.genai.", "aws.local."), events=("body",)),
    most=0.93,
)
