"""The one canonical question of a call, and its key: what two runs must agree on for an answer to stand.

The key is a digest over the body less the shape's identity noise (caller ids, cache keys) and less the addresses of
objects (`<Box object at 0x…>`), and over what the path of the URL names (`boundary.resource`). Of calls with one key
the one of the same URL is meant, where there is one. Noise is left out *and kept*, so that a replay can say "matched,
but these fields differ". Keys are computed from evidence when a recording is loaded; none is stored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from reenact.contracts.shape import Shape
from reenact.discover import entries
from reenact.values.call import MCP, Body, Call, CallKind, FunctionCall, HttpRequest
from reenact.values.json import Json, compact, digest, parsed_or_none

if TYPE_CHECKING:
    from reenact.contracts.redactor import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a call asks, in the form in which questions are compared."""

    kind: CallKind
    name: str
    key: str
    asked: Json
    """`{"body": …}` for a provider's API, with `resource` where the path names one (`deployments/gpt-4o`); with
    `method` and `url` for any other; `{"arguments": …}` for a function."""
    noise: dict[str, Json] = field(default_factory=dict[str, Json])
    word: str = ""
    """What people are told it is."""
    shape: str = ""
    """The shape of a request over HTTP."""


PLAIN_HTTP: Final = "http"
"""The name of the shape of a request to something that we know nothing of: all of it is the question."""
_BOUNDARY = re.compile(rb"--([^\r\n]{8,200})\r\n")
_ADDRESS = re.compile(r"(?<=\bat )0x[0-9a-f]{6,16}(?=>)")


@cache
def shape_named(name: str) -> Shape | None:
    """Find a shape by its name."""
    return next((entry.load() for entry in entries("shapes", Shape) if entry.outline["name"] == name), None)


def question(call: Call, redactor: Redactor | None = None) -> Question:
    """Make the question of a call. A live call passes the recording's redaction first."""
    request = call.request
    if isinstance(request, HttpRequest):
        shape = shape_named(request.shape)
        is_known = request.shape != PLAIN_HTTP and (shape is None or shape.decode_request is parsed_or_none)
        return (_asked_over_http if is_known else _asked_plainly)(call, request, redactor)
    return _asked_of_function(call, request, redactor)


def _asked_over_http(call: Call, request: HttpRequest, redactor: Redactor | None) -> Question:
    shape = shape_named(request.shape)
    text = request.body.text
    if text is None:
        asked: dict[str, Json] = {"body": request.body.data.hex()}
    else:
        clean = _clean(text, call, redactor)
        body = parsed_or_none(clean)
        asked = {"body": clean if body is None else body}
    asked, noise = _without_addresses(asked)
    noise["url"] = _clean(request.url, call, redactor, "url.full")
    body = asked["body"]
    if isinstance(body, dict) and shape is not None:
        for name in shape.noise & body.keys():
            noise[name] = body[name]
        asked = {"body": {name: value for name, value in body.items() if name not in shape.noise}}
    if shape is not None:
        from reenact.boundary.resource import resource  # whoever shows a run asks no question

        if resource_path := resource(str(noise["url"]), shape):
            asked["resource"] = resource_path
    # The span's name is the shape's; a renamed span is the same question.
    return Question(
        kind=call.kind,
        name=call.name,
        key=digest([request.shape, asked]),
        asked=asked,
        noise=noise,
        word=call.word,
        shape=request.shape,
    )


def _asked_plainly(call: Call, request: HttpRequest, redactor: Redactor | None) -> Question:
    """Ask method, address and body, as of forms; the boundary of one is drawn anew each time and says nothing."""
    data = _settled(request.body.data)
    text = Body(data).text
    if text is None:
        body: Json = data.hex()
    else:
        clean = _clean(text, call, redactor)
        parsed = parsed_or_none(clean)
        body = clean if parsed is None else parsed
    url = _clean(request.url, call, redactor, "url.full")
    asked, noise = _without_addresses({"method": request.method, "url": url, "body": body})
    key = digest([PLAIN_HTTP, asked])
    return Question(kind=call.kind, name=call.name, key=key, asked=asked, noise=noise, word=call.word)


def _without_addresses(asked: dict[str, Json]) -> tuple[dict[str, Json], dict[str, Json]]:
    """Give what is asked less the addresses of objects, as their default `repr` tells them, and these as noise."""
    text = compact(asked)
    addresses = _ADDRESS.findall(text)
    if not addresses:
        return asked, {}
    rest = parsed_or_none(_ADDRESS.sub("0x", text))
    return (rest, {"addresses": addresses}) if isinstance(rest, dict) else (asked, {})


def _clean(text: str, call: Call, redactor: Redactor | None, name: str = "input.value") -> str:
    """Redact a part of a live call as the recorder does: a policy may go by the kind of call and the tool."""
    if redactor is None:
        return text
    over_http = isinstance(call.request, HttpRequest)
    around = {"openinference.span.kind": call.kind.value, "reenact.boundary": "http" if over_http else "function"}
    if call.kind is CallKind.TOOL:
        around["tool.name"] = call.name
    clean_text = redactor.attributes({**around, name: text}).get(name)
    return clean_text if isinstance(clean_text, str) else ""


def _settled(data: bytes) -> bytes:
    drawn = _BOUNDARY.match(data)
    if drawn is None or not data.rstrip().endswith(b"--" + drawn[1] + b"--"):
        return data
    return data.replace(drawn[1], b"boundary")


def _asked_of_function(call: Call, request: FunctionCall, redactor: Redactor | None) -> Question:
    arguments = request.arguments
    if redactor is not None:
        text = compact(arguments)
        clean = _clean(text, call, redactor)
        if clean != text:
            read = parsed_or_none(clean)
            arguments = clean if read is None and clean != "null" else read
    asked, noise = _without_addresses({"arguments": arguments})
    noise["function"] = request.function
    # Structure is recognised by name: its arguments may change without the path changing.
    weighed: list[Json] = [call.kind.value, call.name]
    if not call.is_structure:
        weighed.append(asked["arguments"])
    if call.is_mcp:  # two servers may have tools of one name
        asked["server"] = request.function.removeprefix(MCP)
        weighed.append(asked["server"])
    return Question(kind=call.kind, name=call.name, key=digest(weighed), asked=asked, noise=noise, word=call.word)
