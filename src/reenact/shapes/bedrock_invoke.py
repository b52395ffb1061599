"""Amazon Bedrock's `InvokeModel` (`POST /model/MODEL/invoke`) for models that are asked in their makers' own words.

Those of Nova, Titan, Llama, Mistral, Cohere, AI21, DeepSeek and what speaks like one of them; Anthropic's stand with
Anthropic's. Which it is the keys of a body tell. What is not understood stays a parameter, and the reply as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from reenact.contracts.shape import Framing, Shape
from reenact.values import event_stream
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, as_text, at, first_count, text_or_json, text_or_none, without
from reenact.values.message import Answered, Asked, Message, Opaque, Part, Text, ToolCall, Usage

_PROMPTS = ("prompt", "inputText", "message")
"""Where a request is one text: Llama's and Mistral's, Titan's, Cohere's."""
_TEXTS = ("generation", "outputText", "text", "completion")
"""Where a reply, or a piece of one, is one text: Llama's, Titan's, Cohere's and Mistral's."""
_METRICS = "amazon-bedrock-invocationMetrics"
_PROMPT_COUNTS = (
    ("prompt_token_count",),
    ("inputTextTokenCount",),
    ("usage", "inputTokens"),
    ("usage", "prompt_tokens"),
    (_METRICS, "inputTokenCount"),
)
_COUNTS = (
    ("generation_token_count",),
    ("totalOutputTextTokenCount",),
    ("tokenCount",),
    ("usage", "outputTokens"),
    ("usage", "completion_tokens"),
    (_METRICS, "outputTokenCount"),
)
_FRAMING = Framing(media_type=event_stream.MEDIA_TYPE, events=event_stream.events)


def _read_request(body: Json) -> Asked:
    asked = as_object(body)
    system, messages = asked.get("system"), asked.get("messages")
    turns: list[Message] = []
    read_keys: list[str] = []
    if isinstance(system, list) and system:
        turns.append(Message(role="system", parts=tuple(map(_part, system))))
        read_keys.append("system")
    turns += [
        Message(role=_role(turn), parts=(Text(as_text(at(turn, "message"))),))
        for turn in as_list(asked.get("chat_history"))
    ]
    if isinstance(messages, list):
        turns += [_message(message, "user") for message in messages]
        read_keys.append("messages")
    elif name := next((name for name in _PROMPTS if isinstance(asked.get(name), str)), ""):
        turns.append(Message(role="user", parts=(Text(as_text(asked[name])),)))
        read_keys.append(name)
    tools = asked.get("tools")
    definitions = tools if isinstance(tools, list) else as_list(at(asked, "toolConfig", "tools"))
    read_keys += [name for name in ("chat_history", "tools") if isinstance(asked.get(name), list)]
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=tuple(turns),
        tools=tuple(definitions),
        parameters=without(asked, read_keys),
    )


def _role(turn: Json) -> str:
    role = as_text(at(turn, "role")).lower()
    return "assistant" if role in ("chatbot", "assistant", "model") else role or "user"


def _message(value: Json, role: str) -> Message:
    if not isinstance(value, dict):
        return Message(role=role, parts=(Opaque(value),))
    content = value.get("content")
    parts: list[Part] = [Text(content)] if isinstance(content, str) and content else []
    parts += [_part(block) for block in as_list(content)]
    for call in map(as_object, as_list(value.get("tool_calls"))):
        function = as_object(call.get("function"))
        parts.append(
            ToolCall(
                id=as_text(call.get("id")),
                name=as_text(function.get("name")),
                arguments=text_or_json(function.get("arguments")),
            )
        )
    rest: dict[str, Json] = {
        name: item
        for name, item in without(value, ("role", "content", "tool_calls", "tool_call_id")).items()
        if item is not None
    }
    return Message(
        role=as_text(value.get("role")) or role,
        parts=(*parts, *([Opaque(rest)] if rest else [])),
        tool_call_id=text_or_none(value.get("tool_call_id")),
    )


def _part(block: Json) -> Part:
    """Read a block as Nova and as others spell it."""
    fields = as_object(block)
    if isinstance(text := fields.get("text"), str) and fields.keys() <= {"text", "type"}:
        return Text(text)
    if fields.keys() == {"toolUse"} and isinstance(call := fields["toolUse"], dict):
        return ToolCall(
            id=as_text(call.get("toolUseId")),
            name=as_text(call.get("name")),
            arguments=text_or_json(call.get("input")),
        )
    return Opaque(block)


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    result = as_object(next(iter(as_list(reply.get("results"))), None))
    outputs = [as_object(each) for each in as_list(reply.get("outputs")) or as_list(reply.get("generations"))]
    choices = [as_object(each) for each in as_list(reply.get("choices"))]
    message = at(reply, "output", "message")
    messages: list[Message] = []
    if isinstance(message, dict):
        messages.append(_message(message, "assistant"))
    messages += [_message(choice["message"], "assistant") for choice in choices if choice.get("message")]
    for each in (reply, result, *outputs):
        text = next((each[name] for name in _TEXTS if isinstance(each.get(name), str)), None)
        if isinstance(text, str):
            messages.append(Message(role="assistant", parts=(Text(text),)))
    fields = {**result, **reply}
    prompt = first_count(fields, *_PROMPT_COUNTS)
    return Answered(
        model=text_or_none(reply.get("model")),
        id=text_or_none(reply.get("id")) or text_or_none(reply.get("generation_id")),
        messages=tuple(messages),
        finish_reasons=tuple(_reasons([reply, result, *outputs, *choices])),
        usage=Usage(
            prompt=prompt,
            completion=first_count(fields, *_COUNTS),
            total=first_count(fields, ("usage", "totalTokens"), ("usage", "total_tokens")),
            cache_read=first_count(fields, ("usage", "cacheReadInputTokenCount")),
            cache_write=first_count(fields, ("usage", "cacheWriteInputTokenCount")),
        ),
    )


def _reasons(objects: Iterable[dict[str, Json]]) -> Iterable[str]:
    for each in objects:
        for name in ("stop_reason", "stopReason", "completionReason", "finish_reason"):
            if reason := as_text(each.get(name)):
                yield reason
                break


def _fold(events: Iterable[Json]) -> Json:
    """Join the pieces into the reply that would have come whole; texts are strung together, of all else the last holds.

    Nova's events are those of Converse, and make its message.
    """
    reply: dict[str, Json] = {}
    blocks: dict[int, Json] = {}
    role = "assistant"
    for event in map(as_object, events):
        for name, value in event.items():
            if name in _OF_BLOCKS:
                _into_blocks(blocks, name, value)
            elif name == "messageStart":
                role = as_text(at(value, "role")) or role
            elif name in ("messageStop", "metadata") and isinstance(value, dict):
                reply |= value
            elif name in _JOINED and isinstance(value, list):
                reply[name] = [*_JOINED[name](as_list(reply.get(name)), value)]
            elif name in _TEXTS and isinstance(value, str):
                reply[name] = as_text(reply.get(name)) + value
            elif value is not None or name not in reply:
                reply[name] = value
    if blocks:
        content = [blocks[index] for index in sorted(blocks)]
        reply["output"] = {"message": {"role": role, "content": content}}
    return reply


_OF_BLOCKS = frozenset({"contentBlockStart", "contentBlockDelta", "contentBlockStop"})


def _into_blocks(blocks: dict[int, Json], name: str, value: Json) -> None:
    index = first_count(value, ("contentBlockIndex",)) or 0
    if name == "contentBlockStart":
        blocks[index] = at(value, "start")
    elif name == "contentBlockDelta":
        blocks[index] = _grown(blocks.get(index), at(value, "delta"))


def _grown(before: Json, delta: Json) -> Json:
    """Give what was held with a further piece; texts inside are strung together."""
    if isinstance(before, dict) and isinstance(delta, dict):
        return {**before, **{name: _grown(before.get(name), value) for name, value in delta.items()}}
    if isinstance(before, str) and isinstance(delta, str):
        return before + delta
    return before if delta is None else delta


def _grown_list(items: list[Json], more: list[Json]) -> Iterable[Json]:
    for place in range(max(len(items), len(more))):
        yield _grown(items[place] if place < len(items) else None, more[place] if place < len(more) else None)


def _choices(choices: list[Json], more: list[Json]) -> Iterable[Json]:
    """Join choices as OpenAI's chunks are joined, in as far as these models send them."""
    for place in range(max(len(choices), len(more))):
        before = as_object(choices[place] if place < len(choices) else None)
        piece = as_object(more[place] if place < len(more) else None)
        delta = as_object(piece.get("delta")) or as_object(piece.get("message"))
        message = as_object(before.get("message"))
        grown = {
            name: as_text(message.get(name)) + value if name == "content" and isinstance(value, str) else value
            for name, value in delta.items()
        }
        fields = {name: value for name, value in without(piece, ("delta", "message")).items() if value is not None}
        yield {**before, **fields, "message": {**message, **grown}}


def _always(body: Json) -> bool:
    """Tell of every request that it asks for a stream: the path says so."""
    del body
    return True


def _read_streaming(body: Json) -> Asked:
    return replace(_read_request(body), stream=True)


_JOINED: Mapping[str, Callable[[list[Json], list[Json]], Iterable[Json]]] = {
    "choices": _choices,
    "outputs": _grown_list,
}
"""How lists are joined whose members come in pieces."""

SHAPE = Shape(
    name="aws.bedrock.invoke",
    system="aws.bedrock",
    operation="text_completion",
    kind=CallKind.LLM,
    span_name="InvokeModel",
    paths=("/invoke",),
    before="model/[^/]+",
    fields=("messages", "prompt", "inputText", "message"),
    noise=frozenset(),
    opaque=("bytes",),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    is_stream=lambda _: False,
    framing=_FRAMING,
    credentials=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
)

STREAM = replace(
    SHAPE,
    name="aws.bedrock.invoke_stream",
    span_name="InvokeModelWithResponseStream",
    paths=("/invoke-with-response-stream",),
    read_request=_read_streaming,
    is_stream=_always,
    api=SHAPE.name,
    stream_ends=(),
)
"""Its answers come in Amazon's frames, each piece in base64."""


def _first(events: Iterable[Json]) -> Json:
    """Give the one whole body: embeddings are not streamed."""
    return as_object(next(iter(events), None))


def _read_texts(body: Json) -> Asked:
    """Read the texts to embed, Titan's one or Cohere's several; images stay parameters."""
    asked = as_object(body)
    name = next((name for name in ("inputText", "texts", "query") if name in asked), "")
    value = asked.get(name)
    listed = [value] if isinstance(value, str) else as_list(value)
    texts = tuple(text for text in listed if isinstance(text, str))
    whole = bool(texts) and len(texts) == len(listed)
    return Asked(
        model=text_or_none(asked.get("model")),
        parameters=without(asked, (name,)) if whole else asked,
        inputs=texts if whole else (),
    )


def _read_vectors(body: Json) -> Answered:
    reply = as_object(body)
    vectors = reply.get("embeddings")
    listed = as_list(vectors) or as_list(at(vectors, "float")) or ([reply["embedding"]] if "embedding" in reply else [])
    return Answered(
        id=text_or_none(reply.get("id")),
        vectors=tuple(tuple(float(each) for each in as_list(row) if isinstance(each, int | float)) for row in listed),
        usage=Usage(prompt=first_count(reply, ("inputTextTokenCount",))),
    )


EMBED = replace(
    SHAPE,
    name="aws.bedrock.embed",
    operation="embeddings",
    kind=CallKind.EMBEDDING,
    span_name="CreateEmbeddings",
    before="model/[^/]*embed[^/]*",
    fields=("inputText", "texts", "inputImage", "images", "inputs"),
    opaque=("embedding", "embeddings", "inputImage"),
    read_request=_read_texts,
    read_reply=_read_vectors,
    fold=_first,
)
"""Embeddings of Titan and Cohere: a model whose name says so."""
