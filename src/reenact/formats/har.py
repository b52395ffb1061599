"""HAR 1.2, the HTTP archive that browsers and proxies save: `{"log": {"entries": [{request, response, …}]}}`.

Entries of the hosts to which a model call went become one run, in the order in which they began; where no call of a
model is among them, all do. What a browser fetched of other hosts is left out and counted on the root. Bodies come as
text or in base64; a HAR saved without content has none, and the verdict says so.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import urlencode, urlsplit

from reenact.boundary.resource import is_a_model
from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.documents import documents
from reenact.foreign.exchanges import (
    Exchange,
    attempt_in,
    header_pairs,
    instant_ns,
    lacking,
    run_of,
    unbase64,
)
from reenact.foreign.foreign_call import Loss
from reenact.values.json import Json, canonical, compact
from reenact.values.lenient import as_count, as_list, as_object, as_text
from reenact.values.span import Attribute, SpanRecord

_LOG = re.compile(rb'\s*\{\s*"log"\s*:\s*\{')
_ENTRIES = re.compile(rb'"(?:entries|startedDateTime)"\s*:')
_MOST_HOSTS: Final = 20


def _recognises(head: bytes) -> float:
    text = head.removeprefix(b"\xef\xbb\xbf")
    if not _LOG.match(text):
        return 0.0
    return 0.97 if _ENTRIES.search(text) else 0.7 if b'"creator"' in text or b'"version"' in text else 0.05


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    for line, document in documents(stream, str(path)):
        log = document.get("log") if isinstance(document, dict) else None
        if not isinstance(log, dict) or not isinstance(log.get("entries"), list):
            raise InputError(f"{path}:{line}", "this is no HTTP archive: it has no `log.entries`")
        entries = [as_object(entry) for entry in as_list(log.get("entries"))]
        calls, left_out = _chosen(entries)
        seed = hashlib.blake2b(canonical(log), digest_size=16).hexdigest()
        facts = _facts(log, left_out)
        yield from run_of(map(_exchange, calls), carrier=FORMAT.name, seed=seed, name="http archive", attributes=facts)


def _chosen(entries: list[dict[str, Json]]) -> tuple[list[dict[str, Json]], Counter[str]]:
    """Choose the entries of hosts that models were asked of, in the order in which they began."""
    asked = {_host(entry) for entry in entries if is_a_model(_method(entry), _url(entry), _request_body(entry))}
    calls = [entry for entry in entries if (not asked or _host(entry) in asked) and _method(entry) != "OPTIONS"]
    left_out = Counter(_host(entry) or "?" for entry in entries if asked and _host(entry) not in asked)
    return sorted(calls, key=lambda entry: instant_ns(entry.get("startedDateTime"))), left_out


def _facts(log: dict[str, Json], left_out: Counter[str]) -> dict[str, Attribute]:
    facts: dict[str, Attribute] = {}
    if creator := as_text(as_object(log.get("creator")).get("name")):
        facts["har.creator"] = creator
    if left_out:
        facts["har.left_out"] = left_out.total()
        facts["har.left_out.hosts"] = compact(dict[str, Json](left_out.most_common(_MOST_HOSTS)))
    return facts


def _exchange(entry: dict[str, Json]) -> Exchange:
    request, response = as_object(entry.get("request")), as_object(entry.get("response"))
    content = as_object(response.get("content"))
    status = as_count(response.get("status"))
    lost: list[Loss] = []
    if status and "text" not in content and (as_count(content.get("size")) or 0) > 0:
        fix = "save the archive with content (browsers: “Save all as HAR with content”)"
        lost.append(lacking("reply", "the archive was saved without the bodies of replies", fix))
    if error := as_text(response.get("_error")):
        lost.append(lacking("reply", f"it failed: {error}"))
    start = instant_ns(entry.get("startedDateTime"))
    took = entry.get("time")
    return Exchange(
        method=_method(entry),
        url=_url(entry),
        request=_request_body(entry),
        status=status or None,
        headers=header_pairs(response.get("headers")),
        reply=_content(content),
        start_ns=start,
        end_ns=start + round(max(took, 0) * 1e6) if isinstance(took, int | float) and took < _LONGEST_MS else 0,
        attempt=attempt_in(header_pairs(request.get("headers"))),
        lost=tuple(lost),
    )


_LONGEST_MS: Final = 10**12


def _method(entry: dict[str, Json]) -> str:
    return as_text(as_object(entry.get("request")).get("method")).upper() or "GET"


def _url(entry: dict[str, Json]) -> str:
    return as_text(as_object(entry.get("request")).get("url"))


def _host(entry: dict[str, Json]) -> str:
    try:
        return urlsplit(_url(entry)).hostname or ""
    except ValueError:
        return ""


def _request_body(entry: dict[str, Json]) -> bytes:
    data = as_object(as_object(entry.get("request")).get("postData"))
    if "text" in data:
        text = as_text(data.get("text"))
        if "base64" in (data.get("encoding"), data.get("_encoding")):
            return unbase64(text)
        return text.encode("utf-8", "surrogatepass")
    pairs = [as_object(each) for each in as_list(data.get("params"))]
    return urlencode([(as_text(each.get("name")), as_text(each.get("value"))) for each in pairs]).encode()


def _content(content: dict[str, Json]) -> bytes:
    text = as_text(content.get("text"))
    return unbase64(text) if content.get("encoding") == "base64" else text.encode("utf-8", "surrogatepass")


FORMAT = Format(
    name="har", suffix=".har", recognises=_recognises, decode=_decode, most=0.97, marks=HeadMarks(texts=(('"log"',),))
)
