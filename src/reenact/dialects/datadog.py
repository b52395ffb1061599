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
    attributes = said_of(span)
    kind = _KINDS.get(as_text(attributes.get("datadog.kind")).lower(), CallKind.CHAIN)
    question, reply = _side(attributes, "input"), _side(attributes, "output")
    if kind in (CallKind.LLM, CallKind.EMBEDDING):
        reading = _model(kind, attributes, question, reply)
    else:
        result = reply.get("documents", reply.get("value", reply.get("messages")))
        arguments = question.get("value", question.get("messages", question.get("documents")))
        reading = Reading(
            kind=kind,
            arguments=tool_io.arguments(structured(arguments)),
            result=structured(result),
            has_result=result is not None,
        )
    return semconv.call(span, attributes, "datadog", reading)


def _side(attributes: Mapping[str, Json], name: str) -> dict[str, Json]:
    side = structured(attributes.get(f"datadog.meta.{name}"))
    return side if isinstance(side, dict) else {"value": side} if side not in (None, "") else {}


def _model(
    kind: CallKind, attributes: Mapping[str, Json], question: dict[str, Json], reply: dict[str, Json]
) -> Reading:
    metadata = as_object(structured(attributes.get("datadog.meta.metadata")))
    one = as_text(attributes.get("datadog.meta.model_name"))
    requested = as_text(metadata.get("requested_model")) or as_text(metadata.get("model"))
    model = requested or ("" if is_dated(one) else one)
    losses = [_ONE_NAME] if one and not model else []
    asked = _asked(kind, attributes, question, metadata, model)
    answered = _answered(attributes, reply, metadata, one)
    if asked is None and answered is None:
        losses.append(_NO_CONTENT)
    if answered is not None and not answered.id:
        losses.append(_REPLY_ID)
    return Reading(
        kind=kind,
        asked=asked,
        answered=answered,
        system=as_text(attributes.get("datadog.meta.model_provider")) or provider_of(one),
        losses=tuple(losses),
    )


def _asked(
    kind: CallKind, attributes: Mapping[str, Json], question: dict[str, Json], metadata: dict[str, Json], model: str
) -> Asked | None:
    messages = _messages(question.get("messages"), "user")
    if not messages and (text := text_or_json(question.get("value"))):
        messages = (Message(role="user", parts=(Text(text),)),)
    inputs = tuple(as_text(as_object(each).get("text")) for each in as_list(question.get("documents")))
    if not messages and not inputs:
        return None
    hidden = _OF_THE_REPLY | {"requested_model", "model", "response_id", "stream"}
    return Asked(
        model=model or None,
        messages=() if kind is CallKind.EMBEDDING else messages,
        inputs=inputs if kind is CallKind.EMBEDDING else (),
        tools=native.tools(attributes.get("datadog.meta.tool_definitions")),
        parameters={name: value for name, value in metadata.items() if name not in hidden and value is not None},
        stream=metadata.get("stream") is True,
    )


def _answered(
    attributes: Mapping[str, Json], reply: dict[str, Json], metadata: dict[str, Json], model: str
) -> Answered | None:
    messages = _messages(reply.get("messages"), "assistant")
    if not messages and (text := text_or_json(reply.get("value"))):
        messages = (Message(role="assistant", parts=(Text(text),)),)
    reasons = [as_text(metadata.get(name)) for name in ("finish_reason", "stop_reason")]
    usage = _usage(as_object(structured(attributes.get("datadog.metrics"))))
    if not messages and usage == Usage():
        return None
    return Answered(
        model=model or None,
        id=as_text(metadata.get("response_id")) or None,
        messages=messages,
        finish_reasons=tuple(reason for reason in reasons if reason)[:1],
        usage=usage,
    )


def _messages(items: Json, role: str) -> tuple[Message, ...]:
    return tuple(message for each in as_list(structured(items)) for message in _message(as_object(each), role))


def _message(item: dict[str, Json], role: str) -> list[Message]:
    """Read one message; results of tools that stand in it are messages of their own."""
    role_name = as_text(item.get("role")) or role
    content = item.get("content")
    parts: list[Part] = []
    if isinstance(content, str) and content:
        parts.append(Reasoning(text=content) if role_name == "reasoning" else Text(content))
    elif isinstance(content, dict | list) and content:
        parts += [part for message in native.messages(content, role_name) for part in message.parts]
    parts += [
        ToolCall(
            id=as_text(call.get("tool_id")) or as_text(call.get("id")),
            name=as_text(call.get("name")),
            arguments=text_or_json(call.get("arguments")),
        )
        for call in map(as_object, as_list(item.get("tool_calls")))
    ]
    messages = [
        Message(
            role="tool",
            parts=(Text(text_or_json(result.get("result"))),),
            name=as_text(result.get("name")) or None,
            tool_call_id=as_text(result.get("tool_id")) or None,
        )
        for result in map(as_object, as_list(item.get("tool_results")))
    ]
    if parts or not messages:
        call_id = as_text(item.get("tool_id")) or as_text(item.get("tool_call_id"))
        word = "assistant" if role_name == "reasoning" else role_name
        messages.insert(0, Message(role=word, parts=tuple(parts), tool_call_id=call_id or None))
    return messages


def _usage(metrics: dict[str, Json]) -> Usage:
    return Usage(
        prompt=first_count(metrics, ("input_tokens",)),
        completion=first_count(metrics, ("output_tokens",)),
        total=first_count(metrics, ("total_tokens",)),
        cache_read=first_count(metrics, ("cache_read_input_tokens",)),
        cache_write=first_count(metrics, ("cache_write_input_tokens",)),
        reasoning=first_count(metrics, ("reasoning_output_tokens",)),
    )


DIALECT = Dialect(
    name="datadog", recognises=_recognises, decode=_decode, marks=SpanMarks(attributes=("datadog.kind",)), most=0.96
)
