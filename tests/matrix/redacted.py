"""What a replay of a redacted recording must have left as it was, and what it may have replaced."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from matrix.exchange import Exchange
from matrix.whole import Whole
from reenact.values.redaction_marks import MARK

OPAQUE = frozenset(
    ["signature", "encrypted_content", "b64_json", "obfuscation", "embedding", "embeddings", "redacted_thinking"]
)
"""Fields that are signed, encrypted or binary: of these every byte comes back."""
PROTOCOL = frozenset(
    [
        *("id", "object", "type", "role", "model", "status", "finish_reason", "stop_reason", "stop_sequence", "index"),
        *("created", "created_at", "name", "call_id", "item_id", "tool_use_id", "previous_response_id", "service_tier"),
        *("system_fingerprint", "media_type", "format", "effort", "code", "param", "reason", "summary_index"),
    ]
)
"""Fields by which an SDK parses a reply, or an agent finds its way."""
_BASE64 = re.compile(r"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/_-]{200,}={0,2}")


def leaves(live: Any, again: Any, path: str = "") -> Iterator[tuple[str, str, Any, Any]]:
    """Yield every leaf as path, name of its field and both values; a change of structure is a leaf named `!`."""
    live, again = _plain(live), _plain(again)
    if isinstance(live, dict) and isinstance(again, dict):
        if list(live) != list(again):
            yield path, "!", sorted(map(str, live)), sorted(map(str, again))
            return
        for name in live:
            yield from leaves(live[name], again[name], f"{path}.{name}")
    elif isinstance(live, list | tuple) and isinstance(again, list | tuple):
        if len(live) != len(again):
            yield path, "!", len(live), len(again)
            return
        for place, (a, b) in enumerate(zip(live, again, strict=True)):
            yield from leaves(a, b, f"{path}[{place}]")
    else:
        name = re.sub(r"\[\d+\]", "", path).rpartition(".")[2]
        yield path, name, live, again


def _plain(value: Any) -> Any:
    if hasattr(type(value), "model_fields"):
        return {**value.__dict__, **(value.model_extra or {})}
    return value


def wrong(exchange: Exchange, whole: Whole) -> tuple[list[str], int, int]:
    """Say what redaction changed that it must not; count the opaque values that came back, and the replaced ones."""
    live, again = whole.passed.live[exchange.name], whole.passed.again[exchange.name]
    found: list[str] = []
    opaque = replaced = 0
    for path, name, a, b in leaves(live, again):
        if ".snapshot" in path:  # of a stream in between: all of a text comes with its first piece
            continue
        if name == "!":
            found.append(f"{path}: another structure: {a} live, {b} in the replay")
        elif _is_opaque(name, a):
            opaque += 1
            if a != b:
                found.append(f"{path}: an opaque value changed")
        elif a == b or not (isinstance(a, str | bytes) and isinstance(b, str | bytes)):
            if a != b and type(a) is not type(b):
                found.append(f"{path}: {a!r} live, {b!r} in the replay")
        elif name in PROTOCOL:
            found.append(f"{path}: {a!r} live, {b!r} in the replay")
        else:
            replaced += 1
            if name in {"arguments", "partial_json"} and _is_json(a) and not _is_json(b):
                found.append(f"{path}: no JSON any more: {b!r}")
    return found, opaque, replaced


def _is_opaque(name: str, value: Any) -> bool:
    if name in OPAQUE or isinstance(value, float):
        return True
    return isinstance(value, str) and MARK not in value and _BASE64.fullmatch(value) is not None


def _is_json(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


MAIL, PHONE, IBAN = "ann.meyer@vip-club.com", "+1 415 555 0143", "DE89 3704 0044 0532 0130 00"
PLANTED = f"write to {MAIL}, call {PHONE}, pay to {IBAN}"
"""What a user may type and a model repeat."""


def planted(exchange: Exchange) -> Exchange:
    """Give an exchange in which the user says personal data, and the reply repeats it where it says anything."""
    request = _asked(copy.deepcopy(exchange.request))
    if exchange.status >= 400:
        return replace(exchange, request=request)
    if exchange.streamed:
        lines = exchange.body.split(b"\n")
        return replace(exchange, request=request, body=b"\n".join(_event(line) for line in lines))
    body = json.loads(exchange.body) if exchange.body.lstrip()[:1] == b"{" else None
    return replace(exchange, request=request, body=json.dumps(_said(body)).encode() if body else exchange.body)


def _asked(request: dict[str, Any]) -> dict[str, Any]:
    for asked in [request, *(each.get("params", {}) for each in request.get("requests", []))]:
        for name in ("messages", "input"):
            said = asked.get(name)
            if isinstance(said, str):
                asked[name] = f"{said} {PLANTED}"
            elif isinstance(said, list) and said and isinstance(said[0], str):
                said[0] = f"{said[0]} {PLANTED}"
            elif isinstance(said, list) and said and isinstance(said[-1], dict) and said[-1].get("role") == "user":
                content = said[-1].get("content")
                if isinstance(content, str):
                    said[-1]["content"] = f"{content} {PLANTED}"
    return request


def _said(value: Any, *, inside: bool = False) -> Any:
    """Add it to the texts that a model said."""
    if isinstance(value, dict):
        spoken = inside or value.get("role") == "assistant"
        plain = spoken and value.get("type", "text") in {"text", "output_text"}
        return {
            name: f"{item} {PLANTED}"
            if plain and name in {"content", "text"} and isinstance(item, str) and item
            else _said(item, inside=spoken)
            for name, item in value.items()
        }
    return [_said(item, inside=inside) for item in value] if isinstance(value, list) else value


def _event(line: bytes) -> bytes:
    """Add it to the pieces of text that a stream hands over."""
    if not line.startswith(b"data: {"):
        return line
    try:
        event = json.loads(line[6:])
    except ValueError:
        return line
    places = [event.get("delta"), *(each.get("delta") for each in event.get("choices") or [])]
    for delta in places:
        if isinstance(delta, dict) and delta.get("type", "text_delta") == "text_delta":
            for name in ("content", "text"):
                if isinstance(delta.get(name), str) and delta[name]:
                    delta[name] += f" {PLANTED}"
    if event.get("type") == "response.output_text.delta" and isinstance(event.get("delta"), str):
        event["delta"] += f" {PLANTED}"
    return b"data: " + json.dumps(event).encode()
