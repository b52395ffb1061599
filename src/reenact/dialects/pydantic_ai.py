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
    attributes = span.attributes
    if (
        span.scope.name == "pydantic-ai"
        or "model_request_parameters" in attributes
        or "pydantic_ai.all_messages" in attributes
    ):
        return 0.86
    return (
        0.7
        if "all_messages_events" in attributes or ("tool_arguments" in attributes and "gen_ai.tool.name" in attributes)
        else 0.0
    )


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    kind = _kind(attributes)
    if kind is CallKind.LLM:
        asked, answered = _messages(span, attributes)
        losses = () if asked is not None and asked.messages else (_HIDDEN,)
        reading = Reading(kind=kind, asked=asked, answered=answered, losses=losses)
    elif kind is CallKind.AGENT:
        result = next((plain(attributes[name]) for name in ("final_result",) if name in attributes), None)
        history = next((structured(attributes[name]) for name in _HISTORIES if name in attributes), None)
        reading = Reading(kind=kind, arguments=_question(history), result=result, has_result=result is not None)
    elif kind is CallKind.TOOL:
        result_name = next((name for name in _RESULTS if name in attributes), "")
        reading = Reading(
            kind=kind, result=plain(attributes[result_name]) if result_name else None, has_result=bool(result_name)
        )
    else:
        reading = Reading(kind=kind)
    return semconv.call(span, attributes, NAME, reading)


def _kind(attributes: dict[str, Json]) -> CallKind:
    kind = genai.kind_of(attributes)
    if kind is not CallKind.UNKNOWN:
        return kind
    if "gen_ai.tool.name" in attributes:
        return CallKind.TOOL
    if "agent_name" in attributes or any(name in attributes for name in _HISTORIES):
        return CallKind.AGENT
    if "model_request_parameters" in attributes or "events" in attributes or "gen_ai.input.messages" in attributes:
        return CallKind.LLM
    return CallKind.CHAIN if "tools" in attributes else CallKind.UNKNOWN


def _question(history: Json) -> Json:
    """Give the first words of an agent's run as its argument, where its history was kept."""
    return next((item for item in as_list(history) if as_object(item).get("role") == "user"), None)


def _messages(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Asked | None, Answered | None]:
    asked, answered = parts.parts_exchange(attributes)
    listed = events.exchange_of_events(events.listed(attributes.get("events")))
    event_reading = events.exchange_of_events(span.events)
    asked = semconv.either(semconv.either(asked, listed[0]), event_reading[0])
    answered = semconv.or_else(semconv.or_else(answered, listed[1]), event_reading[1])
    request = as_object(structured(attributes.get("model_request_parameters")))
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
