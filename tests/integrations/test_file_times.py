"""The times of files that a run writes: a replay's own are of another day, and the program sees the recorded ones."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reenact
from held import Held
from reenact.record.draws import REST

pytestmark = pytest.mark.always


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


ANOTHER_DAY = 4_000_000_000
"""Of the year 2096, in seconds since the epoch."""


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """Give a file that seems to have changed behind the beginning of the run."""
    path = tmp_path / "report.txt"
    path.write_text("done")
    os.utime(path, (ANOTHER_DAY - 7.25, ANOTHER_DAY - 7.25))
    return path


@reenact.tool
def told(what: str) -> str:
    return what


def _by_entry(path: Path) -> float:
    with os.scandir(path.parent) as entries:
        return next(each.stat().st_mtime for each in entries if each.name == path.name)


def _by_descriptor(path: Path) -> float:
    with path.open() as file:
        return os.fstat(file.fileno()).st_mtime


def _in_archive(path: Path) -> tuple[int, ...]:
    return zipfile.ZipInfo.from_file(path).date_time


WAYS: dict[str, Callable[[Path], Any]] = {
    "os.stat": lambda path: os.stat(path),  # noqa: PTH116, PLW0108 - it is what is tried
    "os.lstat": lambda path: os.lstat(path).st_mtime_ns,
    "a time of the inode": lambda path: path.stat().st_ctime,
    "Path.stat": lambda path: path.stat().st_mtime,
    "getmtime": lambda path: os.path.getmtime(path),  # noqa: PTH204, PLW0108 - it is what is tried
    "os.scandir": _by_entry,
    "os.fstat": _by_descriptor,
    "zipfile": _in_archive,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_time_of_a_file_that_changed_comes_again(held: Held, changed: Path, way: str) -> None:
    seen: list[Any] = []

    def work() -> None:
        seen.append(WAYS[way](changed))
        told(str(seen[-1]))

    did = held.record(work, generators={})
    os.utime(changed, (ANOTHER_DAY, ANOTHER_DAY))
    assert held.replay(did, work).error is None
    assert seen[0] == seen[1]
    assert type(seen[0]) is type(seen[1])
    os.utime(changed, (ANOTHER_DAY, ANOTHER_DAY))
    work()
    assert seen[2] != seen[1], "it is the real one where nothing is replayed"


def test_the_file_keeps_the_time_that_it_has(held: Held, changed: Path) -> None:
    def work() -> None:
        with os.scandir(changed.parent) as entries:
            (entry,) = (each for each in entries if each.name == changed.name)
        assert isinstance(entry, os.DirEntry)
        assert (os.fspath(entry), entry.is_file()) == (str(changed), True)
        told(str(entry.stat().st_mtime))

    did = held.record(work, generators={})
    os.utime(changed, (ANOTHER_DAY, ANOTHER_DAY))
    assert held.replay(did, work).error is None
    assert changed.stat().st_mtime == ANOTHER_DAY


def test_a_file_from_before_the_run_has_its_own_time(held: Held, tmp_path: Path) -> None:
    path = tmp_path / "question.txt"
    path.write_text("why")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    did = held.record(lambda: told(str(path.stat().st_mtime)), generators={})
    assert not any("file times" in str(node.span.attributes.get(REST)) for node in did.runs[0].nodes)


def test_who_asks_whether_a_file_is_there_asks_for_no_time(held: Held, changed: Path) -> None:
    did = held.record(lambda: told(f"{changed.exists()} {os.path.isfile(changed)}"), generators={})  # noqa: PTH113 - as above
    assert not any("file times" in str(node.span.attributes.get(REST)) for node in did.runs[0].nodes)


def test_a_status_with_a_recorded_time_has_all_else_of_today(held: Held, changed: Path) -> None:
    seen: list[os.stat_result] = []

    def work() -> None:
        seen.append(changed.stat())
        told("written")

    did = held.record(work, generators={})
    changed.write_text("done, and done")
    os.utime(changed, (ANOTHER_DAY, ANOTHER_DAY))
    assert held.replay(did, work).error is None
    recorded, replayed = seen
    assert (replayed.st_size, replayed.st_blksize, replayed.st_mode) == (14, recorded.st_blksize, recorded.st_mode)
    assert (replayed[8], replayed.st_mtime, replayed.st_mtime_ns) == (
        recorded[8],
        recorded.st_mtime,
        recorded.st_mtime_ns,
    )
