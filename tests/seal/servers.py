"""Servers of the host's that a sealed program may reach, or must not: what each of them heard is counted."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest

Talk = Callable[[socket.socket], None]


@contextmanager
def server(talk: Talk, host: str = "127.0.0.1") -> Iterator[tuple[int, list[str]]]:
    """Serve connections, each on a thread of its own; gives the port, and the address of everyone who came."""
    heard: list[str] = []
    listening = socket.create_server((host, 0), backlog=256)

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            talk(connection)

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, address = listening.accept()
                heard.append(address[0])
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listening.getsockname()[1], heard
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def greet(connection: socket.socket) -> None:
    """Say one word and go."""
    connection.sendall(b"hello")


def nothing(_: socket.socket) -> None:
    """Go at once."""


def everything_back(connection: socket.socket) -> None:
    """Read to the end, and only then answer with all of it."""
    held = bytearray()
    while piece := connection.recv(1 << 16):
        held += piece
    connection.sendall(held)


class _Web(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the host that was asked for, or stream fifty pieces."""
        if self.path.startswith("/stream"):
            self.send_response(200)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for number in range(50):
                piece = f"{self.path} {number}\n".encode()
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            return
        said = f"asked as {self.headers['host']}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


@contextmanager
def web(host: str = "127.0.0.1") -> Iterator[int]:
    """Serve plain HTTP; gives the port."""
    serving = _Server((host, 0), _Web)
    threading.Thread(target=serving.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield serving.server_address[1]
    finally:
        serving.shutdown()
        serving.server_close()


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a certificate for a host, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not here to make a certificate")
    made, key = folder / "made.pem", folder / "key.pem"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    command = [openssl, "req", "-x509", *curve, *subject, "-keyout", str(key), "-out", str(made)]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


def over_tls(made: Path, key: Path) -> Talk:
    """Speak TLS, and HTTP/2 or HTTP/1.1 as the client chooses (RFC 7301)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    context.set_alpn_protocols(["h2", "http/1.1"])

    def talk(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as inner:
            if inner.selected_alpn_protocol() == "h2":
                _http2(inner)
                return
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += inner.recv(1 << 16)
            inner.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nhttp")

    return talk


def _http2(inner: ssl.SSLSocket) -> None:
    state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
    state.initiate_connection()
    inner.sendall(state.data_to_send())
    while data := inner.recv(1 << 16):
        for event in state.receive_data(data):
            if isinstance(event, h2.events.RequestReceived) and event.stream_id is not None:
                state.send_headers(event.stream_id, [(":status", "200")])
                state.send_data(event.stream_id, b"two", end_stream=True)
        inner.sendall(state.data_to_send())
