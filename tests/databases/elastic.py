"""Stands in for Elasticsearch: as much of its HTTP API as the matrix asks for, over dictionaries.

Its replies have the members that the API's reference names. What it draws (ids of documents, of scrolls) is new each
time, so that no replay can guess it. `GET /_asked` says how many other requests came.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

INDICES: dict[str, dict[str, dict[str, Any]]] = {}
SCROLLS: dict[str, list[dict[str, Any]]] = {}
ASKED = [0]
LOCK = threading.Lock()
INFO = {"name": "one", "cluster_name": "stand-in", "cluster_uuid": "u", "version": {"number": "9.1.0"}, "tagline": "-"}


class Refused(Exception):
    def __init__(self, status: int, kind: str, why: str) -> None:
        super().__init__(why)
        about = {"type": kind, "reason": why}
        self.status, self.body = status, {"error": {"root_cause": [about], **about}, "status": status}


def index(name: str) -> dict[str, dict[str, Any]]:
    if name not in INDICES:
        raise Refused(404, "index_not_found_exception", f"no such index [{name}]")
    return INDICES[name]


def near(left: list[float], right: list[float]) -> float:
    norm = math.hypot(*left) * math.hypot(*right) or 1.0
    return (1 + sum(a * b for a, b in zip(left, right, strict=True)) / norm) / 2


def fits(query: dict[str, Any], source: dict[str, Any]) -> float:
    kind, about = next(iter(query.items()))
    if kind == "match_all":
        return 1.0
    if kind == "bool":
        parts = [fits(each, source) for name in ("must", "filter") for each in about.get(name, [])]
        return sum(parts) if all(parts) else 0.0
    if kind not in ("match", "term", "range"):
        raise Refused(400, "parsing_exception", f"unknown query [{kind}]")
    field, wanted = next(iter(about.items()))
    have = source.get(field)
    if kind == "match":
        words = str(wanted["query"] if isinstance(wanted, dict) else wanted).lower().split()
        return float(sum(word in str(have).lower().split() for word in words))
    if kind == "term":
        return float(have == (wanted["value"] if isinstance(wanted, dict) else wanted))
    return float(have is not None and wanted.get("gte", -math.inf) <= have <= wanted.get("lte", math.inf))


def found(name: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    hits: list[dict[str, Any]] = []
    knn = body.get("knn")
    for identity, document in index(name).items():
        source = document["_source"]
        score = fits(body.get("query", {"match_all": {}}) if knn is None else {"match_all": {}}, source)
        if knn is not None:
            score = near(knn["query_vector"], source[knn["field"]]) if knn["field"] in source else 0.0
        if score:
            hits.append({"_index": name, "_id": identity, "_score": score, "_source": source})
    for asked in reversed(body.get("sort", [])):
        field, way = next(iter(asked.items())) if isinstance(asked, dict) else (asked, "asc")
        way = way["order"] if isinstance(way, dict) else way
        if field != "_doc":
            hits.sort(key=lambda hit, field=field: hit["_source"].get(field, 0), reverse=way == "desc")
    if "sort" not in body:
        hits.sort(key=lambda hit: -hit["_score"])
    return hits[: knn["k"]] if knn is not None else hits


def page(hits: list[dict[str, Any]], total: int) -> dict[str, Any]:
    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    best = max((hit["_score"] for hit in hits), default=None)
    held = {"total": {"value": total, "relation": "eq"}, "max_score": best, "hits": hits}
    return {"took": uuid.uuid4().int % 9, "timed_out": False, "_shards": shards, "hits": held}


def search(name: str, body: dict[str, Any], *, scrolls: bool = False) -> dict[str, Any]:
    hits, size = found(name, body), body.get("size", 10)
    start = body.get("from", 0)
    answer = page(hits[start : start + size], len(hits))
    if scrolls:
        answer["_scroll_id"] = uuid.uuid4().hex
        SCROLLS[answer["_scroll_id"]] = hits[size:] and [*hits[size:], {"size": size}]
    return answer


def scroll(identity: str) -> dict[str, Any]:
    if identity not in SCROLLS:
        raise Refused(404, "search_context_missing_exception", "No search context found")
    rest = SCROLLS.pop(identity)
    size = rest.pop()["size"] if rest else 1
    answer = page(rest[:size], len(rest))
    answer["_scroll_id"] = uuid.uuid4().hex
    SCROLLS[answer["_scroll_id"]] = rest[size:] and [*rest[size:], {"size": size}]
    return answer


def written(name: str, identity: str | None, source: dict[str, Any], *, creates: bool) -> tuple[int, dict[str, Any]]:
    held = INDICES.setdefault(name, {})
    identity = identity or uuid.uuid4().hex
    was = held.get(identity)
    if was is not None and creates:
        why = f"[{identity}]: version conflict, document already exists (current version [{was['_version']}])"
        raise Refused(409, "version_conflict_engine_exception", why)
    version = was["_version"] + 1 if was else 1
    held[identity] = {"_version": version, "_source": source}
    result = "updated" if was else "created"
    told = {"_index": name, "_id": identity, "_version": version, "result": result, "_seq_no": uuid.uuid4().int % 999}
    return (200 if was else 201), told


def got(name: str, identity: str) -> tuple[int, dict[str, Any]]:
    document = index(name).get(identity)
    told = {"_index": name, "_id": identity, "found": document is not None}
    return (404, told) if document is None else (200, {**told, **document})


def removed(name: str, identity: str) -> tuple[int, dict[str, Any]]:
    was = index(name).pop(identity, None)
    told = {"_index": name, "_id": identity, "result": "deleted" if was else "not_found"}
    return (200 if was else 404), told


def bulk(default: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    while lines:
        action, about = next(iter(lines.pop(0).items()))
        name = about.get("_index", default)
        try:
            if action == "delete":
                status, told = removed(name, about["_id"])
            else:
                source = lines.pop(0)
                status, told = written(name, about.get("_id"), source.get("doc", source), creates=action == "create")
        except Refused as refused:
            status, told = refused.status, {"_index": name, "_id": about.get("_id"), "error": refused.body["error"]}
        items.append({action: {**told, "status": status}})
    errors = any("error" in next(iter(item.values())) for item in items)
    return {"took": 1, "errors": errors, "items": items}


def of_index(method: str, name: str, body: Any) -> tuple[int, dict[str, Any]]:
    if method == "PUT":
        if name in INDICES:
            raise Refused(400, "resource_already_exists_exception", f"index [{name}] already exists")
        INDICES[name] = {}
        return 200, {"acknowledged": True, "shards_acknowledged": True, "index": name}
    index(name)
    if method == "DELETE":
        del INDICES[name]
        return 200, {"acknowledged": True}
    return 200, {name: {"aliases": {}, "mappings": body or {}}}


def of_document(method: str, parts: list[str], body: Any) -> tuple[int, dict[str, Any]]:
    name, kind, identity = (*parts, None)[:3]
    if method in ("GET", "HEAD"):
        return got(str(name), str(identity))
    if method == "DELETE":
        return removed(str(name), str(identity))
    if kind == "_update":
        was = got(str(name), str(identity))
        if was[0] == 404:
            raise Refused(404, "document_missing_exception", f"[{identity}]: document missing")
        body = {**was[1]["_source"], **body["doc"]}
    return written(str(name), identity, body, creates=kind == "_create")


def answer(method: str, target: str, lines: list[Any]) -> tuple[int, dict[str, Any]]:
    split = urlsplit(target)
    parts, asked = [unquote(each) for each in split.path.split("/") if each], parse_qs(split.query)
    body = lines[0] if lines else {}
    last = parts[-1] if parts else ""
    if not parts:
        return 200, INFO
    if last == "scroll":
        if method != "DELETE":
            return 200, scroll(body["scroll_id"])
        named = body["scroll_id"] if isinstance(body["scroll_id"], list) else [body["scroll_id"]]
        return 200, {"succeeded": True, "num_freed": len([SCROLLS.pop(each, None) for each in named])}
    if last in ("_bulk", "_msearch", "_search", "_count", "_refresh"):
        return 200, of_several(parts[0], last, lines, asked)
    return of_index(method, parts[0], body) if len(parts) == 1 else of_document(method, parts, body)


def of_several(name: str, what: str, lines: list[Any], asked: dict[str, list[str]]) -> dict[str, Any]:
    body = lines[0] if lines else {}
    shards = {"total": 1, "successful": 1, "failed": 0}
    if what == "_bulk":
        return bulk(name, lines)
    if what == "_msearch":
        names = [each.get("index", name) for each in lines[::2]]
        told = [{**search(*each), "status": 200} for each in zip(names, lines[1::2], strict=True)]
        return {"took": 1, "responses": told}
    if what == "_search":
        sized = {"size": int(asked["size"][0])} if "size" in asked else {}
        return search(name, {**body, **sized}, scrolls="scroll" in asked)
    return {"count": len(found(name, body)), "_shards": shards} if what == "_count" else {"_shards": shards}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/_asked":
            return self._reply(200, {"asked": ASKED[0]}, "application/json")
        ASKED[0] += 1
        try:
            lines = [json.loads(data)] if data and b"\n" not in data.strip() else []
            lines = lines or [json.loads(line) for line in data.splitlines() if line]
            with LOCK:
                status, told = answer(self.command, self.path, lines)
        except Refused as refused:
            status, told = refused.status, refused.body
        return self._reply(status, told, self.headers.get("accept", "application/json").split(",")[0])

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - as its base has it

    def _reply(self, status: int, told: dict[str, Any], kind: str) -> None:
        body = json.dumps(told, separators=(",", ":")).encode()
        self.send_response(status)
        for name, value in (("X-elastic-product", "Elasticsearch"), ("content-type", kind)):
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.daemon_threads = True
    server.serve_forever()
