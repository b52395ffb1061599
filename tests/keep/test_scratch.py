"""Folders of ours go, whatever a program left in them."""

from __future__ import annotations

import os
from pathlib import Path

from reenact.keep.scratch import remove


def test_a_tree_that_is_deep_and_closed_goes_and_what_links_lead_to_stays(tmp_path: Path) -> None:
    folder, kept = tmp_path / "copy", tmp_path / "kept.txt"
    folder.mkdir()
    kept.write_text("kept")
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        for number in range(3000):
            Path("file").write_text(str(number))
            Path("link").symlink_to(kept)
            Path("d").mkdir()
            os.chdir("d")
        Path("closed").mkdir()
        Path("closed", "within").mkdir()
        Path("closed").chmod(0)
    finally:
        os.chdir(here)
        os.close(here)
    remove(folder)
    assert not folder.exists()
    assert kept.read_text() == "kept"


def test_what_a_removal_that_was_killed_has_left_goes_with_the_next(tmp_path: Path) -> None:
    top = tmp_path / "top"
    for number in (1, 2, 7):
        deep = top / f".reenact-moved-{number}" / "work" / "below"
        deep.mkdir(parents=True)
        (deep / "file").write_text("written")
    remove(top)
    assert not top.exists()
