"""Cohere's embeddings (`POST /v2/embed`, `/v1/embed`)."""

from __future__ import annotations

from collections.abc import Iterable

from reenact.contracts.shape import Shape
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, first_count, text_or_none, without
from reenact.values.message import Answered, Asked, Usage

_KINDS = ("float", "float_", "int8", "uint8", "binary", "ubinary")
"""Spellings of a vector that are numbers, the most telling first."""


def _read_request(body: Json) -> Asked:
    asked = as_object(body)
    entries = as_list(asked.get("texts"))
    texts = tuple(text for text in entries if isinstance(text, str))
    whole = bool(texts) and len(texts) == len(entries)
    return Asked(
        model=text_or_none(asked.get("model")),
        parameters=without(asked, ("texts",)) if whole else asked,
        inputs=texts if whole else (),
    )


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    item = reply.get("embeddings")
    kinds = as_object(item)
    rows: list[Json] = as_list(item) or next((as_list(kinds[kind]) for kind in _KINDS if kinds.get(kind)), list[Json]())
    return Answered(
        model=text_or_none(reply.get("model")),
        id=text_or_none(reply.get("id")),
        vectors=tuple(tuple(float(each) for each in as_list(row) if isinstance(each, int | float)) for row in rows),
        usage=Usage(
            prompt=first_count(reply, ("meta", "tokens", "input_tokens"), ("meta", "billed_units", "input_tokens")),
            total=first_count(reply, ("meta", "billed_units", "input_tokens")),
        ),
    )


def _fold(events: Iterable[Json]) -> Json:
    """Give the one whole body: embeddings are not streamed."""
    return as_object(next(iter(events), None))


def _write_request(asked: Asked) -> Json:
    body: dict[str, Json] = {} if asked.model is None else {"model": asked.model}
    return {**body, **asked.parameters, **({"texts": [*asked.inputs]} if asked.inputs else {})}


def _write_reply(answered: Answered) -> Json:
    count = answered.usage.prompt
    billed: Json = {} if count is None else {"billed_units": {"input_tokens": count}}
    id_field: dict[str, Json] = {} if answered.id is None else {"id": answered.id}
    rows: list[Json] = [[*vector] for vector in answered.vectors]
    return {**id_field, "model": answered.model, "embeddings": {"float": rows}, "meta": billed}


SHAPE = Shape(
    name="cohere.embed",
    system="cohere",
    operation="embeddings",
    kind=CallKind.EMBEDDING,
    span_name="CreateEmbeddings",
    paths=("/v2/embed", "/v1/embed"),
    fields=("texts", "images", "inputs"),
    noise=frozenset(),
    opaque=("embeddings", "images"),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    is_stream=lambda _: False,
    write_request=_write_request,
    write_reply=_write_reply,
    credentials=("CO_API_KEY",),
)
