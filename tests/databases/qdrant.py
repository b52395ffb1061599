"""Stands in for Qdrant: as much of its HTTP API as the matrix asks for, over the client's own collections in memory.

Filters, scores and pages are so what the client's authors made them; the paths, the bodies and the errors are those of
the API's reference. `GET /_asked` says how many other requests came.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import TypeAdapter
from qdrant_client import QdrantClient, models

CLIENT = QdrantClient(":memory:")
LOCK = threading.Lock()
ASKED, OPERATIONS = [0], [0]
POINTS: TypeAdapter[Any] = TypeAdapter(list[models.PointStruct])
FILTER: TypeAdapter[Any] = TypeAdapter(models.Filter | None)
PARAMS: TypeAdapter[Any] = TypeAdapter(models.VectorParams | dict[str, models.VectorParams])
SELECTOR: TypeAdapter[Any] = TypeAdapter(models.PointIdsList | models.FilterSelector)
QUERY: TypeAdapter[Any] = TypeAdapter(models.Query)
PREFETCH: TypeAdapter[Any] = TypeAdapter(list[models.Prefetch] | models.Prefetch | None)


class Refused(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def done() -> dict[str, Any]:
    OPERATIONS[0] += 1
    return {"operation_id": OPERATIONS[0], "status": "completed"}


def of_collection(method: str, name: str, body: Any) -> Any:
    if method == "PUT":
        if CLIENT.collection_exists(name):
            raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
        return CLIENT.create_collection(name, vectors_config=PARAMS.validate_python(body["vectors"]))
    if method == "DELETE":
        return CLIENT.delete_collection(name)
    return plain(CLIENT.get_collection(name))


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.model_dump(mode="json", exclude_none=True) if hasattr(value, "model_dump") else value


def shown(body: Any) -> dict[str, Any]:
    return {"with_payload": body.get("with_payload", True), "with_vectors": body.get("with_vector") or False}


def query(name: str, body: Any) -> Any:
    asked = body.get("query")
    found = CLIENT.query_points(
        name,
        query=asked if asked is None or isinstance(asked, list | str | int) else QUERY.validate_python(asked),
        prefetch=PREFETCH.validate_python(body.get("prefetch")),
        query_filter=FILTER.validate_python(body.get("filter")),
        limit=body.get("limit") or 10,
        using=body.get("using"),
        score_threshold=body.get("score_threshold"),
        **shown(body),
    )
    return plain(found)


def of_points(method: str, name: str, what: list[str], body: Any) -> Any:
    kept = FILTER.validate_python((body or {}).get("filter"))
    match "/".join(what):
        case "" if method == "PUT":
            CLIENT.upsert(name, points=POINTS.validate_python(body["points"]))
            return done()
        case "":
            return plain(CLIENT.retrieve(name, body["ids"], **shown(body)))
        case "query":
            return query(name, body)
        case "query/batch":
            return [query(name, each) for each in body["searches"]]
        case "scroll":
            offset, limit = body.get("offset"), body.get("limit") or 10
            points, after = CLIENT.scroll(name, scroll_filter=kept, limit=limit, offset=offset, **shown(body))
            return {"points": plain(points), "next_page_offset": after}
        case "count":
            return plain(CLIENT.count(name, count_filter=kept))
        case "delete":
            CLIENT.delete(name, SELECTOR.validate_python(body))
            return done()
        case "payload":
            CLIENT.set_payload(name, body["payload"], body.get("points") or models.FilterSelector(filter=kept))
            return done()
        case other:
            raise Refused(404, f"Not found: {other}")


def answer(method: str, path: str, body: Any) -> Any:
    parts = [unquote(each) for each in path.strip("/").split("/")]
    if parts == ["collections"]:
        return plain(CLIENT.get_collections())
    name = parts[1]
    if parts[2:] == ["exists"]:
        return {"exists": CLIENT.collection_exists(name)}
    if not CLIENT.collection_exists(name) and (method, len(parts)) != ("PUT", 2):
        raise Refused(404, f"Not found: Collection `{name}` doesn't exist!")
    if len(parts) == 2:
        return of_collection(method, name, body)
    return done() if parts[2] == "index" else of_points(method, name, parts[3:], body)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = urlsplit(self.path).path
        if path == "/_asked":
            return self._reply(200, {"asked": ASKED[0]})
        ASKED[0] += 1
        if path == "/":
            return self._reply(200, {"title": "qdrant - vector search engine", "version": "1.20.0", "commit": "0"})
        try:
            with LOCK:
                told = answer(self.command, path, json.loads(data) if data else None)
        except Refused as refused:
            return self._reply(refused.status, {"status": {"error": str(refused)}, "time": 0.001})
        except ValueError as error:
            return self._reply(400, {"status": {"error": f"Wrong input: {error}"}, "time": 0.001})
        return self._reply(200, {"result": told, "status": "ok", "time": 0.001 * (ASKED[0] % 7)})

    do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = _serve  # noqa: N815 - as its base has it

    def _reply(self, status: int, told: dict[str, Any]) -> None:
        body = json.dumps(told, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.daemon_threads = True
    server.serve_forever()
