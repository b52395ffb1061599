"""Damage is found and said; mending loses nothing that can still be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from keep.test_retention import body, filled, left
from reenact.cli.main import reenact
from reenact.errors import InputError
from reenact.keep.checking import looked_through
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore


def test_a_whole_store(tmp_path: Path) -> None:
    filled(tmp_path, *(body(number) for number in range(1, 6)))
    found = looked_through(DirectoryStore(tmp_path))
    assert (found.traces, found.damage) == (5, [])


@pytest.mark.parametrize("together", [True, False], ids=["a pack", "a segment"])
@pytest.mark.parametrize("where", [0.0, 0.45, 0.999])
def test_a_damaged_frame_costs_what_it_held(tmp_path: Path, where: float, together: bool) -> None:  # noqa: FBT001
    filled(tmp_path, *(body(number) for number in range(1, 10)), together=together)
    (path,) = (tmp_path / "frames").glob("pack-*" if together else "seg-*")
    data = bytearray(path.read_bytes())
    data[max(9, int(len(data) * where))] ^= 0xFF
    path.write_bytes(data)
    found = looked_through(DirectoryStore(tmp_path))
    assert any("no whole frame" in line for line in found.damage)
    mended = looked_through(DirectoryStore(tmp_path), repair=True)
    assert mended.mended
    again = DirectoryStore(tmp_path)
    assert looked_through(again).damage == []
    there = 9 if together else 8  # what a pack lost is in the segment yet, which is the newest
    assert len(left(again)) == there
    assert len(again.find()) == there
    assert path.with_suffix(".damaged").read_bytes() == bytes(data)


def test_a_damaged_index_is_made_again(tmp_path: Path) -> None:
    filled(tmp_path, *(body(number) for number in range(1, 6)))
    for name in ("index-1.sqlite-wal", "index-1.sqlite-shm"):
        (tmp_path / "frames" / name).unlink(missing_ok=True)
    (tmp_path / "frames" / "index-1.sqlite").write_bytes(b"noise" * 9999)
    with pytest.raises(InputError):
        left(DirectoryStore(tmp_path))
    assert looked_through(DirectoryStore(tmp_path), repair=True).mended
    assert left(DirectoryStore(tmp_path)) == {1, 2, 3, 4, 5}


def test_no_repair_beside_a_collector(tmp_path: Path) -> None:
    filled(tmp_path, body(1))
    lock = FrameStore(tmp_path).lock()
    with pytest.raises(InputError, match="another collector"):
        looked_through(DirectoryStore(tmp_path), repair=True)
    os.close(lock)


def test_the_exit_code_says_it(tmp_path: Path) -> None:
    from click.testing import CliRunner

    filled(tmp_path, body(1), body(2))
    assert (
        CliRunner().invoke(reenact, ["store", "check", "--store", str(tmp_path)], standalone_mode=False).return_value
        == 0
    )
    (path,) = (tmp_path / "frames").glob("pack-*")
    with path.open("ab") as file:
        file.write(b"torn")
    assert (
        CliRunner().invoke(reenact, ["store", "check", "--store", str(tmp_path)], standalone_mode=False).return_value
        == 1
    )
