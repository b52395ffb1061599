"""What a found tool touches is noted as its own, and nobody else's."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import reenact
from held import Did, Held
from reenact.boundary import offers
from reenact.record import touches
from reenact.values.discovered_tools import TOUCHED, listed

WHERE: dict[str, str] = {}


def touch_nothing() -> str:
    return json.dumps({"a": __import__("colorsys").__name__})


def touch_file() -> None:
    (Path(WHERE["folder"]) / "out.txt").write_text("x")


def read_file() -> str:
    return (Path(WHERE["folder"]) / "in.txt").read_text()


def touch_child() -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


def touch_net() -> bytes:
    with urlopen(WHERE["url"]) as reply:
        return bytes(reply.read())


def touch_thread() -> None:
    thread = threading.Thread(target=touch_file)
    thread.start()
    thread.join()


@reenact.chain
def structure() -> None:
    touch_file()


@reenact.tool
def declared_inside() -> None:
    touch_file()


def touch_in_structure() -> None:
    structure()


def touch_in_declared() -> None:
    declared_inside()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    WHERE.update(folder=str(tmp_path), url=f"http://127.0.0.1:{server.server_port}/")
    (tmp_path / "in.txt").write_text("in")
    yield Held(tmp_path)
    server.shutdown()
    server.server_close()


def recorded(held: Held, name: str) -> Did:
    body = {"messages": [], "model": "m", "tools": [{"name": name, "input_schema": {}}]}

    def work() -> Any:
        offers.hear(json.dumps(body).encode())
        return globals()[name]()

    did = held.record(work)
    assert did.error is None
    return did


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("touch_nothing", []),
        ("touch_file", ["write {folder}/out.txt"]),
        ("read_file", ["read {folder}/in.txt"]),
        ("touch_child", ["child process"]),
        ("touch_net", ["look up 127.0.0.1", "connect to 127.0.0.1"]),
        ("touch_thread", ["write {folder}/out.txt"]),
        ("touch_in_structure", ["write {folder}/out.txt"]),
        ("touch_in_declared", []),
    ],
)
def test_what_a_tool_touches(held: Held, name: str, said: list[str]) -> None:
    did = recorded(held, name)
    touched = listed(did.call(name), TOUCHED)
    wanted = [each.format(**WHERE) for each in said]
    assert len(touched) == len(wanted)
    assert all(each.startswith(want) for each, want in zip(touched, wanted, strict=True)), touched
    assert not touches.open_calls


@pytest.mark.slow
def test_what_others_do_meanwhile_is_not_its_own(held: Held, tmp_path: Path) -> None:
    stop = threading.Event()

    def other() -> None:
        while not stop.is_set():
            (tmp_path / "other.txt").write_text("x")

    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert listed(recorded(held, "read_file").call("read_file"), TOUCHED) == [f"read {tmp_path}/in.txt"]
    finally:
        stop.set()
        thread.join()


def test_of_very_many_touches_the_first_are_kept() -> None:
    noted = touches.Touches()
    for number in range(1000):
        noted.add(f"write {number % 300}")
    assert len(noted.listed()) == 101
    assert noted.listed()[-1] == "and more"
