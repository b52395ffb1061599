"""Strands Agents: span events whose contents are Bedrock's blocks, or the newest conventions over several events.

Its cycles repeat what the calls inside them say, and are structure. It names itself as the provider.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import events, parts, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, plain, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import structured
from reenact.values.message import Answered, Asked, Message, Text
from reenact.values.span import SpanRecord

NAME: Final = "strands"
_SYSTEM: Final = "strands-agents"
_TOOLS: Final = Loss(
    field="tools",
    lost="Strands keeps tool definitions only where it is asked to",
    fix="set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental,gen_ai_tool_definitions",
)
_PARAMETERS: Final = Loss(
    field="parameters",
    lost="Strands keeps no parameter of the request but its model",
    fix="none in this release",
)
_RESPONSE: Final = Loss(
    field="response.model",
    lost="Strands keeps neither the reply's id nor its model",
    fix="none in this release",
)


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    is_own = _SYSTEM in (attributes.get("gen_ai.system"), attributes.get("gen_ai.provider.name"))
    return 0.86 if is_own or span.scope.name.startswith("strands.") or "event_loop.cycle_id" in attributes else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = genai.kind_of(attributes)
    if kind is CallKind.UNKNOWN:
        kind = CallKind.CHAIN if "event_loop.cycle_id" in attributes else kind
    if kind is CallKind.LLM:
        asked, answered = _messages(span, attributes)
        losses = [_PARAMETERS] if not genai.parameters(attributes) else []
        losses += [_TOOLS] if asked is not None and not asked.tools else []
        losses += [_RESPONSE] if "gen_ai.response.id" not in attributes else []
        reading = Reading(
            kind=kind, asked=asked, answered=answered, losses=tuple(losses), facts=events.facts(span.events)
        )
    elif kind is CallKind.TOOL:
        reading = _tool(span, attributes)
    else:
        event_reading = events.exchange_of_events(span.events)
        reading = Reading(
            kind=kind,
            arguments=_words(event_reading[0]),
            result=_answer(event_reading[1]),
            has_result=event_reading[1] is not None or None,
        )
    return semconv.call(span, attributes, NAME, reading)


def _messages(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Asked | None, Answered | None]:
    asked, answered = parts.parts_exchange(attributes)
    event_reading = events.exchange_of_events(span.events)
    asked, answered = semconv.either(asked, event_reading[0]), semconv.or_else(answered, event_reading[1])
    if asked is not None and not asked.tools and "gen_ai.tool.definitions" in attributes:
        asked = replace(asked, tools=parts.tools(attributes["gen_ai.tool.definitions"]))
    return asked, answered


def _tool(span: SpanRecord, attributes: dict[str, Json]) -> Reading:
    arguments, output = events.tool(span.events)
    if "gen_ai.tool.call.arguments" in attributes:
        arguments = plain(attributes["gen_ai.tool.call.arguments"])
    if "gen_ai.tool.call.result" in attributes:
        output = plain(attributes["gen_ai.tool.call.result"])
    return Reading(
        kind=CallKind.TOOL, arguments=arguments, result=events.worded(structured(output)), has_result=output is not None
    )


def _words(asked: Asked | None) -> Json:
    if asked is None:
        return None
    return {"messages": [_text(message) for message in asked.messages if message.role != "system"]}


def _answer(answered: Answered | None) -> Json:
    return None if answered is None else "".join(_text(message) for message in answered.messages)


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(
        attributes=("event_loop.cycle_id",),
        scopes=("strands.",),
        values=(("gen_ai.system", _SYSTEM), ("gen_ai.provider.name", _SYSTEM)),
    ),
    most=0.86,
)
