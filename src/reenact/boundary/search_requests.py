"""Requests to Elasticsearch and OpenSearch: what they do, to which index, and whether they look for the nearest."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from reenact.boundary.rest import Asks

_NEAREST: Final = re.compile(
    rb'"(?:knn|semantic|sparse_vector|text_expansion|neural|neural_sparse|knn_score)"\s*:'
    rb"|cosineSimilarity\(|dotProduct\(|l1norm\(|l2norm\(|\"knn_score\""
)
"""What of a search asks for what is near to a vector: of its clauses, or of the functions of a script."""
_SEARCHES: Final = frozenset({"search", "msearch", "knn_search", "search_template", "msearch_template", "async_search"})
_BY_METHOD: Final = {
    "_doc": {"GET": "get", "HEAD": "exists", "DELETE": "delete"},
    "_source": {"GET": "get_source", "HEAD": "exists_source"},
    "": {"GET": "indices.get", "HEAD": "indices.exists", "PUT": "indices.create", "DELETE": "indices.delete"},
}
_OWN: Final = frozenset({("GET", "/"), ("HEAD", "/"), ("GET", "/_nodes/_all/http")})
"""Requests that a client makes to learn of the server."""


def asks(method: str, target: str, body: bytes) -> Asks:
    """Say what a request does."""
    word, collection = _read(method, target.partition("?")[0])
    searches = word in _SEARCHES and _NEAREST.search(body) is not None
    return Asks(word=word, collection=collection, searches=searches, pings=(method, target) in _OWN)


@lru_cache(maxsize=1024)
def _read(method: str, path: str) -> tuple[str, str]:
    parts = [each for each in path.split("/") if each]
    collection = parts[0] if parts and not parts[0].startswith("_") else ""
    names = [each for each in parts if each.startswith("_")]
    if not parts:
        return "info", ""
    if not names:
        return _BY_METHOD[""].get(method, "index"), collection
    name = names[0]
    if name == "_doc":
        return _BY_METHOD[name].get(method, "index"), collection
    if name == "_source":
        return _BY_METHOD[name].get(method, name[1:]), collection
    if name == "_search" and parts[-1] == "scroll":
        return ("clear_scroll" if method == "DELETE" else "scroll"), collection
    rest = parts[parts.index(name) + 1 :]
    plain = name in {"_create", "_update", "_explain", "_termvectors", "_scripts", "_security", "_nodes", "_tasks"}
    return ".".join([name[1:], *([] if plain else rest[:1])]), collection
