"""OpenAI's responses (`POST /v1/responses`), written from its OpenAPI description and the types of its SDK."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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

_TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})
_LIFECYCLE = _TERMINAL | {"response.created", "response.queued", "response.in_progress"}
_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}
_DELTAS = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.reasoning_text": "text",
    "response.reasoning_summary_text": "text",
    "response.function_call_arguments": "arguments",
    "response.mcp_call_arguments": "arguments",
    "response.custom_tool_call_input": "input",
    "response.code_interpreter_call_code": "code",
}
"""Stem of a delta's event type, to the field of the item or part that it lengthens."""
_STEMS = {
    "function_call": "response.function_call_arguments",
    "custom_tool_call": "response.custom_tool_call_input",
    "mcp_call": "response.mcp_call_arguments",
}
"""An item's type, to the stem of the events that lengthen it."""
_STATUSES = frozenset({"completed", "failed", "in_progress", "cancelled", "queued", "incomplete"})
_CONTENT = frozenset({"refusal", "input_audio", "output_audio", "input_file", "input_image", "computer_screenshot"})
"""Types of pieces that stand in a message's content and are no items of their own."""
_MOST_PARTS = 4096
"""A part at an index past this is left out: room is never made for what a broken stream only claims."""


def _read_request(body: Json) -> Asked:
    asked = as_object(body)
    read_keys: set[str] = {"tools"} if isinstance(asked.get("tools"), list) else set()
    messages: list[Message] = []
    if isinstance(instructions := asked.get("instructions"), str):
        messages.append(Message(role="system", parts=(Text(instructions),)))
        read_keys.add("instructions")
    value = asked.get("input")
    if isinstance(value, str):
        messages.append(Message(role="user", parts=(Text(value),)))
        read_keys.add("input")
    elif isinstance(value, list):
        messages += [_item(item) for item in value]
        read_keys.add("input")
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=tuple(messages),
        tools=tuple(as_list(asked.get("tools"))),
        parameters=without(asked, read_keys),
        stream=asked.get("stream") is True,
    )


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    reason = as_text(at(reply, "incomplete_details", "reason")) or as_text(reply.get("status"))
    usage = reply.get("usage")
    return Answered(
        model=text_or_none(reply.get("model")),
        id=text_or_none(reply.get("id")),
        messages=tuple(_item(item) for item in as_list(reply.get("output"))),
        finish_reasons=(reason,) if reason else (),
        usage=Usage(
            prompt=first_count(usage, ("input_tokens",)),
            completion=first_count(usage, ("output_tokens",)),
            total=first_count(usage, ("total_tokens",)),
            cache_read=first_count(usage, ("input_tokens_details", "cached_tokens")),
            cache_write=first_count(usage, ("input_tokens_details", "cache_write_tokens")),
            reasoning=first_count(usage, ("output_tokens_details", "reasoning_tokens")),
        ),
    )


def _item(value: Json) -> Message:
    """Read one item of `input` or `output` as one message, so that their order and number stay."""
    item = as_object(value)
    kind = as_text(item.get("type")) or ("message" if "content" in item else "")
    if kind == "message":
        return Message(role=as_text(item.get("role")) or "assistant", parts=_parts(item.get("content")))
    if kind in _CALLS:
        call = ToolCall(
            id=as_text(item.get("call_id")) or as_text(item.get("id")),
            name=as_text(item.get("name")),
            arguments=text_or_json(item.get(_CALLS[kind])),
        )
        return Message(role="assistant", parts=(call,))
    if kind in ("function_call_output", "custom_tool_call_output"):
        output = _parts(item.get("output"))
        return Message(role="tool", parts=output, tool_call_id=text_or_none(item.get("call_id")))
    if kind == "reasoning":
        pieces = [*as_list(item.get("summary")), *as_list(item.get("content"))]
        thought = Reasoning(
            text="\n\n".join(text for piece in pieces if (text := as_text(at(piece, "text")))),
            id=text_or_none(item.get("id")),
            encrypted=text_or_none(item.get("encrypted_content")),
        )
        return Message(role="assistant", parts=(thought,))
    role = as_text(item.get("role")) or ("tool" if kind.endswith(("_output", "_response")) else "assistant")
    return Message(role=role, parts=(Opaque(value),))


def _parts(content: Json) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, list):
        return tuple(_part(part) for part in content)
    return () if content is None else (Opaque(content),)


def _part(part: Json) -> Part:
    if isinstance(part, str):
        return Text(part)
    fields = as_object(part)
    kind = as_text(fields.get("type"))
    if kind in _TEXTS and isinstance(text := fields.get("text"), str):
        return Text(text)
    if kind == "input_image" and (url := as_text(fields.get("image_url"))):
        return Media(modality="image", url=url, mime_type=media_type(url))
    if kind == "input_file" and (url := as_text(fields.get("file_data")) or as_text(fields.get("file_url"))):
        return Media(modality="document", url=url, mime_type=media_type(url), name=as_text(fields.get("filename")))
    return Opaque(part)


def _fold(events: Iterable[Json]) -> Json:
    """Give the response that the last event carries; where a stream ended early, build it from the items so far.

    A response that came without its `output` gets the items that were reported done, as in the SDK. An `error` event
    stays in the reply under `error`.
    """
    reply: dict[str, Json] = {}
    items: dict[int, dict[str, Json]] = {}
    for event in events:
        fields = as_object(event)
        kind = as_text(fields.get("type"))
        if kind in _LIFECYCLE:
            reply = as_object(fields.get("response"))
            if kind in _TERMINAL and isinstance(reply.get("output"), list):
                return reply
        elif kind == "error":
            reply = {**reply, "error": without(fields, ("type", "sequence_number"))}
        elif "error" in fields and not kind:
            reply = {**reply, "error": fields["error"]}
        else:
            _fold_item(items, kind, fields)
    if not items and "output" in reply:
        return reply
    return {**reply, "output": [items[index] for index in sorted(items)]} if reply or items else {}


def _fold_item(items: dict[int, dict[str, Json]], kind: str, event: dict[str, Json]) -> None:
    index = first_count(event, ("output_index",))
    if index is None:
        return
    if kind in ("response.output_item.added", "response.output_item.done"):
        if isinstance(item := event.get("item"), dict):
            items[index] = dict(item)
        return
    item = items.setdefault(index, {})
    stem, _, step = kind.rpartition(".")
    if stem in ("response.content_part", "response.reasoning_summary_part"):
        name = "content" if stem == "response.content_part" else "summary"
        part_index = first_count(event, ("content_index",), ("summary_index",)) or 0
        _set_part(item, name, part_index, dict(as_object(event.get("part"))))
    elif stem in _DELTAS and step in ("delta", "done"):
        _lengthen(item, _DELTAS[stem], step, event)


def _lengthen(item: dict[str, Json], field: str, step: str, event: dict[str, Json]) -> None:
    """Apply one delta, or the whole text that a `done` event repeats."""
    target, name, index = item, "", 0
    for name_of_list, index_name in (("content", "content_index"), ("summary", "summary_index")):
        if (position := first_count(event, (index_name,))) is not None:
            name, index = name_of_list, position
            parts = as_list(item.get(name))
            target = dict(as_object(parts[index])) if index < len(parts) else {}
    if step == "delta":
        target[field] = as_text(target.get(field)) + as_text(event.get("delta"))
    elif isinstance(whole := event.get(field), str):
        target[field] = whole
    if name:
        _set_part(item, name, index, target)


def _set_part(item: dict[str, Json], name: str, index: int, part: dict[str, Json]) -> None:
    if 0 <= index < _MOST_PARTS:
        parts: list[Json] = [*as_list(item.get(name))]
        parts += [{} for _ in range(index + 1 - len(parts))]
        parts[index] = part
        item[name] = parts


def _unfold(body: Json) -> bytes:
    """Spell a whole response as events: its beginning, what lengthens each item, its end."""
    reply = as_object(body)
    begun: Json = {**reply, "status": "in_progress", "output": [], "usage": None}
    status = as_text(reply.get("status"))
    ended = f"response.{status}" if f"response.{status}" in _TERMINAL else "response.completed"
    events: list[dict[str, Json]] = [{"type": "response.created", "response": begun}]
    events.append({"type": "response.in_progress", "response": begun})
    for index, item in enumerate(map(as_object, as_list(reply.get("output")))):
        events += ({"type": kind, "output_index": index, **fields} for kind, fields in _item_events(item))
    events.append({"type": ended, "response": {**reply, "output": as_list(reply.get("output"))}})
    numbered = ({**event, "sequence_number": number} for number, event in enumerate(events))
    return "".join(f"event: {event['type']}\ndata: {compact(event)}\n\n" for event in numbered).encode(
        "utf-8", "replace"
    )


def _item_events(item: dict[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    """Give the events of one item: that it is there, what lengthens it, that it is done."""
    item_id: dict[str, Json] = {"item_id": item.get("id")}
    kind = as_text(item.get("type"))
    field = _CALLS.get(kind, "")
    content = as_list(item.get("content")) if kind == "message" else []
    emptied: dict[str, Json] = {**({"content": []} if kind == "message" else {}), **({field: ""} if field else {})}
    yield "response.output_item.added", {"item": {**item, **emptied, "status": "in_progress"}}
    for place, part in enumerate(map(as_object, content)):
        here: dict[str, Json] = {**item_id, "content_index": place}
        text = part.get("text")
        is_text = part.get("type") == "output_text" and isinstance(text, str)
        yield "response.content_part.added", {**here, "part": {**part, "text": ""} if is_text else part}
        if is_text:
            yield "response.output_text.delta", {**here, "delta": text, "logprobs": []}
            yield "response.output_text.done", {**here, "text": text, "logprobs": []}
        yield "response.content_part.done", {**here, "part": part}
    if field and (stem := _STEMS.get(kind)):
        arguments = text_or_json(item.get(field))
        yield f"{stem}.delta", {**item_id, "delta": arguments}
        yield f"{stem}.done", {**item_id, field: arguments, "name": item.get("name")}
    yield "response.output_item.done", {"item": item}


def _read_said(body: Json) -> Said:
    parts = [part for item in as_list(as_object(body).get("output")) for part in _item(item).parts]
    texts = [part.text for part in parts if isinstance(part, Text)]
    return Said(
        text="".join(texts) if texts else None,
        calls=tuple(part for part in parts if isinstance(part, ToolCall)),
        finish=text_or_none(as_object(body).get("status")),
    )


def _write_said(body: Json, turn: Said) -> Json:
    """Change text in the first message and calls in their order; reasoning and what else there is stays."""
    before = _read_said(body)
    if turn == before:
        return body
    reply = as_object(body)
    items = as_list(reply.get("output"))
    if turn.text != before.text:
        items = _with_text(items, turn.text)
    if turn.calls != before.calls:
        items = _with_calls(items, turn.calls)
    start: dict[str, Json] = {"object": "response"}
    if not reply.keys() - {"model"}:
        start |= {"id": "resp_set", "created_at": 0, "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    return {**start, **reply, "output": items, "status": turn.finish}


def _with_text(items: list[Json], text: str | None) -> list[Json]:
    speaks = [any(isinstance(part, Text) for part in _item(item).parts) for item in items]
    calls = [any(isinstance(part, ToolCall) for part in _item(item).parts) for item in items]
    first = next((at for flags in (speaks, calls) for at, is_so in enumerate(flags) if is_so), len(items))
    original = as_object(items[first]) if first < len(items) and speaks[first] else {}
    rest = [item for at, item in enumerate(items) if not speaks[at]]
    if text is None:
        return rest
    part: Json = {"type": "output_text", "text": text, "annotations": []}
    start: dict[str, Json] = {"type": "message", "id": "msg_set", "role": "assistant", "status": "completed"}
    return [*rest[:first], {**start, **original, "content": [part]}, *rest[first:]]


def _with_calls(items: list[Json], calls: tuple[ToolCall, ...]) -> list[Json]:
    left, changed = [*calls], list[Json]()
    for item in items:
        read = next((part for part in _item(item).parts if isinstance(part, ToolCall)), None)
        if read is None:
            changed.append(item)
        elif left:
            call, original = left.pop(0), as_object(item)
            field = _CALLS[as_text(original.get("type"))]
            name = "call_id" if "call_id" in original else "id"
            fields: dict[str, Json] = {name: call.id, "name": call.name, field: call.arguments}
            changed.append(item if call == read else {**original, **fields})
    start: dict[str, Json] = {"type": "function_call", "status": "completed"}
    return [
        *changed,
        *(
            {**start, "id": f"fc_{call.id}", "call_id": call.id, "name": call.name, "arguments": call.arguments}
            for call in left
        ),
    ]


def _write_request(asked: Asked) -> Json:
    """Spell a request of which only the meaning was kept. A message that speaks and calls becomes several items."""
    body: dict[str, Json] = {} if asked.model is None else {"model": asked.model}
    body |= asked.parameters
    messages = [*asked.messages]
    match messages:
        case [Message(role="system", parts=(Text(text=text),)), *_]:
            body["instructions"] = text
            messages.pop(0)
        case _:
            pass
    body["input"] = [item for message in messages for item in _items(message, reply=False)]
    if asked.tools:
        body["tools"] = [_tool(tool) for tool in asked.tools]
    return body


def _tool(tool: Json) -> Json:
    """Spell a function's definition flat, as this API does; any other stays as it is."""
    function = at(tool, "function")
    return {"type": "function", **function} if isinstance(function, dict) else tool


def _write_reply(answered: Answered) -> Json:
    reason = answered.finish_reasons[0] if answered.finish_reasons else "completed"
    status = reason if reason in _STATUSES else "incomplete"
    usage = answered.usage
    counts: dict[str, int | None] = {
        "input_tokens": usage.prompt,
        "output_tokens": usage.completion,
        "total_tokens": usage.total,
    }
    usage_counts: dict[str, Json] = {name: count for name, count in counts.items() if count is not None}
    inputs = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
    outputs = {"reasoning_tokens": usage.reasoning}
    for name, details in (("input_tokens_details", inputs), ("output_tokens_details", outputs)):
        if detail_counts := {detail: count for detail, count in details.items() if count is not None}:
            usage_counts[name] = {**detail_counts}
    return {
        "id": answered.id,
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if status == "incomplete" and reason != status else None,
        "model": answered.model,
        "output": [item for message in answered.messages for item in _items(message, reply=True)],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage_counts or None,
    }


def _items(message: Message, *, reply: bool) -> Iterator[Json]:
    """Spell one message as the items that say it."""
    if message.role == "tool" and not any(isinstance(part, ToolCall) for part in message.parts):
        match message.parts:
            case (Opaque(json=dict(item)),) if _item(item) == message and as_text(item.get("type")) not in _CONTENT:
                yield item
            case parts:
                output = _content(parts, "input_text", short=True)
                yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": output}
        return
    pieces: list[Part] = []
    for part in message.parts:
        match part:
            case ToolCall():
                yield from _speech(message.role, pieces, reply=reply)
                pieces = []
                completion: dict[str, Json] = {"id": f"fc_{part.id}", "status": "completed"} if reply else {}
                call: dict[str, Json] = {"call_id": part.id, "name": part.name, "arguments": part.arguments}
                yield {"type": "function_call", **completion, **call}
            case Reasoning():
                yield from _speech(message.role, pieces, reply=reply)
                pieces = []
                summary: list[Json] = [{"type": "summary_text", "text": part.text}] if part.text else []
                sealed: dict[str, Json] = {} if part.encrypted is None else {"encrypted_content": part.encrypted}
                yield {"type": "reasoning", "id": part.id, "summary": summary, **sealed}
            case Opaque(json=dict(item)) if as_text(item.get("type")) not in _CONTENT and _item(item).parts == (part,):
                yield from _speech(message.role, pieces, reply=reply)
                pieces = []
                yield item
            case _:
                pieces.append(part)
    if pieces or not message.parts:
        yield from _speech(message.role, pieces, reply=reply, empty=True)


def _speech(role: str, parts: Sequence[Part], *, reply: bool, empty: bool = False) -> Iterator[Json]:
    """Spell what a message says in words and pictures, where it says any."""
    if not parts and not empty:
        return
    kind = "output_text" if role == "assistant" else "input_text"
    if reply:
        content = _content(parts, kind, short=False)
        yield {"type": "message", "id": "", "status": "completed", "role": role, "content": content}
    else:
        yield {"type": "message", "role": role, "content": _content(parts, kind, short=True)}


def _content(parts: Sequence[Part], kind: str, *, short: bool) -> Json:
    if short and len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    content: list[Json] = []
    for part in parts:
        match part:
            case Text(text=text):
                extra: dict[str, Json] = {"annotations": []} if kind == "output_text" else {}
                content.append({"type": kind, "text": text, **extra})
            case Media(modality="image"):
                content.append({"type": "input_image", "image_url": part.url})
            case Media():
                key = "file_data" if part.url.startswith("data:") else "file_url"
                name_field: dict[str, Json] = {"filename": part.name} if part.name else {}
                content.append({"type": "input_file", key: part.url, **name_field})
            case Opaque(json=json):
                content.append(json)
            case _:
                pass
    return content


SHAPE = Shape(
    name="openai.responses",
    system="openai",
    operation="chat",
    kind=CallKind.LLM,
    span_name="Response",
    paths=("/responses",),
    fields=("input", "prompt", "previous_response_id", "conversation", "model"),
    noise=frozenset({"user", "safety_identifier", "prompt_cache_key", "metadata"}),
    opaque=("encrypted_content", "signature", "obfuscation", "file_data", "b64_json", "partial_image_b64"),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    unfold=_unfold,
    write_request=_write_request,
    write_reply=_write_reply,
    wording=Wording(read=_read_said, write=_write_said, finishes=("completed", "completed")),
    credentials=("OPENAI_API_KEY",),
)
