"""Recorded HTTP of real providers, read from files outside this repository: VCR cassettes and nock replies.

Whatever speaks an API of OpenAI or of Anthropic, on whatever host.
"""

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
_NOT_RUN = {
    "complete": "text completions are gone from anthropic 2, and no shape speaks them",
    "bedrock": "Bedrock's own endpoints are asked through botocore",
}
_HOP = {"content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive", "content-type"}


def discovered(sdk: str = "openai", folder: Path = FOLDER) -> list[Exchange]:
    """Every exchange under `folder` with an API that this SDK speaks, on whatever host, in path order."""
    if not folder.is_dir():
        return []
    found: list[Exchange] = []
    for path in sorted([*folder.rglob("*.yaml"), *folder.rglob("*.yml")]):
        name = path.relative_to(folder).with_suffix("").as_posix()
        exchanges = enumerate(_interactions(path))
        found += [made for number, told in exchanges if (made := _exchange(f"{name}#{number}", told)) is not None]
    for path in sorted(folder.glob("js-anthropic/*.json")):
        found.append(_nocked(f"js-anthropic/{path.stem}", json.loads(path.read_text(encoding="utf-8"))))
    return [exchange for exchange in found if exchange.sdk == sdk]


def _nocked(name: str, told: dict[str, Any]) -> Exchange:
    """Read a reply that was kept without its request: any request of the API stands for that."""
    body = told["body"] if isinstance(told["body"], str) else json.dumps(told["body"])
    model = json.loads(body).get("model", "any")
    request = {"model": model, "max_tokens": 4096, "messages": [{"role": "user", "content": name}]}
    headers = tuple((key, str(value)) for key, value in told["headers"].items() if key not in _HOP)
    return Exchange(
        name=name, api="messages", request=request, status=told["status"], body=body.encode(), headers=headers
    )


def golden(sdk: str = "openai") -> list[Exchange]:
    """Our own recorded cases of the same APIs, for whoever has no cassettes."""
    found: list[Exchange] = []
    for case in [*cases("shapes"), *cases("matrix")]:
        provider, _, api = case.parent.name.partition("_")
        if provider != sdk or api not in API_OF_PATH.values():
            continue
        streamed = (case / "stream.txt").exists()
        body = (case / ("stream.txt" if streamed else "reply.json")).read_bytes()
        head = case / "head.json"
        told = json.loads(head.read_text(encoding="utf-8")) if head.exists() else {}
        request = json.loads((case / "request.json").read_text(encoding="utf-8"))
        status = told.get("status") or (429 if case.name.endswith("_429") else 200)
        headers = tuple((name, value) for name, value in told.get("headers", {}).items())
        made = Exchange(
            name=case_name(case),
            api=api,
            request=request,
            status=status,
            body=body,
            headers=headers,
            beta=told.get("beta") is True,
        )
        found.append(made)
    return found


def _interactions(path: Path) -> Iterator[dict[str, Any]]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    yield from document.get("interactions") or () if isinstance(document, dict) else ()


def _exchange(name: str, told: dict[str, Any]) -> Exchange | None:
    request, response = told["request"], told["response"]
    address = urlsplit(request["uri"])
    api = _api(address.path.rstrip("/"))
    if api is None or request.get("method", "POST").upper() != "POST":
        return None
    headers = {key.lower(): _one(value) for key, value in (response.get("headers") or {}).items()}
    body = _decoded(_bytes(response.get("body", response.get("content"))), headers.get("content-encoding", ""))
    asked = _parsed(_decoded(_bytes(request.get("body")), ""))
    excluded = _NOT_RUN.get(api, "")
    if excluded:
        pass
    elif not body.strip():
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
        beta="beta=true" in address.query,
        excluded=excluded,
    )


def _api(path: str) -> str | None:
    if path.endswith("/v1/complete"):
        return "complete"
    if "/model/" in path and "anthropic." in path:
        return "bedrock"
    return next((api for ending, api in API_OF_PATH.items() if path.endswith(ending)), None)


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
