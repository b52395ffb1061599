"""OpenAI's chat completions (`POST /v1/chat/completions`) and the many providers that speak the same JSON.

Written from the OpenAPI description of OpenAI's API and the types of its SDK; the fields that Mistral, Groq, DeepSeek,
OpenRouter, vLLM and Azure add are read where they say the same thing, and kept otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reenact.contracts.shape import Shape, Wording
from reenact.values.call import CallKind
from reenact.values.json import Json, compact
from reenact.values.lenient import (
    as_list,
    as_object,
    as_text,
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

_MESSAGE_KEYS = frozenset(
    {
        "role",
        "content",
        "name",
        "tool_call_id",
        "tool_calls",
        "function_call",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
    },
)
_WHOLE = frozenset({"id", "index", "type", "role", "object", "finish_reason", "format", "signature"})
"""Delta strings that arrive whole; every other string arrives in pieces."""
_FIRST = frozenset({"id", "object", "created", "model"})
"""Fields of a chunk whose first true value stands for the reply (Azure opens with empty ones)."""
_DEEPEST = 32
"""Deltas nested deeper are replaced, not merged; no provider goes past 6."""


def _read_request(body: Json) -> Asked:
    asked = as_object(body)
    read_keys = {key for key in ("messages", "tools", "functions") if isinstance(asked.get(key), list)}
    tools = [tool for key in ("tools", "functions") if key in read_keys for tool in as_list(asked[key])]
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=tuple(_message(message, "user") for message in as_list(asked.get("messages"))),
        tools=tuple(tools),
        parameters=without(asked, read_keys),
        stream=asked.get("stream") is True,
    )


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    choices = [as_object(choice) for choice in as_list(reply.get("choices"))]
    return Answered(
        model=text_or_none(reply.get("model")),
        id=text_or_none(reply.get("id")),
        messages=tuple(_message(choice["message"], "assistant") for choice in choices if choice.get("message")),
        finish_reasons=tuple(reason for choice in choices if (reason := as_text(choice.get("finish_reason")))),
        usage=_usage(reply.get("usage") or as_object(reply.get("x_groq")).get("usage")),
    )


def _usage(usage: Json) -> Usage:
    return Usage(
        prompt=first_count(usage, ("prompt_tokens",)),
        completion=first_count(usage, ("completion_tokens",)),
        total=first_count(usage, ("total_tokens",)),
        cache_read=first_count(usage, ("prompt_tokens_details", "cached_tokens"), ("prompt_cache_hit_tokens",)),
        cache_write=first_count(usage, ("prompt_tokens_details", "cache_write_tokens")),
        reasoning=first_count(usage, ("completion_tokens_details", "reasoning_tokens")),
        prompt_audio=first_count(usage, ("prompt_tokens_details", "audio_tokens")),
        completion_audio=first_count(usage, ("completion_tokens_details", "audio_tokens")),
    )


def _message(value: Json, role: str) -> Message:
    if not isinstance(value, dict):
        return Message(role=role, parts=(Opaque(value),))
    parts: list[Part] = _reasoning(value)
    content = value.get("content")
    if isinstance(content, list):
        parts += [_part(part) for part in content]
    elif isinstance(content, str):
        parts.append(Text(content))
    elif content is not None:
        parts.append(Opaque(content))
    parts += [_tool_call(call) for call in as_list(value.get("tool_calls"))]
    if isinstance(function := value.get("function_call"), dict):
        parts.append(_tool_call({"id": "", "function": function}))
    unknown = without(value, _MESSAGE_KEYS).items()
    rest: dict[str, Json] = {key: item for key, item in unknown if item not in (None, [], {}, "")}
    if rest:
        parts.append(Opaque(rest))
    return Message(
        role=as_text(value.get("role")) or role,
        parts=tuple(parts),
        name=text_or_none(value.get("name")),
        tool_call_id=text_or_none(value.get("tool_call_id")),
    )


def _reasoning(message: dict[str, Json]) -> list[Part]:
    """Read DeepSeek's and vLLM's `reasoning_content`, Groq's `reasoning`, OpenRouter's `reasoning_details`."""
    details = [as_object(detail) for detail in as_list(message.get("reasoning_details"))]
    if details:
        return [
            Reasoning(
                text=as_text(detail.get("text")) or as_text(detail.get("summary")),
                id=text_or_none(detail.get("id")),
                encrypted=text_or_none(detail.get("data") or detail.get("signature")),
                seal="data" if detail.get("data") else "signature" if detail.get("signature") else "",
            )
            for detail in details
        ]
    text = as_text(message.get("reasoning_content")) or as_text(message.get("reasoning"))
    return [Reasoning(text=text)] if text else []


def _part(part: Json) -> Part:
    if not isinstance(part, dict):
        return Text(part) if isinstance(part, str) else Opaque(part)
    kind = part.get("type")
    if kind == "text" and isinstance(text := part.get("text"), str):
        return Text(text)
    if kind == "thinking":  # Mistral: a list of text parts
        pieces = [as_text(as_object(piece).get("text")) for piece in as_list(part.get("thinking"))]
        return Reasoning(text="".join(pieces) or as_text(part.get("thinking")))
    return _media(part) or Opaque(part)


def _media(part: dict[str, Json]) -> Media | None:
    kind = as_text(part.get("type"))
    if kind in ("image_url", "video_url", "audio_url", "document_url"):
        source = part.get(kind)
        url = source if isinstance(source, str) else as_text(as_object(source).get("url"))
        return Media(modality=kind.removesuffix("_url"), url=url, mime_type=media_type(url)) if url else None
    if kind == "input_audio":
        audio = as_object(part.get("input_audio"))
        mime_type = f"audio/{as_text(audio.get('format')) or 'wav'}"
        data = as_text(audio.get("data"))
        return Media(modality="audio", url=f"data:{mime_type};base64,{data}", mime_type=mime_type) if data else None
    if kind == "file":
        file = as_object(part.get("file"))
        url = as_text(file.get("file_data"))
        name = as_text(file.get("filename"))
        return Media(modality="document", url=url, mime_type=media_type(url), name=name) if url else None
    return None


def _tool_call(call: Json) -> Part:
    """Read a function call, or a custom tool's call, whose free text stands in for the arguments."""
    value = as_object(call)
    for key, argument in (("function", "arguments"), ("custom", "input")):
        if isinstance(details := value.get(key), dict):
            return ToolCall(
                id=as_text(value.get("id")),
                name=as_text(details.get("name")),
                arguments=text_or_json(details.get(argument)),
            )
    return Opaque(call)


def _fold(events: Iterable[Json]) -> Json:
    """Join chunks into the reply that would have come whole.

    As the SDK's accumulator does it, but for what that gets wrong: fields that arrive whole in every chunk (`role`,
    a tool call's `id`) are not strung together, and numbers are not added up. The chunks' own `index` of tool calls
    and `obfuscation` are no part of a whole reply. An `error` event stays in the reply under `error`.
    """
    reply: dict[str, Json] = {}
    choices: dict[int, dict[str, Json]] = {}
    for event in events:
        for key, value in as_object(event).items():
            if key == "choices":
                reply.setdefault(key, [])
                for choice in as_list(value):
                    _fold_choice(choices, as_object(choice))
            elif key not in reply or (not reply[key] if key in _FIRST else value is not None):
                reply[key] = value
    reply.pop("obfuscation", None)
    if isinstance(name := reply.get("object"), str):
        reply["object"] = name.removesuffix(".chunk")
    if choices:
        reply["choices"] = [_whole_choice(choices[index]) for index in sorted(choices)]
    return reply


def _unfold(body: Json) -> bytes:
    """Spell a whole reply as chunks: for each choice what it says, then why it ended."""
    reply = as_object(body)
    head: dict[str, Json] = {**without(reply, ("choices", "usage", "object")), "object": "chat.completion.chunk"}
    chunks: list[dict[str, Json]] = []
    for place, choice in enumerate(map(as_object, as_list(reply.get("choices")))):
        delta = dict(as_object(choice.get("message")))
        calls = as_list(delta.get("tool_calls"))
        if calls:
            delta["tool_calls"] = [{"index": index, **as_object(call)} for index, call in enumerate(calls)]
        index: Json = choice.get("index", place)
        main: dict[str, Json] = {**without(choice, ("message",)), "index": index, "delta": delta, "finish_reason": None}
        ended: dict[str, Json] = {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason")}
        chunks.append({**head, "choices": [main]})
        chunks.append({**head, "choices": [ended]})
    if reply.get("usage") is not None:
        chunks.append({**head, "choices": [], "usage": reply["usage"]})
    return "".join(f"data: {compact(chunk)}\n\n" for chunk in chunks).encode("utf-8", "replace") + b"data: [DONE]\n\n"


def _fold_choice(choices: dict[int, dict[str, Json]], chunk: dict[str, Json]) -> None:
    index = first_count(chunk, ("index",)) or 0
    choice = choices.setdefault(index, {"index": index})
    for key, value in chunk.items():
        if key in ("delta", "message"):
            message = as_object(choice.get("message"))
            choice["message"] = _merged(message, as_object(value)) if message else _merged({}, as_object(value))
        elif key == "logprobs":
            choice[key] = _merged(as_object(choice.get(key)), value) if isinstance(value, dict) else choice.get(key)
        elif value is not None or key not in choice:
            choice[key] = value


def _whole_choice(choice: dict[str, Json]) -> Json:
    message = as_object(choice.get("message"))
    if isinstance(calls := message.get("tool_calls"), list):
        whole: list[Json] = [without(as_object(call), ("index",)) for call in calls]
        choice = {**choice, "message": {**message, "tool_calls": whole}}
    return choice


def _merged(fields: dict[str, Json], delta: dict[str, Json], depth: int = 0) -> dict[str, Json]:
    """Give what was held so far with a further delta; neither is changed."""
    result = dict(fields)
    for key, value in delta.items():
        before = result.get(key)
        if before is None and isinstance(value, list):
            before = []
        if value is None or depth > _DEEPEST:
            result.setdefault(key, value)
        elif isinstance(before, str) and isinstance(value, str):
            result[key] = (value or before) if key in _WHOLE else before + value
        elif isinstance(before, dict) and isinstance(value, dict):
            result[key] = _merged(before, value, depth + 1)
        elif isinstance(value, list) and isinstance(before, list | str):
            result[key] = _joined(before, value, depth)
        else:
            result[key] = value
    return result


def _joined(before: list[Json] | str, delta: list[Json], depth: int) -> list[Json]:
    """Join entries by their `index`; entries without one are new, or go on with the last where they name no `id`."""
    entries: list[Json] = [*before] if isinstance(before, list) else ([{"type": "text", "text": before}] * bool(before))
    for entry in delta:
        place = _place(entries, entry)
        if place is None:
            entries.append(_merged({}, entry, depth + 1) if isinstance(entry, dict) else entry)
        else:
            entries[place] = _merged(as_object(entries[place]), as_object(entry), depth + 1)
    return entries


def _place(entries: list[Json], entry: Json) -> int | None:
    if not isinstance(entry, dict):
        return None
    if "index" in entry:
        wanted = entry["index"]
        return next((at for at, other in enumerate(entries) if as_object(other).get("index", at) == wanted), None)
    going_on = "function" in entry and not entry.get("id") and bool(entries)
    return len(entries) - 1 if going_on else None


def _read_said(body: Json) -> Said:
    """Read the first choice, less what its text holds beside plain text."""
    choice = as_object(next(iter(as_list(as_object(body).get("choices"))), None))
    message = as_object(choice.get("message"))
    texts = [part.text for part in _message(message, "assistant").parts if isinstance(part, Text)]
    calls = (_tool_call(call) for call in as_list(message.get("tool_calls")))
    return Said(
        text="".join(texts) if texts else None,
        calls=tuple(call if isinstance(call, ToolCall) else ToolCall(id="", name="", arguments="") for call in calls),
        finish=text_or_none(choice.get("finish_reason")),
    )


def _write_said(body: Json, turn: Said) -> Json:
    reply, before = as_object(body), _read_said(body)
    if turn == before:
        return body
    choices = as_list(reply.get("choices")) or [{"index": 0}]
    choice = as_object(choices[0])
    message: dict[str, Json] = {"role": "assistant", **as_object(choice.get("message"))}
    if turn.text != before.text or "content" not in message:
        message["content"] = turn.text
    if turn.calls != before.calls:
        originals = as_list(message.pop("tool_calls", None))
        calls = [_called(originals[at] if at < len(originals) else None, call) for at, call in enumerate(turn.calls)]
        message |= {"tool_calls": calls} if calls else {}
    changed: Json = {**choice, "message": message, "finish_reason": turn.finish}
    start: dict[str, Json] = {"id": "chatcmpl-set", "object": "chat.completion", "created": 0}
    return {**({} if reply.keys() - {"model"} else start), **reply, "choices": [changed, *choices[1:]]}


def _called(original: Json, call: ToolCall) -> Json:
    """Spell a tool call, by one that stood in its place where there was one."""
    before = as_object(original)
    key, argument = ("custom", "input") if "custom" in before else ("function", "arguments")
    details: Json = {**as_object(before.get(key)), "name": call.name, argument: call.arguments}
    return {**before, "id": call.id, "type": key, key: details} if _tool_call(original) != call else original


def write_request(asked: Asked) -> dict[str, Json]:
    """Spell a request body of which only the meaning was kept. Reading it gives `asked` back."""
    body: dict[str, Json] = {} if asked.model is None else {"model": asked.model}
    body |= asked.parameters
    body["messages"] = [_message_json(message) for message in asked.messages]
    if asked.tools:
        body["tools"] = [*asked.tools]
    return body


def write_reply(answered: Answered) -> dict[str, Json]:
    """Spell a whole reply of which only the meaning was kept. What SDKs insist on and nobody said is empty."""
    reply: dict[str, Json] = {"id": answered.id, "object": "chat.completion", "created": 0, "model": answered.model}
    choices: list[Json] = []
    for index, message in enumerate(answered.messages):
        reason = answered.finish_reasons[index] if index < len(answered.finish_reasons) else None
        choices.append({"index": index, "message": _message_json(message), "finish_reason": reason})
    reply["choices"] = choices
    if usage := _usage_json(answered.usage):
        reply["usage"] = usage
    return reply


def _usage_json(usage: Usage) -> dict[str, Json]:
    def counted(**counts: int | None) -> dict[str, Json]:
        return {name: count for name, count in counts.items() if count is not None}

    prompt = counted(
        cached_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        audio_tokens=usage.prompt_audio,
    )
    completion = counted(reasoning_tokens=usage.reasoning, audio_tokens=usage.completion_audio)
    total = counted(prompt_tokens=usage.prompt, completion_tokens=usage.completion, total_tokens=usage.total)
    details = {"prompt_tokens_details": prompt, "completion_tokens_details": completion}
    return {**total, **{name: entries for name, entries in details.items() if entries}}


def _message_json(message: Message) -> Json:
    spelled: dict[str, Json] = {"role": message.role}
    content: list[Json] = []
    calls: list[Json] = []
    spelled |= _thoughts_json([part for part in message.parts if isinstance(part, Reasoning)])
    for part in message.parts:
        match part:
            case Text(text=text):
                content.append({"type": "text", "text": text})
            case Reasoning():
                pass
            case Media():
                content.append(_media_json(part))
            case ToolCall():
                function: Json = {"name": part.name, "arguments": part.arguments}
                calls.append({"id": part.id, "type": "function", "function": function})
            case Opaque(json=json) if isinstance(json, dict) and "type" not in json and not json.keys() & _MESSAGE_KEYS:
                spelled |= json  # a field of the message that this version does not know
            case Opaque(json=json):
                content.append(json)
    only = as_object(content[0]) if len(content) == 1 else {}
    plain = only.get("type") == "text" and isinstance(only.get("text"), str)
    spelled["content"] = only["text"] if plain else (content or None)
    if calls:
        spelled["tool_calls"] = calls
    optional_fields = {"name": message.name, "tool_call_id": message.tool_call_id}
    return spelled | {key: value for key, value in optional_fields.items() if value is not None}


def _thoughts_json(thoughts: list[Reasoning]) -> dict[str, Json]:
    if len(thoughts) <= 1 and not any(thought.id or thought.encrypted for thought in thoughts):
        return {"reasoning_content": thoughts[0].text} if thoughts else {}
    details: list[Json] = [
        {
            "type": "reasoning.text" if thought.text else "reasoning.encrypted",
            "text": thought.text,
            **({} if thought.id is None else {"id": thought.id}),
            **({} if thought.encrypted is None else {"data": thought.encrypted}),
        }
        for thought in thoughts
    ]
    return {"reasoning_details": details}


def _media_json(media: Media) -> Json:
    head, _, data = media.url.partition(";base64,")
    if media.modality == "audio" and head.startswith("data:audio/"):
        return {"type": "input_audio", "input_audio": {"data": data, "format": head.removeprefix("data:audio/")}}
    if media.modality == "document" and media.url.startswith("data:"):
        return {"type": "file", "file": {"file_data": media.url, **({"filename": media.name} if media.name else {})}}
    kind = f"{media.modality}_url"
    return {"type": kind, kind: {"url": media.url}}


SHAPE = Shape(
    name="openai.chat",
    system="openai",
    operation="chat",
    kind=CallKind.LLM,
    span_name="ChatCompletion",
    paths=("/chat/completions",),
    fields=("messages",),
    noise=frozenset({"user", "safety_identifier", "prompt_cache_key", "metadata"}),
    opaque=("encrypted_content", "signature", "obfuscation", "file_data", "b64_json"),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    unfold=_unfold,
    write_request=write_request,
    write_reply=write_reply,
    wording=Wording(read=_read_said, write=_write_said, finishes=("tool_calls", "stop")),
    credentials=("OPENAI_API_KEY",),
)


def _named(body: Json) -> dict[str, Json]:
    """Give a body of watsonx's with its model under OpenAI's word."""
    fields = as_object(body)
    return {"model": fields["model_id"], **without(fields, ("model_id",))} if "model_id" in fields else fields


def _read_named(body: Json) -> Asked:
    return _read_request(_named(body))


def _read_named_stream(body: Json) -> Asked:
    return replace(_read_named(body), stream=True)


def _always(body: Json) -> bool:
    """Say that the path asks for a stream."""
    del body
    return True


def _read_named_reply(body: Json) -> Answered:
    return _read_reply(_named(body))


def _unfold_unended(body: Json) -> bytes:
    """Spell a whole reply as chunks, with no word for their end: watsonx's stream just ends."""
    return _unfold(body).removesuffix(b"data: [DONE]\n\n")


WATSONX = Shape(
    name="watsonx.chat",
    system="watsonx",
    genai_provider="ibm.watsonx.ai",
    operation=SHAPE.operation,
    kind=SHAPE.kind,
    span_name="TextChat",
    paths=("/text/chat",),
    fields=SHAPE.fields,
    noise=frozenset(),
    opaque=SHAPE.opaque,
    read_request=_read_named,
    read_reply=_read_named_reply,
    fold=_fold,
    is_stream=lambda _: False,
    unfold=_unfold_unended,
    wording=SHAPE.wording,
    stream_ends=(),
)
"""IBM watsonx's chat, OpenAI's but for the word for its model; of a deployment the path names it."""

WATSONX_STREAM = replace(
    WATSONX,
    name="watsonx.chat_stream",
    span_name="TextChatStream",
    paths=("/text/chat_stream",),
    read_request=_read_named_stream,
    is_stream=_always,
    api=WATSONX.name,
)
"""The same question, asked for an answer in pieces."""
