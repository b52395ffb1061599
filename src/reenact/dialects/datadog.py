"""Datadog's LLM observability, as its events are read (`formats.datadog_llmobs`): `datadog.meta.*`, each a JSON text.

Messages carry tool calls and tool results in words of Datadog's own. There is one name for the model: where the
provider resolved an alias, it is that of the reply; and a reply's id is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reenact.contracts.dialect import Dialect, SpanMarks
from reenact.encodings import native, semconv, tool_io
from reenact.encodings.semconv import Reading
from reenact.foreign.foreign_call import Loss, provider_of, said_of
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, first_count, structured, text_or_json
from reenact.values.message import Answered, Asked, Message, Part, Reasoning, Text, ToolCall, Usage
from reenact.values.providers import is_dated
from reenact.values.span import SpanRecord

_KINDS: Final[Mapping[str, CallKind]] = {
    "llm": CallKind.LLM,
    "embedding": CallKind.EMBEDDING,
    "tool": CallKind.TOOL,
    "retrieval": CallKind.RETRIEVER,
    "agent": CallKind.AGENT,
    "workflow": CallKind.CHAIN,
    "task": CallKind.CHAIN,
    "step": CallKind.CHAIN,
    "experiment": CallKind.CHAIN,
}
"""`meta.span.kind`."""
_OF_THE_REPLY: Final = frozenset({"finish_reason", "finish_reasons", "stop_reason", "stream_error"})
_ONE_NAME: Final = Loss(
    field="model",
    lost="the name of the model that was asked for: Datadog keeps one, and once the reply is there it is the reply's",
    fix="annotate the span: LLMObs.annotate(metadata={'requested_model': …})",
)
_REPLY_ID: Final = Loss(
    field="reply.id",
    lost="the id of the reply",
    fix="annotate the span: LLMObs.annotate(metadata={'response_id': …})",
)
_NO_CONTENT: Final = Loss(
    field="messages",
    lost="input and output: this event has neither",
    fix="leave capture of prompts and completions on, and register no span processor that drops them",
)


def _recognises(span: SpanRecord) -> float:
    return 0.96 if "datadog.kind" in span.attributes else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    said = said_of(span)
    kind = _KINDS.get(as_text(said.get("datadog.kind")).lower(), CallKind.CHAIN)
    given, told = _side(said, "input"), _side(said, "output")
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        reading = _model(kind, said, given, told)
    else:
        result = told.get("documents", told.get("value", told.get("messages")))
        arguments = given.get("value", given.get("messages", given.get("documents")))
        reading = Reading(
            kind=kind,
            arguments=tool_io.arguments(structured(arguments)),
            result=structured(result),
            told=result is not None,
        )
    return semconv.call(span, said, "datadog", reading)


def _side(said: Mapping[str, Json], name: str) -> dict[str, Json]:
    told = structured(said.get(f"datadog.meta.{name}"))
    return told if isinstance(told, dict) else {"value": told} if told not in (None, "") else {}


def _model(kind: CallKind, said: Mapping[str, Json], given: dict[str, Json], told: dict[str, Json]) -> Reading:
    metadata = as_object(structured(said.get("datadog.meta.metadata")))
    one = as_text(said.get("datadog.meta.model_name"))
    requested = as_text(metadata.get("requested_model")) or as_text(metadata.get("model"))
    model = requested or ("" if is_dated(one) else one)
    losses = [_ONE_NAME] if one and not model else []
    asked = _asked(kind, said, given, metadata, model)
    answered = _answered(said, told, metadata, one)
    if asked is None and answered is None:
        losses.append(_NO_CONTENT)
    if answered is not None and not answered.id:
        losses.append(_REPLY_ID)
    return Reading(
        kind=kind,
        asked=asked,
        answered=answered,
        system=as_text(said.get("datadog.meta.model_provider")) or provider_of(one),
        losses=tuple(losses),
    )


def _asked(
    kind: CallKind, said: Mapping[str, Json], given: dict[str, Json], metadata: dict[str, Json], model: str
) -> Asked | None:
    messages = _messages(given.get("messages"), "user")
    if not messages and (text := text_or_json(given.get("value"))):
        messages = (Message(role="user", parts=(Text(text),)),)
    inputs = tuple(as_text(as_object(each).get("text")) for each in as_list(given.get("documents")))
    if not messages and not inputs:
        return None
    hidden = _OF_THE_REPLY | {"requested_model", "model", "response_id", "stream"}
    return Asked(
        model=model or None,
        messages=() if kind is CallKind.EMBEDDING else messages,
        inputs=inputs if kind is CallKind.EMBEDDING else (),
        tools=native.tools(said.get("datadog.meta.tool_definitions")),
        parameters={name: value for name, value in metadata.items() if name not in hidden and value is not None},
        stream=metadata.get("stream") is True,
    )


def _answered(
    said: Mapping[str, Json], told: dict[str, Json], metadata: dict[str, Json], model: str
) -> Answered | None:
    messages = _messages(told.get("messages"), "assistant")
    if not messages and (text := text_or_json(told.get("value"))):
        messages = (Message(role="assistant", parts=(Text(text),)),)
    reasons = [as_text(metadata.get(name)) for name in ("finish_reason", "stop_reason")]
    usage = _usage(as_object(structured(said.get("datadog.metrics"))))
    if not messages and usage == Usage():
        return None
    return Answered(
        model=model or None,
        id=as_text(metadata.get("response_id")) or None,
        messages=messages,
        finish_reasons=tuple(reason for reason in reasons if reason)[:1],
        usage=usage,
    )


def _messages(told: Json, role: str) -> tuple[Message, ...]:
    return tuple(message for each in as_list(structured(told)) for message in _message(as_object(each), role))


def _message(held: dict[str, Json], role: str) -> list[Message]:
    """Read one message; results of tools that stand in it are messages of their own."""
    named = as_text(held.get("role")) or role
    content = held.get("content")
    said: list[Part] = []
    if isinstance(content, str) and content:
        said.append(Reasoning(text=content) if named == "reasoning" else Text(content))
    elif isinstance(content, dict | list) and content:
        said += [part for message in native.messages(content, named) for part in message.parts]
    said += [
        ToolCall(
            id=as_text(call.get("tool_id")) or as_text(call.get("id")),
            name=as_text(call.get("name")),
            arguments=text_or_json(call.get("arguments")),
        )
        for call in map(as_object, as_list(held.get("tool_calls")))
    ]
    found = [
        Message(
            role="tool",
            parts=(Text(text_or_json(result.get("result"))),),
            name=as_text(result.get("name")) or None,
            tool_call_id=as_text(result.get("tool_id")) or None,
        )
        for result in map(as_object, as_list(held.get("tool_results")))
    ]
    if said or not found:
        known = as_text(held.get("tool_id")) or as_text(held.get("tool_call_id"))
        word = "assistant" if named == "reasoning" else named
        found.insert(0, Message(role=word, parts=tuple(said), tool_call_id=known or None))
    return found


def _usage(held: dict[str, Json]) -> Usage:
    return Usage(
        prompt=first_count(held, ("input_tokens",)),
        completion=first_count(held, ("output_tokens",)),
        total=first_count(held, ("total_tokens",)),
        cache_read=first_count(held, ("cache_read_input_tokens",)),
        cache_write=first_count(held, ("cache_write_input_tokens",)),
        reasoning=first_count(held, ("reasoning_output_tokens",)),
    )


DIALECT = Dialect(
    name="datadog", recognises=_recognises, decode=_decode, marks=SpanMarks(attributes=("datadog.kind",)), most=0.96
)
