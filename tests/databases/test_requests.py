"""What a request to a search engine does is read from its line, and what it found from its own spelling."""

from __future__ import annotations

import json

import pytest

from reenact.boundary import rest
from reenact.boundary.search_requests import asks
from reenact.integrations.chromadb_connections import _said
from reenact.values.flat_attributes import retrieved
from reenact.values.json import Json

KNN = b'{"knn":{"field":"v","query_vector":[1.0],"k":3}}'
SAID = {
    ("POST", "/notes/_search?size=3", b'{"query":{"match":{"text":"knn"}}}'): ("search", "notes", False),
    ("POST", "/notes/_search", KNN): ("search", "notes", True),
    ("POST", "/_msearch", b'{"index":"notes"}\n' + KNN + b"\n"): ("msearch", "", True),
    ("PUT", "/notes/_doc/1", KNN): ("index", "notes", False),
    ("GET", "/notes/_doc/1", b""): ("get", "notes", False),
    ("PUT", "/notes", b""): ("indices.create", "notes", False),
    ("POST", "/_search/scroll", b""): ("scroll", "", False),
    ("PUT", "/_bulk", b""): ("bulk", "", False),
}


@pytest.mark.parametrize("asked", SAID, ids=lambda asked: " ".join(asked[:2]))
def test_a_request_says_what_it_does(asked: tuple[str, str, bytes]) -> None:
    told = asks(*asked)
    assert (told.word, told.collection, told.searches) == SAID[asked]


def test_a_reply_comes_back_as_it_was() -> None:
    for body in (b'{"a":[1,2.5,"\xc3\xa9"]}', b'{"a":1}\n{"b":2}\n', b'{"a": 1.50}', b"plain", b"\xff\x00", b""):
        told = rest.spell_reply(404, [("X-Elastic-Product", "Elasticsearch"), ("Set-Cookie", "s=1")], body)
        assert rest.untold(told) == (404, [("X-Elastic-Product", "Elasticsearch")], body)


def test_hits_are_documents() -> None:
    hit = {"_id": "4", "_score": 0.5, "_source": {"text": "a note", "n": 1}}
    told = rest.spell_reply(200, [], json.dumps({"hits": {"hits": [hit]}}).encode())
    document = "retrieval.documents.0.document"
    assert dict(retrieved(told)) == {
        f"{document}.content": "a note",
        f"{document}.score": 0.5,
        f"{document}.id": "4",
        f"{document}.metadata": '{"n":1}',
    }


CHROMA = "/tenants/t/databases/d/collections"
DONE = {
    ("POST", f"{CHROMA}/7/query"): ("query", "7"),
    ("POST", CHROMA): ("create_collection", ""),
    ("GET", CHROMA): ("list_collections", ""),
    ("DELETE", f"{CHROMA}/notes"): ("delete_collection", "notes"),
    ("GET", "/tenants/t/databases/d"): ("database", ""),
    ("GET", "/tenants/t"): ("tenant", ""),
    ("GET", "/heartbeat"): ("heartbeat", ""),
}


@pytest.mark.parametrize("asked", DONE, ids=" ".join)
def test_a_request_to_chroma_says_what_it_does(asked: tuple[str, str]) -> None:
    assert _said(*asked) == DONE[asked]


def test_what_is_near_is_documents() -> None:
    columns: Json = {"body": {"json": {"ids": [["a"]], "distances": [[0.5]], "documents": [["one"]]}}}
    points: Json = {"body": {"json": {"result": {"points": [{"id": 1, "score": 0.5, "payload": {"text": "one"}}]}}}}
    for told, identity in ((columns, "a"), (points, "1")):
        found = {name.rpartition(".")[2]: value for name, value in retrieved(told)}
        assert found == {"content": "one", "score": 0.5, "id": identity}
