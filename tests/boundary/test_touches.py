from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reenact.boundary.touches import EVENTS, Touch, described, opens_to_read

_heard: list[list[Touch]] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _heard and event in EVENTS and (touch := described(event, args)) is not None:
        _heard[-1].append(touch)


@pytest.fixture(scope="module", autouse=True)
def _hooked() -> None:
    sys.addaudithook(_hook)  # cannot be taken away again; outside of `heard` it hears nothing


def heard(act: Callable[[], object]) -> list[tuple[str, str]]:
    """Do something for real and say what the interpreter's own events of it are described as."""
    _heard.append([])
    try:
        with suppress(OSError, subprocess.SubprocessError, sqlite3.Error):
            act()
    finally:
        touches = _heard.pop()
    return [(touch.kind, touch.what) for touch in touches]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "tree").mkdir()
    return tmp_path


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def append(name: str) -> None:
    with Path(name).open("a") as file:
        file.write("x")


ACTS: dict[str, tuple[Callable[[], object], list[tuple[str, str]]]] = {
    "append": (lambda: append("notes.txt"), [("write", "write notes.txt")]),
    "write_bytes": (lambda: Path("notes.txt").write_bytes(b""), [("write", "write notes.txt")]),
    "update": (lambda: Path("old.txt").open("r+").close(), [("write", "write old.txt")]),
    "os.open": (lambda: os.close(os.open("n", os.O_WRONLY | os.O_CREAT)), [("write", "write n")]),
    "read": (lambda: Path("old.txt").read_text(), [("read", "read old.txt")]),
    "list": (lambda: list(Path("tree").iterdir()), [("read", "list tree")]),
    "glob": (lambda: list(Path().glob("*.txt")), [("read", "list .")]),
    "remove": (lambda: Path("old.txt").unlink(), [("write", "remove old.txt")]),
    "rename": (lambda: Path("old.txt").rename("new.txt"), [("write", "move old.txt to new.txt")]),
    "mkdir": (lambda: Path("made").mkdir(), [("write", "make folder made")]),
    "rmdir": (lambda: Path("tree").rmdir(), [("write", "remove folder tree")]),
    "chmod": (lambda: Path("old.txt").chmod(0o600), [("write", "change mode of old.txt")]),
    "truncate": (lambda: os.truncate("old.txt", 1), [("write", "truncate old.txt")]),
    "symlink": (lambda: Path("link").symlink_to("old.txt"), [("write", "link old.txt to link")]),
    "sqlite": (lambda: sqlite3.connect("a.db").close(), [("database", "open database a.db")]),
    "sqlite, read only": (
        lambda: sqlite3.connect("file:a.db?mode=ro", uri=True),
        [("read", "read database a.db")],
    ),
    "system": (lambda: os.system("true"), [("child", "child process 'true'")]),
    "Popen": (lambda: subprocess.run(["/bin/true"], check=True), [("child", "child process '/bin/true'")]),
    "shell": (lambda: subprocess.run("true", shell=True, check=True), [("child", "child process '/bin/sh'")]),
    "posix_spawn": (
        lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0),
        [("child", "child process '/bin/true'")],
    ),
    "kill": (lambda: os.kill(2**22 - 1, signal.SIGTERM), [("child", "signal 15 to process 4194303")]),
    "lookup": (lambda: socket.getaddrinfo("localhost", 80), [("network", "look up localhost:80")]),
    "gethostbyname": (lambda: socket.gethostbyname("localhost"), [("network", "look up localhost")]),
    "unix socket": (
        lambda: socket.socket(socket.AF_UNIX).connect("/nobody/listens"),
        [("network", "connect to /nobody/listens")],
    ),
    "IPv6": (lambda: socket.socket(socket.AF_INET6).connect(("::1", 9, 0, 0)), [("network", "connect to [::1]:9")]),
}


@pytest.mark.parametrize("name", ACTS)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_an_act_is_called(name: str) -> None:
    act, expected = ACTS[name]
    assert heard(act) == expected


def test_a_connection_and_what_is_sent_over_it(port: int) -> None:
    def speak() -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendmsg([b"hello"])

    assert heard(speak) == [("network", f"look up 127.0.0.1:{port}"), ("network", f"connect to 127.0.0.1:{port}")]


def test_copying_names_both_ends() -> None:
    said = heard(lambda: shutil.copyfile("old.txt", "copy.txt"))
    assert said[0] == ("write", "copy old.txt to copy.txt")
    assert ("write", "write copy.txt") in said


def nameless() -> None:
    with tempfile.TemporaryFile(dir=".") as file:
        file.write(b"x")


HARMLESS: dict[str, Callable[[], object]] = {
    "a device": lambda: Path(os.devnull).write_text("x"),
    "an open descriptor": lambda: os.fdopen(os.dup(1), "w").close(),
    "the process's own facts": lambda: Path("/proc/self/status").read_text(),
    "a file of Python's": lambda: Path(os.__file__).read_text(),
    "a nameless file": nameless,
    "a database in memory": lambda: sqlite3.connect(":memory:").close(),
    "its own signal": lambda: os.kill(os.getpid(), 0),
    "what a platform asks": lambda: subprocess.run(["uname"], capture_output=True, check=True),
    "a pair of sockets": lambda: [each.close() for each in socket.socketpair()],
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_touches_nothing(name: str) -> None:
    assert heard(HARMLESS[name]) == []


def test_importing_a_module_of_the_program_is_no_reading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "touched_module.py").write_text("X = 1\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert heard(lambda: __import__("touched_module")) == []


def test_what_a_later_python_says_otherwise_is_told_in_general() -> None:
    assert described("socket.connect", ()) == Touch(kind="network", what="socket.connect")
    assert described("open", ("x",)) == Touch(kind="write", what="open")
    assert described("cpython.run_command", ("x",)) is None


@pytest.mark.parametrize(
    ("args", "reads"),
    [
        (("x", "r", os.O_RDONLY), True),
        (("x", None, os.O_RDONLY | os.O_CLOEXEC), True),
        (("x", "w", 0), False),
        (("x", None, os.O_RDWR), False),
        (("x", "r+", os.O_RDWR), False),
    ],
)
def test_opening_to_read(args: tuple[Any, ...], *, reads: bool) -> None:
    assert opens_to_read(args) == reads
