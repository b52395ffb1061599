"""OTel GenAI, read in its newest spelling (`gen_ai.input.messages` and its like), with the older names it replaced.

Such spans keep what was said, not the bodies. Where the provider is one that speaks OpenAI's chat completions a body
that says the same is built, and `reenact.rebuilt` among the call's attributes says so: what was not kept (parameters
that have no attribute, `tool_choice`, response formats) is missing from it and never invented.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from reenact.contracts.dialect import Dialect
from reenact.shapes.openai_chat import write_reply, write_request
from reenact.values import typed
from reenact.values.call import (
    Body,
    Call,
    CallKind,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Request,
    Returned,
    Unfinished,
    Value,
)
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_count, as_list, as_object, as_text, text_or_json, text_or_none, without
from reenact.values.message import Answered, Asked, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, Usage
from reenact.values.raised import exception_of_span
from reenact.values.span import Attribute, SpanRecord

_KINDS: Final[Mapping[str, CallKind]] = {
    "chat": CallKind.LLM,
    "generate_content": CallKind.LLM,
    "text_completion": CallKind.LLM,
    "embeddings": CallKind.EMBEDDING,
    "execute_tool": CallKind.TOOL,
    "retrieval": CallKind.RETRIEVER,
    "search_memory": CallKind.RETRIEVER,
    "invoke_agent": CallKind.AGENT,
    "create_agent": CallKind.AGENT,
    "invoke_workflow": CallKind.CHAIN,
    "plan": CallKind.CHAIN,
}
"""`gen_ai.operation.name` to what such a call is."""
_SPEAK_CHAT: Final = frozenset(
    {"openai", "azure.ai.openai", "az.ai.openai", "groq", "deepseek", "mistral_ai", "x_ai", "perplexity", "together"},
)
"""Providers (`gen_ai.provider.name`) whose SDKs send OpenAI's chat completions."""
_PARAMETERS: Final = (
    ("gen_ai.request.temperature", "temperature"),
    ("gen_ai.request.top_p", "top_p"),
    ("gen_ai.request.max_tokens", "max_tokens"),
    ("gen_ai.request.frequency_penalty", "frequency_penalty"),
    ("gen_ai.request.presence_penalty", "presence_penalty"),
    ("gen_ai.request.stop_sequences", "stop"),
    ("gen_ai.request.seed", "seed"),
    ("gen_ai.request.choice.count", "n"),
)
_FINISH_REASONS: Final[Mapping[str, str]] = {"tool_call": "tool_calls"}


def _recognises(span: SpanRecord) -> float:
    if isinstance(span.attributes.get("gen_ai.operation.name"), str):
        return 0.8
    return 0.3 if any(name.startswith("gen_ai.") for name in span.attributes) else 0.0


def _decode(span: SpanRecord) -> tuple[Call, Outcome]:
    said: dict[str, Json] = {name: _json(value) for name, value in span.attributes.items()}
    operation = as_text(said.get("gen_ai.operation.name"))
    kind = _KINDS.get(operation, CallKind.UNKNOWN)
    named = {CallKind.TOOL: "gen_ai.tool.name", CallKind.AGENT: "gen_ai.agent.name"}.get(kind, "")
    name = as_text(said.get(named)) or span.name
    outcome = _failure(span)
    request: Request
    rebuilds = operation == "chat" and _speaks_chat(said) and bool(as_list(_structured(said, "gen_ai.input.messages")))
    if rebuilds:
        request = HttpRequest(shape="openai.chat", method="POST", url="", body=_body(write_request(_asked(said))))
        said["reenact.rebuilt"] = ["request"] if outcome else ["request", "reply"]
        outcome = outcome or _reply(said)
    elif kind is CallKind.TOOL:
        request = FunctionCall(function="", arguments=_typed(said, "gen_ai.tool.call.arguments"))
        outcome = outcome or _value(said, "gen_ai.tool.call.result")
    else:
        request = FunctionCall(function="", arguments=_typed(said, "gen_ai.input.messages"))
        outcome = outcome or _value(said, "gen_ai.output.messages")
    return Call(kind=kind, name=name, request=request, attributes=said), outcome


def _json(value: Any) -> Json:
    return typed.encode(list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value)


def _structured(said: Mapping[str, Json], name: str) -> Json:
    """Read what is JSON text on spans that cannot carry structure, and structure on those that can."""
    value = said.get(name)
    parsed = parsed_or_none(value) if isinstance(value, str) else None
    return parsed if isinstance(parsed, dict | list) else value


def _typed(said: Mapping[str, Json], name: str) -> Json:
    """Read the same as the typed JSON of a function's arguments or result."""
    structured = _structured(said, name)
    return typed.encode(structured) if isinstance(said.get(name), str) else structured


def _speaks_chat(said: Mapping[str, Json]) -> bool:
    provider = as_text(said.get("gen_ai.provider.name")) or as_text(said.get("gen_ai.system"))
    return provider in _SPEAK_CHAT and said.get("openai.api.type") != "responses"


def _body(json: Json) -> Body:
    return Body(compact(json).encode("utf-8", "surrogatepass"))


def _asked(said: Mapping[str, Json]) -> Asked:
    instructions = _parts(_structured(said, "gen_ai.system_instructions"))
    system = [Message(role="system", parts=instructions)] if instructions else []
    given = as_list(_structured(said, "gen_ai.input.messages"))
    return Asked(
        model=text_or_none(said.get("gen_ai.request.model")),
        messages=(*system, *(message for each in given for message in _messages(each))),
        tools=tuple(_tool(tool) for tool in as_list(_structured(said, "gen_ai.tool.definitions"))),
        parameters={name: said[known] for known, name in _PARAMETERS if said.get(known) is not None},
    )


def _tool(definition: Json) -> Json:
    held = as_object(definition)
    if held.get("type", "function") != "function" or "function" in held:
        return definition
    return {"type": "function", "function": without(held, ("type",))}


def _messages(value: Json) -> list[Message]:
    """Read one message; replies of tools, of which it may hold several, are messages of their own in a body."""
    held = as_object(value)
    role = as_text(held.get("role")) or "user"
    parts = as_list(held.get("parts"))
    answers = [
        Message(
            role="tool",
            parts=(Text(text_or_json(part["response"] if "response" in part else part.get("result"))),),
            tool_call_id=text_or_none(part.get("id")),
        )
        for part in map(as_object, parts)
        if part.get("type") == "tool_call_response"
    ]
    rest = _parts([part for part in parts if as_object(part).get("type") != "tool_call_response"])
    if rest or not answers:
        answers.insert(0, Message(role=role, parts=rest, name=text_or_none(held.get("name"))))
    return answers


def _parts(value: Json) -> tuple[Part, ...]:
    if isinstance(value, str):
        return (Text(value),)
    return tuple(_part(part) for part in as_list(value))


def _part(part: Json) -> Part:
    held = as_object(part)
    match held.get("type"):
        case "text":
            return Text(as_text(held.get("content")))
        case "reasoning":
            return Reasoning(text=as_text(held.get("content")))
        case "tool_call":
            arguments = text_or_json(held.get("arguments"))
            return ToolCall(id=as_text(held.get("id")), name=as_text(held.get("name")), arguments=arguments)
        case "blob":
            mime_type = as_text(held.get("mime_type"))
            url = f"data:{mime_type};base64,{as_text(held.get('content'))}"
            return Media(modality=as_text(held.get("modality")) or "document", url=url, mime_type=mime_type)
        case "uri":
            modality = as_text(held.get("modality")) or "document"
            return Media(modality=modality, url=as_text(held.get("uri")), mime_type=as_text(held.get("mime_type")))
        case _:
            return Opaque(part)


def _reply(said: Mapping[str, Json]) -> Outcome:
    given = as_list(_structured(said, "gen_ai.output.messages"))
    if not given:
        return Unfinished()
    reasons = as_list(said.get("gen_ai.response.finish_reasons")) or [
        as_object(each).get("finish_reason") for each in given
    ]
    answered = Answered(
        model=text_or_none(said.get("gen_ai.response.model")),
        id=text_or_none(said.get("gen_ai.response.id")),
        messages=tuple(message for each in given for message in _messages(each)),
        finish_reasons=tuple(_FINISH_REASONS.get(reason, reason) for reason in map(as_text, reasons)),
        usage=Usage(
            prompt=as_count(said.get("gen_ai.usage.input_tokens")),
            completion=as_count(said.get("gen_ai.usage.output_tokens")),
            cache_read=as_count(said.get("gen_ai.usage.cache_read.input_tokens")),
            reasoning=as_count(said.get("gen_ai.usage.reasoning.output_tokens")),
        ),
    )
    headers = (("content-type", "application/json"),)
    return Returned(payload=HttpReply(status=200, headers=headers, body=_body(write_reply(answered))))


def _value(said: Mapping[str, Json], name: str) -> Outcome:
    return Returned(payload=Value(json=_typed(said, name))) if said.get(name) is not None else Unfinished()


def _failure(span: SpanRecord) -> Outcome | None:
    exception = exception_of_span(span)
    return None if exception is None else Raised(exception=exception)


def _encode_call(call: Call) -> dict[str, Attribute]:
    """Spell the names alone: we record with OpenInference, which carries these as well."""
    operation = next((operation for operation, kind in _KINDS.items() if kind is call.kind), "")
    attributes: dict[str, Attribute] = {"gen_ai.operation.name": operation} if operation else {}
    named = {CallKind.TOOL: "gen_ai.tool.name", CallKind.AGENT: "gen_ai.agent.name"}.get(call.kind)
    return {**attributes, named: call.name} if named else attributes


def _encode_outcome(_: Call, outcome: Outcome) -> dict[str, Attribute]:
    return {"error.type": outcome.exception.qualname} if isinstance(outcome, Raised) else {}


def _flatten(_: Call, __: Outcome) -> dict[str, Attribute]:
    return {}


def _encode_reply(call: Call, status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> dict[str, Attribute]:
    return _encode_outcome(call, Returned(payload=HttpReply(status=status, headers=headers, body=Body(body))))


DIALECT = Dialect(
    name="otel-genai",
    recognises=_recognises,
    encode_call=_encode_call,
    split_call=lambda call: ({}, _encode_call(call)),
    encode_outcome=_encode_outcome,
    encode_reply=_encode_reply,
    decode=_decode,
    flatten=_flatten,
)
