"""A provider on loopback that answers what it is told to, byte for byte, in the ways in which providers fail."""

from __future__ import annotations

import contextlib
import gzip
import socket
import struct
import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Self, cast

SEED = 20_26
_LONGEST_PIECE = 40


class Breaks(Enum):
    """How a reply fails to end."""

    CLOSED = "the connection is closed in good order before the announced end"
    RESET = "the connection is reset"
    SILENT = "nothing more comes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What is answered to one request."""

    body: bytes = b"{}"
    status: int = 200
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    coding: str = ""
    """`gzip`, or empty."""
    seed: int | None = None
    """Cut the body into irregular pieces, in the middle of lines and characters; None to send it as one."""
    pieces: tuple[bytes, ...] = ()
    """Send these pieces instead."""
    breaks: Breaks | None = None
    after: int = 0
    """How many bytes (or, of `pieces`, how many pieces) come before it breaks."""

    def cut(self) -> list[bytes]:
        """Give the pieces in which the body goes out."""
        if self.pieces:
            return list(self.pieces)
        data = gzip.compress(self.body, mtime=0) if self.coding == "gzip" else self.body
        if self.seed is None:
            return [data]
        chance, pieces, at = Random(self.seed), [], 0
        while at < len(data):
            size = chance.randint(1, _LONGEST_PIECE if len(data) < 4000 else len(data) // 50)
            pieces.append(data[at : at + size])
            at += size
        return pieces


class Provider:
    """Answers on 127.0.0.1 for as long as it is entered. Each name has a queue of replies; the last one stays."""

    def __init__(self) -> None:
        self._replies: dict[str, deque[Reply]] = defaultdict(deque)
        self.asked: dict[str, list[bytes]] = defaultdict(list)
        """The request bodies that came in, by name."""
        self.connections = 0
        self.closing = threading.Event()
        self._server = _Server(self)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def answer(self, name: str, *replies: Reply) -> str:
        """Put replies into the queue of `name` and give the base URL under which they are asked for."""
        self._replies[name].extend(replies)
        return f"http://127.0.0.1:{self.port}/{name}/v1"

    def next_reply(self, name: str) -> Reply:
        """Take the next reply of a queue; the last one stays."""
        queue = self._replies[name]
        return queue.popleft() if len(queue) > 1 else queue[0]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Be gone: the port is closed when this returns. Safe to call twice."""
        if not self.closing.is_set():
            self.closing.set()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


def closed_port() -> int:
    """Find a port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client's idle keep-alive connection would hold us up
    request_queue_size = 128

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients go away in the middle of replies here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def provider(self) -> Provider:
        return cast("_Server", self.server).provider

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def setup(self) -> None:
        super().setup()
        self.provider.connections += 1

    def do_POST(self) -> None:
        name = self.path.split("/")[1]
        self.provider.asked[name].append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        reply = self.provider.next_reply(name)
        pieces = reply.cut()
        chunked = len(pieces) > 1 or bool(reply.pieces)
        if reply.breaks is Breaks.SILENT and not reply.after:
            self._wait()
            return
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        for key, value in reply.headers:
            self.send_header(key, value)
        if reply.coding:
            self.send_header("Content-Encoding", reply.coding)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(pieces[0])))
        self.end_headers()
        for piece in _up_to_the_break(reply, pieces):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if reply.breaks is None:
            self.wfile.write(b"0\r\n\r\n" if chunked else b"")
        else:
            self._break(reply.breaks)

    def _break(self, how: Breaks) -> None:
        self.close_connection = True
        if how is Breaks.SILENT:
            self._wait()
        elif how is Breaks.RESET:
            self.wfile.flush()
            threading.Event().wait(0.05)  # a reset overtakes what the client has not read yet
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def _wait(self) -> None:
        """Wait until the client or the provider is gone."""
        self.close_connection = True
        self.connection.settimeout(0.02)
        while not self.provider.closing.is_set():
            with contextlib.suppress(TimeoutError):
                if not self.connection.recv(1):
                    return


def _up_to_the_break(reply: Reply, pieces: list[bytes]) -> Iterator[bytes]:
    if reply.breaks is None:
        yield from pieces
    elif reply.pieces:
        yield from pieces[: reply.after]
    else:
        left = reply.after
        for piece in pieces:
            if left <= 0:
                return
            yield piece[:left]
            left -= len(piece)
