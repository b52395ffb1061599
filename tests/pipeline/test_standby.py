"""A launcher that is started ahead launches what one started in time would have, and nobody misses one that is gone."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from socket import send_fds
from typing import Any

import pytest

from reenact.pipeline import standby
from reenact.seal import launch

LIMIT_S = 60
_PROGRAM = """
import json, os, signal, sys
with open("/proc/self/status") as stream:
    masks = [line for line in stream if line.startswith(("Sig", "Shd", "Cap", "NoNewPrivs", "Groups"))]
print(json.dumps({
    "environ": dict(os.environ), "cwd": os.getcwd(), "masks": masks, "umask": os.umask(0),
    "open": os.listdir("/proc/self/fd"),
    "group": os.getpgrp() == os.getpid(), "input": sys.stdin.read(), "interrupt": str(signal.getsignal(signal.SIGINT)),
}))
print("aside", file=sys.stderr)
"""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="worlds are sealed on Linux alone")


@pytest.fixture
def order(tmp_path: Path) -> Iterator[list[str]]:
    """Give the command that launches the program in the strongest world that there is here."""
    folders = {name: tmp_path / name for name in ("upper", "work")}
    for folder in folders.values():
        folder.mkdir()
    path, answer = tmp_path / "order.json", tmp_path / "answer.jsonl"
    world = {"upper": str(folders["upper"])}
    path.write_text(
        json.dumps(
            {
                "argv": [sys.executable, "-I", "-c", _PROGRAM],
                "cwd": str(folders["work"]),
                "answer": str(answer),
                "world": world,
                "cell": world,
            }
        )
    )
    yield launch.command(path)
    if "refused" in answer.read_text():
        pytest.skip(f"no world can be sealed here: {answer.read_text()}")


def _said(process: subprocess.Popen[bytes], out: Path, err: Path) -> dict[str, Any]:
    assert process.wait(LIMIT_S) == 0
    assert err.read_text() == "aside\n"
    said: dict[str, Any] = json.loads(out.read_text())
    return said


def _run(command: list[str], tmp_path: Path, *, ahead: bool) -> dict[str, Any]:
    given, out, err = (tmp_path / name for name in ("in", "out", "err"))
    given.write_text("a line\n")
    environ = {"PATH": os.environ["PATH"], "ODD": "\udcff \xe4", "LANG": "C.UTF-8"}
    with given.open("rb") as stdin, out.open("wb") as stdout, err.open("wb") as stderr:
        if ahead:
            standby.begin()
            streams = [each.fileno() for each in (stdin, stdout, stderr)]
            process = standby.launched(command, str(tmp_path), environ, streams)
            assert process is not None
        else:
            process = subprocess.Popen(command, cwd=tmp_path, env=environ, stdin=stdin, stdout=stdout, stderr=stderr)
        return _said(process, out, err)


def test_a_program_finds_the_same_whenever_its_launcher_was_started(order: list[str], tmp_path: Path) -> None:
    path = Path(order[-1])
    text = path.read_text()
    found = []
    for number, ahead in enumerate((False, True)):
        each = json.loads(text)
        each["world"]["upper"] = each["cell"]["upper"] = str(tmp_path / "upper" / str(number))
        Path(each["world"]["upper"]).mkdir()
        path.write_text(json.dumps(each))
        found.append(_run(order, tmp_path, ahead=ahead))
    assert found[0]["environ"]["ODD"] == "\udcff \xe4"
    assert found[0]["input"] == "a line\n"
    assert found[1] == found[0]


@pytest.mark.parametrize("more", [0, 1 << 20], ids=["a short order", "an order that is sent in pieces"])
def test_an_order_is_given_once(more: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever ordered holds the process, however soon the launcher has read what it is to do."""
    monkeypatch.setattr("reenact.pipeline.standby.socket.send_fds", _sent_and_heard)
    order = launch.command(tmp_path / "missing.json")
    for _ in range(3):
        standby.begin()
        environ = {"PATH": os.environ["PATH"], "MORE": "x" * more}
        with (tmp_path / "err").open("wb") as stderr:
            process = standby.launched(order, str(tmp_path), environ, (0, 1, stderr.fileno()))
        assert process is not None
        assert process.wait(LIMIT_S) == 1
        assert "missing.json" in (tmp_path / "err").read_text()


def _sent_and_heard(connection: socket.socket, message: list[bytes], streams: Sequence[int]) -> int:
    """Send as the kernel does, and come back when the other side has heard it."""
    sent = send_fds(connection, message, streams)
    if sent == len(message[0]):
        select.select([connection], [], [], LIMIT_S)
    return sent


def test_a_launcher_that_is_gone_is_not_waited_for(order: list[str], tmp_path: Path) -> None:
    standby.begin()
    launcher = standby._waiting[-1]
    launcher._process.kill()
    launcher._process.wait()
    assert standby.launched(order, str(tmp_path), {}, (0, 1, 2)) is None
    assert standby._waiting == []
    _run(order, tmp_path, ahead=False)


def test_only_what_carries_out_an_order_is_launched(tmp_path: Path) -> None:
    standby.begin()
    assert standby.launched([sys.executable, "-c", "pass"], str(tmp_path), {}, (0, 1, 2)) is None
    process = standby._waiting[-1]._process
    standby._end()
    assert process.returncode is not None
    assert standby._waiting == []


@pytest.mark.parametrize("value", ["off", "watched"])
def test_none_is_started_where_nothing_is_sealed(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(launch.ENFORCE, value)
    standby.begin()
    assert standby._waiting == []


def test_a_launcher_has_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REENACT_SALT", "a key")
    standby.begin()
    try:
        process = standby._waiting[-1]._process
        variables = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert b"a key" not in variables
    finally:
        standby._end()
