"""What a file holds is told as text, however it is packed, and not the time at which it was packed."""

from __future__ import annotations

import gzip
import sqlite3
import tarfile
import zipfile
from contextlib import closing
from io import BytesIO
from pathlib import Path

import pytest

from reenact.record.file_text import LARGEST, Holding, holding


def _read(path: str, size: int) -> bytes:
    return Path(path).read_bytes()[:size]


def in_tar(name: str, data: bytes) -> bytes:
    made = BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, BytesIO(data))
    return made.getvalue()


def in_zip(name: str, data: bytes) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(name, data)
    return made.getvalue()


@pytest.mark.parametrize("pack", [in_tar, in_zip])
def test_two_archives_hold_the_same_where_what_is_packed_in_them_does(pack: object) -> None:
    assert callable(pack)
    first, second = (pack("log.gz", gzip.compress(b"a line", mtime=at)) for at in (1, 2))
    found = holding(first, "any", read=_read)
    assert found.text == "== log.gz\na line"
    assert found == holding(second, "any", read=_read)


def test_what_unpacks_to_more_than_there_is_room_for_is_told_by_its_bytes() -> None:
    large = gzip.compress(b"a" * LARGEST + b"b")
    assert holding(large, "any", read=_read) == Holding("bytes", None)
    inside = holding(in_tar("large.gz", large), "any", read=_read).text or ""
    assert inside.startswith(f"== large.gz\n{len(large)} bytes ")


def test_archives_are_looked_into_to_a_depth() -> None:
    data = b"a line"
    for _ in range(6):
        data = in_zip("deeper.zip", data)
    text = holding(data, "any", read=_read).text or ""
    assert text.count("== deeper.zip") == 4
    assert "a line" not in text


def test_the_order_in_which_the_indexes_of_a_database_were_made_is_not_told(tmp_path: Path) -> None:
    found: list[Holding] = []
    for name, columns in (("one.db", "ab"), ("other.db", "ba")):
        path = tmp_path / name
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE told (a, b)")
            for column in columns:
                database.execute(f"CREATE INDEX by_{column} ON told ({column})")
        found.append(holding(path.read_bytes(), str(path), read=_read))
    assert found[0] == found[1]
    assert "CREATE INDEX by_a" in (found[0].text or "")


@pytest.mark.always
@pytest.mark.parametrize("number", [0, 3])
def test_the_version_that_a_program_gives_a_database_is_told(tmp_path: Path, number: int) -> None:
    path = tmp_path / "some.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE told (a)")
        database.execute(f"PRAGMA user_version = {number}")
    text = holding(path.read_bytes(), str(path), read=_read).text or ""
    assert text.startswith("PRAGMA user_version=3;" if number else "BEGIN TRANSACTION;")


@pytest.mark.always
def test_the_rights_of_a_member_are_told_where_they_are_no_usual_ones() -> None:
    made = BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, mode in (("read.me", 0o644), ("run.sh", 0o755)):
            member = tarfile.TarInfo(name)
            member.mode = mode
            archive.addfile(member)
    text = holding(made.getvalue(), "any", read=_read).text or ""
    assert [line for line in text.splitlines() if line] == ["== read.me", "== run.sh 755"]
