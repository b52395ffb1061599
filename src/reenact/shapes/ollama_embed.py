"""Ollama's embeddings (`POST /api/embed`, and `/api/embeddings` of before)."""

from __future__ import annotations

from collections.abc import Iterable

from reenact.contracts.shape import Shape
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, first_count, text_or_none, without
from reenact.values.message import Answered, Asked, Usage


def _read_request(body: Json) -> Asked:
    asked = as_object(body)
    name = "input" if "input" in asked else "prompt"
    value = asked.get(name)
    listed = [value] if isinstance(value, str) else as_list(value)
    texts = tuple(text for text in listed if isinstance(text, str))
    whole = bool(texts) and len(texts) == len(listed)
    return Asked(
        model=text_or_none(asked.get("model")),
        parameters=without(asked, (name,)) if whole else asked,
        inputs=texts if whole else (),
    )


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    vectors = as_list(reply.get("embeddings")) or ([reply["embedding"]] if "embedding" in reply else [])
    count = first_count(reply, ("prompt_eval_count",))
    return Answered(
        model=text_or_none(reply.get("model")),
        vectors=tuple(
            tuple(float(number) for number in as_list(vector) if isinstance(number, int | float)) for vector in vectors
        ),
        usage=Usage(prompt=count, total=count),
    )


def _fold(events: Iterable[Json]) -> Json:
    """Give the one whole body: embeddings are not streamed."""
    return as_object(next(iter(events), None))


def _write_request(asked: Asked) -> Json:
    body: dict[str, Json] = {} if asked.model is None else {"model": asked.model}
    body |= asked.parameters
    if asked.inputs:
        body["input"] = asked.inputs[0] if len(asked.inputs) == 1 else [*asked.inputs]
    return body


def _write_reply(answered: Answered) -> Json:
    count = answered.usage.prompt
    counted: dict[str, Json] = {} if count is None else {"prompt_eval_count": count}
    vectors: list[Json] = [[*vector] for vector in answered.vectors]
    return {"model": answered.model, "embeddings": vectors, **counted}


SHAPE = Shape(
    name="ollama.embed",
    system="ollama",
    operation="embeddings",
    kind=CallKind.EMBEDDING,
    span_name="CreateEmbeddings",
    paths=("/api/embed", "/api/embeddings"),
    needs=(b'"model"',),
    fields=("input", "prompt"),
    noise=frozenset({"keep_alive"}),
    opaque=("embeddings", "embedding"),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    is_stream=lambda _: False,
    write_request=_write_request,
    write_reply=_write_reply,
)
