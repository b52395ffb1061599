"""What a database found that was asked for the nearest: documents with ids and scores, out of its own spelling."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object, at

_CONTENTS: Final = ("content", "page_content", "text", "document", "body", "chunk", "_node_content")
"""Names under which a document of one's own keeps its text."""


def documents(answer: Json) -> list[Json]:
    """Give what was found as `id`, `score`, `content` and `metadata`; empty where the answer is of no such database."""
    body = at(answer, "body", "json")
    if body is None and isinstance(text := at(answer, "body", "text"), str):
        body = parsed_or_none(text)
    return [*_hits(body)] or [*_points(at(body, "result"))] or [*_columns(body)]


def _hits(body: Json) -> Iterator[Json]:
    """Read an answer of Elasticsearch: one search, or several at once."""
    for each in [body, *as_list(at(body, "responses"))]:
        for hit in as_list(at(each, "hits", "hits")):
            fields = as_object(hit)
            yield _document(fields.get("_id"), fields.get("_score"), fields.get("_source", fields.get("fields")))


def _points(result: Json) -> Iterator[Json]:
    """Read an answer of Qdrant: points, groups of them, or several searches at once."""
    for each in [result, *as_list(result)]:
        listed = at(each, "points")
        for point in as_list(each if listed is None else listed):
            fields = as_object(point)
            if "score" in fields:
                yield _document(fields.get("id"), fields.get("score"), fields.get("payload"))
        for group in as_list(at(each, "groups")):
            for point in as_list(at(group, "hits")):
                fields = as_object(point)
                yield _document(fields.get("id"), fields.get("score"), fields.get("payload"))


def _columns(body: Json) -> Iterator[Json]:
    """Read an answer of Chroma: a list of ids for each question, and as many distances, texts and metadata."""
    fields = as_object(body)
    names = ("ids", "distances", "documents", "metadatas")
    for rows in zip_longest(*(as_list(fields.get(name)) for name in names)):
        for row in zip_longest(*map(as_list, rows)):
            identity, distance, text, metadata = row
            document: dict[str, Json] = {"id": identity, "score": distance, "content": text, "metadata": metadata}
            yield {name: value for name, value in document.items() if value is not None}


def _document(identity: Json, score: Json, source: Json) -> Json:
    fields = as_object(source)
    text = next((fields[name] for name in _CONTENTS if isinstance(fields.get(name), str)), None)
    document: dict[str, Json] = {
        "id": identity,
        "score": score,
        "content": compact(source) if text is None and source else text,
        "metadata": {name: value for name, value in fields.items() if value is not text or text is None} or None,
    }
    return {name: value for name, value in document.items() if value is not None}
