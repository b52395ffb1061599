"""What is kept of a request to an application and of its answer: the input and the outcome of a run.

`docs/schema.md`, "Inbound units". The interface's own file (ASGI, WSGI) fills it in as things pass.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reenact.boundary import answer_headers, origins, request_headers
from reenact.boundary.inbound import Inbound
from reenact.values.json import Json, compact
from reenact.values.lenient import as_list, as_text
from reenact.values.run import ANSWERED_WITH, SESSION, USER

LARGEST_BODY = 16 << 20
"""Bytes of a request or answer that are kept; of a larger one nothing is, and the root says so."""

_KEPT_OF_ANSWERS = frozenset(
    {"content-encoding", "content-type", "location", "retry-after", "x-correlation-id", "x-request-id"}
)
"""Headers of an answer that are kept for whoever reads it; what is compared, `answer_headers` picks."""
_TEST_CLIENTS = frozenset(
    [
        "httpx._transports.asgi",
        "httpx._transports.wsgi",
        "litestar.testing.transport",
        "quart.testing.connections",
        "starlette.testclient",
        "webob.request",
        "webtest.lint",
        "werkzeug.test",
    ]
)
"""Modules whose functions take the answer of an application that is asked with no server between."""
Headers = Iterable[tuple[str, str]]


_IDENTITY = {USER: "REENACT_USER_HEADER", SESSION: "REENACT_SESSION_HEADER"}


def _identity(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Read for whom a request is from the headers that the settings name."""
    header_values = {name: value for name, value in headers if value}
    wanted = {key: os.environ.get(variable, "").strip().lower() for key, variable in _IDENTITY.items()}
    return {key: header_values[name] for key, name in wanted.items() if name in header_values}


def nobody() -> None:
    """Stand for the function that answers a request to which no route leads."""


class Bytes:
    """A body that passes by in pieces; too large a one is let go."""

    __slots__ = ("pieces", "size", "started")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self.started = False

    def add(self, piece: bytes) -> None:
        """Hear of a piece."""
        self.started = True
        if not piece:
            return
        self.size += len(piece)
        if self.size <= LARGEST_BODY:
            self.pieces.append(bytes(piece))
        else:
            self.pieces.clear()

    def attributes(self, value: str, binary: str) -> dict[str, Any]:
        """Spell it: as text under `<value>.value`, else as base64 under `binary`; nothing where it was too large."""
        if self.size > LARGEST_BODY:
            return {f"{binary}.too_large": self.size}
        data = b"".join(self.pieces)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return {binary: base64.b64encode(data).decode(), f"{binary}.encoding": "base64"}
        kind = "application/json" if text.lstrip()[:1] in ("{", "[") else "text/plain"
        return {f"{value}.value": text, f"{value}.mime_type": kind}


def asks_itself(app: Any, answered: Any) -> bool:
    """Tell whether a program asks an application of its own by a test client; `answered` takes the answer.

    Such a request is no unit of work: nobody delivers it again without the program, which asks itself in a replay too.
    An application of a module that can be imported is delivered without the program, and is asked for alone.
    """
    if getattr(answered, "__module__", None) not in _TEST_CLIENTS:
        return False
    origin = origins.of(app)
    return origin is None or origin.name.startswith("__main__:")


class Exchange:
    """One request and its answer. `facts` gives what the interface knows of the request, when the run begins.

    Headers are pairs with lower-case names. Nothing is spelled for a request inside of which nobody is called.
    """

    __slots__ = (
        "_app",
        "_facts",
        "_headers",
        "_interface",
        "_replied",
        "_request_size",
        "answer",
        "body",
        "left_at",
        "status",
        "unit",
    )

    def __init__(
        self, app: Any, interface: str, facts: Callable[[], dict[str, Json]], headers: Callable[[], Headers]
    ) -> None:
        self._app, self._interface, self._facts, self._headers = app, interface, facts, headers
        self.body, self.answer = Bytes(), Bytes()
        self.status: int | None = None
        self.left_at: int | None = None
        """When the client went away before it had the whole answer, in nanoseconds since the epoch."""
        self._replied: Callable[[], Headers] = tuple
        self._request_size = -1
        self.unit = Inbound(self._name, self._request_attributes)

    def begun(self, status: int, headers: Callable[[], Headers]) -> None:
        """Hear of the status line, and how to read the headers."""
        self.status, self._replied = status, headers
        self.unit.answers = True

    def gone(self) -> None:
        """Hear that the client went away before it had the whole answer."""
        if self.left_at is None:
            self.left_at = time.time_ns()

    def end(self, error: BaseException | None = None) -> None:
        """Hear that the application is done."""
        self.unit.end(self._response_attributes, error)

    def _name(self) -> str:
        facts = self._facts()
        return f"{facts['method']} {facts.get('route') or facts['path']}"

    def _request_attributes(self) -> Mapping[str, Any]:
        facts, headers = self._facts(), list(self._headers())
        safe_headers, left_out = request_headers.kept_headers(headers)
        inbound: dict[str, Json] = {"protocol": "http", **facts, "headers": safe_headers}
        if left_out:
            inbound["left_out"] = left_out
        self._request_size = self.body.size
        return {
            "reenact.inbound": compact(inbound),
            "reenact.app": origins.spelled(self._app, self._interface),
            "http.request.method": facts["method"],
            "url.full": _url(facts, safe_headers),
            **_identity(headers),
            **self.body.attributes("input", "reenact.http.request.body"),
        }

    def _response_attributes(self) -> dict[str, Any]:
        attributes: dict[str, Any] = {}
        if self.body.size != self._request_size:  # the rest of the body came after the first call
            attributes |= self.body.attributes("input", "reenact.http.request.body")
        if self.left_at is not None:
            attributes |= {"reenact.inbound.left_after": self.answer.size, "reenact.inbound.left_at": self.left_at}
        if self.status is None:
            return attributes | {"reenact.outcome": "unfinished"}
        replied = list(self._replied())
        attributes[ANSWERED_WITH] = compact([[*each] for each in answer_headers.kept_headers(replied)])
        wanted = _KEPT_OF_ANSWERS | request_headers.named()
        if headers := list[Json]([name, value] for name, value in replied if name in wanted):
            attributes["reenact.http.response.headers"] = compact(headers)
        attributes |= {"reenact.outcome": "returned", "http.response.status_code": self.status}
        return attributes | self.answer.attributes("output", "reenact.http.response.body")


def _url(facts: Mapping[str, Json], headers: Mapping[str, Json]) -> str:
    host = as_text(next(iter(as_list(headers.get("host"))), "")) or "localhost"
    query = f"?{facts['query']}" if facts.get("query") else ""
    return f"{facts['scheme']}://{host}{facts['path']}{query}"
