"""Google's embeddings: `:embedContent` and `:batchEmbedContents` of Gemini, `:predict` of Vertex AI.

The model stands in the path.
"""

from __future__ import annotations

from collections.abc import Iterable

from reenact.contracts.shape import Shape
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.lenient import as_list, as_object, at, first_count, text_or_none, without
from reenact.values.message import Answered, Asked, Usage


def _only_text(content: Json) -> str | None:
    """Give the text of a content that is nothing else."""
    if isinstance(content, str):
        return content
    parts = as_list(at(content, "parts"))
    texts = [text for part in parts if isinstance(text := at(part, "text"), str) and as_object(part).keys() == {"text"}]
    is_plain = len(texts) == len(parts) == 1 and as_object(content).keys() <= {"parts", "role"}
    return texts[0] if is_plain else None


def _read_request(body: Json) -> Asked:
    """Read the texts of one content, of several requests, or of instances; what is more than text is a parameter."""
    asked = as_object(body)
    model = text_or_none(asked.get("model"))
    name = next((name for name in ("requests", "instances") if isinstance(asked.get(name), list)), "")
    listed = [as_object(each) for each in as_list(asked.get(name))] if name else [asked]
    texts = [text for each in listed if (text := _only_text(each.get("content"))) is not None]
    if not texts or len(texts) != len(listed):
        return Asked(model=model, parameters=asked)
    if not name:
        return Asked(model=model, parameters=without(asked, ("content",)), inputs=tuple(texts))
    beside: list[Json] = [without(each, ("content",)) for each in listed]
    models = {text_or_none(as_object(each).get("model")) for each in beside}
    return Asked(
        model=model or (next(iter(models)) if len(models) == 1 else None),
        parameters={**without(asked, (name,)), **({name: beside} if any(beside) else {})},
        inputs=tuple(texts),
    )


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    items = as_list(reply.get("embeddings")) or as_list(reply.get("predictions"))
    vectors = (
        [_vector(each) for each in items] if items else [_vector(reply["embedding"])] if "embedding" in reply else []
    )
    counts = [
        first_count(each, ("embeddings", "statistics", "token_count")) for each in as_list(reply.get("predictions"))
    ]
    counted = [count for count in counts if count is not None]
    prompt = first_count(reply, ("usageMetadata", "promptTokenCount"))
    return Answered(
        vectors=tuple(vectors),
        usage=Usage(
            prompt=prompt if prompt is not None else sum(counted) if counted else None,
            total=first_count(reply, ("usageMetadata", "totalTokenCount")),
        ),
    )


def _vector(embedding: Json) -> tuple[float, ...]:
    values = as_list(at(embedding, "values")) or as_list(at(embedding, "embeddings", "values"))
    return tuple(float(number) for number in values if isinstance(number, int | float))


def _fold(events: Iterable[Json]) -> Json:
    """Give the one whole body: embeddings are not streamed."""
    return as_object(next(iter(events), None))


def _shape(name: str, path: str, field: str) -> Shape:
    return Shape(
        name=name,
        system="vertexai",
        genai_provider="gcp.gen_ai",
        operation="embeddings",
        kind=CallKind.EMBEDDING,
        span_name="CreateEmbeddings",
        paths=(path,),
        fields=(field,),
        needs=(b'"content"',),
        noise=frozenset(),
        opaque=("values",),
        read_request=_read_request,
        read_reply=_read_reply,
        fold=_fold,
        is_stream=lambda _: False,
        credentials=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    )


SHAPE = _shape("google.embed_content", ":embedContent", "content")
BATCH = _shape("google.batch_embed_contents", ":batchEmbedContents", "requests")
PREDICT = _shape("google.predict_embeddings", ":predict", "instances")
"""Vertex AI's; other models behind `:predict` are asked without a `content`."""
