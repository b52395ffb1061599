"""IBM watsonx's text generation (`POST /ml/v1/text/generation`, `/generation_stream`) and embeddings.

A deployment is asked under `/ml/v1/deployments/ID/text/…`, where the path names it and the body names no model. Chat is
read with OpenAI's (`shapes.openai_chat`). Written from the API's reference and the client `ibm-watsonx-ai`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from reenact.contracts.shape import Shape
from reenact.values.call import CallKind
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_object, as_text, first_count, text_or_none, without
from reenact.values.message import Answered, Asked, Message, Text, Usage

_GOES_ON = "not_finished"
_COUNTS = ("generated_token_count", "input_token_count")


def _read_request(body: Json) -> Asked:
    """Read the prompt as the user's message."""
    asked = as_object(body)
    text = text_or_none(asked.get("input"))
    return Asked(
        model=text_or_none(asked.get("model_id")),
        messages=() if text is None else (Message(role="user", parts=(Text(text),)),),
        parameters=without(asked, ("model_id", *(() if text is None else ("input",)))),
    )


def _read_streamed(body: Json) -> Asked:
    return replace(_read_request(body), stream=True)


def _always(body: Json) -> bool:
    """Say that the path asks for a stream."""
    del body
    return True


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    results = [as_object(each) for each in as_list(reply.get("results"))]
    reasons = [as_text(result.get("stop_reason")) for result in results]
    first = results[0] if results else {}
    return Answered(
        model=text_or_none(reply.get("model_id")),
        messages=tuple(
            Message(role="assistant", parts=(Text(text),))
            for result in results
            if (text := text_or_none(result.get("generated_text"))) is not None
        ),
        finish_reasons=tuple(reason for reason in reasons if reason and reason != _GOES_ON),
        usage=Usage(
            prompt=first_count(first, ("input_token_count",)), completion=first_count(first, ("generated_token_count",))
        ),
    )


def _fold(events: Iterable[Json]) -> Json:
    """Join the texts of the results; their counts grow from event to event, so the largest holds."""
    reply: dict[str, Json] = {}
    results: list[dict[str, Json]] = []
    for event in map(as_object, events):
        for key, value in event.items():
            if key == "results" and isinstance(value, list):
                for place, piece in enumerate(value):
                    results += [{}] * (place >= len(results))
                    results[place] = _grown(results[place], as_object(piece))
            elif value is not None or key not in reply:
                reply[key] = value
    return {**reply, "results": [*results]} if results else reply


def _grown(result: dict[str, Json], piece: dict[str, Json]) -> dict[str, Json]:
    grown = dict(result)
    for key, value in piece.items():
        if key == "generated_text" and isinstance(value, str):
            grown[key] = as_text(grown.get(key)) + value
        elif key in _COUNTS:
            counts = [count for each in (grown, piece) if (count := first_count(each, (key,))) is not None]
            grown[key] = max(counts) if counts else value
        elif value is not None or key not in grown:
            grown[key] = value
    return grown


def _unfold(body: Json) -> bytes:
    """Spell a whole reply as one event, which is what a short one is."""
    return f"id: 1\nevent: message\ndata: {compact(body)}\n\n".encode("utf-8", "replace")


def _read_texts(body: Json) -> Asked:
    asked = as_object(body)
    listed = as_list(asked.get("inputs"))
    texts = tuple(text for text in listed if isinstance(text, str))
    whole = bool(texts) and len(texts) == len(listed)
    return Asked(
        model=text_or_none(asked.get("model_id")),
        parameters=without(asked, ("model_id", *(("inputs",) if whole else ()))),
        inputs=texts if whole else (),
    )


def _read_vectors(body: Json) -> Answered:
    reply = as_object(body)
    vectors = [as_list(as_object(each).get("embedding")) for each in as_list(reply.get("results"))]
    count = first_count(reply, ("input_token_count",))
    return Answered(
        model=text_or_none(reply.get("model_id")),
        vectors=tuple(
            tuple(float(number) for number in vector if isinstance(number, int | float)) for vector in vectors
        ),
        usage=Usage(prompt=count, total=count),
    )


def _fold_nothing(events: Iterable[Json]) -> Json:
    """Give the one whole body: embeddings are not streamed."""
    return as_object(next(iter(events), None))


SHAPE = Shape(
    name="watsonx.generation",
    system="watsonx",
    genai_provider="ibm.watsonx.ai",
    operation="text_completion",
    kind=CallKind.LLM,
    span_name="TextGeneration",
    paths=("/text/generation",),
    needs=(b'"input"',),
    noise=frozenset(),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    is_stream=lambda _: False,
    unfold=_unfold,
    stream_ends=(),
)

STREAM = replace(
    SHAPE,
    name="watsonx.generation_stream",
    span_name="TextGenerationStream",
    paths=("/text/generation_stream",),
    read_request=_read_streamed,
    is_stream=_always,
    api=SHAPE.name,
)
"""The same question, asked for an answer in pieces."""

EMBEDDINGS = Shape(
    name="watsonx.embeddings",
    system=SHAPE.system,
    genai_provider=SHAPE.genai_provider,
    operation="embeddings",
    kind=CallKind.EMBEDDING,
    span_name="CreateEmbeddings",
    paths=("/text/embeddings",),
    needs=(b'"inputs"',),
    noise=frozenset(),
    opaque=("embedding",),
    read_request=_read_texts,
    read_reply=_read_vectors,
    fold=_fold_nothing,
    is_stream=lambda _: False,
)
"""Vectors of texts."""
