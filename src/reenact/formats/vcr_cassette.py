"""Cassettes: HTTP exchanges that a test recorded, request and reply whole, in YAML or JSON.

Read are those of vcrpy and pytest-recording (`uri`, `body.string`, or `content` and `status_code` of its httpx stubs),
betamax and VCR for Ruby (`http_interactions`, `base64_string`, `recorded_at`), go-vcr (`url`, `code`, `duration`), VCR
for PHP (a bare list), and cassettes with `parsed_body` in place of text. The interactions of a file are one run in its
order. Most cassettes know no times; the header `Date` of a reply, where it was kept, tells the second.

YAML needs the extra `[vcr]`. Tags of Python or Ruby objects are read as the plain data below them; nothing is built.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign import plain_yaml
from reenact.foreign.exchanges import (
    Exchange,
    attempt_in,
    body_bytes,
    header_pairs,
    instant_ns,
    lacking,
    run_of,
    spelled_json,
)
from reenact.foreign.foreign_call import Loss
from reenact.values.json import parse
from reenact.values.lenient import as_text
from reenact.values.limits import RAISE_THE_LIMIT, max_record_bytes, spelled
from reenact.values.span import SpanRecord

_Object = dict[str, Any]
_LISTS: Final = ("interactions", "http_interactions")
_YAML = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:%YAML[^\n]*\n|---[^\n]*\n|[ \t]*#[^\n]*\n|[ \t]*\r?\n|[\w.-]+:[ \t][^\n]*\n)*"
    rb"(?:(?:http_)?interactions:|-[ \t\r\n]+request:)"
)
"""Lines of plain facts, and then the list."""
_JSON_LIST = re.compile(rb'"(?:http_)?interactions"\s*:\s*\[')
_PHP_JSON = re.compile(rb'\s*\[\s*\{\s*"request"\s*:\s*\{')
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|\u00b5s|ns)")
_UNITS: Final = {
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "\u00b5s": 10**3,
    "ns": 1,
}


def _recognises(head: bytes) -> float:
    if _YAML.match(head):
        return 0.97
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return 0.0
    if _PHP_JSON.match(head) and b'"response"' in head:
        return 0.9
    return 0.95 if _JSON_LIST.search(head) and b'"request"' in head else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    limit = max_record_bytes()
    data = stream.read(limit + 1)
    if len(data) > limit:
        problem = f"the cassette is longer than the limit of {spelled(limit)}"
        raise InputError(str(path), problem, hint=RAISE_THE_LIMIT)
    document = _loaded(data, path)
    listed = _interactions(document)
    if listed is None:
        raise InputError(str(path), "this is not shaped like a cassette: it has no list of interactions")
    seed = hashlib.blake2b(data, digest_size=16).hexdigest()
    exchanges = (_exchange(each, number, path) for number, each in enumerate(listed, 1))
    yield from run_of(exchanges, carrier=FORMAT.name, seed=seed, name="cassette", attributes=_facts(document))


def _loaded(data: bytes, path: Path) -> object:
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        try:
            return parse(data.removeprefix(b"\xef\xbb\xbf"))
        except ValueError as error:
            raise InputError(str(path), f"this is not JSON: {error}") from None
    return plain_yaml.loaded(data, str(path))


def _interactions(document: object) -> list[object] | None:
    if isinstance(document, dict):
        fields = cast("_Object", document)
        return next((cast("list[object]", fields[name]) for name in _LISTS if isinstance(fields.get(name), list)), None)
    return cast("list[object]", document) if isinstance(document, list) else None


def _facts(document: object) -> dict[str, Any]:
    fields = cast("_Object", document) if isinstance(document, dict) else {}
    return {f"cassette.{name}": str(fields[name]) for name in ("version", "recorded_with") if name in fields}


def _exchange(interaction: object, number: int, path: Path) -> Exchange:
    fields = cast("_Object", interaction) if isinstance(interaction, dict) else {}
    request = fields.get("request")
    if not isinstance(request, dict):
        raise InputError(str(path), f"interaction {number} is no object with a `request`")
    asked = cast("_Object", request)
    reply = cast("_Object", fields["response"]) if isinstance(fields.get("response"), dict) else None
    lost: list[Loss] = []
    request_body = _body(asked, "request", lost)
    if "parsed_body" in asked:
        lost.append(lacking("request", _EQUAL))
    sent_headers = header_pairs(asked.get("headers"))
    start, end = _times(fields, reply or {})
    return Exchange(
        method=_text(asked.get("method")) or "GET",
        url=_text(asked.get("uri") or asked.get("url")),
        request=request_body,
        status=_status(reply) if reply is not None else None,
        headers=header_pairs((reply or {}).get("headers")),
        reply=_body(reply, "reply", lost) if reply is not None else b"",
        start_ns=start,
        end_ns=end,
        attempt=attempt_in(sent_headers),
        lost=tuple(lost),
    )


_EQUAL: Final = "the exact bytes; the cassette keeps parsed JSON, and equal JSON stands for them"


def _body(side: _Object, name: str, lost: list[Loss]) -> bytes:
    if "parsed_body" in side:
        if name == "reply":
            lost.append(lacking("reply", _EQUAL))
        return _plain_json(side["parsed_body"])
    body: object = side.get("body", side.get("content"))
    if isinstance(body, dict) and ("string" in body or "base64_string" in body):
        return body_bytes(cast("_Object", body))
    if isinstance(body, dict | list):
        return _plain_json(cast("object", body))
    return body_bytes(body) if isinstance(body, str | bytes) or body is None else str(body).encode()


def _plain_json(value: object) -> bytes:
    """Spell parsed JSON; aliases of YAML may make a small file a huge tree, which is left out."""
    return spelled_json(value) if plain_yaml.spelled_out(value) else b""


def _status(reply: _Object) -> int | None:
    """Read a status: `{code: 200}`, `200`, `"200 OK"`, or `status_code`; go-vcr has `status` and `code` both."""
    status: Any = reply.get("status")
    inner: Any = cast("_Object", status).get("code") if isinstance(status, dict) else status
    for code in (reply.get("code"), reply.get("status_code"), inner):
        if isinstance(code, int) and not isinstance(code, bool) and 0 < code < 1000:
            return code
        if isinstance(code, str) and code[:3].isascii() and code[:3].isdigit():
            return int(code[:3])
    return None


def _times(interaction: _Object, reply: _Object) -> tuple[int, int]:
    """Read when the reply was recorded, and how long it took, where the file says so."""
    end = instant_ns(interaction.get("recorded_at") or reply.get("recorded_at"))
    took = 0
    duration = reply.get("duration")
    if isinstance(duration, str):
        took = round(sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(duration[:40])))
    elif isinstance(duration, int) and 0 <= duration < 10**15:  # go-vcr wrote nanoseconds at first
        took = duration
    if not end:
        return 0, 0
    return max(1, end - took), end


def _text(value: object) -> str:
    return as_text(value) if isinstance(value, str) else "" if value is None else str(value)


FORMAT = Format(
    name="vcr-cassette",
    suffix=".yaml",
    recognises=_recognises,
    decode=_decode,
    most=0.97,
    marks=HeadMarks(
        texts=(('interactions"', '"request"'), ('"request"', '"response"')), plain=(("interactions:",), ("request:",))
    ),
)
