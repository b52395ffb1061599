"""OpenInference's messages, tools, documents and vectors, which lie flat among a span's attributes.

`llm.input_messages.0.message.role` and its like, section "Flattened attributes" of the specification; the same where
a backend nested them again (dataframes: a list of objects with dotted keys; document stores: objects in objects), or
spelled such a list as JSON text. Indexes are read in order, whatever they are: gaps, and numbers in the hundreds, are
what emitters write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from reenact.values import tool_schema, typed
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import (
    as_count,
    as_list,
    as_object,
    as_text,
    at,
    media_type,
    text_or_json,
    text_or_none,
)
from reenact.values.message import Answered, Asked, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, Usage
from reenact.values.span import Attribute

_ROLES: Final[Mapping[str, str]] = {
    "model": "assistant",
    "ai": "assistant",
    "human": "user",
    "function": "tool",
    "tool-call": "assistant",
    "tool-response": "tool",
}
_GROUPS: Final = ("llm", "embedding", "retrieval", "reranker", "message")
"""First words of the names that are read here; `message` is where some instrumentors forget the rest."""
_DEEPEST: Final = 24
_DEEPEST_JSON: Final = 100
_PARAMETERS: Final = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "n", "seed", "stop", "stop_sequences", "logit_bias", "logprobs"),
        *("top_logprobs", "max_tokens", "max_completion_tokens", "max_output_tokens", "frequency_penalty"),
        *("presence_penalty", "repetition_penalty", "response_format", "tool_choice", "parallel_tool_calls"),
        *("stream", "stream_options", "user", "reasoning", "reasoning_effort", "thinking", "service_tier"),
        *("modalities", "audio", "prediction", "store", "metadata", "verbosity", "text", "truncation"),
        *(
            "previous_response_id",
            "instructions",
            "web_search_options",
            "dimensions",
            "encoding_format",
            "candidate_count",
        ),
        *("thinking_config", "response_mime_type", "response_schema", "output_config", "include", "betas"),
    },
)
"""What providers take. Frameworks put settings of their own beside it, which no request carried."""

_RANKING: Final = (("query", "query"), ("model", "model_name"), ("top_k", "top_k"))

Tree = dict[str, Any]
"""Names nested by their dots; lists are objects whose keys are digits."""


def tree(attributes: Mapping[str, Attribute]) -> Tree:
    """Nest what OpenInference spelled flat. Never raises."""
    grown: Tree = {}
    for name, value in attributes.items():
        if name.partition(".")[0] in _GROUPS:
            _set_path(grown, name, value, 0)
    return grown


def _set_path(grown: Tree, name: str, value: Any, depth: int) -> None:
    words = name.split(".")
    if depth + len(words) > _DEEPEST:
        return
    for word in words[:-1]:
        inner = grown.get(word)
        if not isinstance(inner, dict):  # what was said of the whole stays beside its parts
            inner = grown[word] = {} if inner is None else {"": inner}
        grown = cast("Tree", inner)
    last = words[-1]
    nested = _nested(last, value)
    if nested is None:
        node = grown.get(last)
        if isinstance(node, dict):
            node[""] = value
        else:
            grown[last] = value
        return
    below = grown.get(last)
    if not isinstance(below, dict):
        below = grown[last] = {} if below is None else {"": below}
    for key, item in nested.items():
        _set_path(cast("Tree", below), key, item, depth + len(words))


_LISTS: Final = frozenset(
    {"input_messages", "output_messages", "tools", "documents", "input_documents", "output_documents", "embeddings"}
)
_OBJECTS: Final = frozenset({"message", "message_content", "tool_call", "function", "document", "embedding", "tool"})


def _nested(name: str, value: Any) -> dict[str, Any] | None:
    """Give the parts of a value that a backend nested again, by name or place; None where it is plain."""
    if isinstance(value, str) and name in _LISTS and value[:1] == "[":
        value = parsed_or_none(value)
    if isinstance(value, list | tuple):
        items = list(cast("list[Any]", value))
        if items and all(isinstance(item, dict) for item in items):
            return {str(place): item for place, item in enumerate(items)}
        return None
    if isinstance(value, dict) and (name in _OBJECTS or name.isdigit() or name in ("prompt_details", "image")):
        return {str(key): item for key, item in cast("dict[Any, Any]", value).items() if item is not None}
    return None


def _listed(value: Any) -> list[Any]:
    """Give the entries of a list in the order of their indexes."""
    if not isinstance(value, dict):
        return []
    entries = cast("Tree", value)
    return [entries[key] for key in sorted((key for key in entries if key.isdigit()), key=lambda key: (len(key), key))]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def openinference_request(grown: Tree) -> Asked:
    """Read what a model was asked from the nested attributes of its span."""
    llm = _object(grown.get("llm"))
    settings = _parameters(llm)
    parameters: dict[str, Json] = {
        name: value for name, value in settings.items() if name in _PARAMETERS and value is not None
    }
    messages = messages_of(llm.get("input_messages"))
    return Asked(
        model=_asked_model(llm, settings),
        messages=messages or _prompts(llm),
        tools=_tools(llm, settings),
        parameters=parameters,
        stream=parameters.get("stream") is True,
    )


def _parameters(llm: Tree) -> dict[str, Json]:
    """Read the parameters of a call; none where they are the reply's own: these a provider fills in.

    Some emitters write down a reply's fields, its id among them, where others have what was asked.
    """
    settings = as_object(parsed_or_none(_text(llm.get("invocation_parameters")) or "null"))
    return {} if as_text(settings.get("id")) and "created_at" in settings else settings


def _asked_model(llm: Tree, settings: dict[str, Json]) -> str | None:
    request = _object(llm.get("request"))
    model = _text(request.get("model_name")) or as_text(settings.get("model")) or as_text(settings.get("model_name"))
    return model or _text(llm.get("model_name")) or as_text(settings.get("model_id")) or None


def names_the_asked_model(grown: Tree) -> bool:
    """Tell whether the model that was asked for is named as such, apart from the one that answered."""
    llm = _object(grown.get("llm"))
    fields = _parameters(llm)
    return bool(_text(_object(llm.get("request")).get("model_name")) or fields.get("model") or fields.get("model_name"))


def completes_a_text(grown: Tree) -> bool:
    """Tell a model that takes a text from one that takes messages."""
    llm = _object(grown.get("llm"))
    return "prompts" in llm and "input_messages" not in llm


def _prompts(llm: Tree) -> tuple[Message, ...]:
    """Read prompts of models that take a text instead of messages."""
    prompts = llm.get("prompts")
    if isinstance(prompts, list | tuple):
        texts = [_text(each) for each in cast("list[Any]", prompts)]
    elif isinstance(prompts, str):
        texts = [prompts]
    else:
        texts = [_text(_object(_object(each).get("prompt")).get("text")) for each in _listed(prompts)]
    return tuple(Message(role="user", parts=(Text(text),)) for text in texts if text)


def _tools(llm: Tree, settings: dict[str, Json]) -> tuple[Json, ...]:
    schemas: list[Json] = []
    for entry in _listed(llm.get("tools")):
        definition = _object(_object(entry).get("tool")).get("json_schema", _object(entry).get("json_schema"))
        schema: Json = parsed_or_none(definition) if isinstance(definition, str) else json_of(definition)
        if schema is not None:
            schemas.append(schema)
    return tool_schema.tools(schemas) or tool_schema.tools(as_list(settings.get("tools")))


def answered(grown: Tree, whole: str = "") -> Answered:
    """Read what a model answered from the nested attributes of its span.

    `whole` is all that it said, where the emitter wrote it down as well: messages that are pieces of it are one.
    """
    llm = _object(grown.get("llm"))
    reply_messages = messages_of(llm.get("output_messages"), "assistant") or _choices(llm)
    messages = tuple(message for message in reply_messages if message.parts)  # some write a role and nothing else
    if len(messages) > 1 and "".join(_texts(messages)) == whole:
        messages = (Message(role="assistant", parts=(Text(whole),)),)
    if not messages and "message" in grown:
        messages = messages_of({"0": {"message": grown["message"]}}, "assistant")
    response = _object(llm.get("response"))
    reasons = _text(llm.get("finish_reason"))
    return Answered(
        model=_text(response.get("model_name")) or _text(llm.get("model_name")) or None,
        id=_text(response.get("id")) or None,
        messages=messages,
        finish_reasons=(reasons,) if reasons else (),
        usage=_usage(_object(llm.get("token_count"))),
    )


def _texts(messages: tuple[Message, ...]) -> list[str]:
    return [part.text for message in messages for part in message.parts if isinstance(part, Text)]


def _choices(llm: Tree) -> tuple[Message, ...]:
    """Read completions of models that answer with a text."""
    texts = [_text(_object(_object(each).get("completion")).get("text")) for each in _listed(llm.get("choices"))]
    whole = llm.get("output_messages")
    if not texts and isinstance(whole, str):
        texts = [whole]
    return tuple(Message(role="assistant", parts=(Text(text),)) for text in texts if text)


def _usage(counts: Tree) -> Usage:
    prompt, completion = _object(counts.get("prompt_details")), _object(counts.get("completion_details"))
    return Usage(
        prompt=_count(counts.get("prompt")),
        completion=_count(counts.get("completion")),
        total=_count(counts.get("total")),
        cache_read=_count(prompt.get("cache_read")),
        cache_write=_count(prompt.get("cache_write")),
        prompt_audio=_count(prompt.get("audio")),
        reasoning=_count(completion.get("reasoning")),
        completion_audio=_count(completion.get("audio")),
    )


def _count(value: Any) -> int | None:
    if isinstance(value, str) and value.isdigit() and len(value) < 19:
        return int(value)
    return as_count(value) if isinstance(value, int | float) else None


def messages_of(value: Any, role: str = "user") -> tuple[Message, ...]:
    """Read a list of messages."""
    return tuple(message for entry in _listed(value) for message in _message(_object(entry), role))


def _message(entry: Tree, role: str) -> list[Message]:
    """Read one message; an entry that holds several results of tools is several."""
    fields = _object(entry.get("message")) or {key: item for key, item in entry.items() if key != "message"}
    own_role = _text(fields.get("role"))
    parts = _parts(fields)
    call_id = _text(fields.get("tool_call_id")) or None
    results = [as_object(parsed_or_none(_text(each))) for each in _listed(entry.get("function"))]
    if results:
        return [
            Message(
                role="tool",
                parts=(Text(text_or_json(result.get("content"))),),
                name=text_or_none(result.get("name")),
                tool_call_id=text_or_none(result.get("call_id")),
            )
            for result in results
        ]
    role = "tool" if call_id else _ROLES.get(own_role, own_role) or role
    return [Message(role=role, parts=parts, name=_text(fields.get("name")) or None, tool_call_id=call_id)]


def _parts(message: Tree) -> tuple[Part, ...]:
    parts: list[Part] = []
    content = message.get("content")
    if isinstance(content, str):
        parts.append(Text(content))
    elif isinstance(content, dict):
        parts += [Text(_text(each)) for each in _listed(content)]
    elif content is not None:
        parts.append(Opaque(json_of(content)))
    contents = [part for each in _listed(message.get("contents")) for part in _part(_object(each))]
    if contents:
        parts = contents  # the same, told more exactly
    calls = [_tool_call(_object(each)) for each in _listed(message.get("tool_calls"))]
    known_calls = {(part.id, part.name, part.arguments) for part in parts if isinstance(part, ToolCall)}
    parts += [call for call in calls if (call.id, call.name, call.arguments) not in known_calls]
    if name := _text(message.get("function_call_name")):
        arguments = _text(message.get("function_call_arguments_json")) or "{}"
        parts.append(ToolCall(id="", name=name, arguments=arguments))
    return tuple(parts)


def _part(entry: Tree) -> list[Part]:
    called = _object(entry.get("tool_call"))
    if called:
        return [_tool_call(entry)]
    block = _object(entry.get("message_content")) or entry
    kind, text = _text(block.get("type")), block.get("text")
    if kind in ("reasoning", "thinking", "redacted_thinking"):
        sealed = next((name for name in ("signature", "encrypted_content", "data") if _text(block.get(name))), "")
        seal = "" if sealed == "encrypted_content" else sealed
        opaque = _text(block.get(sealed)) or None
        return [Reasoning(text=_text(text), id=_text(block.get("id")) or None, encrypted=opaque, seal=seal)]
    for modality in ("image", "audio", "video", "document", "file"):
        if modality in block:
            media = _object(block.get(modality))
            inner = _object(media.get(modality)) or media
            url = _text(inner.get("url")) or _text(block.get(modality))
            mime = _text(inner.get("mime_type")) or media_type(url)
            media_kind = "document" if modality == "file" else modality
            return [Media(modality=media_kind, url=url, mime_type=mime, name=_text(inner.get("name")))]
    if isinstance(text, str):
        return [Text(text)]
    return [Opaque(json_of(block))] if block and kind not in ("tool_use", "tool_call", "function_call") else []


def _tool_call(entry: Tree) -> ToolCall:
    call = _object(entry.get("tool_call")) or entry
    function = _object(call.get("function"))
    arguments = function.get("arguments")
    return ToolCall(
        id=_text(call.get("id")),
        name=_text(function.get("name")) or _text(call.get("name")),
        arguments=arguments if isinstance(arguments, str) else text_or_json(json_of(arguments)),
    )


def documents(grown: Tree, *path: str) -> list[Json]:
    """Read the documents below a name: objects with `id`, `content`, `score`, `metadata`, as far as said."""
    place: Any = grown
    for word in path:
        place = _object(place).get(word)
    document_list: list[Json] = []
    for entry in _listed(place):
        fields = _object(_object(entry).get("document")) or _object(entry)
        document: dict[str, Json] = {name: json_of(value) for name, value in fields.items()}
        if isinstance(metadata := document.get("metadata"), str):
            document["metadata"] = parsed_or_none(metadata) or metadata
        document_list.append(document)
    return document_list


def to_rank(grown: Tree) -> dict[str, Json]:
    """Give what a reranker was asked, as far as it is said."""
    reranker = _object(grown.get("reranker"))
    asked: dict[str, Json] = {name: json_of(reranker[key]) for name, key in _RANKING if key in reranker}
    return {**asked, "documents": documents(grown, "reranker", "input_documents")}


def embedded(grown: Tree) -> tuple[tuple[str, ...], tuple[tuple[float, ...], ...]]:
    """Read the texts that were embedded and the vectors they became."""
    texts: list[str] = []
    vectors: list[tuple[float, ...]] = []
    for entry in _listed(_object(grown.get("embedding")).get("embeddings")):
        embedding = _object(_object(entry).get("embedding")) or _object(entry)
        if isinstance(text := embedding.get("text"), str):
            texts.append(text)
        vector = embedding.get("vector")
        if isinstance(vector, str):
            vector = parsed_or_none(vector)
        if isinstance(vector, list | tuple):
            numbers = cast("list[Any]", vector)
            vectors.append(tuple(float(each) for each in numbers if isinstance(each, int | float)))
    return tuple(texts), tuple(vectors)


def json_of(value: Any, depth: int = 0) -> Json:
    """Carry what an attribute held as JSON, its nesting by digits made a list again down to a hundred levels."""
    if depth < _DEEPEST_JSON and isinstance(value, dict):
        mapping = cast("Tree", value)
        if mapping and all(key.isdigit() for key in mapping):
            return [json_of(item, depth + 1) for item in _listed(mapping)]
        return {key: json_of(item, depth + 1) for key, item in mapping.items()}
    if depth < _DEEPEST_JSON and isinstance(value, list | tuple):
        return [json_of(item, depth + 1) for item in cast("list[Any]", value)]
    return typed.encode(value)


def _object(value: Any) -> Tree:
    return cast("Tree", value) if isinstance(value, dict) else {}


def model_named(grown: Tree, group: str) -> str:
    """Give the model's name that a group (`llm`, `embedding`, `reranker`) says."""
    return as_text(at(json_of(_object(grown.get(group)).get("model_name"))))
