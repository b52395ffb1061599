# ruff: noqa: PTH207, PTH208, PLW0108 - each way to list is called as programs call it, and looked up as late
"""Names in a folder come in the order in which a recorded run got them, however the disk orders them."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import reenact
from held import Held
from reenact.replay.folder_order import give_back


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    there = tmp_path / "docs"
    there.mkdir()
    for name in ("a", "b", "c", "d"):
        (there / name).write_text(name)
    return there


WAYS: dict[str, Callable[[Path], list[str]]] = {
    "os.listdir": lambda folder: os.listdir(folder),
    "os.listdir, bytes": lambda folder: [os.fsdecode(name) for name in os.listdir(os.fsencode(folder))],
    "os.scandir": lambda folder: [entry.name for entry in os.scandir(folder)],
    "os.walk": lambda folder: [name for *_, names in os.walk(folder) for name in names],
    "pathlib": lambda folder: [path.name for path in folder.iterdir()],
    "glob": lambda folder: [Path(name).name for name in glob.glob(f"{folder}/*")],
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_list_gives_the_recorded_order(folder: Path, way: str) -> None:
    before = WAYS[way](folder)
    for names in (["d", "a", "c", "b"], ["b", "c", "a", "d"]):
        end = give_back({str(folder): names})
        try:
            assert WAYS[way](folder) == names
        finally:
            end()
    assert WAYS[way](folder) == before


def test_other_folders_and_new_names_are_listed_as_they_are(folder: Path) -> None:
    end = give_back({str(folder): ["d", "c"], str(folder / "none"): ["x"]})
    try:
        assert sorted(os.listdir(folder)) == ["a", "b", "c", "d"]
        assert [name for name in os.listdir(folder) if name in "cd"] == ["d", "c"]
        with os.scandir(folder) as entries:
            assert all(entry.is_file() for entry in entries)
        assert sorted(os.listdir(folder.parent)) == ["docs"]
        with pytest.raises(FileNotFoundError):
            os.listdir(folder / "none")
        shutil.rmtree(folder)
    finally:
        end()
    assert not folder.exists()


def test_a_replay_has_the_order_of_its_recording(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @reenact.tool
    def read(name: str) -> str:
        return name

    def work() -> list[str]:
        return [read(name) for name in os.listdir(folder)]

    listdir = os.listdir
    held = Held(tmp_path / "held")
    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", lambda path=".": sorted(listdir(path), reverse=True))
        did = held.record(work)
    assert did.value == ["d", "c", "b", "a"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", lambda path=".": sorted(listdir(path)))
        again = held.replay(did, work)
    assert again.value == did.value
    assert again.result is not None
    assert again.result.result == "same"
