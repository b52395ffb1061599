"""Cohere's chat (`POST /v2/chat`), written from Cohere's description of its API and the types of its SDK."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reenact.contracts.shape import Shape, Wording
from reenact.values.call import CallKind
from reenact.values.json import Json, compact
from reenact.values.lenient import (
    as_list,
    as_object,
    as_text,
    at,
    first_count,
    media_type,
    text_or_json,
    text_or_none,
    without,
)
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

_MESSAGE_KEYS = frozenset({"role", "content", "tool_calls", "tool_call_id", "tool_plan"})


def _read_request(body: Json) -> Asked:
    asked = as_object(body)
    read_keys = {key for key in ("messages", "tools") if isinstance(asked.get(key), list)}
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=tuple(_message(message, "user") for message in as_list(asked.get("messages"))),
        tools=tuple(as_list(asked.get("tools"))),
        parameters=without(asked, read_keys),
        stream=asked.get("stream") is True,
    )


def _message(value: Json, role: str) -> Message:
    if not isinstance(value, dict):
        return Message(role=role, parts=(Opaque(value),))
    parts: list[Part] = [Reasoning(text=plan)] if (plan := as_text(value.get("tool_plan"))) else []
    content = value.get("content")
    if isinstance(content, list):
        parts += map(_part, content)
    elif isinstance(content, str):
        parts.append(Text(content))
    elif content is not None:
        parts.append(Opaque(content))
    parts += map(_tool_call, as_list(value.get("tool_calls")))
    unknown = without(value, _MESSAGE_KEYS).items()
    rest: dict[str, Json] = {key: item for key, item in unknown if item not in (None, [])}
    return Message(
        role=as_text(value.get("role")) or role,
        parts=(*parts, *([Opaque(rest)] if rest else [])),
        tool_call_id=text_or_none(value.get("tool_call_id")),
    )


def _part(part: Json) -> Part:
    fields = as_object(part)
    kind = fields.get("type")
    if kind == "text" and isinstance(text := fields.get("text"), str):
        return Text(text)
    if kind == "thinking" and isinstance(text := fields.get("thinking"), str):
        return Reasoning(text=text)
    if kind == "image_url" and (url := as_text(at(fields, "image_url", "url"))):
        return Media(modality="image", url=url, mime_type=media_type(url))
    return Opaque(part)


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
    reason, message = as_text(reply.get("finish_reason")), reply.get("message")
    usage = reply.get("usage")
    return Answered(
        model=text_or_none(reply.get("model")),
        id=text_or_none(reply.get("id")),
        messages=(_message(message, "assistant"),) if isinstance(message, dict) else (),
        finish_reasons=(reason,) if reason else (),
        usage=Usage(
            prompt=first_count(usage, ("tokens", "input_tokens"), ("billed_units", "input_tokens")),
            completion=first_count(usage, ("tokens", "output_tokens"), ("billed_units", "output_tokens")),
            cache_read=first_count(usage, ("cached_tokens",)),
        ),
    )


def _fold(events: Iterable[Json]) -> Json:
    """Join the events of a stream into the reply; an event of a kind that is not known stays under that kind."""
    reply: dict[str, Json] = {}
    message: dict[str, Json] = {}
    blocks: dict[int, dict[str, Json]] = {}
    calls: dict[int, dict[str, Json]] = {}
    cited: list[Json] = []
    for event in map(as_object, events):
        kind, delta = as_text(event.get("type")), as_object(event.get("delta"))
        fragment = as_object(delta.get("message"))
        index = first_count(event, ("index",)) or 0
        match kind:
            case "message-start":
                reply["id"], message = event.get("id"), {**fragment}
            case "content-start" | "content-delta":
                blocks[index] = _grown(blocks.get(index, {}), as_object(fragment.get("content")))
            case "tool-call-start" | "tool-call-delta":
                calls[index] = _grown(calls.get(index, {}), as_object(fragment.get("tool_calls")))
            case "tool-plan-delta":
                message["tool_plan"] = as_text(message.get("tool_plan")) + as_text(fragment.get("tool_plan"))
            case "citation-start":
                cited.append(fragment.get("citations"))
            case "message-end":
                reply |= delta
            case "content-end" | "tool-call-end" | "citation-end":
                pass
            case _ if kind:
                reply[kind] = event
            case _:
                reply |= event
    message = _assembled(message, blocks, calls, cited)
    return {**reply, "message": message} if message else reply


def _assembled(
    message: dict[str, Json], blocks: dict[int, dict[str, Json]], calls: dict[int, dict[str, Json]], cited: list[Json]
) -> dict[str, Json]:
    whole: dict[str, list[Json]] = {
        "content": [blocks[place] for place in sorted(blocks)],
        "tool_calls": [calls[place] for place in sorted(calls)],
        "citations": cited,
    }
    fields: dict[str, Json] = {name: [*items] for name, items in whole.items() if items or message.get(name) == []}
    return {**message, **fields}


def _grown(fields: dict[str, Json], delta: dict[str, Json]) -> dict[str, Json]:
    result = dict(fields)
    for key, value in delta.items():
        before = result.get(key)
        if isinstance(before, str) and isinstance(value, str) and key in ("text", "thinking", "arguments"):
            result[key] = before + value
        elif isinstance(before, dict) and isinstance(value, dict):
            result[key] = _grown(before, value)
        else:
            result[key] = value
    return result


def _unfold(body: Json) -> bytes:
    """Spell a whole reply as the events of a stream."""
    return "".join(
        f"event: {as_text(event['type'])}\ndata: {compact(event)}\n\n" for event in _events(as_object(body))
    ).encode("utf-8", "replace")


def _events(reply: dict[str, Json]) -> Iterator[dict[str, Json]]:
    message = as_object(reply.get("message"))
    if not message:
        yield {"type": "message-end", "delta": reply}
        return
    begun = {**message, "content": [], "tool_calls": [], "citations": []}
    yield {"type": "message-start", "id": reply.get("id"), "delta": {"message": without(begun, ("tool_plan",))}}
    if plan := as_text(message.get("tool_plan")):
        yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": plan}}}
    content = message.get("content")
    listed: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
    for name, begins, ends, entries in (
        ("content", "content-start", "content-end", listed),
        ("tool_calls", "tool-call-start", "tool-call-end", as_list(message.get("tool_calls"))),
        ("citations", "citation-start", "citation-end", as_list(message.get("citations"))),
    ):
        for index, each in enumerate(entries):
            yield {"type": begins, "index": index, "delta": {"message": {name: each}}}
            yield {"type": ends, "index": index}
    yield {"type": "message-end", "delta": without(reply, ("id", "message"))}


def _read_said(body: Json) -> Said:
    message = at(body, "message")
    parts = _message(message, "assistant").parts if isinstance(message, dict) else ()
    texts = [part.text for part in parts if isinstance(part, Text)]
    return Said(
        text="".join(texts) if texts else None,
        calls=tuple(part for part in parts if isinstance(part, ToolCall)),
        finish=text_or_none(at(body, "finish_reason")),
    )


def _write_said(body: Json, turn: Said) -> Json:
    """Change text in its first block and calls in their order; what else there is stays."""
    before = _read_said(body)
    if turn == before:
        return body
    reply = as_object(body)
    message: dict[str, Json] = {"role": "assistant", **as_object(reply.get("message"))}
    if turn.text != before.text:
        message["content"] = _with_text(message.get("content"), turn.text)
    if turn.calls != before.calls:
        message["tool_calls"] = _with_calls(as_list(message.get("tool_calls")), turn.calls)
    start: dict[str, Json] = {} if reply.get("id") is not None or reply.keys() - {"model"} else {"id": "set"}
    return {**start, **reply, "message": message, "finish_reason": turn.finish}


def _with_text(content: Json, text: str | None) -> Json:
    parts: list[Json] = [] if isinstance(content, str) or content is None else as_list(content) or [content]
    places = [place for place, part in enumerate(parts) if isinstance(_part(part), Text)]
    first = places[0] if places else len(parts)
    rest = [part for place, part in enumerate(parts) if place not in places]
    return rest if text is None else [*rest[:first], {"type": "text", "text": text}, *rest[first:]]


def _with_calls(entries: list[Json], calls: tuple[ToolCall, ...]) -> list[Json]:
    left, changed = [*calls], list[Json]()
    for call in entries:
        if not isinstance(read := _tool_call(call), ToolCall):
            changed.append(call)
        elif left:
            now = left.pop(0)
            changed.append(call if now == read else {**as_object(call), **_call_json(now)})
    return [*changed, *map(_call_json, left)]


def _call_json(call: ToolCall) -> dict[str, Json]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _write_request(asked: Asked) -> Json:
    """Spell a request of which only the meaning was kept."""
    body: dict[str, Json] = {} if asked.model is None else {"model": asked.model}
    body |= asked.parameters
    body["messages"] = [_message_json(message) for message in asked.messages]
    if asked.tools:
        body["tools"] = [*asked.tools]
    return body


def _message_json(message: Message) -> dict[str, Json]:
    calls: list[Json] = [_call_json(part) for part in message.parts if isinstance(part, ToolCall)]
    content: list[Json] = [_block(part) for part in message.parts if not isinstance(part, ToolCall)]
    fields: dict[str, Json] = {"role": message.role}
    if content or not calls:
        fields["content"] = content
    if message.tool_call_id is not None:
        fields["tool_call_id"] = message.tool_call_id
    if calls:
        fields["tool_calls"] = calls
    return fields


def _block(part: Part) -> Json:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Reasoning(text=text):
            return {"type": "thinking", "thinking": text}
        case Media(url=url):
            return {"type": "image_url", "image_url": {"url": url}}
        case ToolCall():
            return _call_json(part)
        case Opaque(json=json):
            return json


def _write_reply(answered: Answered) -> Json:
    usage = answered.usage
    counts = {"input_tokens": usage.prompt, "output_tokens": usage.completion}
    tokens: dict[str, Json] = {name: count for name, count in counts.items() if count is not None}
    model_field: dict[str, Json] = {} if answered.model is None else {"model": answered.model}
    message = answered.messages[0] if answered.messages else Message(role="assistant")
    return {
        "id": answered.id,
        **model_field,
        "message": _message_json(message),
        "finish_reason": answered.finish_reasons[0] if answered.finish_reasons else None,
        "usage": {"tokens": tokens},
    }


SHAPE = Shape(
    name="cohere.chat",
    system="cohere",
    operation="chat",
    kind=CallKind.LLM,
    span_name="Chat",
    paths=("/v2/chat",),
    needs=(b'"messages"', b'"model"'),
    noise=frozenset(),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    unfold=_unfold,
    write_request=_write_request,
    write_reply=_write_reply,
    wording=Wording(read=_read_said, write=_write_said, finishes=("TOOL_CALL", "COMPLETE")),
    stream_ends=(b"event: message-end", b'"message-end"'),
    credentials=("CO_API_KEY",),
)
