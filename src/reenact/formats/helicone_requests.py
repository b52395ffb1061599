"""Helicone's requests, as its export tool writes them and its query API gives them: JSON, lines, pages of `data`.

A row holds the JSON of a provider's request and reply and where it was sent, so it is an exchange over HTTP; tools and
searches that the program logged by hand are rows as well. From its export tool's code and its API's description, not
tried on data. A session is a run; rows of none that begin with the same message of one user are taken for one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, cast

from reenact.boundary.resource import shape_at
from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.documents import documents
from reenact.foreign.exchanges import Exchange, hex_of, lacking, run_of, spelled_json
from reenact.foreign.records import is_said, nanoseconds, originals, rest, unwrapped
from reenact.values.json import Json, canonical, compact
from reenact.values.lenient import as_count, as_list, as_object, as_text
from reenact.values.run import CARRIER
from reenact.values.skeleton import holds
from reenact.values.span import STATUS_ERROR, STATUS_UNSET, Attribute, Scope, SpanRecord

_BODIES: Final = ("request_body", "response_body")
_MARKS: Final = tuple(
    (f"{at}request_created_at", f"{at}response_status|{at}response_created_at", f"{at}request_id|{at}response_id",
     f"{at}request_path|{at}request_properties|{at}signed_body_url")
    for at in ("", "data[].")
)  # fmt: skip
_CUSTOM: Final[Mapping[str, str]] = {"tool": "TOOL", "vector_db": "RETRIEVER", "data": "CHAIN"}
"""What a row of none of a provider's says it is (`_type`), to the kind of span."""
_SESSION: Final = "Helicone-Session-Id"
_NAME: Final = "Helicone-Session-Name"
_WITH_BODIES: Final = "export the bodies too: npx @helicone/export --include-body"
_NO_RESULT: Final = frozenset({"_type", "metadata", "status", "toolName", "name"})

_Row = dict[str, Json]


def _recognises(head: bytes) -> float:
    return 0.96 if any(holds(head, *marks) for marks in _MARKS) else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    runs: dict[str, list[_Row]] = {}
    for line, document in documents(stream, str(path)):
        has_rows = False
        for row in _rows(document):
            has_rows = True
            runs.setdefault(_seed(row), []).append(row)
        if not has_rows:
            raise InputError(f"{path}:{line}", "this is no request of Helicone: it has no `request_created_at`")
    for seed, gathered in runs.items():
        yield from _spans(seed, sorted(gathered, key=_started))


def _rows(document: Json) -> Iterator[_Row]:
    for each in cast("list[Json]", document) if isinstance(document, list) else [document]:
        fields = as_object(each)
        listed = [as_object(row) for row in as_list(fields.get("data"))] or [fields]
        for row in listed:
            if "request_created_at" in row:
                yield {**row, **{name: unwrapped(row[name]) for name in _BODIES if name in row}}


def _started(row: _Row) -> int:
    return nanoseconds(row.get("request_created_at"))


def _properties(row: _Row) -> dict[str, Json]:
    return as_object(unwrapped(row.get("request_properties")))


def _user(row: _Row) -> str:
    return as_text(row.get("request_user_id")) or as_text(row.get("helicone_user"))


def _seed(row: _Row) -> str:
    """Name the run of a row: its session, else how its conversation begins, else itself."""
    if session := as_text(_properties(row).get(_SESSION)):
        return f"helicone:{session}"
    body = as_object(row.get("request_body"))
    first = (as_list(body.get("messages")) or as_list(body.get("contents")))[:1]
    own = as_text(row.get("request_id")) or as_text(row.get("response_id"))
    return canonical([_user(row), body.get("system"), *(first or [own])]).decode("utf-8", "replace")


def _spans(seed: str, rows: list[_Row]) -> Iterator[SpanRecord]:
    exchanges: list[Exchange] = []
    for place, row in enumerate(rows):
        if as_text(as_object(row.get("request_body")).get("_type")) in _CUSTOM:
            yield _logged(row, seed, (len(exchanges) << 20) + place + 1)
        else:
            exchanges.append(_exchange(row))
    first = rows[0]
    properties = _properties(first)
    facts = {
        "session.id": as_text(properties.get(_SESSION)),
        "user.id": _user(first),
        "metadata": compact(properties) if properties else "",
    }
    name = as_text(properties.get(_NAME)) or "helicone"
    told: dict[str, Attribute] = {key: value for key, value in facts.items() if value}
    yield from run_of(exchanges, carrier=FORMAT.name, seed=seed, name=name, attributes=told)


def _exchange(row: _Row) -> Exchange:
    request, response = as_object(row.get("request_body")), row.get("response_body")
    url, body = as_text(row.get("request_path")), spelled_json(request) if request else b""
    streams = request.get("stream") is True or "streamed_data" in as_object(response) or "stream" in url.lower()
    lost = [] if request else [lacking("request", "the body of the request", _WITH_BODIES)]
    status = as_count(row.get("response_status"))
    has_reply = is_said(response)
    if not has_reply and status is not None:
        lost.append(lacking("reply", "the body of the reply", _WITH_BODIES))
    started, delay = _started(row), as_count(row.get("delay_ms"))
    ended = started + delay * 10**6 if delay is not None else nanoseconds(row.get("response_created_at"))
    return Exchange(
        method="POST",
        url=url,
        request=body,
        status=status if has_reply else None,
        headers=(("content-type", "text/event-stream" if streams else "application/json"),),
        reply=(_streamed(url, body, response) if streams else spelled_json(response)) if has_reply else b"",
        start_ns=started,
        end_ns=ended,
        rebuilt=("spelling", "reply"),
        lost=tuple(lost),
        attributes=_attributes(row),
    )


def _streamed(url: str, body: bytes, response: Json) -> bytes:
    """Spell a reply as a stream: of the events that were kept, or of what its whole unfolds into."""
    events = as_list(as_object(response).get("streamed_data"))
    shape = shape_at("POST", url, body)
    if not events and shape is not None and shape.unfold is not None and "error" not in as_object(response):
        return shape.unfold(response)
    spelled = ""
    for event in events or [response]:
        kind = as_text(as_object(event).get("type"))
        spelled += f"event: {kind}\n" if kind else ""
        spelled += f"data: {compact(event)}\n\n"
    return spelled.encode("utf-8", "replace")


def _attributes(row: _Row) -> dict[str, Attribute]:
    left = rest(row, _BODIES)
    return {**originals("helicone", None, row.get("request_id")), **({"helicone.record": left} if left else {})}


def _logged(row: _Row, seed: str, order: int) -> SpanRecord:
    """Make the span of a tool's run, of a search or of a piece of data that the program logged itself."""
    request, response = as_object(row.get("request_body")), as_object(row.get("response_body"))
    kind = as_text(request.get("_type"))
    name = as_text(request.get("toolName")) or as_text(request.get("name")) or kind
    payload = request.get("input") if kind == "tool" else {key: request[key] for key in request if key != "_type"}
    result: _Row = {key: value for key, value in response.items() if key not in _NO_RESULT}
    started, status = _started(row), as_count(row.get("response_status")) or 0
    attributes: dict[str, Attribute] = {
        "openinference.span.kind": _CUSTOM[kind],
        "input.value": compact(payload),
        "input.mime_type": "application/json",
        CARRIER: FORMAT.name,
        "reenact.order.start": order,
        **_attributes(row),
    }
    if kind == "tool":
        attributes["tool.name"] = name
    if result:
        attributes |= {"output.value": compact(result), "output.mime_type": "application/json"}
    return SpanRecord(
        trace_id=hex_of(seed, 16),
        span_id=hex_of(f"{seed}:{as_text(row.get('request_id'))}:{order}", 8),
        parent_id=hex_of(f"{seed}:root", 8),
        name=name,
        start_ns=started,
        end_ns=nanoseconds(row.get("response_created_at")) or started,
        status=STATUS_ERROR if status >= 400 else STATUS_UNSET,
        attributes=attributes,
        scope=Scope(name=FORMAT.name),
    )


FORMAT = Format(
    name="helicone",
    suffix=".helicone.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=_MARKS),
)
