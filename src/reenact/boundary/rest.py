"""Databases that are asked over HTTP: how a request of their client is told as a question, and a reply as its answer.

The question is the method, the path and the body; which node of a cluster it goes to is none, since a client draws
that. The answer is the status, the headers that hold no secret, and the body. Bodies are told as the JSON that they
hold, line by line where that is one document a line. A program may read the bytes of a reply, of an error for one:
where its JSON would not be spelled so again, it is told as text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from reenact.boundary import databases, plain_http
from reenact.values import typed
from reenact.values.call import CallKind
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.query import ASIDE, PING, Query

_LINES, _TEXT, _DATA, _JSON = "lines", "text", "data", "json"
_OK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """What a request does: its word, the collection that it does that to, and what kind of call it is."""

    word: str
    collection: str = ""
    searches: bool = False
    """It looks for what is near to a vector."""
    pings: bool = False
    """It asks for the server itself, as clients do when they like."""
    aside: bool = False
    """A client does it by itself, on a thread that nobody waits for."""


def question(system: str, request: tuple[str, str, bytes], asks: Asks, server: str) -> Query:
    """Make the question of a request, given as its method, its target and its body."""
    method, target, body = request
    return Query(
        system=system,
        operation=ASIDE if asks.aside else PING if asks.pings else "request",
        text=f"{method} {target}",
        parameters=_spelled(body) if body else None,
        server=server,
        kind=CallKind.RETRIEVER if asks.searches else CallKind.UNKNOWN,
        target=asks.collection,
        word=asks.word,
    )


def server_of(url: str) -> str:
    """Spell where the server of a URL is."""
    split = urlsplit(url)
    return databases.server_of(split.hostname, split.port or {"https": 443}.get(split.scheme, 80))


def spell_reply(status: int, headers: Iterable[tuple[str, str]], body: bytes) -> Json:
    """Spell a reply."""
    pairs = plain_http.headers(headers, status, None, decoded=True)
    return {"status": status, "headers": [[name, value] for name, value in pairs], "body": _spelled_exactly(body)}


def untold(answer: Json) -> tuple[int, list[tuple[str, str]], bytes]:
    """Make the status, the headers and the body of it again."""
    about = as_object(answer)
    status = about.get("status")
    pairs = [tuple(map(as_text, as_list(each))) for each in as_list(about.get("headers"))]
    header_pairs = [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]
    return status if isinstance(status, int) else _OK, header_pairs, _unspelled(about.get("body"))


def _spelled_exactly(body: bytes) -> Json:
    document = _spelled(body)
    return document if _unspelled(document) == body else _as_text(body)


def _spelled(body: bytes) -> Json:
    """Spell a body: what it holds, and how."""
    value = parsed_or_none(body)
    if value is not None:
        return {_JSON: value}
    lines = body.splitlines()
    if len(lines) > 1 and all(each[:1] in b"{[" for each in lines if each):
        read: list[Json] = [parsed_or_none(each) for each in lines if each]
        if None not in read:
            return {_LINES: read}
    return _as_text(body)


def _as_text(body: bytes) -> Json:
    try:
        return {_TEXT: body.decode()}
    except UnicodeDecodeError:
        return {_DATA: typed.encode(body)}


def _unspelled(document: Json) -> bytes:
    about = as_object(document)
    if _JSON in about:
        return compact(about[_JSON]).encode()
    if _LINES in about:
        return b"".join(compact(each).encode() + b"\n" for each in as_list(about[_LINES]))
    content: Any = typed.decode(about.get(_DATA)) if _DATA in about else as_text(about.get(_TEXT)).encode()
    return content if isinstance(content, bytes) else b""
