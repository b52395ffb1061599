"""A call's exact evidence as span attributes, and back: `docs/schema.md`, version 1.

Bodies are `input.value` and `output.value` where they are text, and base64 under `reenact.*` where they are not.
Nothing here parses a body.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from reenact.values.call import (
    Body,
    Chunk,
    ExceptionRecord,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Request,
    Returned,
    Streamed,
    StreamEnd,
    Unfinished,
    Value,
)
from reenact.values.exception_record import exception_from_json, exception_to_json
from reenact.values.json import Json, canonical, compact, parse, parsed_or_none
from reenact.values.lenient import as_count, as_list, as_text
from reenact.values.span import Attribute

SCHEMA_VERSION: Final = "1"
JSON: Final = "application/json"
TEXT: Final = "text/plain"

_REQUEST_BODY: Final = "reenact.http.request.body"
_RESPONSE_BODY: Final = "reenact.http.response.body"
_HEADERS: Final = "reenact.http.response.headers"
_OUTCOMES: Final[Mapping[type, str]] = {
    Returned: "returned",
    Streamed: "streamed",
    Raised: "raised",
    Unfinished: "unfinished",
}


def request_to_attributes(request: Request) -> dict[str, Attribute]:
    """Spell what was asked."""
    attributes: dict[str, Attribute] = {"reenact.schema_version": SCHEMA_VERSION}
    if isinstance(request, FunctionCall):
        attributes["reenact.boundary"] = "function"
        attributes["reenact.function"] = request.function
        attributes["input.value"] = _canonical_text(request.arguments)
        attributes["input.mime_type"] = JSON
        return attributes
    attributes["reenact.boundary"] = "http"
    attributes["reenact.shape"] = request.shape
    attributes["http.request.method"] = request.method
    attributes["url.full"] = request.url
    if request.attempt:
        attributes["http.request.resend_count"] = request.attempt
    _write_body(attributes, request.body.data, "input", _REQUEST_BODY)
    return attributes


def arguments_to_attributes(request: FunctionCall) -> dict[str, Attribute]:
    """Spell the one part of a question to a database that differs from call to call."""
    return {"input.value": _canonical_text(request.arguments)}


def request_body_to_attributes(body: Body) -> dict[str, Attribute]:
    """Spell the one part of a request over HTTP that differs from call to call."""
    attributes: dict[str, Attribute] = {}
    _write_body(attributes, body.data, "input", _REQUEST_BODY)
    return attributes


def request_from_attributes(attributes: Mapping[str, Attribute]) -> Request | None:
    """Read what was asked, or None where the span carries no evidence of ours."""
    boundary = attributes.get("reenact.boundary")
    if boundary == "function":
        text = _text(attributes, "input.value")
        return FunctionCall(function=_text(attributes, "reenact.function"), arguments=_parsed(text))
    if boundary == "http":
        return HttpRequest(
            shape=_text(attributes, "reenact.shape"),
            method=_text(attributes, "http.request.method"),
            url=_text(attributes, "url.full"),
            body=_read_body(attributes, "input", _REQUEST_BODY),
            attempt=_number(attributes, "http.request.resend_count") or 0,
        )
    return None


def outcome_to_attributes(request: Request, outcome: Outcome) -> dict[str, Attribute]:
    """Spell what came of a request."""
    attributes: dict[str, Attribute] = {"reenact.outcome": _OUTCOMES[type(outcome)]}
    match outcome:
        case Returned(payload=payload):
            if isinstance(payload, HttpReply):
                return reply_to_attributes(payload.status, payload.headers, payload.body.data)
            attributes["output.value"], attributes["output.mime_type"] = _value_text(payload.json)
        case Streamed():
            if isinstance(request, HttpRequest) or outcome.headers or outcome.status != Streamed().status:
                attributes["http.response.status_code"] = outcome.status
                _write_headers(attributes, outcome.headers)
            attributes["reenact.stream.chunks"] = compact([chunk_to_json(chunk) for chunk in outcome.chunks])
            attributes["reenact.stream.end"] = outcome.end.value
            if outcome.result is not None:
                attributes["reenact.stream.result"] = compact(outcome.result)
            if outcome.exception is not None:
                attributes["reenact.exception"] = compact(exception_to_json(outcome.exception))
        case Raised(exception=exception):
            attributes["reenact.exception"] = compact(exception_to_json(exception))
        case _:
            pass
    return attributes


def reply_to_attributes(status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> dict[str, Attribute]:
    """Spell a whole reply over HTTP."""
    attributes: dict[str, Attribute] = {"reenact.outcome": "returned", "http.response.status_code": status}
    if headers:
        attributes[_HEADERS] = compact(headers)  # type: ignore[arg-type]  # pairs, spelled as lists
    _write_body(attributes, body, "output", _RESPONSE_BODY)
    return attributes


def outcome_from_attributes(attributes: Mapping[str, Attribute]) -> Outcome:
    """Read what came of a request; what is missing or was redacted as a whole reads as unfinished."""
    match attributes.get("reenact.outcome"):
        case "returned":
            return _returned(attributes)
        case "streamed":
            return _streamed(attributes)
        case "raised":
            exception = _exception(attributes)
            return Unfinished() if exception is None else Raised(exception=exception)
        case _:
            return Unfinished()


def _returned(attributes: Mapping[str, Attribute]) -> Outcome:
    status = _number(attributes, "http.response.status_code")
    if status is not None:
        body = _read_body(attributes, "output", _RESPONSE_BODY)
        return Returned(payload=HttpReply(status=status, headers=_read_headers(attributes), body=body))
    text = attributes.get("output.value")
    if not isinstance(text, str):
        return Unfinished()
    plain = attributes.get("output.mime_type") == TEXT
    return Returned(payload=Value(json=text if plain else _parsed(text)))


def _streamed(attributes: Mapping[str, Attribute]) -> Outcome:
    listed = parsed_or_none(_text(attributes, "reenact.stream.chunks"))
    if not isinstance(listed, list):
        return Unfinished()
    status = _number(attributes, "http.response.status_code")
    end = _text(attributes, "reenact.stream.end")
    return Streamed(
        status=Streamed().status if status is None else status,
        headers=_read_headers(attributes),
        chunks=tuple(chunk for item in listed if (chunk := chunk_from_json(item)) is not None),
        end=StreamEnd(end) if end in set(StreamEnd) else StreamEnd.UNFINISHED,
        exception=_exception(attributes),
        result=parsed_or_none(_text(attributes, "reenact.stream.result")),
    )


def _exception(attributes: Mapping[str, Attribute]) -> ExceptionRecord | None:
    record = parsed_or_none(_text(attributes, "reenact.exception"))
    return exception_from_json(record) if isinstance(record, dict) else None


def chunk_to_json(chunk: Chunk) -> Json:
    """Spell one piece of a stream as `[offset_us, order, piece]`.

    The piece is its text, or `{"b64": …}` where it is not UTF-8 (a character may be cut in two), or `{"json": …}` for
    what a generator yielded.
    """
    if chunk.data is None:
        return [chunk.offset_us, chunk.order, {"json": chunk.value}]
    try:
        return [chunk.offset_us, chunk.order, chunk.data.decode()]
    except UnicodeDecodeError:
        return [chunk.offset_us, chunk.order, {"b64": base64.b64encode(chunk.data).decode()}]


def chunk_from_json(json: Json) -> Chunk | None:
    """Read one piece of a stream, or None where `json` is none."""
    match json:
        case [int(offset), int(order), str(text)]:
            return Chunk(offset_us=offset, order=order, data=text.encode("utf-8", "surrogatepass"))
        case [int(offset), int(order), {"b64": str(text)}]:
            return Chunk(offset_us=offset, order=order, data=_unbase64(text))
        case [int(offset), int(order), {"json": value}]:
            return Chunk(offset_us=offset, order=order, value=value)
        case _:
            return None


def _write_body(attributes: dict[str, Attribute], body: bytes, side: str, binary: str) -> None:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        attributes[binary] = base64.b64encode(body).decode()
        attributes[f"{binary}.encoding"] = "base64"
    else:
        attributes[f"{side}.value"] = text
        attributes[f"{side}.mime_type"] = JSON if text.lstrip()[:1] in ("{", "[") else TEXT


def _read_body(attributes: Mapping[str, Attribute], side: str, binary: str) -> Body:
    encoded = attributes.get(binary)
    if isinstance(encoded, str):
        return Body(_unbase64(encoded))
    return Body(_text(attributes, f"{side}.value").encode("utf-8", "surrogatepass"))


def _write_headers(attributes: dict[str, Attribute], headers: tuple[tuple[str, str], ...]) -> None:
    if headers:
        attributes[_HEADERS] = compact(headers)  # type: ignore[arg-type]  # pairs, spelled as lists


def _read_headers(attributes: Mapping[str, Attribute]) -> tuple[tuple[str, str], ...]:
    pairs = [as_list(pair) for pair in as_list(parsed_or_none(_text(attributes, _HEADERS)))]
    return tuple((as_text(pair[0]), as_text(pair[1])) for pair in pairs if len(pair) == 2)


def _value_text(value: Json) -> tuple[str, str]:
    """Spell a result: a string as itself, everything else as JSON in its own key order."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return compact(value), JSON
        return value, TEXT
    return compact(value), JSON


def _canonical_text(value: Json) -> str:
    try:
        return canonical(value).decode()
    except UnicodeDecodeError:  # a lone surrogate, which typed JSON never holds
        return compact(value)


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""


def _parsed(text: str) -> Json:
    """Read JSON; text that is none, since it was cut off or replaced, stays text."""
    try:
        return parse(text)
    except ValueError:
        return text


def _text(attributes: Mapping[str, Attribute], name: str) -> str:
    value = attributes.get(name)
    return value if isinstance(value, str) else ""


def _number(attributes: Mapping[str, Attribute], name: str) -> int | None:
    """Read a whole number; some stores keep every attribute as text."""
    value = attributes.get(name)
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() else None
    return as_count(value) if isinstance(value, int | float) else None
