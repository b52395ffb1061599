"""What a span says beside its messages, in the names of OTel GenAI: which call it is, and all that belongs to it.

A dialect reads messages, arguments or a result as its emitter spells them and hands them over as a `Reading`; out
come the call and its outcome. What a dialect did not find is looked up under the conventions' own names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from reenact.foreign import foreign_call, genai
from reenact.foreign.foreign_call import Loss
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, structured
from reenact.values.message import Answered, Asked, Message, Text, ToolCall
from reenact.values.span import SpanRecord

CONTENT_SWITCH: Final = "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true (newer ones: SPAN_ONLY)"
_HIDDEN: Final = Loss(field="messages", lost="the emitter kept no content", fix=CONTENT_SWITCH)
_MUTE: Final = Loss(
    field="messages",
    lost="an assistant's message in the history says nothing: its calls of tools were not kept",
    fix="upgrade the emitter",
)
_REFERENCES: Final = (
    "gen_ai.input.messages_ref",
    "gen_ai.output.messages_ref",
    "gen_ai.input.messages.ref",
    "gen_ai.output.messages.ref",
)
_VECTORS: Final = Loss(
    field="vectors",
    lost="the emitter keeps no vectors of an embedding",
    fix="record with reenact, or with OpenInference",
)
_UNCALLED: Final = Loss(
    field="messages",
    lost="the history holds answers of tools without the message that called them",
    fix="upgrade the emitter",
)
_UNNAMED: Final = Loss(
    field="tool_call_id",
    lost="answers of tools do not say which call they answer",
    fix="upgrade the emitter",
)
_ARGUMENTS: Final = ("gen_ai.tool.call.arguments", "gen_ai.tool.args", "gen_ai.tool.arguments", "tool_arguments")
_RESULTS: Final = ("gen_ai.tool.call.result", "gen_ai.tool.result", "gen_ai.tool.output", "tool_response")
_QUERIES: Final = ("gen_ai.retrieval.query.text", "gen_ai.retrieval.query", "gen_ai.memory.query.text")
_DOCUMENTS: Final = ("gen_ai.retrieval.documents", "gen_ai.memory.records")
_CALL_IDS: Final = ("gen_ai.tool.call.id", "gen_ai.tool.call_id", "tool_call_id", "tool.call.id")
_NAMES: Final[Mapping[CallKind, tuple[str, ...]]] = {
    CallKind.TOOL: ("gen_ai.tool.name", "tool.name", "traceloop.entity.name"),
    CallKind.AGENT: ("gen_ai.agent.name", "agent_name"),
    CallKind.GUARDRAIL: ("gen_ai.guardrail.name",),
}
_MEMORY: Final = "gen_ai.memory."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a dialect made of a span."""

    kind: CallKind | None = None
    name: str = ""
    asked: Asked | None = None
    answered: Answered | None = None
    arguments: Json = None
    """Of a function's call, plain JSON; None where it has to be looked up."""
    result: Json = None
    has_result: bool | None = None
    """Whether a result was written down, where null may be one."""
    system: str = ""
    api: str = ""
    facts: Mapping[str, Json] | None = None
    """Further attributes, such as those that stood on an event and belong to the call."""
    losses: tuple[Loss, ...] = ()
    whole: bool = False
    """The emitter keeps all fields of a model's request: what is not there was not sent."""


def call(span: SpanRecord, span_attributes: Mapping[str, Json], dialect: str, reading: Reading) -> tuple[Call, Outcome]:
    """Give the call that a span tells of, and its outcome. Never raises."""
    attributes: dict[str, Json] = {**(reading.facts or {}), **span_attributes}
    kind = reading.kind or genai.kind_of(attributes)
    attributes |= genai.identity(attributes)
    if kind is CallKind.TOOL and "gen_ai.tool.call.id" not in attributes:
        call_id = next((text for name in _CALL_IDS if (text := as_text(attributes.get(name)))), "")
        attributes |= {"gen_ai.tool.call.id": call_id} if call_id else {}
    losses = [*_told_losses(attributes.pop("reenact.lost", None)), *reading.losses]
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        return _model(span, attributes, dialect, replace(reading, kind=kind), losses)
    call_name = next((text for name in _NAMES.get(kind, ()) if (text := as_text(attributes.get(name)))), "")
    arguments, result, has_result = _function(kind, attributes, reading)
    return foreign_call.function_call(
        span,
        kind,
        arguments,
        result,
        attributes=foreign_call.marked(attributes, dialect, losses),
        name=reading.name or call_name or span.name.removeprefix("execute_tool "),
        has_result=has_result,
    )


def _told_losses(value: Json) -> list[Loss]:
    """Read what the carrier of the span said to be lost."""
    return [
        Loss(field=as_text(each.get("field")), lost=as_text(each.get("lost")), fix=as_text(each.get("fix")))
        for each in map(as_object, as_list(structured(value)))
        if each
    ]


def either(first: Asked | None, second: Asked | None) -> Asked | None:
    """Take the first question that has words, with the tools of whichever has them."""
    if first is None or second is None:
        return first or second
    words = first if first.messages or first.inputs else second
    return replace(words, tools=first.tools or second.tools)


def or_else(first: Answered | None, second: Answered | None) -> Answered | None:
    """Take the first answer that has words, with the reasons of whichever has them."""
    if first is None or second is None:
        return first or second
    words = first if any(message.parts for message in first.messages) else second
    return replace(words, finish_reasons=first.finish_reasons or second.finish_reasons)


def _model(
    span: SpanRecord, attributes: dict[str, Json], dialect: str, reading: Reading, losses: list[Loss]
) -> tuple[Call, Outcome]:
    asked = genai.completed(reading.asked, attributes)
    embeds = reading.kind is CallKind.EMBEDDING
    if asked is not None and embeds and not asked.inputs:
        asked = replace(asked, messages=(), inputs=tuple(_texts(asked.messages)))
    answered = genai.finished(reading.answered, attributes)
    if asked is not None and asked.messages:
        losses += _bare(asked.messages)
        if not any(message.parts for message in asked.messages if message.role != "assistant"):
            asked = replace(asked, messages=())  # a body of empty messages would be a question that nobody asked
    unsaid = asked is None or not (asked.messages or asked.inputs)
    if unsaid and not any(loss.field == "messages" for loss in losses):
        losses.append(_elsewhere(attributes) or _HIDDEN)
    if embeds and not (answered is not None and answered.vectors):
        losses.append(_VECTORS)
    losses += _cut(attributes)
    return foreign_call.model_call(
        span,
        asked,
        answered,
        attributes=foreign_call.marked(attributes, dialect, losses),
        system=reading.system or genai.system_of(attributes),
        api=reading.api or genai.api_of(attributes, span.name),
        kind=reading.kind or CallKind.LLM,
        name=reading.name,
        whole=reading.whole,
    )


def _bare(messages: tuple[Message, ...]) -> list[Loss]:
    """Find messages of which only the role was kept, and answers of tools that do not say what they answer."""
    losses: list[Loss] = []
    if any(not message.parts for message in messages if message.role in ("user", "system", "developer", "tool")):
        losses.append(_HIDDEN)
    if any(not message.parts for message in messages if message.role == "assistant"):
        losses.append(_MUTE)
    call_ids = {part.id for message in messages for part in message.parts if isinstance(part, ToolCall)}
    answered = [message.tool_call_id for message in messages if message.role == "tool"]
    if not all(answered):
        losses.append(_UNNAMED)
    if any(identity and identity not in call_ids for identity in answered):
        losses.append(_UNCALLED)
    return losses


def _elsewhere(attributes: Mapping[str, Json]) -> Loss | None:
    """Tell of content that was uploaded beside the trace."""
    location = next((as_text(attributes.get(name)) for name in _REFERENCES if as_text(attributes.get(name))), "")
    where = "the emitter uploaded content to where OTEL_INSTRUMENTATION_GENAI_UPLOAD_BASE_PATH says: "
    return Loss(field="messages", lost=where + location, fix=CONTENT_SWITCH) if location else None


def _texts(messages: tuple[Message, ...]) -> list[str]:
    return [part.text for message in messages for part in message.parts if isinstance(part, Text)]


def _cut(attributes: Mapping[str, Json]) -> list[Loss]:
    """Find JSON that a limit on the length of attributes cut off."""
    cut = [
        name
        for name, value in attributes.items()
        if name.startswith(("gen_ai.", "traceloop.entity.", "gcp.vertex.agent."))
        and isinstance(value, str)
        and value[:2] in ("[{", '{"')
        and not isinstance(structured(value), dict | list)
        and value.rstrip()[-1:] not in ("]", "}")
    ]
    fix = "raise OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT, and the limits of the collectors on the way"
    return [Loss(field=name, lost="the JSON ends in its middle: it was cut off", fix=fix) for name in cut]


def _function(kind: CallKind, facts: Mapping[str, Json], reading: Reading) -> tuple[Json, Json, bool | None]:
    """Give arguments and result of what is no model's call."""
    arguments, result, has_result = reading.arguments, reading.result, reading.has_result
    if kind in (CallKind.RETRIEVER, CallKind.RERANKER):
        arguments = _retrieved_by(facts) if arguments is None else arguments
        source = next((name for name in _DOCUMENTS if name in facts), "")
        if result is None and source:
            result, has_result = [*genai.as_documents(facts[source])], True
    if arguments is None:
        arguments = _first(facts, _ARGUMENTS)
        if arguments is None and any(name.startswith(_MEMORY) for name in facts):
            arguments = {name.removeprefix(_MEMORY): item for name, item in facts.items() if name.startswith(_MEMORY)}
        if arguments is None and kind is not CallKind.TOOL:
            arguments = _first(facts, ("gen_ai.input.messages", "gen_ai.prompt", "input"))
    if result is None and has_result is None:
        names = _RESULTS if kind is CallKind.TOOL else ("gen_ai.output.messages", "gen_ai.completion", "output")
        source = next((name for name in names if name in facts), "")
        has_result = bool(source) or None
        result = foreign_call.plain(facts[source]) if source else None
    return ({} if arguments is None else arguments), result, has_result


def _first(attributes: Mapping[str, Json], names: tuple[str, ...]) -> Json:
    for name in names:
        if attributes.get(name) is not None:
            return foreign_call.plain(attributes[name])
    return None


def _retrieved_by(attributes: Mapping[str, Json]) -> Json:
    query = _first(attributes, _QUERIES)
    if query is None:
        return None
    options: dict[str, Json] = {
        "top_k": genai.count(attributes.get("gen_ai.retrieval.top_k", attributes.get("gen_ai.request.top_k"))),
        "data_source": attributes.get("gen_ai.data_source.id"),
    }
    return {"query": query, **{name: value for name, value in options.items() if value is not None}}
