"""OTLP over HTTP/1.1 (RFC 9112, read by h11): one connection, its requests one after another."""

from __future__ import annotations

import asyncio
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import h11
import orjson

from reenact.collect.admission import Desk
from reenact.collect.callers import port_of
from reenact.collect.inflate import ENCODINGS
from reenact.collect.intake import Signal
from reenact.collect.refusals import INTERNAL, INVALID, UNIMPLEMENTED, Refusal, busy, malformed, too_large

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_SIGNALS: Final[Mapping[str, Signal]] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_OTHERS = frozenset({"/v1/metrics", "/v1development/profiles"})
_PIECE = 256 << 10
_LARGEST_HEAD = 64 << 10
_LINGER_S, _QUIET_S, _LINGER_BYTES = 30.0, 2.0, 1 << 30
"""What a refused sender still sends is read and thrown away: it looks for the answer only when it is done."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class _Gone(Exception):
    """The other side closed the connection, or is too slow to be waited for."""


class HttpConnection:
    """One connection of the server."""

    def __init__(self, reader: StreamReader, writer: StreamWriter, desk: Desk, first: bytes) -> None:
        self._reader, self._writer, self._desk = reader, writer, desk
        self._settings = desk.settings
        self._port = port_of(writer)
        self._http = _fresh(first)
        self._rest: bytes | None = None
        """What came behind a body that was read past h11; None where h11 read it, or nobody."""
        self.idle = False
        """Whether it may be closed at any time: no request is under way."""

    async def serve(self) -> None:
        """Answer requests until one side has enough."""
        fresh = bool(self._http.trailing_data[0])
        while True:
            try:
                request = await self._head(fresh=fresh)
            except h11.RemoteProtocolError as error:
                await self._refuse_head(error)
                return
            if request is None:
                return
            goes_on = await self._answer(request)
            if not goes_on or self._desk.ending:
                return
            if self._rest is not None:
                self._http, self._rest = _fresh(self._rest), None
            else:
                self._http.start_next_cycle()
            fresh = False

    async def _head(self, *, fresh: bool) -> h11.Request | None:
        """Read the head of the next request; None where there is none to come."""
        patience = self._settings.head_s if fresh else self._settings.idle_s
        self.idle = not fresh
        try:
            async with asyncio.timeout(patience) as waiting:
                while True:
                    event = self._http.next_event()
                    if isinstance(event, h11.Request):
                        return event
                    if event is not h11.NEED_DATA:
                        return None
                    data = await self._reader.read(_PIECE)
                    if self.idle and data:
                        waiting.reschedule(asyncio.get_running_loop().time() + self._settings.head_s)
                        self.idle = False
                    self._http.receive_data(data)
        except TimeoutError:
            return None
        finally:
            self.idle = False

    async def _refuse_head(self, error: h11.RemoteProtocolError) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            status = error.error_status_hint or 400
            await self._send(_refused(Refusal(INVALID, status, f"no HTTP/1.1: {error}"), JSON), close=True)

    async def _answer(self, request: h11.Request) -> bool:
        """Answer one request; tell whether the connection can go on."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        answer_type = kind if kind in (PROTOBUF, JSON) else JSON
        try:
            answer = await self._answer_to(request, headers, kind)
        except Refusal as refusal:
            answer = _refused(refusal, answer_type)
        except _Gone:
            return False
        except Exception as error:  # noqa: BLE001 - one request's failure is no other's
            answer = _refused(Refusal(INTERNAL, 500, f"the collector failed: {type(error).__name__}"), answer_type)
        whole = self._http.their_state is h11.DONE or self._rest is not None
        await self._send(answer, headers.get("origin", ""), close=not whole or self._desk.ending)
        if not whole and self._http.their_state is h11.SEND_BODY:
            await self._linger()
        return whole and self._http.our_state is h11.DONE

    async def _answer_to(self, request: h11.Request, headers: Mapping[str, str], kind: str) -> _Answer:
        asked = [(name, value.decode("latin-1")) for name, value in request.headers if name in (b"host", b"origin")]
        hosts, origins = ([value for name, value in asked if name == wanted] for wanted in (b"host", b"origin"))
        self._desk.callers.check(hosts, origins, self._port)
        path = request.target.decode("latin-1").partition("?")[0]
        method = request.method.decode("latin-1")
        signal = _SIGNALS.get(path)
        if signal is None:
            await self._thrown_away()
            return self._other(path, method, headers)
        if method == "OPTIONS":
            await self._thrown_away()
            return _Answer(204, "", b"")
        self._desk.authorise(headers.get("authorization", ""))
        if method != "POST":
            raise Refusal(UNIMPLEMENTED, 405, f"{method} is not POST", headers=(("allow", "POST, OPTIONS"),))
        if kind not in (PROTOBUF, JSON):
            raise Refusal(INVALID, 415, f"content type {kind[:60]!r} is neither {PROTOBUF} nor {JSON}")
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "x-gzip", *ENCODINGS):
            known_encodings = ", ".join(ENCODINGS)
            message = f"content encoding {encoding[:40]!r} is none of {known_encodings}"
            raise Refusal(INVALID, 415, message, headers=(("accept-encoding", known_encodings),))
        if self._desk.ending:
            raise busy("the collector is ending", 5)
        body = bytearray()
        try:
            await self._body(headers, body)
            response = await self._desk.take(bytes(body), signal, encoding, is_json=kind == JSON)
        finally:
            self._desk.release(len(body))
        return _Answer(200, kind, response)

    async def _body(self, headers: Mapping[str, str], body: bytearray) -> None:
        """Read the body of a request into `body`, admitted as it grows."""
        limit = self._settings.most_bytes
        length_header = headers.get("content-length", "")
        if length_header.isdigit() and int(length_header) > limit:
            raise too_large(limit)
        if length_header.isdigit() and "transfer-encoding" not in headers:
            await self._sized_body(int(length_header), body)
            return
        began = time.monotonic()
        while True:
            event = await self._event()
            if isinstance(event, h11.Data):
                if len(body) + len(event.data) > limit:
                    raise too_large(limit)
                self._desk.admit(len(event.data))
                body += event.data
                self._check_pace(began, len(body))
            elif isinstance(event, h11.EndOfMessage):
                return

    def _check_pace(self, began: float, size: int) -> None:
        took = time.monotonic() - began
        if took > self._settings.stall_s and size < took * self._settings.least_rate:
            raise Refusal(INVALID, 408, "the body comes too slowly")

    async def _sized_body(self, length: int, body: bytearray) -> None:
        """Read a body of so many bytes. h11 has nothing to say to it, and would copy it twice."""
        data = self._http.trailing_data[0]
        if not data and length:
            await self._continue()
        began = time.monotonic()
        while True:
            piece = data[: length - len(body)]
            self._desk.admit(len(piece))
            body += piece
            if len(body) == length:
                self._rest = data[len(piece) :]
                return
            self._check_pace(began, len(body))
            data = await self._read_piece()

    async def _read_piece(self) -> bytes:
        """Read on in a body that is under way."""
        try:
            async with asyncio.timeout(self._settings.stall_s):
                data = await self._reader.read(_PIECE)
        except TimeoutError:
            raise Refusal(INVALID, 408, "the rest of the body did not come") from None
        if not data:
            raise _Gone
        return data

    async def _continue(self) -> None:
        if self._http.they_are_waiting_for_100_continue:
            self._write_event(h11.InformationalResponse(status_code=100, headers=[]))
            await self._writer.drain()

    async def _event(self) -> Any:
        """Give the next event of a body that is under way."""
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                raise malformed(f"the body of the HTTP request is broken: {error}") from None
            if event is h11.NEED_DATA:
                await self._continue()
                self._http.receive_data(await self._read_piece())
            elif isinstance(event, h11.ConnectionClosed):
                raise _Gone
            else:
                return event

    async def _thrown_away(self) -> None:
        size = 0
        while not isinstance(event := await self._event(), h11.EndOfMessage):
            size += len(event.data) if isinstance(event, h11.Data) else 0
            if size > self._settings.most_bytes:
                raise too_large(self._settings.most_bytes)

    async def _linger(self) -> None:
        """Read on what a sender sends that has its answer, for a while: closing at once would lose the answer."""
        left, end = _LINGER_BYTES, time.monotonic() + _LINGER_S
        with suppress(TimeoutError, OSError):
            while left > 0 and time.monotonic() < end:
                async with asyncio.timeout(min(_QUIET_S, self._settings.stall_s)):
                    data = await self._reader.read(_PIECE)
                if not data:
                    return
                left -= len(data)

    def _other(self, path: str, method: str, headers: Mapping[str, str]) -> _Answer:
        if path == "/healthz" and method in ("GET", "HEAD"):
            state = "ending" if self._desk.ending else "ok"
            return _Answer(503 if self._desk.ending else 200, JSON, orjson.dumps({"status": state}))
        if path in ("/metrics", "/metrics.json") and method in ("GET", "HEAD"):
            self._desk.authorise(headers.get("authorization", ""))
            if path == "/metrics.json":
                return _Answer(200, JSON, orjson.dumps(self._desk.meters.as_json()))
            text = self._desk.meters.as_text() + self._settings.more_metrics()
            return _Answer(200, "text/plain; version=0.0.4; charset=utf-8", text.encode())
        if path in _OTHERS:
            raise Refusal(UNIMPLEMENTED, 404, "only traces and logs are collected here")
        raise Refusal(UNIMPLEMENTED, 404, "there is nothing here: POST /v1/traces or /v1/logs")

    # ---------------------------------------------------------------------------------------------------- sending

    async def _send(self, answer: _Answer, origin: str = "", *, close: bool) -> None:
        headers = [*answer.headers, *self._cors(origin)]
        if answer.content_type:
            headers.append(("content-type", answer.content_type))
        if answer.status != 204:
            headers.append(("content-length", str(len(answer.body))))
        if close:
            headers.append(("connection", "close"))
        self._desk.meters.answered("http", answer.status)
        try:
            self._write_event(h11.Response(status_code=answer.status, headers=headers))
            if answer.body:
                self._write_event(h11.Data(data=answer.body))
            self._write_event(h11.EndOfMessage())
            async with asyncio.timeout(self._settings.stall_s):
                await self._writer.drain()
        except (OSError, TimeoutError, h11.LocalProtocolError):
            self._http.send_failed()

    def _write_event(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)

    def _cors(self, origin: str) -> list[tuple[str, str]]:
        allowed = self._settings.origins
        if not origin or not ("*" in allowed or origin in allowed):
            return []
        return [
            ("access-control-allow-origin", origin),
            ("vary", "origin"),
            ("access-control-allow-methods", "POST, OPTIONS"),
            ("access-control-allow-headers", "content-type, content-encoding, authorization"),
            ("access-control-expose-headers", "retry-after"),
            ("access-control-max-age", "7200"),
        ]


def _fresh(data: bytes) -> h11.Connection:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST_HEAD)
    if data:
        connection.receive_data(data)
    return connection


def _refused(refusal: Refusal, kind: str) -> _Answer:
    retry = (("retry-after", str(refusal.retry_s)),) if refusal.retry_s is not None else ()
    body = refusal.as_protobuf() if kind == PROTOBUF else refusal.as_json()
    return _Answer(refusal.http, kind, body, (*refusal.headers, *retry))
