"""What a model call or a retriever said, flattened as OpenInference spells it, with OTel GenAI's names where both fit.

A view for readers: lossy, and never read back where the exact bodies are there. Names are those of OpenInference's
semantic conventions 0.1.42, section "Flattened attributes", and of the OTel GenAI registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from reenact.values import hits
from reenact.values.genai_facts import facts
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text, at
from reenact.values.message import Answered, Asked, Media, Message, Part, Reasoning, Text, ToolCall
from reenact.values.span import Attribute


def model_call(asked: Asked, answered: Answered, *, embeds: bool) -> Iterator[tuple[str, Attribute]]:
    """Flatten a model's call; `embeds` tells an embedding from a completion."""
    yield from _models(asked, answered, embeds=embeds)
    yield from _usage(answered)
    yield from facts(asked, answered, embeds=embeds)
    if embeds:
        yield from _embeddings(asked, answered)
        return
    yield from _messages("llm.input_messages", asked.messages)
    yield from _messages("llm.output_messages", answered.messages)
    for index, tool in enumerate(asked.tools):
        yield f"llm.tools.{index}.tool.json_schema", compact(tool)


def retrieved(value: Json) -> Iterator[tuple[str, Attribute]]:
    """Flatten the documents in what a retriever returned, given as typed JSON."""
    for index, document in enumerate(retrieved_documents(value)):
        for name, item in document.items():
            is_plain = isinstance(item, str | float)
            yield f"retrieval.documents.{index}.document.{name}", item if is_plain else compact(item)


def retrieved_documents(value: Json) -> list[dict[str, Json]]:
    """Give the documents in what a retriever returned: `content`, `score`, `id` and `metadata`, as far as said."""
    return [dict(_document(document)) for document in hits.documents(value) or _documents(value)]


def _models(asked: Asked, answered: Answered, *, embeds: bool) -> Iterator[tuple[str, Attribute]]:
    group = "embedding" if embeds else "llm"
    if model := answered.model or asked.model:
        yield f"{group}.model_name", model
    yield f"{group}.invocation_parameters", compact(asked.parameters)
    for side, name in (("request", asked.model), ("response", answered.model)):
        if name and not embeds:
            yield f"llm.{side}.model_name", name
    if answered.finish_reasons:
        yield "llm.finish_reason", answered.finish_reasons[0]


def _usage(answered: Answered) -> Iterator[tuple[str, Attribute]]:
    usage = answered.usage
    for name, count in (
        ("prompt", usage.prompt),
        ("completion", usage.completion),
        ("total", usage.total),
        ("prompt_details.cache_read", usage.cache_read),
        ("prompt_details.cache_write", usage.cache_write),
        ("prompt_details.audio", usage.prompt_audio),
        ("completion_details.reasoning", usage.reasoning),
        ("completion_details.audio", usage.completion_audio),
    ):
        if count is not None:
            yield f"llm.token_count.{name}", count


def _embeddings(asked: Asked, answered: Answered) -> Iterator[tuple[str, Attribute]]:
    for index, text in enumerate(asked.inputs):
        yield f"embedding.embeddings.{index}.embedding.text", text
    for index, vector in enumerate(answered.vectors):
        yield f"embedding.embeddings.{index}.embedding.vector", [*vector]


def _messages(group: str, messages: tuple[Message, ...]) -> Iterator[tuple[str, Attribute]]:
    for index, message in enumerate(messages):
        prefix = f"{group}.{index}.message"
        yield f"{prefix}.role", message.role
        if message.name is not None:
            yield f"{prefix}.name", message.name
        if message.tool_call_id is not None:
            yield f"{prefix}.tool_call_id", message.tool_call_id
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        rest = [part for part in message.parts if not isinstance(part, ToolCall)]
        if len(rest) == 1 and isinstance(rest[0], Text):
            yield f"{prefix}.content", rest[0].text
        else:
            for place, part in enumerate(rest):
                yield from _content(f"{prefix}.contents.{place}.message_content", part)
        for place, call in enumerate(calls):
            yield f"{prefix}.tool_calls.{place}.tool_call.id", call.id
            yield f"{prefix}.tool_calls.{place}.tool_call.function.name", call.name
            yield f"{prefix}.tool_calls.{place}.tool_call.function.arguments", call.arguments


def _content(prefix: str, part: Part) -> Iterator[tuple[str, Attribute]]:
    match part:
        case Text(text=text):
            yield f"{prefix}.type", "text"
            yield f"{prefix}.text", text
        case Reasoning():
            yield f"{prefix}.type", "reasoning"
            opaque = part.seal or "encrypted_content"
            for name, value in (("text", part.text), ("id", part.id), (opaque, part.encrypted)):
                if value:
                    yield f"{prefix}.{name}", value
        case Media():
            yield f"{prefix}.type", part.modality
            for name, value in (("url", part.url), ("mime_type", part.mime_type), ("name", part.name)):
                if value and name in _MEDIA.get(part.modality, ("url",)):
                    yield f"{prefix}.{part.modality}.{part.modality}.{name}", value
        case ToolCall():
            pass
        case _:
            yield f"{prefix}.type", as_text(at(part.json, "type")) or "unknown"
            yield f"{prefix}.text", compact(part.json)


_MEDIA: Final[Mapping[str, tuple[str, ...]]] = {
    "image": ("url",),
    "video": ("url",),
    "audio": ("url", "mime_type"),
    "document": ("url", "mime_type", "name"),
}
"""What the convention says of each kind of media."""


def _documents(value: Json) -> list[Json]:
    """Find the documents in what a retriever returned: a list, a tuple, or an object that holds one."""
    if isinstance(value, dict):
        value = (
            value.get("$tuple") or value.get("documents") or value.get("results") or at(value, "fields", "documents")
        )
    return as_list(value)


def _document(value: Json) -> Iterator[tuple[str, Json]]:
    """Spell one document, which may be a text, a dict, a typed object, or a tuple of one of these and its score."""
    score: Json = None
    if isinstance(pair := at(value, "$tuple"), list) and len(pair) == 2:
        value, score = pair
    fields = as_object(at(value, "fields")) or as_object(value)
    content: Json = value if isinstance(value, str) else None
    for name in ("content", "page_content", "text", "document"):
        content = content if content is not None else fields.get(name)
    if isinstance(content, str):
        yield "content", content
    score = fields.get("score") if score is None else score
    if isinstance(score, int | float) and not isinstance(score, bool):
        yield "score", float(score)
    if isinstance(identity := fields.get("id"), str | int):
        yield "id", str(identity)
    if metadata := fields.get("metadata"):
        yield "metadata", metadata
