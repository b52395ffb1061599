from __future__ import annotations

import json
import logging
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import reenact
from held import Did, Held
from reenact.boundary.inbound import Inbound, inside
from reenact.boundary.side_effects import replaced_in_a_replay
from reenact.graph.verdict import judge
from reenact.record import undeclared
from reenact.record.undeclared import Undeclared
from reenact.values.file_writes import writes_of
from reenact.values.run import LOCKED, UNDECLARED, Grade, Run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path("old.txt").write_text("old")
    return tmp_path / "work"


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path / "store")


@reenact.tool
def ask() -> str:
    return "asked"


@reenact.tool
def declared(act: Callable[[], object]) -> None:
    act()


@reenact.agent
def structure(act: Callable[[], object]) -> None:
    act()


def refused_connection() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    with socket.socket() as one, pytest.raises(ConnectionRefusedError):
        one.connect(address)


def listed(run: Run) -> list[str]:
    assert run.root is not None
    return json.loads(str(run.root.span.attributes.get(UNDECLARED, "[]")))


def told(did: Did) -> list[str]:
    (run,) = did.runs
    return [each.rpartition(" at ")[0] for each in listed(run)]


FILES: dict[str, Callable[[], object]] = {
    "notes.txt": lambda: Path("notes.txt").write_text("new"),
    "old.txt": lambda: Path("old.txt").unlink(),
    "book.db": lambda: sqlite3.connect("book.db").close(),
}
ACTS: dict[str, Callable[[], object]] = {
    "connect to 127.0.0.1": refused_connection,
}


@pytest.mark.parametrize("what", ACTS)
def test_what_a_replay_would_refuse_is_noted_with_its_line_and_the_verdict_says_so(held: Held, what: str) -> None:
    def work() -> None:
        ask()
        structure(ACTS[what])

    did = held.record(work)
    assert [each.partition(":")[0] if "connect" in each else each for each in told(did)] == [what]
    (run,) = did.runs
    assert f"{Path(__file__).name}:" in listed(run)[0]
    verdict = judge(run)
    assert verdict.grade is Grade.PARTIAL
    assert [reason.field for reason in verdict.reasons] == ["side effect"]


@pytest.mark.parametrize("name", FILES)
def test_what_is_written_is_noted_apart_and_lowers_no_verdict(held: Held, name: str) -> None:
    def work() -> None:
        ask()
        structure(FILES[name])

    (run,) = held.record(work).runs
    assert listed(run) == []
    wrote = writes_of(run)
    assert wrote is not None
    file = wrote.files[str(Path(name).absolute())]
    assert file.at.startswith(f"{__file__}:")
    assert (file.before is None) is (name != "old.txt")
    assert judge(run).reasons == ()


def test_what_a_declared_tool_does_and_what_changes_nothing_is_not_noted(held: Held, folder: Path) -> None:
    def spare() -> None:
        with tempfile.NamedTemporaryFile() as made:
            made.write(b"x")
        handler = logging.FileHandler(folder / "log.txt")
        handler.emit(logging.LogRecord("x", 20, "x", 1, "hello", (), None))
        handler.close()
        Path("old.txt").read_text()
        Path(os.devnull).write_text("x")
        Path("gone.txt").unlink(missing_ok=True)

    def work() -> None:
        for act in (*ACTS.values(), *FILES.values()):
            declared(act)
        structure(spare)

    (run,) = held.record(work).runs
    assert listed(run) == []
    assert "side effect" not in {reason.field for reason in judge(run).reasons}
    wrote = writes_of(run)
    assert wrote is not None
    assert [Path(path).name for path in wrote.files] == ["log.txt"], "a log is written by the program"


def test_what_a_replay_puts_something_else_in_place_of_is_not_noted_and_what_follows_is(held: Held) -> None:
    def work() -> None:
        with replaced_in_a_replay():
            Path("one.txt").write_text("x")
        Path("two.txt").write_text("x")

    (run,) = held.record(lambda: structure(work)).runs
    wrote = writes_of(run)
    assert wrote is not None
    assert [Path(path).name for path in wrote.files] == ["two.txt"]


STRANGER = """
import fcntl, os, sys
if os.fork():
    os._exit(0)  # who holds the lock descends from nobody here
os.setsid()
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system does not list who holds which lock")
def test_a_lock_that_a_process_of_others_holds_is_noted_and_one_of_our_own_is_not(held: Held) -> None:
    import fcntl

    def asks(path: Path) -> None:
        ask()
        with path.open("a") as file, suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    other = Path("others.lock").resolve()
    command = [sys.executable, "-c", STRANGER, str(other)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == b"locked\n"
        (theirs,) = held.record(lambda: structure(lambda: asks(other))).runs
    with Path("own.lock").open("a") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        (own,) = held.record(lambda: structure(lambda: asks(Path("own.lock")))).runs

    (act,) = listed(theirs)
    assert act.startswith(f"{LOCKED}{other} at {__file__}:")
    (reason,) = judge(theirs).reasons
    assert "nobody else has locked" in reason.lost
    assert listed(own) == []


def test_it_can_be_switched_off(held: Held) -> None:
    (run,) = held.record(lambda: structure(FILES["notes.txt"]), {"REENACT_UNDECLARED": "off"}).runs
    assert (listed(run), writes_of(run)) == ([], None)


def test_the_list_is_bounded_and_says_that_there_was_more(held: Held) -> None:
    def work() -> None:
        ask()
        for number in range(80):
            sys.audit("os.system", f"program {number}")

    acts = listed(held.record(work).runs[0])
    assert len(acts) == 51
    assert acts[-1] == "and more"


def test_a_unit_that_came_in_tells_its_own_acts_alone() -> None:
    heard = Undeclared()
    undeclared.listen(heard)
    try:
        units = [Inbound(str, dict) for _ in range(2)]

        def work(unit: Inbound) -> None:
            with inside(unit):
                sys.audit("os.system", f"of {units.index(unit)}")

        threads = [threading.Thread(target=work, args=(unit,)) for unit in units]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.audit("os.system", "of the process")
    finally:
        undeclared.listen(None)
    sys.audit("os.system", "of nobody")
    spelled = [[each.rpartition(" at ")[0] for each in heard.listed(unit)] for unit in (*units, None)]
    assert spelled == [["child process 'of 0'"], ["child process 'of 1'"], ["child process 'of the process'"]]


def test_an_event_that_cannot_be_read_is_taken_for_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError

    heard = Undeclared()
    monkeypatch.setattr("reenact.boundary.side_effects.side_effect", broken)
    undeclared.listen(heard)
    try:
        sys.audit("os.remove", "old.txt", -1)
    finally:
        undeclared.listen(None)
    assert heard.listed(None) == ["os.remove (RuntimeError)"]
