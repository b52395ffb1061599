"""Vertex AI's logs of requests and responses, rows of BigQuery, and the stored predictions of its batch jobs.

A row holds the JSON of a request and of its response, which are the bodies of Gemini's or Anthropic's API; the URL is
made of the resource's name and the method. From its documentation, not tried on data. A log knows no runs: calls that
begin with the same message to the same model are taken for one run, in the order of their times, unless labels of the
request name a session. Each prediction of a batch is a run of its own. Rows of JSON, lines, or CSV.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from reenact.boundary.resource import shape_at
from reenact.contracts.format import Format, HeadMarks
from reenact.errors import InputError
from reenact.foreign.exchanges import Exchange, lacking, run_of, spelled_json
from reenact.foreign.foreign_call import Loss
from reenact.foreign.records import is_said, nanoseconds, rest, unwrapped
from reenact.foreign.tables import columns, rows
from reenact.values.json import Json, canonical, compact
from reenact.values.lenient import as_list, as_object, as_text, at
from reenact.values.skeleton import holds
from reenact.values.span import Attribute, SpanRecord

_LOGGED: Final = ("full_request|request_payload", "full_response|response_payload", "logging_time", "api_method|model")
_GEMINI: Final = ("request.contents", "response.candidates|response.usageMetadata|status")
_PREDICTED: Final = (
    _GEMINI,
    ("request.anthropic_version", "response|status"),
    ("request.messages", "response.content", "status"),
    ("instance", "predictions"),
    ("request", "response", "status", "processed_time"),
)
_MARKS: Final = (_LOGGED, *_PREDICTED)
_TAKEN: Final = frozenset({"full_request", "full_response", "request", "response", "instance", "predictions"})
_PATHS: Final = frozenset({"model", "endpoint"})
"""What a logged request has beside its body: where it was sent, which REST says in the path."""
_RESOURCE: Final = re.compile(r"(?:projects/[^/]+/locations/([^/]+)/)?(?:publishers/[^/]+/models|models|endpoints)/.+")
_SESSIONS: Final = ("session_id", "session-id", "conversation_id", "conversation-id", "thread_id", "trace_id", "run_id")
_RPC_CODES: Final[Mapping[int, int]] = {
    3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401,
}  # fmt: skip
"""Codes of gRPC, as the status of a row has them, to those of HTTP."""
_SHAPES: Final[Mapping[str, str]] = {
    "generateContent": "google.generate_content",
    "predict": "google.predict_embeddings",
}
"""What is asked by a method, where no model is named and so no path tells it."""
_METHOD: Final = Loss(
    field="url", lost="the model that was asked; if a reply names one, it stands for it", fix="nothing to do"
)
_ELSEWHERE: Final = "requests and responses over 10 MB are not logged: log a smaller sample, or record with reenact"

_Row = dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What belongs together: exchanges in the order of their times, and what is said of them all."""

    exchanges: list[Exchange]
    facts: dict[str, Attribute]


def _recognises(head: bytes) -> float:
    if columns(head) >= {"full_request", "full_response", "logging_time"}:
        return 0.96
    return 0.96 if any(holds(head, *marks) for marks in _MARKS) else 0.0


def _decode(stream: BinaryIO, path: Path) -> Iterator[SpanRecord]:
    runs: dict[str, _Run] = {}
    number = 0
    for line, document in rows(stream, str(path)):
        has_rows = False
        for each in cast("list[Json]", document) if isinstance(document, list) else [document]:
            row = {name: unwrapped(value) for name, value in as_object(each).items()}
            if not _is_a_row(row):
                continue
            has_rows = True
            number += 1
            seed = _seed(row, number)
            run = runs.setdefault(seed, _Run(exchanges=[], facts=_facts(row)))
            run.exchanges.append(_exchange(row))
        if not has_rows:
            raise InputError(f"{path}:{line}", "this is no row of a log of Vertex AI and no prediction")
    for seed, run in runs.items():
        run.exchanges.sort(key=lambda exchange: exchange.start_ns)
        yield from run_of(run.exchanges, carrier=FORMAT.name, seed=seed, name="vertex ai", attributes=run.facts)


def _is_a_row(row: _Row) -> bool:
    return "logging_time" in row or ("predictions" in row and "instance" in row) or isinstance(row.get("request"), dict)


def _is_logged(row: _Row) -> bool:
    return "logging_time" in row


# --------------------------------------------------------------------------------------------------------------- runs


def _labels(row: _Row) -> dict[str, Json]:
    return as_object(_request(row).get("labels"))


def _seed(row: _Row, number: int) -> str:
    """Name the run of a row: by a session that the request names, else by how its conversation begins."""
    request, resource = _request(row), _resource(row)
    if not _is_logged(row):
        own = as_text(row.get("key")) or as_text(row.get("custom_id")) or str(number)
        return canonical([own, request]).decode("utf-8", "replace")
    labels = _labels(row)
    if session := next((text for name in _SESSIONS if (text := as_text(labels.get(name)))), ""):
        return f"{resource}:{session}"
    first = (as_list(request.get("contents")) or as_list(request.get("messages")))[:1]
    system = request.get("systemInstruction", request.get("system_instruction", request.get("system")))
    return canonical([resource, system, *(first or [as_text(row.get("request_id")) or number])]).decode(
        "utf-8", "replace"
    )


def _facts(row: _Row) -> dict[str, Attribute]:
    labels = _labels(row)
    named = {
        "session.id": next((text for name in _SESSIONS if (text := as_text(labels.get(name)))), ""),
        "user.id": next((text for name in ("user_id", "user-id") if (text := as_text(labels.get(name)))), ""),
        "metadata": compact(labels) if labels else "",
    }
    return {name: value for name, value in named.items() if value}


# ---------------------------------------------------------------------------------------------------------- exchanges


def _request(row: _Row) -> _Row:
    """Give the body of a row's request."""
    if "instance" in row:
        return {"instances": [row["instance"]]}
    logged = row.get("full_request") or _payload(row.get("request_payload"))
    return as_object(logged) if _is_logged(row) else as_object(row.get("request"))


def _payload(value: Json) -> Json:
    """Give a payload's first text: the column is an array of them."""
    return next((unwrapped(text) for text in as_list(value)), None)


def _response(row: _Row) -> Json:
    """Give a row's response: an object, or the events of a stream; None where there is none."""
    if is_said(row.get("predictions")):
        return {"predictions": as_list(row["predictions"])}
    if not _is_logged(row):
        return row.get("response") if is_said(row.get("response")) else _error_of(row.get("status"))
    if is_said(row.get("full_response")):
        return row["full_response"]
    pieces = [unwrapped(text) for text in as_list(row.get("response_payload"))]
    return pieces[0] if len(pieces) == 1 else pieces or None


def _error_of(status: Json) -> Json:
    """Read the status of a prediction that failed: `{"code": 8, "message": …}`, or a text with it."""
    fields: _Row = as_object(unwrapped(status))
    if not fields and isinstance(status, str) and status:
        fields = {"message": status}
    return {"error": fields} if fields else None


def _exchange(row: _Row) -> Exchange:
    request, response = _request(row), _response(row)
    url, lost = _url(row, response)
    body = spelled_json({name: value for name, value in request.items() if name not in _PATHS})
    if not request:
        lost.append(lacking("request", "the body", _ELSEWHERE))
    streams = "stream" in _method(row).lower()
    own_model = _resource(row, response)
    started = nanoseconds(row.get("logging_time")) or nanoseconds(row.get("processed_time"))
    lost.append(lacking("times", "when it was asked and when it was answered: the row has one time", "nothing to do"))
    return Exchange(
        method="POST",
        url=url,
        request=body,
        status=None if response is None else _status(response),
        headers=(("content-type", "text/event-stream" if streams else "application/json"),),
        reply=b"" if response is None else _reply(url, body, response) if streams else spelled_json(response),
        start_ns=started,
        shape="" if own_model else _SHAPES.get(_method(row), ""),
        rebuilt=("spelling", "reply"),
        lost=tuple(lost),
        attributes=_attributes(row),
    )


def _status(response: Json) -> int:
    error = as_object(at(response, "error"))
    if not error:
        return 200
    code = error.get("code")
    if isinstance(code, int) and 400 <= code < 600:
        return code
    return _RPC_CODES.get(code, 500) if isinstance(code, int) else 500


def _reply(url: str, body: bytes, response: Json) -> bytes:
    """Spell a response as the stream that it was: of its events, or of the one event that is all of it."""
    events = response if isinstance(response, list) else None
    if events is None:
        shape = shape_at("POST", url, body)
        if shape is not None and shape.unfold is not None:
            return shape.unfold(response)
        events = [response]
    spelled = ""
    for event in events:
        kind = as_text(as_object(event).get("type"))
        spelled += f"event: {kind}\n" if kind else ""
        spelled += f"data: {compact(event)}\n\n"
    return spelled.encode("utf-8", "replace")


def _attributes(row: _Row) -> dict[str, Attribute]:
    taken = {*_TAKEN, *(("request_payload", "response_payload") if is_said(row.get("full_request")) else ())}
    left = rest(row, taken)
    return {"vertex.record": left} if left else {}


# ------------------------------------------------------------------------------------------------------ where it went


def _method(row: _Row) -> str:
    if method := as_text(row.get("api_method")):
        return method.rpartition(".")[2]
    request = _request(row)
    if "instances" in request:
        return "predict"
    return "generateContent" if "contents" in request else "rawPredict"


def _resource(row: _Row, response: Json = None) -> str:
    """Name the model, as a resource; empty where the row does not."""
    request = _request(row)
    for named in (request.get("model"), request.get("endpoint"), row.get("model"), row.get("endpoint")):
        text = as_text(named)
        if text and (_RESOURCE.fullmatch(text) or "/" not in text):
            return text
    return as_text(at(response, "modelVersion")) or as_text(at(response, "model"))


def _url(row: _Row, response: Json) -> tuple[str, list[Loss]]:
    own, resource = _resource(row), _resource(row, response).removesuffix("@default")
    lost = [] if own else [_METHOD]
    whole = _RESOURCE.fullmatch(resource)
    if whole is None:
        maker = "anthropic" if "anthropic_version" in _request(row) or "messages" in _request(row) else "google"
        resource = f"publishers/{maker}/models" + (f"/{resource}" if resource else "")
    elsewhere = _RESOURCE.fullmatch(as_text(row.get("endpoint")))
    place = (whole[1] if whole else None) or (elsewhere[1] if elsewhere else None) or "global"
    host = "aiplatform.googleapis.com" if place == "global" else f"{place}-aiplatform.googleapis.com"
    return f"https://{host}/v1/{resource}:{_method(row)}", lost


FORMAT = Format(
    name="vertex-logs",
    suffix=".vertex.jsonl",
    recognises=_recognises,
    decode=_decode,
    most=0.96,
    marks=HeadMarks(keys=_MARKS, plain=(("full_request", "full_response", "logging_time"),)),
)
