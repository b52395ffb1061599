"""What a call asked and what came of it, in a few words or whole. Not yet cleaned: that is `safe`'s."""

from __future__ import annotations

from collections.abc import Iterator

from reenact.boundary.reading import answered, asked, is_plain, reply_body, reply_data
from reenact.values.call import (
    FunctionCall,
    HttpReply,
    HttpRequest,
    Raised,
    Returned,
    Streamed,
    StreamEnd,
    Unfinished,
    Value,
)
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_object, as_text, at
from reenact.values.message import Media, Message, Reasoning, Text, ToolCall
from reenact.values.run import Node

_MODEL_NAMES = ("llm.model_name", "gen_ai.response.model", "gen_ai.request.model")
_COUNTS = ("gen_ai.usage.", "gen_ai.client.", "llm.usage.")
"""How the names begin by which emitters count tokens."""
_EXCERPT = 400
"""Bytes of a body that stand for it where it is nothing that we know."""


def question(node: Node) -> str:
    """Say what a call asked: the last message to a model, a function's arguments."""
    request = node.call.request
    if isinstance(request, FunctionCall):
        return _arguments(request.arguments)
    model_request = asked(node)
    if model_request is None:
        return f"{request.method} {request.url} {_excerpt(request.body.data)}".rstrip()
    if model_request.inputs:
        first, *rest = model_request.inputs
        return f"{first} and {len(rest)} more" if rest else first
    return f"{model_request.messages[-1].role}: {message(model_request.messages[-1])}" if model_request.messages else ""


def outcome(node: Node) -> str:
    """Say what came of a call: a model's text or tool calls, a function's result, an error."""
    match node.outcome:
        case Returned(payload=Value(json=value)):
            return _value(value)
        case Returned(payload=HttpReply(status=status)):
            return _reply(node, status)
        case Raised(exception=exception):
            return f"{exception.qualname}: {exception.message}"
        case Streamed(end=end, chunks=chunks) as stream:
            ended = "" if end is StreamEnd.FINISHED else f" ({end.value})"
            if isinstance(node.call.request, HttpRequest):
                return _reply(node, stream.status) + ended
            return compact([chunk.value for chunk in chunks]) + ended
        case _:
            return "the emitter kept no answer" if is_mute(node) else "no outcome was recorded"


def is_mute(node: Node) -> bool:
    """Tell a foreign call that ended, and whose answer the emitter did not keep, from one that did not end."""
    from reenact.foreign.foreign_call import DIALECT

    return isinstance(node.outcome, Unfinished) and node.span.end_ns > 0 and DIALECT in node.call.attributes


def message(chat_message: Message) -> str:
    """Say a message: its text, else the tools it calls."""
    return " ".join(part for part in _parts(chat_message) if part)


def _parts(chat_message: Message) -> Iterator[str]:
    for part in chat_message.parts:
        match part:
            case Text(text=text):
                yield text
            case ToolCall(name=name, arguments=arguments):
                yield f"{name}({_call_arguments(arguments)})"
            case Media(modality=modality):
                yield f"[{modality}]"
            case Reasoning():
                pass
            case _:
                yield compact(part.json)


def _call_arguments(text: str) -> str:
    value = parsed_or_none(text) if text else {}
    return _arguments(value) if isinstance(value, dict) else text


def _arguments(value: Json) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={compact(item)}" for name, item in value.items())
    return "" if value is None else _value(value)


def _value(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


def _excerpt(data: bytes) -> str:
    """Give the beginning of a body as text; no more is shown anyway."""
    try:
        return data[:_EXCERPT].decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode() if error.start > _EXCERPT - 4 else f"({len(data)} bytes)"


def _reply(node: Node, status: int) -> str:
    if is_plain(node):
        return f"HTTP {status} {_excerpt(reply_data(node))}".rstrip()
    if status >= 300:
        error = at(reply_body(node), "error")
        words = as_text(as_object(error).get("message")) or as_text(error)
        return f"HTTP {status}{': ' if words else ''}{words}"
    model_reply = answered(node)
    if model_reply is None:
        return f"HTTP {status}"
    if model_reply.vectors:
        return f"{len(model_reply.vectors)} vectors of {len(model_reply.vectors[0])}"
    return " ".join(text for text in map(message, model_reply.messages) if text)


def model(node: Node) -> str:
    """Name the model that answered, or that was asked."""
    reply, request = answered(node), asked(node)
    model_name = (reply.model if reply else None) or (request.model if request else None)
    attribute_names = (as_text(node.call.attributes.get(name)) for name in _MODEL_NAMES)
    return model_name or next((name for name in attribute_names if name), "")


def tokens(node: Node) -> str:
    """Say the tokens in and out, as the provider counted them: `312+45 tokens`."""
    reply = answered(node)
    counts = (reply.usage.prompt, reply.usage.completion) if reply else (None, None)
    if counts == (None, None) and any(name.startswith(_COUNTS) for name in node.call.attributes):
        # the emitter may keep counts and no words
        from reenact.foreign import genai

        usage = genai.usage(node.call.attributes)
        counts = usage.prompt, usage.completion
    if counts == (None, None):
        counts = tuple(node.span.attributes.get(f"llm.token_count.{side}") for side in ("prompt", "completion"))
    if all(count is None for count in counts):
        return ""
    return "+".join("?" if count is None else str(count) for count in counts) + " tokens"
