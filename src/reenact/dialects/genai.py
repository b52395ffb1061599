"""OTel GenAI in all its generations: the parts messages of today, and the events of before.

Newest: `gen_ai.input.messages` and its like on the span, or on one event of its details. Before: a span event or a log
event for each message. Before that: one event for the prompt and one for the completion. Also tools, embeddings,
retrieval, memory, agents, workflows and the Model Context Protocol's spans. Such spans keep what was said, not the
bodies; a body that says the same is built, and `reenact.rebuilt` among the call's attributes says so.
"""

from __future__ import annotations

from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import events, indexed, native, parts, semconv
from reenact.encodings.semconv import Reading
from reenact.foreign import genai
from reenact.foreign.foreign_call import Loss, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.message import Answered, Asked
from reenact.values.span import SpanRecord

NAME: Final = "otel-genai"
_MESSAGES: Final = ("gen_ai.input.messages", "gen_ai.output.messages")
_NO_TOOLS: Final = Loss(
    field="tools",
    lost="one event a message: this generation of the conventions never keeps tool definitions",
    fix="set OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental",
)
_ADRIFT: Final = Loss(
    field="messages",
    lost="log events of several calls name no span: which call said what is unknown",
    fix="emit log events while the call's span is the current one",
)


def _recognises(span: SpanRecord) -> float:
    attributes = span.attributes
    if any(name in attributes for name in _MESSAGES) or isinstance(attributes.get(genai.OPERATION), str):
        return 0.8
    if isinstance(attributes.get("mcp.method.name"), str):
        return 0.6
    if events.speaks(span.events):
        return 0.55
    if any(name.startswith(("gen_ai.prompt", "gen_ai.completion")) for name in attributes):
        return 0.45
    return 0.3 if any(name.startswith("gen_ai.") for name in attributes) else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    attributes = said_of(span)
    facts = events.facts(span.events)
    kind = genai.kind_of({**facts, **attributes})
    if kind is CallKind.UNKNOWN and (
        _MESSAGES[0] in attributes or _MESSAGES[1] in attributes or events.speaks(span.events)
    ):
        kind = CallKind.LLM
    if "reenact.synthetic" in attributes and events.several(span.events):
        reading = Reading(kind=CallKind.UNKNOWN, losses=(_ADRIFT,))
    elif kind in (CallKind.LLM, CallKind.EMBEDDING):
        asked, answered, losses = _messages(span, attributes)
        reading = Reading(kind=kind, asked=asked, answered=answered, facts=facts, losses=losses)
    elif kind is CallKind.TOOL:
        arguments, output = events.tool(span.events)
        reading = Reading(kind=kind, facts=facts)
        if arguments is not None and "gen_ai.tool.call.arguments" not in attributes:
            reading = Reading(kind=kind, facts=facts, arguments=arguments, result=output, told=output is not None)
    else:
        reading = Reading(kind=kind, facts=facts)
    return semconv.call(span, attributes, NAME, reading)


def _messages(span: SpanRecord, attributes: dict[str, Json]) -> tuple[Asked | None, Answered | None, tuple[Loss, ...]]:
    asked, answered = parts.parts_exchange(attributes)
    by_events = events.exchange_of_events(span.events)
    old = by_events[0] is not None and asked is None and not by_events[0].tools and not _in_details(span)
    asked, answered = semconv.either(asked, by_events[0]), semconv.or_else(answered, by_events[1])
    numbered = indexed.indexed_exchange(attributes)
    asked, answered = semconv.either(asked, numbered[0]), semconv.or_else(answered, numbered[1])
    if asked is None or not asked.messages:
        asked = semconv.either(asked, native.native_request(attributes.get("gen_ai.prompt")))
    if answered is None or not answered.messages:
        answered = semconv.or_else(answered, native.answered(attributes.get("gen_ai.completion")))
    if asked is None and genai.kind_of(attributes) is CallKind.EMBEDDING:
        asked = native.native_request(attributes.get("gen_ai.embeddings.input", attributes.get("gen_ai.input")))
    return asked, answered, (_NO_TOOLS,) if old else ()


def _in_details(span: SpanRecord) -> bool:
    return any(events.name_of(event) in events.DETAILS for event in span.events)


DIALECT = Dialect(
    name=NAME,
    recognises=_recognises,
    decode=_decode,
    marks=SpanMarks(
        attributes=("mcp.method.name",), beginnings=("gen_ai.",), event_names=("gen_ai.",), events=("event.name",)
    ),
    most=0.8,
)
