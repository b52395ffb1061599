"""Semantic Kernel, in Python and in .NET: one log event or span event a message, functions of plugins as tools."""

from __future__ import annotations

from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import events, native, parts, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.message import Answered, Asked, ToolCall
from reenact.values.span import SpanRecord

NAME: Final = "semantic-kernel"
_SCOPES: Final = ("semantic_kernel", "Microsoft.SemanticKernel", "semantic-kernel")
_LOOP: Final = "AutoFunctionInvocationLoop"
_HIDDEN: Final = Loss(
    field="messages",
    lost="Semantic Kernel was told to keep no content",
    fix="set SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true",
)
_TOOLS: Final = Loss(
    field="tools",
    lost="Semantic Kernel keeps no tool definitions on the span of a model",
    fix="none in this release",
)
_PLUGIN: Final = Loss(
    field="tool_call.name",
    lost="Semantic Kernel's Python names the function in a call and leaves out its plugin (`Desk-find` becomes `find`)",
    fix="none in this release: the execute_tool span has the whole name",
)


def _recognises(span: SpanRecord) -> float:
    if span.scope.name.startswith(_SCOPES):
        return 0.86
    return 0.6 if "sk.available_functions" in span.attributes else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = genai.kind_of(attributes)
    if kind is CallKind.UNKNOWN:
        kind = CallKind.CHAIN if span.name == _LOOP else CallKind.LLM if _is_model(span, attributes) else kind
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        asked, answered = _messages(span, attributes)
        losses = [_HIDDEN] if asked is None or not asked.messages else []
        losses += [_TOOLS] if asked is not None and asked.messages and not asked.tools else []
        losses += [_PLUGIN] if _calls(asked, answered) else []
        reading = Reading(kind=kind, asked=asked, answered=answered, losses=tuple(losses))
        return semconv.call(span, attributes, NAME, reading)
    return semconv.call(span, attributes, NAME, Reading(kind=kind))


def _calls(asked: Asked | None, answered: Answered | None) -> bool:
    messages = (*(asked.messages if asked else ()), *(answered.messages if answered else ()))
    return any(isinstance(part, ToolCall) for message in messages for part in message.parts)


def _is_model(span: SpanRecord, attributes: dict[str, Json]) -> bool:
    has_model = "gen_ai.request.model" in attributes or "gen_ai.response.model" in attributes
    return has_model or events.speaks(span.events)


def _messages(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Asked | None, Answered | None]:
    asked, answered = parts.parts_exchange(attributes)
    event_reading = events.exchange_of_events(span.events)
    asked, answered = semconv.either(asked, event_reading[0]), semconv.or_else(answered, event_reading[1])
    asked = asked or native.native_request(attributes.get("gen_ai.prompt"))
    return asked, answered or native.answered(attributes.get("gen_ai.completion"))


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(attributes=("sk.available_functions",), scopes=_SCOPES),
    most=0.86,
)
