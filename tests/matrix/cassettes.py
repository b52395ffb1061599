"""Recorded HTTP of real providers, read from VCR cassettes outside this repository: whatever speaks an OpenAI API."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from golden_cases import case_name, cases
from matrix.exchange import API_OF_PATH, Exchange

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "cassettes"
ABSENT = "no cassettes here: these tests read ../shared/data/cassettes, beside the repository"
_HOP = {"content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive", "content-type"}


def discovered(folder: Path = FOLDER) -> list[Exchange]:
    """Every exchange under `folder` with an API that OpenAI's SDK speaks, on whatever host, in path order."""
    if not folder.is_dir():
        return []
    found: list[Exchange] = []
    for path in sorted([*folder.rglob("*.yaml"), *folder.rglob("*.yml")]):
        name = path.relative_to(folder).with_suffix("").as_posix()
        exchanges = enumerate(_interactions(path))
        found += [made for number, told in exchanges if (made := _exchange(f"{name}#{number}", told)) is not None]
    return found


def golden() -> list[Exchange]:
    """Our own recorded cases of the same APIs, for whoever has no cassettes."""
    found: list[Exchange] = []
    for case in [*cases("shapes"), *cases("matrix")]:
        api = case.parent.name.removeprefix("openai_")
        if api not in API_OF_PATH.values():
            continue
        streamed = (case / "stream.txt").exists()
        body = (case / ("stream.txt" if streamed else "reply.json")).read_bytes()
        head = case / "head.json"
        told = json.loads(head.read_text(encoding="utf-8")) if head.exists() else {}
        request = json.loads((case / "request.json").read_text(encoding="utf-8"))
        status = told.get("status") or (429 if case.name.endswith("_429") else 200)
        headers = tuple((name, value) for name, value in told.get("headers", {}).items())
        found.append(
            Exchange(name=case_name(case), api=api, request=request, status=status, body=body, headers=headers),
        )
    return found


def _interactions(path: Path) -> Iterator[dict[str, Any]]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    yield from document.get("interactions") or () if isinstance(document, dict) else ()


def _exchange(name: str, told: dict[str, Any]) -> Exchange | None:
    request, response = told["request"], told["response"]
    path = urlsplit(request["uri"]).path.rstrip("/")
    api = next((api for ending, api in API_OF_PATH.items() if path.endswith(ending)), None)
    if api is None or request.get("method", "POST").upper() != "POST":
        return None
    headers = {key.lower(): _one(value) for key, value in (response.get("headers") or {}).items()}
    body = _decoded(_bytes(response.get("body", response.get("content"))), headers.get("content-encoding", ""))
    asked = _parsed(_decoded(_bytes(request.get("body")), ""))
    excluded = ""
    if not body.strip():
        excluded = "the recorded reply has no body"
    elif not isinstance(asked, dict):
        excluded = "the recorded request is no JSON object"
    return Exchange(
        name=name,
        api=api,
        request=asked if isinstance(asked, dict) else {},
        status=_status(response),
        body=body,
        headers=tuple((key, value) for key, value in headers.items() if key not in _HOP and value.isascii()),
        excluded=excluded,
    )


def _status(response: dict[str, Any]) -> int:
    status = response.get("status", response.get("status_code"))
    return int(status["code"] if isinstance(status, dict) else status)


def _one(value: Any) -> str:
    return str(value[0] if isinstance(value, list) and value else value)


def _bytes(body: Any) -> bytes:
    """Spell a body as VCR writes it: text, bytes, or an object that holds `string` or `base64_string`."""
    if isinstance(body, dict):
        if "base64_string" in body:
            return base64.b64decode(body["base64_string"])
        body = body.get("string")
    if isinstance(body, str):
        return body.encode()
    return body if isinstance(body, bytes) else b""


def _decoded(body: bytes, coding: str) -> bytes:
    """Undo a content coding that the cassette kept; many were decoded already and kept the header."""
    if body[:2] == b"\x1f\x8b":
        return gzip.decompress(body)
    if coding == "deflate" and body[:1] == b"\x78":
        return zlib.decompress(body)
    return body


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
