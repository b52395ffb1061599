"""Ollama's own API (`POST /api/chat`, `/api/generate`): JSON lines, unless a whole reply is asked for.

Written from Ollama's description of its API and the types of its SDK.
"""

from __future__ import annotations

from collections.abc import Iterable

from reenact.contracts.shape import Framing, Shape, Wording
from reenact.values import json_lines
from reenact.values.call import CallKind
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text, at, first_count, text_or_json, text_or_none, without
from reenact.values.message import (
    Answered,
    Asked,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Said,
    Text,
    ToolCall,
    Usage,
)

_JSON_LINES = Framing(media_type="application/x-ndjson", events=json_lines.events)
_MESSAGE_KEYS = frozenset({"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"})
_PIECES = ("content", "thinking")
"""Fields of a message that come in pieces."""
_KINDS = (("iVBOR", "png"), ("/9j/", "jpeg"), ("R0lG", "gif"), ("UklGR", "webp"))
"""How images begin in base64; nothing else says what they are."""


def _read_request(body: Json) -> Asked:
    asked = as_object(body)
    read_keys = {key for key in ("messages", "tools") if isinstance(asked.get(key), list)}
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=tuple(_message(message, "user") for message in as_list(asked.get("messages"))),
        tools=tuple(as_list(asked.get("tools"))),
        parameters=without(asked, read_keys),
        stream=_is_stream(asked),
    )


def _is_stream(body: Json) -> bool:
    return isinstance(body, dict) and body.get("stream") is not False


def _message(value: Json, role: str) -> Message:
    if not isinstance(value, dict):
        return Message(role=role, parts=(Opaque(value),))
    parts: list[Part] = [Reasoning(text=thought)] if (thought := as_text(value.get("thinking"))) else []
    content = value.get("content")
    if isinstance(content, str):
        parts += [Text(content)] if content else []
    elif content is not None:
        parts.append(Opaque(content))
    parts += [_image(image) for image in as_list(value.get("images"))]
    parts += [_tool_call(call) for call in as_list(value.get("tool_calls"))]
    rest: dict[str, Json] = {key: item for key, item in without(value, _MESSAGE_KEYS).items() if item is not None}
    return Message(
        role=as_text(value.get("role")) or role,
        parts=(*parts, *([Opaque(rest)] if rest else [])),
        name=text_or_none(value.get("tool_name")),
        tool_call_id=text_or_none(value.get("tool_call_id")),
    )


def _image(image: Json) -> Part:
    if not isinstance(image, str):
        return Opaque(image)
    kind = next((f"image/{kind}" for begins, kind in _KINDS if image.startswith(begins)), "image")
    return Media(modality="image", url=f"data:{kind};base64,{image}", mime_type=kind)


def _tool_call(call: Json) -> Part:
    function = at(call, "function")
    if not isinstance(function, dict):
        return Opaque(call)
    return ToolCall(
        id=as_text(at(call, "id")),
        name=as_text(function.get("name")),
        arguments=text_or_json(function.get("arguments")),
    )


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    message = reply.get("message")
    return _answered(reply, (_message(message, "assistant"),) if message else ())


def _answered(reply: dict[str, Json], messages: tuple[Message, ...]) -> Answered:
    reason = as_text(reply.get("done_reason"))
    return Answered(
        model=text_or_none(reply.get("model")),
        id=text_or_none(reply.get("id")),
        messages=messages,
        finish_reasons=(reason,) if reason else (),
        usage=Usage(prompt=first_count(reply, ("prompt_eval_count",)), completion=first_count(reply, ("eval_count",))),
    )


def _fold(events: Iterable[Json]) -> Json:
    """Join the pieces of the message. Calls come whole, each once; of all else the last holds."""
    reply: dict[str, Json] = {}
    for event in events:
        for key, value in as_object(event).items():
            if key == "message" and isinstance(value, dict):
                reply[key] = _merged(as_object(reply.get(key)), value)
            elif key in ("response", "thinking") and isinstance(value, str):
                reply[key] = as_text(reply.get(key)) + value
            elif value is not None or key not in reply:
                reply[key] = value
    return reply


def _merged(former: dict[str, Json], piece: dict[str, Json]) -> dict[str, Json]:
    message = {**former}
    for key, value in piece.items():
        if key in _PIECES and isinstance(value, str):
            message[key] = as_text(message.get(key)) + value
        elif key == "tool_calls" and isinstance(value, list):
            message[key] = [*as_list(message.get(key)), *value]
        elif value is not None or key not in message:
            message[key] = value
    return message


def _unfold(body: Json) -> bytes:
    """Spell a whole reply as a stream of one line, which is what a short one is."""
    return f"{compact(body)}\n".encode("utf-8", "replace")


def _read_said(body: Json) -> Said:
    message = as_object(at(body, "message"))
    calls = (_tool_call(call) for call in as_list(message.get("tool_calls")))
    return Said(
        text=text_or_none(message.get("content")),
        calls=tuple(call if isinstance(call, ToolCall) else ToolCall(id="", name="", arguments="") for call in calls),
        finish=text_or_none(at(body, "done_reason")),
    )


def _write_said(body: Json, turn: Said) -> Json:
    reply, before = as_object(body), _read_said(body)
    if turn == before:
        return body
    message: dict[str, Json] = {"role": "assistant", **as_object(reply.get("message"))}
    if turn.text != before.text or "content" not in message:
        message["content"] = turn.text
    if turn.calls != before.calls:
        priors = as_list(message.pop("tool_calls", None))
        calls = [_called(priors[place] if place < len(priors) else None, call) for place, call in enumerate(turn.calls)]
        message |= {"tool_calls": calls} if calls else {}
    return {**reply, "message": message, "done_reason": turn.finish, "done": True}


def _called(original: Json, call: ToolCall) -> Json:
    if _tool_call(original) == call:
        return original
    before, decoded = as_object(original), parsed_or_none(call.arguments)
    arguments = call.arguments if decoded is None else decoded
    function: Json = {**as_object(before.get("function")), "name": call.name, "arguments": arguments}
    return {**before, **({"id": call.id} if call.id or "id" in before else {}), "function": function}


def _write_request(asked: Asked) -> Json:
    """Spell a request of which only the meaning was kept."""
    body: dict[str, Json] = {} if asked.model is None else {"model": asked.model}
    body |= asked.parameters
    body["messages"] = [_message_json(message) for message in asked.messages]
    if asked.tools:
        body["tools"] = [*asked.tools]
    return body


def _message_json(message: Message) -> Json:
    fields: dict[str, Json] = {"role": message.role, "content": ""}
    calls: list[Json] = []
    images: list[Json] = []
    for part in message.parts:
        match part:
            case Text(text=text):
                fields["content"] = as_text(fields["content"]) + text
            case Reasoning(text=text):
                fields["thinking"] = text
            case Media(url=url):
                images.append(url.partition(";base64,")[2] or url)
            case ToolCall():
                calls.append(_called(None, part))
            case Opaque(json=dict() as json) if "type" not in json:
                fields |= json
            case Opaque(json=dict() as json):  # a piece of content, as others have it
                fields["content"] = [fields["content"], json]
            case Opaque(json=json):
                fields["content"] = json
    optional_fields: dict[str, Json] = {"tool_name": message.name, "tool_call_id": message.tool_call_id}
    optional_fields |= {"images": images or None, "tool_calls": calls or None}
    return {**fields, **{key: value for key, value in optional_fields.items() if value is not None}}


def _write_reply(answered: Answered) -> Json:
    counts = {"prompt_eval_count": answered.usage.prompt, "eval_count": answered.usage.completion}
    id_field: dict[str, Json] = {} if not answered.id else {"id": answered.id}
    message = answered.messages[0] if answered.messages else Message(role="assistant")
    return {
        **id_field,
        "model": answered.model,
        "message": _message_json(message),
        "done": True,
        "done_reason": answered.finish_reasons[0] if answered.finish_reasons else None,
        **{name: count for name, count in counts.items() if count is not None},
    }


def _read_prompt(body: Json) -> Asked:
    """Read the prompt as the user's message, with its images, and the instructions as the system's."""
    asked = as_object(body)
    prompt, system, images = asked.get("prompt"), asked.get("system"), asked.get("images")
    parts: list[Part] = [Text(prompt)] if isinstance(prompt, str) else []
    parts += [_image(image) for image in as_list(images)]
    instructions = [Message(role="system", parts=(Text(system),))] if isinstance(system, str) and system else []
    read_keys = [
        *(["prompt"] if isinstance(prompt, str) else []),
        *(["system"] if instructions else []),
        *(["images"] if isinstance(images, list) else []),
    ]
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=(*instructions, *([Message(role="user", parts=tuple(parts))] if parts else [])),
        parameters=without(asked, read_keys),
        stream=_is_stream(asked),
    )


def _read_generated(body: Json) -> Answered:
    reply = as_object(body)
    thought, text = as_text(reply.get("thinking")), reply.get("response")
    parts: list[Part] = [Reasoning(text=thought)] if thought else []
    parts += [Text(text)] if isinstance(text, str) and (text or not thought) else []
    return _answered(reply, (Message(role="assistant", parts=tuple(parts)),) if parts else ())


SHAPE = Shape(
    name="ollama.chat",
    system="ollama",
    operation="chat",
    kind=CallKind.LLM,
    span_name="Chat",
    paths=("/api/chat",),
    needs=(b'"model"', b'"messages"'),
    noise=frozenset({"keep_alive"}),
    opaque=("images",),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    is_stream=_is_stream,
    framing=_JSON_LINES,
    unfold=_unfold,
    write_request=_write_request,
    write_reply=_write_reply,
    wording=Wording(read=_read_said, write=_write_said, finishes=("stop", "stop")),
    stream_ends=(b'"done":true', b'"done": true'),
)

GENERATE = Shape(
    name="ollama.generate",
    system="ollama",
    operation="text_completion",
    kind=CallKind.LLM,
    span_name="Generate",
    paths=("/api/generate",),
    needs=(b'"model"',),
    noise=SHAPE.noise,
    opaque=("images", "context"),
    read_request=_read_prompt,
    read_reply=_read_generated,
    fold=_fold,
    is_stream=_is_stream,
    framing=_JSON_LINES,
    unfold=_unfold,
    stream_ends=SHAPE.stream_ends,
)
"""The completion of a prompt."""
