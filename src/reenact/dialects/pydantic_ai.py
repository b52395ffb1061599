"""Pydantic AI, both of its spellings.

Second: OTel GenAI's parts messages, tools under `gen_ai.tool.call.*`, the request's parameters as JSON. First: messages
as a JSON list of events in the attribute `events`, tools under `tool_arguments` and `tool_response`.
"""

from __future__ import annotations

from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import events, parts, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, plain, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, structured, without
from reenact.values.message import Answered, Asked
from reenact.values.span import SpanRecord

NAME: Final = "pydantic-ai"
_RESULTS: Final = ("gen_ai.tool.call.result", "tool_response")
_HISTORIES: Final = ("pydantic_ai.all_messages", "all_messages", "all_messages_events")
_HIDDEN: Final = Loss(
    field="messages",
    lost="Pydantic AI was told to keep no content",
    fix="set InstrumentationSettings(include_content=True)",
)


def _recognises(span: SpanRecord) -> float:
    said = span.attributes
    if span.scope.name == "pydantic-ai" or "model_request_parameters" in said or "pydantic_ai.all_messages" in said:
        return 0.86
    return 0.7 if "all_messages_events" in said or ("tool_arguments" in said and "gen_ai.tool.name" in said) else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    said = said_of(span)
    kind = _kind(said)
    if kind is CallKind.LLM:
        asked, answered = _messages(span, said)
        losses = () if asked is not None and asked.messages else (_HIDDEN,)
        reading = Reading(kind=kind, asked=asked, answered=answered, losses=losses)
    elif kind is CallKind.AGENT:
        result = next((plain(said[name]) for name in ("final_result",) if name in said), None)
        history = next((structured(said[name]) for name in _HISTORIES if name in said), None)
        reading = Reading(kind=kind, arguments=_question(history), result=result, told=result is not None)
    elif kind is CallKind.TOOL:
        written = next((name for name in _RESULTS if name in said), "")
        reading = Reading(kind=kind, result=plain(said[written]) if written else None, told=bool(written))
    else:
        reading = Reading(kind=kind)
    return semconv.call(span, said, NAME, reading)


def _kind(said: dict[str, Json]) -> CallKind:
    known = genai.kind_of(said)
    if known is not CallKind.UNKNOWN:
        return known
    if "gen_ai.tool.name" in said:
        return CallKind.TOOL
    if "agent_name" in said or any(name in said for name in _HISTORIES):
        return CallKind.AGENT
    if "model_request_parameters" in said or "events" in said or "gen_ai.input.messages" in said:
        return CallKind.LLM
    return CallKind.CHAIN if "tools" in said else CallKind.UNKNOWN


def _question(history: Json) -> Json:
    """Give the first words of an agent's run as its argument, where its history was kept."""
    return next((item for item in as_list(history) if as_object(item).get("role") == "user"), None)


def _messages(span: SpanRecord, said: dict[str, Json]) -> tuple[Asked | None, Answered | None]:
    asked, answered = parts.told(said)
    listed = events.told(events.listed(said.get("events")))
    told = events.told(span.events)
    asked = semconv.either(semconv.either(asked, listed[0]), told[0])
    answered = semconv.or_else(semconv.or_else(answered, listed[1]), told[1])
    request = as_object(structured(said.get("model_request_parameters")))
    defined = [
        without(as_object(tool), [name for name, item in as_object(tool).items() if item is None])
        for name in ("function_tools", "output_tools")
        for tool in as_list(request.get(name))
    ]
    if asked is not None and not asked.tools and defined:
        asked = semconv.either(asked, Asked(tools=parts.tools([_plain_tool(tool) for tool in defined])))
    return asked, answered


def _plain_tool(tool: dict[str, Json]) -> Json:
    """Keep of Pydantic AI's own definition what a provider is told."""
    return {name: tool[name] for name in ("name", "description", "parameters_json_schema", "strict") if name in tool}


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(
        attributes=("model_request_parameters", "pydantic_ai.all_messages", "all_messages_events", "tool_arguments"),
        scopes=("pydantic-ai",),
    ),
    most=0.86,
)
