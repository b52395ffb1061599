"""What the call of a tool does to files: told at its end, and done again by an answer."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reenact.boundary import answered_files
from reenact.boundary.files import PathChange
from reenact.record.file_writes import Writes
from reenact.values.json import Json, parsed_or_none
from reenact.values.lenient import as_list, as_object
from reenact.values.tool_files import read

CALL, OUTER = 7, 1


@pytest.fixture
def writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Writes:
    monkeypatch.chdir(tmp_path)
    return Writes(dict, lambda: None)


@pytest.fixture
def answering() -> Iterator[list[str]]:
    asked: list[str] = []
    answered_files.judge(lambda path: not asked.append(path))
    yield asked
    answered_files.judge(None)


def told(writes: Writes, *paths: Path, keeps: bool = False, act: Any) -> list[Json]:
    """Do something to files as a tool does, and give what is told of it."""
    writes.tools.begin(CALL, OUTER, writes.watched())
    for path in paths:
        writes.tools.changes(CALL, PathChange(str(path), keeps=keeps), is_database=path.suffix == ".db")
    act()
    return as_list(parsed_or_none(writes.tools.end(CALL) or "[]"))


def rows(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("select * from t").fetchall()


def changed(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


def test_texts_folders_and_what_is_removed(tmp_path: Path, writes: Writes, answering: list[str]) -> None:
    new, old, folder = tmp_path / "new.txt", tmp_path / "old.txt", tmp_path / "made"
    old.write_text("old")

    def act() -> None:
        folder.mkdir()
        new.write_text("new")
        old.unlink()

    entries = told(writes, folder, new, old, act=act)
    assert [each.path for each in read(entries)] == ["made", "new.txt", "old.txt"]
    folder.rmdir()
    new.unlink()
    old.write_text("old")
    answered_files.put_back(entries)
    assert (folder.is_dir(), new.read_text(), old.exists()) == (True, "new", False)
    assert len(answering) == 3
    answered_files.put_back(entries)  # it is so already
    assert len(answering) == 3


def test_what_is_appended_and_what_is_not_as_it_was(tmp_path: Path, writes: Writes, answering: list[str]) -> None:
    log = tmp_path / "log.txt"
    log.write_text("one\n")
    entries = told(writes, log, keeps=True, act=lambda: log.write_text("one\ntwo\n"))
    assert as_object(as_object(entries[0])["after"])["from"] == 4
    log.write_text("one\n")
    answered_files.put_back(entries)
    assert log.read_text() == "one\ntwo\n"
    log.write_text("another\n")
    answered_files.put_back(entries)
    assert (log.read_text(), len(answering)) == ("another\n", 1)


def test_a_database_under_an_open_connection(tmp_path: Path, writes: Writes, answering: list[str]) -> None:
    path = tmp_path / "shop.db"
    changed(path, "create table t(a)")
    before = path.read_bytes()
    entries = told(writes, path, act=lambda: changed(path, "insert into t values (1)"))
    again = told(writes, act=lambda: changed(path, "insert into t values (2)"))  # it is known by now
    path.write_bytes(before)
    with closing(sqlite3.connect(path)) as held:
        assert held.execute("select * from t").fetchall() == []
        answered_files.put_back(entries)
        assert held.execute("select * from t").fetchall() == [(1,)]
        answered_files.put_back(again)
        assert held.execute("select * from t").fetchall() == [(1,), (2,)]
    changed(path, "insert into t values (3)")
    answered_files.put_back(entries)
    assert rows(path) == [(1,), (2,), (3,)]
    assert answering


def test_what_cannot_be_done_again_is_named(tmp_path: Path, writes: Writes) -> None:
    path, large = tmp_path / "shop.db", tmp_path / "large.txt"
    changed(path, "create table t(a)")
    with closing(sqlite3.connect(path)) as held:
        entries = told(writes, path, act=lambda: held.execute("insert into t values (1)"))
    assert [each.lost for each in read(entries)] == ["a transaction was under way"]
    entries = told(writes, large, act=lambda: large.write_bytes(bytes(range(256)) * 5000))
    assert [each.lost for each in read(entries)] == ["it is too large"]


def test_a_call_inside_counts_for_both(tmp_path: Path, writes: Writes) -> None:
    path = tmp_path / "a.txt"
    writes.tools.begin(OUTER, 0, {})
    entries = told(writes, path, act=lambda: path.write_text("a"))
    assert parsed_or_none(writes.tools.end(OUTER)) == entries != []
    assert not writes.has_tools


def test_who_only_reads_a_large_database_changed_nothing(tmp_path: Path, writes: Writes) -> None:
    path = tmp_path / "shop.db"
    changed(path, "create table t(a)")
    changed(path, "insert into t values (zeroblob(2000000))")
    assert told(writes, path, act=lambda: rows(path)) == []
    entries = told(writes, path, act=lambda: changed(path, "insert into t values (1)"))
    assert [each.lost for each in read(entries)] == ["it is too large"]


def test_of_very_many_files_the_last_ones_are_named_as_lost(tmp_path: Path, writes: Writes) -> None:
    paths = [tmp_path / f"{number}.txt" for number in range(120)]
    entries = told(writes, *paths, act=lambda: [path.write_text("x") for path in paths])
    assert [each.lost for each in read(entries)].count("the call changed more than 100 files") == 20
    assert len(entries) == 120


def test_a_trace_does_not_reach_a_descriptor_by_its_path(tmp_path: Path, answering: list[str]) -> None:
    target = tmp_path / "ledger"
    text = "forged"
    state: dict[str, Json] = {"text": text, "digest": hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}
    with target.open("w") as stream:
        path = f"{tmp_path}/../{tmp_path.name}/../../../../../../../../proc/self/fd/{stream.fileno()}"
        empty: dict[str, Json] = {"size": 0, "cut": True}
        answered_files.put_back([{"path": path, "before": empty, "after": {"from": 0, **state}}])
    assert (target.read_text(), answering) == ("", [])


@pytest.mark.parametrize("mode", ["a", "ab", "r+"])
@pytest.mark.parametrize("flushes", [False, True])
def test_what_a_tool_writes_to_a_file_that_stays_open_and_python_holds_back_is_lost(
    tmp_path: Path, writes: Writes, mode: str, *, flushes: bool
) -> None:
    path = tmp_path / "log.txt"
    path.write_text("head\n")
    with path.open(mode, **({} if "b" in mode else {"newline": "\n"})) as log:
        log.seek(0, 2)
        writes.note(PathChange(str(path), keeps=True), "")

        def act() -> None:
            log.write(b"lamp\n" if "b" in mode else "lamp\n")
            if flushes:
                log.flush()

        (file,) = read(told(writes, act=act))
        assert file.path == "log.txt"
        assert ("held back" in file.lost) is not flushes
        assert told(writes, act=lambda: None) == []
