"""Hugging Face's Text Generation Inference (`POST …/generate`, `/generate_stream`) and embeddings of its servers.

Embeddings come from Text Embeddings Inference (`/embed`) and from the pipeline of the inference providers
(`/pipeline/feature-extraction`). Written from the servers' OpenAPI descriptions and the client of `huggingface_hub`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reenact.contracts.shape import Shape
from reenact.values.call import CallKind
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text, at, first_count, text_or_none, without
from reenact.values.message import Answered, Asked, Message, Text, Usage


def _read_request(body: Json) -> Asked:
    """Read the text to go on with as the user's message."""
    asked = as_object(body)
    text = text_or_none(asked.get("inputs"))
    return Asked(
        model=text_or_none(asked.get("model")),
        messages=() if text is None else (Message(role="user", parts=(Text(text),)),),
        parameters=asked if text is None else without(asked, ("inputs",)),
        stream=asked.get("stream") is True,
    )


def _read_streamed(body: Json) -> Asked:
    return replace(_read_request(body), stream=True)


def _always(body: Json) -> bool:
    """Say that the path asks for a stream."""
    del body
    return True


def _first(body: Json) -> dict[str, Json]:
    """Give a reply's object; some servers put it into a list."""
    return as_object(next(iter(body), None)) if isinstance(body, list) else as_object(body)


def _read_reply(body: Json) -> Answered:
    reply = _first(body)
    text, reason = text_or_none(reply.get("generated_text")), as_text(at(reply, "details", "finish_reason"))
    read_tokens = as_list(at(reply, "details", "prefill"))
    prompt = first_count(reply, ("details", "input_length"))
    return Answered(
        messages=() if text is None else (Message(role="assistant", parts=(Text(text),)),),
        finish_reasons=(reason,) if reason else (),
        usage=Usage(
            prompt=len(read_tokens) if prompt is None and read_tokens else prompt,
            completion=first_count(reply, ("details", "generated_tokens")),
        ),
    )


def _fold(events: Iterable[Json]) -> Json:
    """Join the tokens; the last event says the whole text, and an error stands for itself."""
    reply: dict[str, Json] = {}
    tokens: list[Json] = []
    for event in map(as_object, events):
        if isinstance(event.get("token"), dict):
            tokens.append(event["token"])
        reply |= {key: value for key, value in without(event, ("token", "index")).items() if value is not None}
    if tokens and "generated_text" not in reply:
        spoken = [as_text(at(token, "text")) for token in tokens if at(token, "special") is not True]
        reply["generated_text"] = "".join(spoken)
    if tokens:
        reply["details"] = {**as_object(reply.get("details")), "tokens": tokens}
    return reply


def _event(token: Json, place: int) -> dict[str, Json]:
    return {"index": place, "token": token}


def _unfold(body: Json) -> bytes:
    """Spell a whole reply as one event: a token that says all of it."""
    reply = _first(body)
    details = as_object(reply.get("details"))
    tokens: list[Json] = as_list(details.get("tokens"))
    text = text_or_none(reply.get("generated_text"))
    if not tokens and text is not None:
        tokens = [{"id": 0, "text": text, "logprob": 0.0, "special": False}]
    ended: Json = without(details, ("tokens",)) or None
    last: dict[str, Json] = {**reply, "details": ended}
    events = [_event(token, place) for place, token in enumerate(tokens, 1)]
    if events:
        events = [
            *({**event, "generated_text": None, "details": None} for event in events[:-1]),
            {**events[-1], **last},
        ]
    return "".join(f"data: {compact(event)}\n\n" for event in events or [last]).encode("utf-8", "replace")


def _read_texts(body: Json) -> Asked:
    asked = as_object(body)
    value = asked.get("inputs")
    listed = [value] if isinstance(value, str) else as_list(value)
    texts = tuple(text for text in listed if isinstance(text, str))
    whole = bool(texts) and len(texts) == len(listed)
    return Asked(
        model=text_or_none(asked.get("model")),
        parameters=without(asked, ("inputs",)) if whole else asked,
        inputs=texts if whole else (),
    )


def _read_vectors(body: Json) -> Answered:
    """Read one vector, or one for each text; those of single tokens are none of a text."""
    listed = as_list(as_object(body).get("embeddings", body))
    rows = [listed] if listed and all(_is_number(each) for each in listed) else [as_list(each) for each in listed]
    vectors = [row for row in rows if row and all(_is_number(each) for each in row)]
    return Answered(
        vectors=tuple(tuple(float(each) for each in row if isinstance(each, int | float)) for row in vectors)
    )


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fold_rows(events: Iterable[Json]) -> Json:
    """Put the vectors, which come as an array, under a name: embeddings are not streamed."""
    rows = [*events]
    return rows[0] if len(rows) == 1 and isinstance(rows[0], dict) else {"embeddings": rows} if rows else {}


SHAPE = Shape(
    name="huggingface.generate",
    system="huggingface",
    operation="text_completion",
    kind=CallKind.LLM,
    span_name="Generate",
    paths=("/generate",),
    needs=(b'"inputs"',),
    noise=frozenset(),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    unfold=_unfold,
    stream_ends=(),
)

STREAM = replace(
    SHAPE,
    name="huggingface.generate_stream",
    span_name="GenerateStream",
    paths=("/generate_stream",),
    read_request=_read_streamed,
    is_stream=_always,
    api=SHAPE.name,
)
"""The same question, asked for an answer in pieces."""

FEATURES = Shape(
    name="huggingface.feature_extraction",
    system="huggingface",
    operation="embeddings",
    kind=CallKind.EMBEDDING,
    span_name="CreateEmbeddings",
    paths=("/pipeline/feature-extraction", "/embed"),
    needs=(b'"inputs"',),
    noise=frozenset(),
    read_request=_read_texts,
    read_reply=_read_vectors,
    fold=_fold_rows,
    is_stream=lambda _: False,
)
"""Vectors of texts."""
