"""Ranking of documents for a query (`POST …/rerank`), as Cohere, Jina and Voyage speak it."""

from __future__ import annotations

from collections.abc import Iterable

from reenact.contracts.shape import Shape
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.lenient import as_object, first_count, text_or_none
from reenact.values.message import Answered, Asked, Usage


def _read_request(body: Json) -> Asked:
    """Name the model; query and documents stay among the parameters."""
    asked = as_object(body)
    return Asked(model=text_or_none(asked.get("model")), parameters=asked)


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    return Answered(
        model=text_or_none(reply.get("model")),
        id=text_or_none(reply.get("id")),
        usage=Usage(
            prompt=first_count(reply, ("usage", "prompt_tokens"), ("meta", "tokens", "input_tokens")),
            total=first_count(reply, ("usage", "total_tokens")),
        ),
    )


def _fold(events: Iterable[Json]) -> Json:
    """Give the one whole body: a ranking is not streamed."""
    return as_object(next(iter(events), None))


SHAPE = Shape(
    name="cohere.rerank",
    system="cohere",
    operation="rerank",
    kind=CallKind.RERANKER,
    span_name="Rerank",
    paths=("/rerank",),
    needs=(b'"query"', b'"documents"', b'"model"'),
    noise=frozenset(),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    is_stream=lambda _: False,
)
