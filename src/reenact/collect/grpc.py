"""OTLP over gRPC: its unary calls upon HTTP/2 (RFC 9113, read by h2), each a message behind five bytes.

Source: grpc/doc/PROTOCOL-HTTP2.md. Messages are unpacked by us, so that a bomb is stopped while it grows; how much is
on its way is bounded by what is admitted, for all connections together.
"""

from __future__ import annotations

import asyncio
import base64
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from hyperframe.frame import GoAwayFrame

from reenact.collect.admission import Desk
from reenact.collect.callers import port_of
from reenact.collect.intake import Signal
from reenact.collect.refusals import (
    CANCELLED,
    EXHAUSTED,
    INTERNAL,
    UNIMPLEMENTED,
    Refusal,
    busy,
    malformed,
    too_large,
)  # fmt: skip

PREFACE = b"PRI * HTTP/2.0\r\n"
_METHODS: Final[Mapping[str, Signal]] = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
}
_HEALTH = "/grpc.health.v1.Health/Check"
_SERVING = b"\x08\x01"
_ENCODINGS = ("identity", "gzip", "deflate", "zstd")
_PIECE = 256 << 10
_STREAM_WINDOW, _CONNECTION_WINDOW = 1 << 20, 4 << 20
_STREAMS = 100
_MOST_RESETS = 1000
"""So many calls that a client takes back before they are answered, and its connection is closed."""
_HEAD = 5
_LARGEST_HEAD = 64 << 10


@dataclass(slots=True)
class _Call:
    """One call while its message comes in."""

    headers: dict[str, str]
    began: float
    body: bytearray = field(default_factory=bytearray)
    done: bool = False
    """It has its answer, or needs none any more."""


class GrpcConnection:
    """One connection of the server."""

    def __init__(self, reader: StreamReader, writer: StreamWriter, desk: Desk, first: bytes) -> None:
        self._reader, self._writer, self._desk, self._first = reader, writer, desk, first
        self._settings = desk.settings
        self._port = port_of(writer)
        self._http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=None))
        self._calls: dict[int, _Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._resets = 0
        self._told_to_end = False

    @property
    def idle(self) -> bool:
        """Whether it may be closed at any time."""
        return not self._calls and not self._tasks

    async def serve(self) -> None:
        """Answer calls until one side has enough."""
        codes = h2.settings.SettingCodes
        initial_settings = {
            codes.MAX_CONCURRENT_STREAMS: _STREAMS,
            codes.INITIAL_WINDOW_SIZE: _STREAM_WINDOW,
            codes.MAX_FRAME_SIZE: _PIECE,
            codes.MAX_HEADER_LIST_SIZE: _LARGEST_HEAD,
        }
        # In force at once: a client may act on them before it says that it has them.
        self._http.local_settings = h2.settings.Settings(client=False, initial_values=initial_settings)
        self._http.max_inbound_frame_size = _PIECE
        self._http.decoder.max_header_list_size = _LARGEST_HEAD
        self._http.initiate_connection()
        self._http.increment_flow_control_window(_CONNECTION_WINDOW)
        try:
            data = self._first
            while True:
                goes_on = not data or self._receive(data)
                await self._flush()
                if not goes_on or not (data := await self._next()):
                    return
        except (h2.exceptions.ProtocolError, OSError, TimeoutError, _Over):
            with suppress(h2.exceptions.ProtocolError, OSError, TimeoutError):
                self._http.close_connection()
                await self._flush()
        finally:
            for call in self._calls.values():
                if not call.done:  # the others release what they hold themselves
                    self._desk.release(len(call.body))
                    call.done = True
            if self._tasks:  # what is on its way to the disk is written, whoever hears of it
                await asyncio.wait(self._tasks)

    def end(self) -> None:
        """Take no more calls, and have the client know."""
        if not self._told_to_end:
            self._told_to_end = True
            with suppress(OSError):  # not by h2, which would answer nothing any more: what is under way is
                last = self._http.highest_inbound_stream_id
                self._writer.write(self._http.data_to_send() + GoAwayFrame(0, last_stream_id=last).serialize())

    async def _next(self) -> bytes:
        """Wait for more, as long as it is worth it; nothing where the other side is done."""
        waiting = any(not call.done for call in self._calls.values())
        patience = self._settings.stall_s if waiting else self._settings.idle_s
        while True:
            try:
                async with asyncio.timeout(patience):
                    return await self._reader.read(_PIECE)
            except TimeoutError:
                if self._tasks and not waiting:
                    continue
                raise

    def _receive(self, data: bytes) -> bool:
        """Act on what came in; False where the client has ended the connection."""
        for event in self._http.receive_data(data):
            if isinstance(event, h2.events.ConnectionTerminated):
                return False
            if isinstance(event, h2.events.RequestReceived):
                self._begin(event)
            elif isinstance(event, h2.events.DataReceived):
                self._more(event)
            elif isinstance(event, h2.events.StreamEnded):
                self._finish_request(event.stream_id)
            elif isinstance(event, h2.events.StreamReset):
                self._reset(event.stream_id)
        return True

    def _begin(self, event: Any) -> None:
        listed = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers]
        headers = dict(listed)
        call = self._calls[event.stream_id] = _Call(headers, time.monotonic())
        try:
            hosts = [unquote(value) for name, value in listed if name in {":authority", "host"}]  # `[` comes as %5B
            origins = [value for name, value in listed if name == "origin"]
            self._desk.callers.check([*dict.fromkeys(hosts)], origins, self._port)
            self._check(headers)
        except Refusal as refusal:
            self._refuse(event.stream_id, call, refusal)

    def _check(self, headers: Mapping[str, str]) -> None:
        """Refuse a call by its head."""
        if self._desk.ending:
            raise busy("the collector is ending", 5)
        path = headers.get(":path", "")
        if not headers.get("content-type", "").startswith("application/grpc"):
            raise Refusal(INTERNAL, 415, "this is no gRPC: send OTLP over HTTP/1.1 to the HTTP port")
        if path == _HEALTH:
            return
        self._desk.authorise(headers.get("authorization", ""))
        if headers.get(":method") != "POST" or path not in _METHODS:
            raise Refusal(UNIMPLEMENTED, 404, f"there is no method {path[:100]}")
        encoding = headers.get("grpc-encoding", "identity")
        if encoding not in _ENCODINGS:
            known_encodings = ", ".join(_ENCODINGS)
            raise Refusal(UNIMPLEMENTED, 415, f"grpc-encoding {encoding[:40]!r} is none of {known_encodings}")

    def _more(self, event: Any) -> None:
        size = event.flow_controlled_length
        if size:
            with suppress(h2.exceptions.ProtocolError):  # the stream may be over: its bytes count for the connection
                self._http.acknowledge_received_data(size, event.stream_id)
        call = self._calls.get(event.stream_id)
        if call is None or call.done:
            return
        try:
            self._take_in(call, event.data)
        except Refusal as refusal:
            self._refuse(event.stream_id, call, refusal)

    def _take_in(self, call: _Call, data: bytes) -> None:
        limit = self._settings.most_bytes
        if len(call.body) + len(data) > limit + _HEAD:
            raise too_large(limit)
        self._desk.admit(len(data))
        call.body += data
        if len(call.body) >= _HEAD and int.from_bytes(call.body[1:_HEAD], "big") > limit:
            raise too_large(limit)
        took = time.monotonic() - call.began
        if took > self._settings.stall_s and len(call.body) < took * self._settings.least_rate:
            raise Refusal(CANCELLED, 408, "the message comes too slowly")

    def _finish_request(self, stream: int) -> None:
        call = self._calls.get(stream)
        if call is None or call.done:
            self._calls.pop(stream, None)
            return
        call.done = True
        task = asyncio.get_running_loop().create_task(self._answer(stream, call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _reset(self, stream: int) -> None:
        call = self._calls.pop(stream, None)
        if call is not None and not call.done:
            call.done = True
            self._desk.release(len(call.body))
            call.body.clear()
        self._resets += 1
        if self._resets > _MOST_RESETS:
            self._http.close_connection(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
            raise _Over

    async def _answer(self, stream: int, call: _Call) -> None:
        size = len(call.body)
        try:
            response = await self._response_to(call)
        except Refusal as refusal:
            self._fail(stream, refusal)
        except Exception as error:  # noqa: BLE001 - one call's failure is no other's
            self._fail(stream, Refusal(INTERNAL, 500, f"the collector failed: {type(error).__name__}"))
        else:
            self._succeed(stream, response)
        finally:
            self._desk.release(size)
            call.body.clear()
            self._calls.pop(stream, None)
        with suppress(OSError, TimeoutError):
            await self._flush()

    async def _response_to(self, call: _Call) -> bytes:
        path = call.headers[":path"]
        if path == _HEALTH:
            return _SERVING
        body = bytes(call.body)
        if len(body) < _HEAD or len(body) - _HEAD != int.from_bytes(body[1:_HEAD], "big") or body[0] > 1:
            raise malformed("the message is not framed as gRPC has it")
        encoding = call.headers.get("grpc-encoding", "identity") if body[0] else "identity"
        if body[0] and encoding == "identity":
            raise malformed("the message is compressed, and nothing says how")
        return await self._desk.take(body[_HEAD:], _METHODS[path], encoding, is_json=False)

    # ---------------------------------------------------------------------------------------------------- sending

    def _succeed(self, stream: int, response: bytes) -> None:
        self._desk.meters.answered("grpc", 0)
        with suppress(h2.exceptions.ProtocolError):  # the client took it back meanwhile
            self._http.send_headers(stream, [*_HEADERS, ("grpc-accept-encoding", ",".join(_ENCODINGS))])
            self._http.send_data(stream, b"\0" + len(response).to_bytes(4, "big") + response)
            self._http.send_headers(stream, [("grpc-status", "0")], end_stream=True)

    def _refuse(self, stream: int, call: _Call, refusal: Refusal) -> None:
        """Answer a call whose message is still coming; the rest of it is not wanted."""
        self._desk.release(len(call.body))
        call.body.clear()
        call.done = True
        self._fail(stream, refusal)
        with suppress(h2.exceptions.ProtocolError):
            self._http.reset_stream(stream, h2.errors.ErrorCodes.NO_ERROR)
        self._calls.pop(stream, None)

    def _fail(self, stream: int, refusal: Refusal) -> None:
        self._desk.meters.answered("grpc", refusal.code)
        details = base64.b64encode(refusal.as_protobuf()).rstrip(b"=").decode()
        trailers = [
            *_HEADERS,
            ("grpc-accept-encoding", ",".join(_ENCODINGS)),
            ("grpc-status", str(EXHAUSTED if refusal.http == 413 else refusal.code)),
            ("grpc-message", quote(refusal.reason, safe=" !#$&'()*+,/:;=?@[]~")),
            ("grpc-status-details-bin", details),
        ]
        with suppress(h2.exceptions.ProtocolError):
            self._http.send_headers(stream, trailers, end_stream=True)

    async def _flush(self) -> None:
        data = self._http.data_to_send()
        if data:
            self._writer.write(data)
        async with asyncio.timeout(self._settings.stall_s):
            await self._writer.drain()


class _Over(Exception):
    """The connection is at its end."""


_HEADERS = ((":status", "200"), ("content-type", "application/grpc"))
