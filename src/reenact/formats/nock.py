"""HTTP exchanges that nock recorded (`nock.recorder`, `nockBack`), and files with one reply and no request.

nock parses a JSON body and keeps the value, so that equal JSON stands for the bytes that were sent; a body that is no
text, or that was packed, it keeps in hex, whole or in pieces. It keeps the reply's headers in `rawHeaders`, flat.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.documents import documents
from reenact.foreign.exchanges import Exchange, attempt_in, body_bytes, header_pairs, lacking, run_of, spelled_json
from reenact.foreign.foreign_call import Loss
from reenact.values.json import Json, canonical, parsed_or_none
from reenact.values.lenient import as_count, as_list, as_object, as_text
from reenact.values.span import SpanRecord

_OWN = re.compile(rb'"scope"\s*:\s*"https?://')
_REPLY = re.compile(rb'\s*\{\s*"(?:status|headers|body)"\s*:')
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_DEFAULT_PORTS = re.compile(r"(?<=^https://)([^/]*):443$|(?<=^http://)([^/]*):80$")
_TEXTUAL: Final = ("text/", "application/json", "application/x-ndjson")
_SHAPES: Final = (
    ("object", "chat.completion", "openai.chat"),
    ("object", "response", "openai.responses"),
    ("type", "message", "anthropic.messages"),
)
"""A field of a whole reply, its value, and the API that answers so."""
_EQUAL: Final = "the exact bytes; nock keeps parsed JSON, and equal JSON stands for them"


def _recognises(head: bytes) -> float:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start not in (b"[", b"{"):
        return 0.0
    if _OWN.search(head) and b'"method"' in head and b'"path"' in head:
        return 0.96
    lone = _REPLY.match(head) and b'"status"' in head and b'"body"' in head and b'"headers"' in head
    return 0.6 if lone and b'"request"' not in head else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    listed: list[tuple[int, Json]] = []
    for line, document in documents(stream, str(path)):
        listed += [(line, each) for each in (document if isinstance(document, list) else [document])]
    for line, exchange in listed:
        if not isinstance(exchange, dict) or not ("scope" in exchange or {"status", "body"} <= exchange.keys()):
            raise InputError(f"{path}:{line}", "this is no exchange as nock records it: it has no `scope`")
    seed = hashlib.blake2b(canonical([exchange for _, exchange in listed]), digest_size=16).hexdigest()
    exchanges = (_exchange(as_object(exchange)) for _, exchange in listed)
    yield from run_of(exchanges, carrier=FORMAT.name, seed=seed, name="nock recording")


def _exchange(fields: dict[str, Json]) -> Exchange:
    headers = header_pairs(fields.get("rawHeaders") or fields.get("headers"))
    if "scope" not in fields:
        return _lone_reply(fields, headers)
    lost: list[Loss] = []
    payload, body = fields.get("body"), b""
    if isinstance(payload, dict | list):
        body = spelled_json(payload)
        lost.append(lacking("request", _EQUAL))
    else:
        body = _bytes_of(as_text(payload), header_pairs(fields.get("reqheaders")), binary=False)
    reply = _reply(fields, headers, lost)
    return Exchange(
        method=as_text(fields.get("method")) or "GET",
        url=_DEFAULT_PORTS.sub(lambda match: match[1] or match[2] or "", as_text(fields.get("scope")).rstrip("/"))
        + as_text(fields.get("path")),
        request=body,
        status=_status(fields),
        headers=headers,
        reply=reply,
        attempt=attempt_in(header_pairs(fields.get("reqheaders"))),
        lost=tuple(lost),
    )


def _status(fields: dict[str, Json]) -> int | None:
    """Read the status; the first versions of nock had it as the text `reply`."""
    status = as_count(fields.get("status"))
    if status is None and as_text(fields.get("reply")).isdigit():
        status = int(as_text(fields.get("reply"))[:3])
    return status


def _reply(fields: dict[str, Json], headers: Sequence[tuple[str, str]], lost: list[Loss]) -> bytes:
    response = fields.get("response")
    binary = fields.get("responseIsBinary") is True
    if isinstance(response, list) and response and all(isinstance(piece, str) for piece in response):
        pieces = [as_text(piece) for piece in response]
        if all(map(_HEX.fullmatch, pieces)):
            return b"".join(map(bytes.fromhex, pieces))
    if isinstance(response, dict | list):
        lost.append(lacking("reply", _EQUAL))
        return spelled_json(response)
    if isinstance(response, str):
        return _bytes_of(response, headers, binary=binary)
    return b"" if response is None else spelled_json(response)


def _bytes_of(text: str, headers: Iterable[tuple[str, str]], *, binary: bool) -> bytes:
    """Read a body: hex where nock says so, or where what was sent was no text by its headers."""
    header_values = {name.lower(): value.lower() for name, value in headers}
    kind = header_values.get("content-type", "")
    no_text = bool(kind) and not kind.startswith(_TEXTUAL)
    if (binary or no_text or "content-encoding" in header_values) and _HEX.fullmatch(text):
        return bytes.fromhex(text)
    return text.encode("utf-8", "surrogatepass")


def _lone_reply(fields: dict[str, Json], headers: tuple[tuple[str, str], ...]) -> Exchange:
    """Read a reply that stands alone: what it answers is not in the file."""
    reply = body_bytes(cast("Any", fields.get("body")))
    body = as_object(parsed_or_none(reply))
    shape = next((name for field, value, name in _SHAPES if body.get(field) == value), "")
    first = as_text(as_object(next(iter(as_list(body.get("content"))), None)).get("type"))
    return Exchange(
        method="POST",
        url="",
        status=as_count(fields.get("status")),
        headers=headers,
        reply=reply,
        shape=shape if shape != "anthropic.messages" or first or "stop_reason" in body else "",
        lost=(lacking("request", "the file holds a reply and no request", "record both"),),
    )


FORMAT = Format(
    name="nock",
    suffix=".nock.json",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(texts=(('"scope"', '"method"', '"path"'), ('"status"', '"body"', '"headers"'))),
)
