from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import reenact
from held import Held
from reenact.boundary import lanes
from reenact.boundary.patching import Patches
from reenact.errors import SideEffectRefused
from reenact.replay import guard
from reenact.replay.ledger import Ledger
from reenact.replay.policy import Writes


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "old.txt").write_text("old")
    (tmp_path / "tree").mkdir()
    return tmp_path


@pytest.fixture
def ledger(folder: Path) -> Iterator[Ledger]:
    del folder
    patches, told = Patches(), Ledger()
    lanes.install(patches)
    with guard.shut(told):
        yield told
    patches.undo()


CHANGES: dict[str, Callable[[], object]] = {
    "write notes.txt": lambda: Path("notes.txt").open("a").close(),
    "write old.txt": lambda: Path("old.txt").write_text("new"),
    "write raw": lambda: os.close(os.open("raw", os.O_CREAT | os.O_WRONLY)),
    "remove old.txt": lambda: Path("old.txt").unlink(),
    "move old.txt to new.txt": lambda: Path("old.txt").rename("new.txt"),
    "make folder made": lambda: Path("made").mkdir(),
    "remove folder tree": lambda: shutil.rmtree("tree"),
    "truncate old.txt": lambda: os.truncate("old.txt", 0),
    "change mode of old.txt": lambda: Path("old.txt").chmod(0o600),
    "link old.txt to link": lambda: Path("link").symlink_to("old.txt"),
    "open database memory.db": lambda: sqlite3.connect("memory.db").close(),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changes_a_file_is_refused_and_the_line_and_the_ways_out_are_named(
    ledger: Ledger, folder: Path, what: str
) -> None:
    before = snapshot(folder)
    with pytest.raises(SideEffectRefused) as refused:
        CHANGES[what]()
    (entry,) = ledger.entries
    assert (entry["t"], entry["what"]) == ("refused", what)
    assert str(entry["where"]).startswith(f"{__file__}:")
    assert "@reenact.tool" in str(refused.value)
    assert "--writes allow" in str(refused.value)
    assert snapshot(folder) == before


def snapshot(folder: Path) -> dict[str, object]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@pytest.mark.parametrize("what", CHANGES)
def test_by_policy_they_happen(folder: Path, what: str) -> None:
    before, told = snapshot(folder), Ledger()
    with guard.shut(told, Writes.ALLOW):
        CHANGES[what]()
    assert told.entries == []
    assert snapshot(folder) != before or what.startswith("change mode")


def test_inside_a_live_call_they_happen(ledger: Ledger) -> None:
    with guard.allowed():
        Path("notes.txt").write_text("live")
    assert (Path("notes.txt").read_text(), ledger.entries) == ("live", [])


def in_a_temporary_folder() -> None:
    with tempfile.TemporaryDirectory() as made:
        inner = Path(made, "a", "b")
        inner.parent.mkdir()
        inner.write_text("x")
        inner.rename(inner.with_name("c"))


def in_temporary_files() -> None:
    with tempfile.NamedTemporaryFile("w") as named, tempfile.TemporaryFile() as nameless:
        named.write("x")
        nameless.write(b"x")
    handle, path = tempfile.mkstemp()
    os.close(handle)
    Path(path).unlink()


def in_a_cache() -> None:
    cache = Path(os.environ["XDG_CACHE_HOME"], "library")
    cache.mkdir(parents=True)
    (cache / "model").write_text("x")


SPARED: dict[str, Callable[[], object]] = {
    "reading": lambda: (Path("old.txt").read_text(), list(Path().iterdir()), Path("old.txt").stat()),
    "devices": lambda: Path(os.devnull).write_text("x"),
    "a temporary folder": in_a_temporary_folder,
    "temporary files": in_temporary_files,
    "a folder that is there": lambda: (
        Path("tree").mkdir(exist_ok=True),
        Path("tree").mkdir(parents=True, exist_ok=True),
    ),
    "removing what is not there": lambda: (
        Path("none").unlink(missing_ok=True),
        shutil.rmtree("no", ignore_errors=True),
    ),
    "a database in memory": lambda: sqlite3.connect(":memory:").close(),
}


@pytest.mark.parametrize("name", SPARED)
def test_what_changes_nothing_that_was_there_is_let_through(ledger: Ledger, name: str) -> None:
    SPARED[name]()
    assert ledger.entries == []


def test_what_goes_into_a_cache_is_let_through_and_told(ledger: Ledger) -> None:
    in_a_cache()
    assert Path(os.environ["XDG_CACHE_HOME"], "library", "model").read_text() == "x"
    assert {each["t"] for each in ledger.entries} == {"unwatched"}
    assert all(str(each["what"]).startswith("the cache ") for each in ledger.entries)


def test_the_first_look_for_a_temporary_folder_is_let_through(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    tempfile.gettempdir()
    assert ledger.entries == []


def test_log_files_stay_as_they_are(ledger: Ledger, folder: Path) -> None:
    with guard.allowed():
        (folder / "agent.log").write_text("recorded\n")
    handler = logging.FileHandler("agent.log")
    logger = logging.getLogger("an.agent")
    logger.addHandler(handler)
    try:
        logger.warning("replayed")
    finally:
        logger.removeHandler(handler)
        handler.close()
    assert ((folder / "agent.log").read_text(), ledger.entries) == ("recorded\n", [])


def test_outside_of_a_replay_logs_are_written(folder: Path) -> None:
    with guard.shut(Ledger()):
        pass
    handler = logging.FileHandler("agent.log")
    handler.emit(logging.makeLogRecord({"msg": "hello"}))
    handler.close()
    assert (folder / "agent.log").read_text() == "hello\n"


def test_the_policy_in_code(folder: Path) -> None:
    @reenact.tool
    def declared() -> int:
        return 1

    def work() -> int:
        Path("report.txt").write_text("again")
        return declared()

    held = Held(folder / "held")
    did = held.record(work)
    assert isinstance(held.replay(did, work).error, SideEffectRefused)
    with reenact.replay(did.found, writes="allow", store=held.store) as replay:
        assert work() == 1
    assert replay.result is not None
    assert replay.result.result == "same"
