"""OpenAI's completions of a prompt (`POST /v1/completions`), as vLLM and others speak them, and Mistral's `/fim`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reenact.contracts.shape import Shape
from reenact.values.call import CallKind
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text, at, first_count, text_or_none, without
from reenact.values.message import Answered, Asked, Message, Text, Usage


def _read_request(body: Json) -> Asked:
    """Read prompts as the user's messages; those of token numbers stay among the parameters."""
    asked = as_object(body)
    prompt = asked.get("prompt")
    listed = [prompt] if isinstance(prompt, str) else as_list(prompt)
    texts = [text for text in listed if isinstance(text, str)]
    whole = bool(texts) and len(texts) == len(listed)
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=tuple(Message(role="user", parts=(Text(text),)) for text in texts) if whole else (),
        parameters=without(asked, ("prompt",)) if whole else asked,
        stream=asked.get("stream") is True,
    )


def _text(choice: dict[str, Json]) -> str | None:
    """Give what a choice says; Mistral's says it in a message."""
    return text_or_none(choice.get("text")) or text_or_none(at(choice, "message", "content"))


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    choices = [as_object(choice) for choice in as_list(reply.get("choices"))]
    usage = reply.get("usage")
    return Answered(
        model=text_or_none(reply.get("model")),
        id=text_or_none(reply.get("id")),
        messages=tuple(
            Message(role="assistant", parts=(Text(text),)) for choice in choices if (text := _text(choice)) is not None
        ),
        finish_reasons=tuple(reason for choice in choices if (reason := as_text(choice.get("finish_reason")))),
        usage=Usage(
            prompt=first_count(usage, ("prompt_tokens",)),
            completion=first_count(usage, ("completion_tokens",)),
            total=first_count(usage, ("total_tokens",)),
            cache_read=first_count(usage, ("prompt_tokens_details", "cached_tokens")),
            reasoning=first_count(usage, ("completion_tokens_details", "reasoning_tokens")),
        ),
    )


def _fold(events: Iterable[Json]) -> Json:
    """Join the chunks of each choice; texts are strung together, of all else the last holds."""
    reply: dict[str, Json] = {}
    choices: dict[int, dict[str, Json]] = {}
    for event in map(as_object, events):
        for key, value in event.items():
            if key == "choices":
                reply.setdefault(key, [])
                for chunk in map(as_object, as_list(value)):
                    index = first_count(chunk, ("index",)) or 0
                    choices[index] = _grown(choices.get(index, {}), chunk)
            elif value is not None or key not in reply:
                reply[key] = value
    if choices:
        reply["choices"] = [choices[index] for index in sorted(choices)]
    return reply


def _grown(choice: dict[str, Json], chunk: dict[str, Json]) -> dict[str, Json]:
    grown = dict(choice)
    for key, value in chunk.items():
        if key == "text" and isinstance(value, str):
            grown[key] = as_text(grown.get(key)) + value
        elif key == "delta":
            message, delta = as_object(grown.get("message")), as_object(value)
            text = as_text(message.get("content")) + as_text(delta.get("content"))
            grown["message"] = {**message, **delta, "content": text}
        elif value is not None or key not in grown:
            grown[key] = value
    return grown


def _unfold(body: Json) -> bytes:
    """Spell a whole reply as one chunk, which is what a short one is."""
    return f"data: {compact(body)}\n\ndata: [DONE]\n\n".encode("utf-8", "replace")


SHAPE = Shape(
    name="openai.completions",
    system="openai",
    operation="text_completion",
    kind=CallKind.LLM,
    span_name="Completion",
    paths=("/completions",),
    needs=(b'"prompt"',),
    noise=frozenset({"user"}),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    unfold=_unfold,
    credentials=("OPENAI_API_KEY",),
)

FIM = replace(
    SHAPE,
    name="mistralai.fim",
    system="mistralai",
    span_name="Fim",
    paths=("/fim/completions",),
    noise=frozenset(),
    credentials=("MISTRAL_API_KEY",),
)
"""Mistral's completion of what stands between a prompt and a suffix."""
