"""An outside world on loopback: plain HTTP as real servers speak it, well and badly, each reply counted."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

HALF = b'{"error": {"message": "slow down'
"""What arrives of a reply that is promised longer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Outside

    def do_GET(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        self.given = self.rfile.read(length) if length else b""
        self.server.asked[f"{self.command} {self.path}"] += 1
        name = self.path.partition("?")[0].strip("/").replace("/", "_") or "root"
        getattr(self, f"at_{name}", self.at_nowhere)()

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET  # noqa: N815 - as http.server calls them

    def reply(self, status: int, body: bytes, *named: tuple[str, str], reason: str | None = None) -> None:
        self.send_response(status, reason)
        for name, value in (("Content-Type", "application/json"), *named):
            self.send_header(name, value)
        if not any(name == "Content-Length" for name, _ in named):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def json(self, value: Any, *named: tuple[str, str], status: int = 200) -> None:
        self.reply(status, json.dumps(value).encode(), *named)

    def at_ticket(self) -> None:
        self.json({"ticket": sum(self.server.asked.values()), "path": self.path}, ("X-Total-Count", "41"))

    def at_echo(self) -> None:
        self.json({"method": self.command, "got": self.given.decode("utf-8", "replace"), "at": time.time_ns()})

    def at_nowhere(self) -> None:
        self.reply(404, b'{"error": "nothing here"}', reason="Nothing Here")

    def at_half(self) -> None:
        self.reply(429, HALF, ("Content-Length", "400"), ("Retry-After", "0"))
        self.close_connection = True

    def at_half_zipped(self) -> None:
        packed = gzip.compress(bytes(range(256)) * 40, mtime=0)
        self.reply(200, packed[:60], ("Content-Length", str(len(packed))), ("Content-Encoding", "gzip"))
        self.close_connection = True

    def at_busy(self) -> None:
        """Answer the third time."""
        tries = self.server.asked[f"{self.command} {self.path}"]
        self.json({"tries": tries}, ("Retry-After", "0"), status=200 if tries % 3 == 0 else 503)

    def at_moved(self) -> None:
        self.reply(302, b"", ("Location", "/ticket?after=moving"), ("Set-Cookie", "session=s-1"))

    def at_zipped(self) -> None:
        self.reply(
            200, gzip.compress(b'{"zipped": "' + b"many words " * 500 + b'"}', mtime=0), ("Content-Encoding", "gzip")
        )

    def at_zipped_pieces(self) -> None:
        self.pieces(gzip.compress(b"one line\n" * 400, mtime=0), 100, ("Content-Encoding", "gzip"))

    def at_pieces(self) -> None:
        self.pieces("".join(f"event {n} für {time.time_ns()}\n" for n in range(8)).encode(), 37)

    def pieces(self, data: bytes, size: int, *named: tuple[str, str]) -> None:
        self.send_response(200)
        for name, value in (("Content-Type", "text/plain; charset=utf-8"), ("Transfer-Encoding", "chunked"), *named):
            self.send_header(name, value)
        self.end_headers()
        for at in range(0, len(data), size):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data[at : at + size]), data[at : at + size]))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def at_cut_pieces(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"5\r\nfirst\r\n5\r\nsec")
        self.close_connection = True

    def at_no_end(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"5\r\nfirst\r\n")
        self.close_connection = True

    def at_old(self) -> None:
        """Send a body whose end is the connection's."""
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(f"old {time.time_ns()}".encode() * 3000)
        self.close_connection = True

    def at_large(self) -> None:
        self.reply(200, json.dumps([time.time_ns() + n for n in range(5000)]).encode())

    def at_bytes(self) -> None:
        self.reply(200, bytes(range(256)) * 3, ("Content-Type", "application/octet-stream"))

    def at_slow(self) -> None:
        self.server.over.wait(5)
        self.close_connection = True

    def at_slow_body(self) -> None:
        self.reply(200, b"some", ("Content-Length", "40"))
        self.wfile.flush()
        self.server.over.wait(5)
        self.close_connection = True

    def at_hangs_up(self) -> None:
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class Outside(ThreadingHTTPServer):
    """A server of the kind that agents reach for; `asked` counts what came."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: Counter[str] = Counter()
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        """Let clients go away as they like."""

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()


def closed_port() -> int:
    """Give a port that nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
