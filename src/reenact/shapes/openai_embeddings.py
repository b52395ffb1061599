"""OpenAI's embeddings (`POST /v1/embeddings`)."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterable

from reenact.contracts.shape import Shape
from reenact.values.call import CallKind
from reenact.values.json import Json
from reenact.values.lenient import as_count, as_list, as_object, first_count, text_or_none, without
from reenact.values.message import Answered, Asked, Usage


def _read_request(body: Json) -> Asked:
    """Read the texts; inputs of token numbers stay among the parameters."""
    asked = as_object(body)
    value = asked.get("input")
    listed = [value] if isinstance(value, str) else as_list(value)
    texts = tuple(text for text in listed if isinstance(text, str))
    whole = bool(texts) and len(texts) == len(listed)
    return Asked(
        model=text_or_none(asked.get("model")),
        parameters=without(asked, ("input",)) if whole else asked,
        inputs=texts if whole else (),
    )


def _read_reply(body: Json) -> Answered:
    reply = as_object(body)
    data = [as_object(entry) for entry in as_list(reply.get("data"))]
    data.sort(key=lambda entry: as_count(entry.get("index")) or 0)
    usage = reply.get("usage")
    return Answered(
        model=text_or_none(reply.get("model")),
        id=text_or_none(reply.get("id")),
        vectors=tuple(_vector(entry.get("embedding")) for entry in data),
        usage=Usage(prompt=first_count(usage, ("prompt_tokens",)), total=first_count(usage, ("total_tokens",))),
    )


def _vector(embedding: Json) -> tuple[float, ...]:
    """Read a list of numbers, or base64 of little-endian 32-bit floats, which the SDK asks for by itself."""
    if isinstance(embedding, list):
        return tuple(float(number) for number in embedding if isinstance(number, int | float))
    if not isinstance(embedding, str):
        return ()
    try:
        raw = base64.b64decode(embedding, validate=True)
        return struct.unpack(f"<{len(raw) // 4}f", raw)
    except (binascii.Error, ValueError, struct.error):
        return ()


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
    counts = {"prompt_tokens": answered.usage.prompt, "total_tokens": answered.usage.total}
    usage: Json = {name: count for name, count in counts.items() if count is not None}
    data: list[Json] = [
        {"object": "embedding", "index": index, "embedding": [*vector]} for index, vector in enumerate(answered.vectors)
    ]
    id_field: dict[str, Json] = {} if answered.id is None else {"id": answered.id}
    return {**id_field, "object": "list", "data": data, "model": answered.model, "usage": usage}


SHAPE = Shape(
    name="openai.embeddings",
    system="openai",
    operation="embeddings",
    kind=CallKind.EMBEDDING,
    span_name="CreateEmbeddings",
    paths=("/embeddings",),
    fields=("input",),
    noise=frozenset({"user"}),
    opaque=("embedding",),
    read_request=_read_request,
    read_reply=_read_reply,
    fold=_fold,
    write_request=_write_request,
    write_reply=_write_reply,
    credentials=("OPENAI_API_KEY",),
)
