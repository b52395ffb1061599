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
    said = span.attributes
    named = _SYSTEM in (said.get("gen_ai.system"), said.get("gen_ai.provider.name"))
    return 0.86 if named or span.scope.name.startswith("strands.") or "event_loop.cycle_id" in said else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    said = said_of(span)
    kind = genai.kind_of(said)
    if kind is CallKind.UNKNOWN:
        kind = CallKind.CHAIN if "event_loop.cycle_id" in said else kind
    if kind is CallKind.LLM:
        asked, answered = _messages(span, said)
        losses = [_PARAMETERS] if not genai.parameters(said) else []
        losses += [_TOOLS] if asked is not None and not asked.tools else []
        losses += [_RESPONSE] if "gen_ai.response.id" not in said else []
        reading = Reading(
            kind=kind, asked=asked, answered=answered, losses=tuple(losses), facts=events.facts(span.events)
        )
    elif kind is CallKind.TOOL:
        reading = _tool(span, said)
    else:
        told = events.told(span.events)
        reading = Reading(
            kind=kind, arguments=_words(told[0]), result=_answer(told[1]), told=told[1] is not None or None
        )
    return semconv.call(span, said, NAME, reading)


def _messages(span: SpanRecord, said: dict[str, Json]) -> tuple[Asked | None, Answered | None]:
    asked, answered = parts.told(said)
    told = events.told(span.events)
    asked, answered = semconv.either(asked, told[0]), semconv.or_else(answered, told[1])
    if asked is not None and not asked.tools and "gen_ai.tool.definitions" in said:
        asked = replace(asked, tools=parts.tools(said["gen_ai.tool.definitions"]))
    return asked, answered


def _tool(span: SpanRecord, said: dict[str, Json]) -> Reading:
    given, told = events.tool(span.events)
    if "gen_ai.tool.call.arguments" in said:
        given = plain(said["gen_ai.tool.call.arguments"])
    if "gen_ai.tool.call.result" in said:
        told = plain(said["gen_ai.tool.call.result"])
    return Reading(kind=CallKind.TOOL, arguments=given, result=events.worded(structured(told)), told=told is not None)


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
