"""What every backend is to say of URLs that name no place of it, and of answers that are none of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from reenact.contracts.backend import Backend
from reenact.discover import members
from reenact.errors import InputError, UsageError
from reenact.find import remote
from reenact.values.finding import Filters

BACKENDS = {backend.name: backend for backend in members("backends", Backend)}
each_backend = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)


class Elsewhere(BaseHTTPRequestHandler):
    """Somebody else's server: a page of HTML for whatever is asked."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "20")
        self.end_headers()
        self.wfile.write(b"<html>Sign in</html>")

    do_GET = do_POST  # noqa: N815 - the name is http.server's

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving.server_port
        serving.shutdown()


@each_backend
def test_its_place_is_shown_without_credentials(backend: Backend) -> None:
    for scheme in backend.schemes:
        held = remote.opened(f"{scheme}://user:pass@host:1234/place#run")
        assert held.name == f"{scheme}://host:1234/place"
        with pytest.raises(UsageError, match="is spelled") as refused:
            remote.opened(f"{scheme}://user:secret@host:1234/place?password=secret")
        assert "secret" not in str(refused.value)
        with pytest.raises(UsageError, match="is spelled"):
            remote.opened(f"{scheme}:///place")


@each_backend
def test_another_server_s_answer_is_refused(backend: Backend, port: int) -> None:
    held = backend.open(f"{backend.schemes[0]}://127.0.0.1:{port}/place")
    for work in (
        lambda: list(held.newest(Filters())),
        lambda: held.resolve("abc"),
        lambda: list(held.records("a" * 32)),
    ):
        with pytest.raises(InputError) as refused:
            work()
        assert str(refused.value).startswith(held.name)


def test_a_scheme_that_nobody_speaks_is_said_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"no backend is known by s3://.*clickhouse://.*phoenix\+http://"):
        remote.opened("s3://bucket/traces")
