"""Anthropic's messages (`POST /v1/messages`), beta included, and the gateways that speak the same JSON.

Written from Anthropic's API reference and the types of its SDK. Not for Bedrock's `invoke` and Vertex's `rawPredict`,
whose model stands in the URL and whose streams are framed differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reenact.contracts.shape import SSE, Framing, Shape, Wording
from reenact.values import event_stream
from reenact.values.call import CallKind
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_count, as_list, as_object, as_text, at, first_count, text_or_none, without
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

_LENGTHENED = {"text_delta": "text", "thinking_delta": "thinking"}
"""A delta's type, to the field of its block that it lengthens. It has the same name in the delta."""
_SYSTEM = frozenset({"system", "developer"})
"""Roles that Anthropic has no turn for."""


def _read_request(body: Json) -> Asked:
    asked = as_object(body)
    read_keys = {key for key in ("messages", "tools") if isinstance(asked.get(key), list)}
    messages: list[Message] = []
    if isinstance(system := asked.get("system"), str | list):
        messages.append(Message(role="system", parts=_parts(system)))
        read_keys.add("system")
    for message in as_list(asked.get("messages")):
        messages += _turn(message)
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=tuple(messages),
        tools=tuple(as_list(asked.get("tools"))),
        parameters=without(asked, read_keys),
        stream=asked.get("stream") is True,
    )


def _turn(value: Json) -> list[Message]:
    """Read one message; each tool result in it is a message of its own, in its place."""
    if not isinstance(value, dict):
        return [Message(role="user", parts=(Opaque(value),))]
    role = as_text(value.get("role")) or "user"
    content = value.get("content")
    if not isinstance(content, list):
        return [Message(role=role, parts=_parts(content))]
    turns: list[Message] = []
    parts: list[Part] = []
    for block in content:
        if at(block, "type") == "tool_result":
            turns += [Message(role=role, parts=tuple(parts))] if parts else []
            parts = []
            turns.append(_tool_result(as_object(block)))
        else:
            parts.append(_part(block))
    if parts or not turns:
        turns.append(Message(role=role, parts=tuple(parts)))
    return turns


def _tool_result(block: dict[str, Json]) -> Message:
    failed = block.get("is_error")
    return Message(
        role="tool",
        parts=_parts(block.get("content")),
        tool_call_id=text_or_none(block.get("tool_use_id")),
        is_error=failed if isinstance(failed, bool) else None,
    )


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    has_content = isinstance(reply.get("content"), str | list)
    reason = as_text(reply.get("stop_reason"))
    return Answered(
        model=text_or_none(reply.get("model")),
        id=text_or_none(reply.get("id")),
        messages=(_reply_message(reply),) if has_content else (),
        finish_reasons=(reason,) if reason else (),
        usage=_usage(reply.get("usage")),
    )


def _reply_message(reply: dict[str, Json]) -> Message:
    return Message(role=as_text(reply.get("role")) or "assistant", parts=_parts(reply.get("content")))


def _usage(usage: Json) -> Usage:
    """Read the counts. Anthropic's `input_tokens` are those beside the cache; a prompt's are all."""
    fresh, completion = first_count(usage, ("input_tokens",)), first_count(usage, ("output_tokens",))
    cache_read = first_count(usage, ("cache_read_input_tokens",))
    cache_write = first_count(usage, ("cache_creation_input_tokens",))
    prompt = None if fresh is None else fresh + (cache_read or 0) + (cache_write or 0)
    return Usage(
        prompt=prompt,
        completion=completion,
        total=None if prompt is None or completion is None else prompt + completion,
        cache_read=cache_read,
        cache_write=cache_write,
        reasoning=first_count(usage, ("output_tokens_details", "thinking_tokens")),
    )


def _parts(content: Json) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, list):
        return tuple(_part(block) for block in content)
    return () if content is None else (Opaque(content),)


def _part(block: Json) -> Part:
    if isinstance(block, str):
        return Text(block)
    part = as_object(block)
    match part.get("type"):
        case "text" if isinstance(text := part.get("text"), str):
            return Text(text)
        case "thinking" if isinstance(thought := part.get("thinking"), str):
            return Reasoning(text=thought, encrypted=text_or_none(part.get("signature")), seal="signature")
        case "redacted_thinking" if isinstance(data := part.get("data"), str):
            return Reasoning(encrypted=data, seal="data")
        case "tool_use" if isinstance(name := part.get("name"), str):  # one that the provider runs is `server_tool_use`
            return ToolCall(id=as_text(part.get("id")), name=name, arguments=_arguments(part.get("input")))
        case "image" | "document":
            return _media(part) or Opaque(block)
        case _:
            return Opaque(block)


def _arguments(argument: Json) -> str:
    """Spell a tool's input as JSON text. A stream that was cut off left it as text."""
    return argument if isinstance(argument, str) else compact(argument)


def _media(block: dict[str, Json]) -> Media | None:
    source = as_object(block.get("source"))
    mime_type = as_text(source.get("media_type"))
    match source.get("type"):
        case "base64":
            url = f"data:{mime_type};base64,{as_text(source.get('data'))}"
        case "url":
            url = as_text(source.get("url"))
        case _:
            url = ""
    kind, name = as_text(block.get("type")), as_text(block.get("title"))
    return Media(modality=kind, url=url, mime_type=mime_type, name=name) if url else None


def _fold(events: Iterable[Json]) -> Json:
    """Join events into the message that would have come whole.

    As the SDK's accumulator does it, and without what that adds: fields that no event carried stay absent. A tool's
    input that was cut off stays the text that came. An `error` event stays in the reply under `error`.
    """
    reply: dict[str, Json] = {}
    blocks: dict[int, dict[str, Json]] = {}
    inputs: dict[int, str] = {}
    for event in events:
        fields = as_object(event)
        match fields.get("type"):
            case "message_start":
                reply = {**as_object(fields.get("message"))}
            case "content_block_start":
                blocks[as_count(fields.get("index")) or 0] = {**as_object(fields.get("content_block"))}
            case "content_block_delta":
                index = as_count(fields.get("index")) or 0
                _lengthen(blocks.setdefault(index, {}), inputs, index, as_object(fields.get("delta")))
            case "message_delta":
                _finish(reply, fields)
            case _ if "error" in fields:
                reply["error"] = fields["error"]
            case _:
                pass
    for index, text in inputs.items():
        if text:
            read = parsed_or_none(text)
            blocks[index]["input"] = text if read is None else read
    if blocks:
        reply["content"] = [blocks[index] for index in sorted(blocks)]
    return reply


def _lengthen(block: dict[str, Json], inputs: dict[int, str], index: int, delta: dict[str, Json]) -> None:
    kind = as_text(delta.get("type"))
    if field := _LENGTHENED.get(kind):
        block[field] = as_text(block.get(field)) + as_text(delta.get(field))
    elif kind == "input_json_delta":
        inputs[index] = inputs.get(index, "") + as_text(delta.get("partial_json"))
    elif kind == "citations_delta":
        block["citations"] = [*as_list(block.get("citations")), delta.get("citation")]
    else:  # `signature_delta`, `compaction_delta` and what is newer carry whole fields
        block.update(without(delta, ("type",)))


def _finish(reply: dict[str, Json], event: dict[str, Json]) -> None:
    """Take over what only the end of a stream tells. Counts of usage are totals, absent where they did not change."""
    delta = as_object(event.get("delta"))
    reply.update({name: value for name, value in delta.items() if value is not None or name not in reply})
    rest = without(event, ("type", "delta", "usage"))
    reply.update({name: value for name, value in rest.items() if value is not None})
    if usage := as_object(event.get("usage")):
        counts = {name: count for name, count in usage.items() if count is not None}
        reply["usage"] = {**as_object(reply.get("usage")), **counts}


def _unfold(body: Json) -> bytes:
    """Spell a whole message as events, one for each block's text."""
    reply = as_object(body)
    ends = {name: reply[name] for name in ("stop_reason", "stop_sequence", "stop_details") if name in reply}
    begun: dict[str, Json] = {**reply, **dict.fromkeys(ends), "content": []}
    events: list[dict[str, Json]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(map(as_object, as_list(reply.get("content")))):
        deltas = [*_deltas(block)]
        emptied: Json = {**block, **{field: empty for field, empty, _ in deltas}}
        events.append({"type": "content_block_start", "index": index, "content_block": emptied})
        for _, _, delta in deltas:
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": ends, "usage": as_object(reply.get("usage"))})
    events.append({"type": "message_stop"})
    return "".join(f"event: {event['type']}\ndata: {compact(event)}\n\n" for event in events).encode("utf-8", "replace")


def _deltas(block: dict[str, Json]) -> Iterator[tuple[str, Json, dict[str, Json]]]:
    """Give the fields of a block that come in pieces, what they hold before, and the piece."""
    kind = block.get("type")
    if kind == "text" and isinstance(text := block.get("text"), str):
        yield "text", "", {"type": "text_delta", "text": text}
    elif kind == "thinking":
        yield "thinking", "", {"type": "thinking_delta", "thinking": as_text(block.get("thinking"))}
        if "signature" in block:
            yield "signature", "", {"type": "signature_delta", "signature": block["signature"]}
    elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        yield "input", {}, {"type": "input_json_delta", "partial_json": _arguments(block.get("input"))}


def _read_said(body: Json) -> Said:
    reply = as_object(body)
    parts = _parts(reply.get("content"))
    texts = [part.text for part in parts if isinstance(part, Text)]
    return Said(
        text="".join(texts) if texts else None,
        calls=tuple(part for part in parts if isinstance(part, ToolCall)),
        finish=text_or_none(reply.get("stop_reason")),
    )


def _write_said(body: Json, turn: Said) -> Json:
    """Change text in its first block and calls in their order; thinking and what else there is stays."""
    before = _read_said(body)
    if turn == before:
        return body
    reply = as_object(body)
    content = reply.get("content")
    blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
    if turn.text != before.text:
        blocks = _with_text(blocks, turn.text)
    if turn.calls != before.calls:
        blocks = _with_calls(blocks, turn.calls)
    start: dict[str, Json] = {"type": "message", "role": "assistant"}
    if not reply.keys() - {"model"}:
        start |= {"id": "msg_set", "stop_sequence": None, "usage": {"input_tokens": 0, "output_tokens": 0}}
    return {**start, **reply, "content": blocks, "stop_reason": turn.finish}


def _with_text(blocks: list[Json], text: str | None) -> list[Json]:
    places = [at for at, block in enumerate(blocks) if isinstance(_part(block), Text)]
    calls = [at for at, block in enumerate(blocks) if isinstance(_part(block), ToolCall)]
    first = next(iter([*places, *calls]), len(blocks))
    rest = [block for at, block in enumerate(blocks) if at not in places]
    original = as_object(blocks[first]) if first in places else {}
    text_block: Json = {"type": "text", **original, "text": text}
    return rest if text is None else [*rest[:first], text_block, *rest[first:]]


def _with_calls(blocks: list[Json], calls: tuple[ToolCall, ...]) -> list[Json]:
    left, changed = [*calls], list[Json]()
    for block in blocks:
        if not isinstance(read := _part(block), ToolCall):
            changed.append(block)
        elif left:
            call = left.pop(0)
            changed.append(block if call == read else {**as_object(block), **_called(call)})
    return [*changed, *({"type": "tool_use", **_called(call)} for call in left)]


def _called(call: ToolCall) -> dict[str, Json]:
    arguments = parsed_or_none(call.arguments)
    return {"id": call.id, "name": call.name, "input": call.arguments if arguments is None else arguments}


def _write_request(asked: Asked) -> Json:
    """Spell a request of which only the meaning was kept; what tools answered stands in the user's turns."""
    body: dict[str, Json] = {} if asked.model is None else {"model": asked.model}
    body |= asked.parameters
    messages = [*asked.messages]
    if messages and messages[0].role in _SYSTEM:
        body["system"] = _content(messages.pop(0))
    turns: list[Json] = []
    results: list[Json] | None = None
    for message in messages:
        if message.role != "tool":
            turns.append({"role": message.role, "content": _content(message)})
            results = None
            continue
        if results is None:
            results = []
            turns.append({"role": "user", "content": results})
        failed: dict[str, Json] = {} if message.is_error is None else {"is_error": message.is_error}
        said: dict[str, Json] = {"tool_use_id": message.tool_call_id, "content": _content(message)}
        results.append({"type": "tool_result", **said, **failed})
    body["messages"] = turns
    if asked.tools:
        body["tools"] = [_tool(tool) for tool in asked.tools]
    return body


def _tool(tool: Json) -> Json:
    """Spell a function's definition as Anthropic does; any other stays as it is."""
    function = at(tool, "function")
    if not isinstance(function, dict):
        return tool
    definition: dict[str, Json] = {name: function[name] for name in ("name", "description") if name in function}
    return definition | ({"input_schema": function["parameters"]} if "parameters" in function else {})


def _write_reply(answered: Answered) -> Json:
    usage = answered.usage
    counts = {
        "input_tokens": None if usage.prompt is None else _fresh(usage),
        "output_tokens": usage.completion,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }
    usage_counts: dict[str, Json] = {name: count for name, count in counts.items() if count is not None}
    if usage.reasoning is not None:
        usage_counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return {
        "id": answered.id,
        "type": "message",
        "role": answered.messages[0].role if answered.messages else "assistant",
        "model": answered.model,
        "content": [_block(part) for message in answered.messages for part in message.parts],
        "stop_reason": answered.finish_reasons[0] if answered.finish_reasons else None,
        "stop_sequence": None,
        "usage": usage_counts,
    }


def _fresh(usage: Usage) -> int:
    """Give the tokens of a prompt beside the cache, which Anthropic counts apart."""
    return max(0, (usage.prompt or 0) - (usage.cache_read or 0) - (usage.cache_write or 0))


def _content(message: Message) -> Json:
    match message.parts:
        case (Text(text=text),):
            return text
        case parts:
            return [_block(part) for part in parts]


def _block(part: Part) -> Json:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Reasoning(text="", encrypted=str(data), seal="" | "data"):
            return {"type": "redacted_thinking", "data": data}
        case Reasoning(text=text, encrypted=signature):
            return {"type": "thinking", "thinking": text, **({} if signature is None else {"signature": signature})}
        case Media():
            return _media_block(part)
        case ToolCall():
            arguments = parsed_or_none(part.arguments)
            input_: Json = arguments if isinstance(arguments, dict | list) else part.arguments
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": input_}
        case Opaque(json=json):
            return json


def _media_block(media: Media) -> Json:
    head, _, data = media.url.partition(";base64,")
    source: dict[str, Json] = {"type": "url", "url": media.url}
    if data and head.startswith("data:"):
        source = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    elif media.mime_type:
        source["media_type"] = media.mime_type
    return {"type": media.modality, "source": source, **({"title": media.name} if media.name else {})}


def _never(body: Json) -> bool:
    """Tell that no stream is asked for: the path says so."""
    del body
    return False


def _always(body: Json) -> bool:
    del body
    return True


def _read_streaming(body: Json) -> Asked:
    return replace(_read_request(body), stream=True)


def _unfold_into_frames(body: Json) -> bytes:
    """Spell a whole reply as the events of a stream, each in one of Amazon's frames."""
    return b"".join(event_stream.event_frame("chunk", event) for event in SSE.events(_unfold(body)))


SHAPE = Shape(
    name="anthropic.messages",
    system="anthropic",
    operation="chat",
    kind=CallKind.LLM,
    span_name="messages.create",
    paths=("/v1/messages",),
    needs=(b'"messages"',),
    noise=frozenset({"metadata"}),
    opaque=("signature", "data", "encrypted_content", "encrypted_index", "encrypted_stdout"),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    unfold=_unfold,
    write_request=_write_request,
    write_reply=_write_reply,
    wording=Wording(read=_read_said, write=_write_said, finishes=("tool_use", "end_turn")),
    stream_ends=(b"\nevent: message_stop", b"\nevent:message_stop"),
    credentials=("ANTHROPIC_API_KEY",),
)

COUNT_TOKENS = Shape(
    name="anthropic.count_tokens",
    system="anthropic",
    operation="count_tokens",
    kind=CallKind.LLM,
    span_name="messages.count_tokens",
    paths=("/v1/messages/count_tokens",),
    needs=(b'"messages"',),
    noise=frozenset(),
    opaque=SHAPE.opaque,
    read_request=_read_request,
    read_reply=lambda _: Answered(),
    fold=lambda events: as_object(next(iter(events), None)),
    is_stream=lambda _: False,
    credentials=SHAPE.credentials,
)
"""Token counting: a request to a model that no model answers.

A model call by kind, as OpenInference has it, so that no replay under `--tools live` sends it. The count stands in the
reply's body and is no token usage: nothing was generated, and nothing is billed.
"""

VERTEX = replace(
    SHAPE,
    name="anthropic.vertex",
    paths=(":rawPredict",),
    needs=(b'"messages"', b'"anthropic_version"'),
    is_stream=_never,
    api=SHAPE.name,
    credentials=(),
)
"""The same words to Vertex AI (`…/publishers/anthropic/models/MODEL:rawPredict`); the model stands in the path."""

VERTEX_STREAM = replace(
    VERTEX,
    name="anthropic.vertex_stream",
    span_name="messages.stream",
    paths=(":streamRawPredict",),
    read_request=_read_streaming,
    is_stream=_always,
)

BEDROCK = replace(
    SHAPE,
    name="anthropic.bedrock",
    paths=("/invoke",),
    before="model/[^/]+",
    needs=VERTEX.needs,
    is_stream=_never,
    api=SHAPE.name,
    credentials=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
)
"""The same words to Amazon Bedrock (`/model/MODEL/invoke`); the model stands in the path."""

BEDROCK_STREAM = replace(
    BEDROCK,
    name="anthropic.bedrock_stream",
    span_name="messages.stream",
    paths=("/invoke-with-response-stream",),
    read_request=VERTEX_STREAM.read_request,
    is_stream=_always,
    framing=Framing(media_type=event_stream.MEDIA_TYPE, events=event_stream.events),
    unfold=_unfold_into_frames,
    stream_ends=(),
)
"""Its answers come in Amazon's frames, each event in base64."""
