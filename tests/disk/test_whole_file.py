from __future__ import annotations

import os
from pathlib import Path

import pytest

from reenact.disk.whole_file import write_whole
from reenact.errors import InputError


def test_a_link_at_the_place_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    target = tmp_path / "incident.html"
    target.symlink_to(precious)
    write_whole(target, b"a page")
    assert (target.is_symlink(), target.read_bytes(), precious.read_text()) == (False, b"a page", "mine")


def test_the_umask_decides_who_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "trace.jsonl", b"{}")
    finally:
        os.umask(before)
    assert (tmp_path / "trace.jsonl").stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_whole(tmp_path / "folder", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
