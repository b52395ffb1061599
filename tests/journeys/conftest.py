"""Whole sentences: the command line as a user types it, in processes of their own."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from desk import Desk
from reenact.demo.provider import StandIn


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def provider() -> Iterator[StandIn]:
    with StandIn(max_delay_ms=20) as standing:
        yield standing


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A stock OTLP/HTTP receiver: it writes down the protobuf bodies that it gets, one after the other."""
    written = tmp_path / "received.otlp"

    class Receives(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            with written.open("ab") as stream:
                stream.write(body)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receives)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", written
    server.shutdown()
    server.server_close()


@pytest.fixture
def sockets(desk: Desk) -> Callable[[list[str], dict[str, str]], tuple[subprocess.CompletedProcess[str], int]]:
    """Run a program under strace, which counts from outside the Internet sockets that it and its children open."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed, so nothing can count sockets from outside")

    def counted(argv: list[str], environ: dict[str, str]) -> tuple[subprocess.CompletedProcess[str], int]:
        trace = desk.folder / "strace.out"
        words = [strace, "-f", "-qq", "-e", "trace=socket,connect,sendto,sendmsg", "-o", str(trace), *argv]
        done = desk.run(words, environ)
        if "ptrace" in done.stderr and "not permitted" in done.stderr:
            pytest.skip("strace may not trace here")
        return done, sum("AF_INET" in line for line in trace.read_text().splitlines())

    return counted
