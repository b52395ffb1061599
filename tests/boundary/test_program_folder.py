from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from reenact.boundary.program import Temporary
from reenact.boundary.program_folder import Look
from reenact.values.lenient import as_object, as_text


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_adding_a_file_to_an_index_is_a_change_and_asking_about_it_is_none(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(["git", *words], cwd=tmp_path, env=environ, check=True, capture_output=True)

    def changed(*words: str) -> list[str]:
        look = Look(str(tmp_path), ["git", *words])
        git(*words)
        told = look.changed((), Temporary([]))
        return [Path(str(each["path"])).name for each in told if isinstance(each, dict)]

    git("init", "-q")
    (tmp_path / "a.txt").write_text("one")
    git("add", "a.txt")
    os.utime(tmp_path / "a.txt", (1, 1))
    before = (tmp_path / ".git" / "index").read_bytes()
    assert changed("status") == []
    assert (tmp_path / ".git" / "index").read_bytes() != before
    (tmp_path / "a.txt").write_text("two")
    assert changed("add", "a.txt") == ["index"]


def test_what_a_look_in_part_did_not_come_to_is_not_removed(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"f{number}").touch()
    look = Look(tmp_path, [])
    (tmp_path / "new").write_text("made meanwhile")
    assert all(as_text(as_object(each).get("how")) != "removed" for each in look.changed((), Temporary()))


def test_a_folder_that_is_named_by_a_dot_is_seen_whole(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er" / "and" / "er").mkdir(parents=True)
    look = Look(tmp_path, ["."])
    (tmp_path / "deep" / "new").touch()
    assert [as_text(as_object(each).get("how")) for each in look.changed((), Temporary())] == ["made"]
