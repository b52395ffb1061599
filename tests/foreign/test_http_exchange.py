from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from reenact.errors import InputError
from reenact.foreign.http_exchange import fetch_reply, printable_url, user_of


class Answering(BaseHTTPRequestHandler):
    seen: list[tuple[str, str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.command, self.headers.get("Authorization", ""), body))
        status = int(self.path.strip("/").partition("?")[0] or 200)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/200")
        said = b"what went wrong" if status >= 400 else b"x" * 5000
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST  # noqa: N815 - the name is http.server's

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    Answering.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def test_an_answer_is_given_whole(server: str) -> None:
    assert fetch_reply(f"{server}/200", {"Authorization": "Bearer k"}, most=5000) == b"x" * 5000
    assert fetch_reply(f"{server}/200", {}, b"SELECT 1", most=5000) == b"x" * 5000
    assert Answering.seen == [("GET", "Bearer k", b""), ("POST", "", b"SELECT 1")]


@pytest.mark.parametrize(
    ("path", "most", "said"),
    [
        ("/404?key=secret", 5000, "answered 404 Not Found: what went wrong"),
        ("/500", 5000, "answered 500"),
        ("/302", 5000, "answered 302"),
        ("/200", 4999, "more than"),
    ],
)
def test_what_is_no_answer_names_the_place_and_no_secret(server: str, path: str, most: int, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        fetch_reply(f"{server}{path}", {"Authorization": "Bearer secret"}, most=most)
    assert str(refused.value).startswith(server)
    assert "secret" not in str(refused.value)
    assert len(Answering.seen) == 1, "a redirect is not followed"


def test_nobody_there_is_said() -> None:
    with pytest.raises(InputError, match="cannot be asked"):
        fetch_reply("http://127.0.0.1:1/", {}, most=1)


def test_a_url_is_shown_without_what_it_knows() -> None:
    assert printable_url("clickhouse://u:p%40ss@host:8123/db?password=x#run") == "clickhouse://host:8123/db"
    assert user_of("clickhouse://u%20v:p%40ss@host/db") == ("u v", "p@ss")
    assert user_of("clickhouse://host/db") == ("", "")
