"""Amazon Bedrock's Converse (`POST /model/MODEL/converse`, `/converse-stream`): one API for the models of all makers.

The model stands in the path. Written from the service's model in botocore.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reenact.contracts.shape import Framing, Shape, Wording
from reenact.values import event_stream
from reenact.values.call import CallKind
from reenact.values.json import Json, parsed_or_none
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

_MEDIA = ("image", "document", "video", "audio")
_FRAMING = Framing(media_type=event_stream.MEDIA_TYPE, events=event_stream.events)


def _read_request(body: Json) -> Asked:
    asked = as_object(body)
    system, config = asked.get("system"), asked.get("toolConfig")
    tools = at(config, "tools")
    prompt = [Message(role="system", parts=tuple(map(_part, system)))] if isinstance(system, list) and system else []
    messages = asked.get("messages")
    rest = without(as_object(config), ("tools",)) if isinstance(tools, list) else None
    read_keys = [
        *(["system"] if prompt else []),
        *(["messages"] if isinstance(messages, list) else []),
        *([] if rest is None else ["toolConfig"]),
    ]
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=(*prompt, *(message for turn in as_list(messages) for message in _messages(turn, "user"))),
        tools=tuple(as_list(tools)),
        parameters={**without(asked, read_keys), **({"toolConfig": rest} if rest else {})},
    )


def _messages(turn: Json, role: str) -> Iterator[Message]:
    """Read one turn; what tools answered are messages of their own, as everywhere else."""
    if not isinstance(turn, dict):
        yield Message(role=role, parts=(Opaque(turn),))
        return
    content = turn.get("content")
    own_parts: list[Part] = []
    answers: list[Message] = []
    for block in content if isinstance(content, list) else [] if content is None else [content]:
        if isinstance(result := at(block, "toolResult"), dict):
            answers.append(_answer(result, without(as_object(block), ("toolResult",))))
        else:
            own_parts.append(_part(block))
    if rest := without(turn, ("role", "content")):
        own_parts.append(Opaque(rest))
    if own_parts or not answers:
        yield Message(role=as_text(turn.get("role")) or role, parts=tuple(own_parts))
    yield from answers


def _answer(result: dict[str, Json], beside: dict[str, Json]) -> Message:
    parts = [_result(each) for each in as_list(result.get("content"))]
    unknown = {**beside, **without(result, ("toolUseId", "content"))}
    if as_text(unknown.get("status")) == "success":
        del unknown["status"]
    return Message(
        role="tool",
        parts=(*parts, *([Opaque(unknown)] if unknown else [])),
        tool_call_id=text_or_none(result.get("toolUseId")),
    )


def _result(block: Json) -> Part:
    fields = as_object(block)
    return Text(text_or_json(fields["json"])) if fields.keys() == {"json"} else _part(block)


def _part(block: Json) -> Part:
    if not isinstance(block, dict) or len(block) != 1:
        return Opaque(block)
    [(kind, value)] = block.items()
    if kind == "text" and isinstance(value, str):
        return Text(value)
    if kind == "toolUse" and isinstance(value, dict):
        return _tool_call(value)
    if kind == "reasoningContent" and isinstance(value, dict):
        text, signature = at(value, "reasoningText", "text"), at(value, "reasoningText", "signature")
        hidden = text_or_none(value.get("redactedContent"))
        is_known = isinstance(text, str) or hidden is not None
        if not is_known:
            return Opaque(block)
        seal = "signature" if text_or_none(signature) else "data"
        return Reasoning(text=as_text(text), encrypted=text_or_none(signature) or hidden, seal=seal)
    return (_media(kind, value) if kind in _MEDIA else None) or Opaque(block)


def _tool_call(call: dict[str, Json]) -> ToolCall:
    return ToolCall(
        id=as_text(call.get("toolUseId")), name=as_text(call.get("name")), arguments=text_or_json(call.get("input"))
    )


def _media(kind: str, block: Json) -> Media | None:
    form, source = as_text(at(block, "format")), at(block, "source")
    data, uri = as_text(at(source, "bytes")), as_text(at(source, "s3Location", "uri"))
    mime_type = f"{'application' if kind == 'document' else kind}/{form}" if form else ""
    url = f"data:{mime_type};base64,{data}" if data else uri
    return Media(modality=kind, url=url, mime_type=mime_type, name=as_text(at(block, "name"))) if url else None


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    message, reason = at(reply, "output", "message"), as_text(reply.get("stopReason"))
    usage = reply.get("usage")
    read = first_count(usage, ("cacheReadInputTokens",))
    cache_write = first_count(usage, ("cacheWriteInputTokens",))
    fresh = first_count(usage, ("inputTokens",))
    return Answered(
        model=text_or_none(reply.get("model")) or text_or_none(at(reply, "trace", "promptRouter", "invokedModelId")),
        id=text_or_none(reply.get("id")),
        messages=tuple(_messages(message, "assistant")) if message else (),
        finish_reasons=(reason,) if reason else (),
        usage=Usage(
            prompt=None if fresh is None else fresh + (read or 0) + (cache_write or 0),
            completion=first_count(usage, ("outputTokens",)),
            total=first_count(usage, ("totalTokens",)),
            cache_read=read,
            cache_write=cache_write,
        ),
    )


def _fold(events: Iterable[Json]) -> Json:
    """Join the deltas of each block into what would have come whole; an exception stays under its type."""
    reply: dict[str, Json] = {}
    message: dict[str, Json] = {}
    blocks: dict[int, dict[str, Json]] = {}
    for event in events:
        for kind, value in as_object(event).items():
            index = first_count(value, ("contentBlockIndex",)) or 0
            match kind:
                case "messageStart":
                    message = {**message, **without(as_object(value), ("p",))}
                case "contentBlockStart":
                    blocks[index] = {**blocks.get(index, {}), **as_object(at(value, "start"))}
                case "contentBlockDelta":
                    blocks[index] = _merged(blocks.get(index, {}), as_object(at(value, "delta")))
                case "contentBlockStop":
                    pass
                case "messageStop" | "metadata" if isinstance(value, dict):
                    reply |= without(value, ("p",))
                case _:
                    reply[kind] = value
    if message or blocks:
        content: list[Json] = [_whole(blocks[index]) for index in sorted(blocks)]
        reply["output"] = {"message": {**message, "content": content}}
    return reply


def _merged(block: dict[str, Json], delta: dict[str, Json]) -> dict[str, Json]:
    result = dict(block)
    for key, value in delta.items():
        before = result.get(key)
        if isinstance(before, str) and isinstance(value, str):
            result[key] = before + value
        elif isinstance(before, dict) and isinstance(value, dict):
            result[key] = {**before, **_merged({name: before[name] for name in value if name in before}, value)}
        elif isinstance(before, list) and isinstance(value, list):
            result[key] = [*before, *value]
        else:
            result[key] = value
    return result


def _whole(block: dict[str, Json]) -> Json:
    """Read the arguments of a call, and nest the text of a thought as a whole reply has it."""
    if isinstance(call := block.get("toolUse"), dict):
        text = call.get("input")
        read = parsed_or_none(text) if isinstance(text, str) else text
        arguments: Json = {} if text in ("", None) else text if read is None else read
        return {**block, "toolUse": {**call, "input": arguments}}
    if isinstance(thought := block.get("reasoningContent"), dict) and "text" in thought:
        reasoning = {name: thought[name] for name in ("text", "signature") if name in thought}
        return {**block, "reasoningContent": {**without(thought, ("text", "signature")), "reasoningText": reasoning}}
    return block


def _unfold(body: Json) -> bytes:
    """Spell a whole reply as events in Amazon's frames."""
    reply = as_object(body)
    message = as_object(at(reply, "output", "message"))
    events: list[tuple[str, Json]] = []
    if message:
        events.append(("messageStart", {"role": as_text(message.get("role")) or "assistant"}))
    for index, block in enumerate(map(as_object, as_list(message.get("content")))):
        placed: dict[str, Json] = {"contentBlockIndex": index}
        delta: Json = block
        if isinstance(call := block.get("toolUse"), dict):
            start: Json = {"toolUse": without(call, ("input",))}
            events.append(("contentBlockStart", {**placed, "start": start}))
            delta = {"toolUse": {"input": text_or_json(call.get("input"))}}
        elif isinstance(text := at(block, "reasoningContent", "reasoningText"), dict):
            delta = {"reasoningContent": text}
        events += [("contentBlockDelta", {**placed, "delta": delta}), ("contentBlockStop", placed)]
    ends = {name: reply[name] for name in ("stopReason", "additionalModelResponseFields") if name in reply}
    rest = without(reply, ("output", "stopReason", "additionalModelResponseFields"))
    events += [("messageStop", ends), ("metadata", rest)]
    return b"".join(event_stream.event_frame(kind, event) for kind, event in events)


def _content(body: Json) -> list[Json]:
    return as_list(at(body, "output", "message", "content"))


def _read_said(body: Json) -> Said:
    parts = [_part(block) for block in _content(body)]
    texts = [part.text for part in parts if isinstance(part, Text)]
    return Said(
        text="".join(texts) if texts else None,
        calls=tuple(part for part in parts if isinstance(part, ToolCall)),
        finish=text_or_none(at(body, "stopReason")),
    )


def _write_said(body: Json, turn: Said) -> Json:
    """Change text in its first block and calls in their order; what else there is stays."""
    before = _read_said(body)
    if turn == before:
        return body
    blocks = _content(body)
    if turn.text != before.text:
        blocks = _with_text(blocks, turn.text)
    if turn.calls != before.calls:
        blocks = _with_calls(blocks, turn.calls)
    message: dict[str, Json] = {"role": "assistant", **as_object(at(body, "output", "message")), "content": blocks}
    reply = as_object(body)
    return {**reply, "output": {**as_object(reply.get("output")), "message": message}, "stopReason": turn.finish}


def _with_text(blocks: list[Json], text: str | None) -> list[Json]:
    places = [place for place, block in enumerate(blocks) if isinstance(_part(block), Text)]
    calls = [place for place, block in enumerate(blocks) if isinstance(_part(block), ToolCall)]
    first = next(iter([*places, *calls]), len(blocks))
    rest = [block for place, block in enumerate(blocks) if place not in places]
    return rest if text is None else [*rest[:first], {"text": text}, *rest[first:]]


def _with_calls(blocks: list[Json], calls: tuple[ToolCall, ...]) -> list[Json]:
    left, changed = [*calls], list[Json]()
    for block in blocks:
        if not isinstance(read := _part(block), ToolCall):
            changed.append(block)
        elif left:
            call = left.pop(0)
            fields = as_object(as_object(block)["toolUse"])
            changed.append(block if call == read else {"toolUse": {**fields, **_call_json(call)}})
    return [*changed, *({"toolUse": _call_json(call)} for call in left)]


def _call_json(call: ToolCall) -> dict[str, Json]:
    arguments = parsed_or_none(call.arguments)
    return {"toolUseId": call.id, "name": call.name, "input": call.arguments if arguments is None else arguments}


def _write_request(asked: Asked) -> Json:
    """Spell a request of which only the meaning was kept."""
    body: dict[str, Json] = {} if asked.model is None else {"model": asked.model}
    body |= asked.parameters
    messages = [*asked.messages]
    if messages and messages[0].role == "system":
        body["system"] = [_block(part) for part in messages.pop(0).parts]
    body["messages"] = [_turn(message) for message in messages]
    if asked.tools:
        body["toolConfig"] = {**as_object(body.get("toolConfig")), "tools": [_tool(tool) for tool in asked.tools]}
    return body


def _tool(tool: Json) -> Json:
    """Spell a function's definition as Bedrock does; any other stays as it is."""
    function = as_object(at(tool, "function"))
    if not function:
        return tool
    definition: dict[str, Json] = {name: function[name] for name in ("name", "description") if name in function}
    schema: dict[str, Json] = {"inputSchema": {"json": function["parameters"]}} if "parameters" in function else {}
    return {"toolSpec": {**definition, **schema}}


def _turn(message: Message) -> Json:
    if message.role != "tool":
        return {"role": message.role, "content": [_block(part) for part in message.parts]}
    content = [part for part in message.parts if not isinstance(part, Opaque)]
    rest = {
        name: item for part in message.parts if isinstance(part, Opaque) for name, item in as_object(part.json).items()
    }
    result: Json = {"toolUseId": message.tool_call_id, "content": [_block(part) for part in content], **rest}
    return {"role": "user", "content": [{"toolResult": result}]}


def _block(part: Part) -> Json:
    match part:
        case Text(text=text):
            return {"text": text}
        case Reasoning(text="", encrypted=str(hidden)):
            return {"reasoningContent": {"redactedContent": hidden}}
        case Reasoning(text=text, encrypted=signature):
            signed: dict[str, Json] = {} if signature is None else {"signature": signature}
            return {"reasoningContent": {"reasoningText": {"text": text, **signed}}}
        case Media():
            head, _, data = part.url.partition(";base64,")
            source: Json = {"bytes": data} if data and head.startswith("data:") else {"s3Location": {"uri": part.url}}
            name_field: dict[str, Json] = {"name": part.name} if part.name else {}
            return {part.modality: {"format": part.mime_type.partition("/")[2], "source": source, **name_field}}
        case ToolCall():
            return {"toolUse": _call_json(part)}
        case Opaque(json=json):
            return json


def _write_reply(answered: Answered) -> Json:
    usage = answered.usage
    fresh = None if usage.prompt is None else usage.prompt - (usage.cache_read or 0) - (usage.cache_write or 0)
    counts = {
        "inputTokens": fresh,
        "outputTokens": usage.completion,
        "totalTokens": usage.total,
        "cacheReadInputTokens": usage.cache_read,
        "cacheWriteInputTokens": usage.cache_write,
    }
    message = answered.messages[0] if answered.messages else Message(role="assistant")
    labels = {"model": answered.model, "id": answered.id}
    return {
        **{name: label for name, label in labels.items() if label},
        "output": {"message": _turn(message)},
        "stopReason": answered.finish_reasons[0] if answered.finish_reasons else None,
        "usage": {name: count for name, count in counts.items() if count is not None},
    }


SHAPE = Shape(
    name="aws.bedrock.converse",
    system="aws.bedrock",
    operation="chat",
    kind=CallKind.LLM,
    span_name="Converse",
    paths=("/converse",),
    before="model/[^/]+",
    needs=(b'"messages"',),
    noise=frozenset({"requestMetadata"}),
    opaque=("bytes", "signature", "redactedContent"),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    is_stream=lambda _: False,
    framing=_FRAMING,
    unfold=_unfold,
    write_request=_write_request,
    write_reply=_write_reply,
    wording=Wording(read=_read_said, write=_write_said, finishes=("tool_use", "end_turn")),
    stream_ends=(),
    credentials=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
)

STREAM = Shape(
    name="aws.bedrock.converse_stream",
    system=SHAPE.system,
    operation=SHAPE.operation,
    kind=SHAPE.kind,
    span_name="ConverseStream",
    paths=("/converse-stream",),
    before="model/[^/]+",
    needs=SHAPE.needs,
    noise=SHAPE.noise,
    opaque=SHAPE.opaque,
    read_request=lambda body: replace(_read_request(body), stream=True),
    read_reply=_read_reply,
    fold=_fold,
    is_stream=lambda _: True,
    framing=_FRAMING,
    api=SHAPE.name,
    unfold=_unfold,
    write_request=_write_request,
    write_reply=_write_reply,
    wording=SHAPE.wording,
    stream_ends=(),
    credentials=SHAPE.credentials,
)
"""The same question, asked for an answer in pieces."""
