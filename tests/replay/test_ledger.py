"""A ledger is written by the program's own process: what it holds is read with suspicion."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reenact.replay import ledger


@pytest.mark.parametrize("line", [b'{"refused": "so"}', b"[]", b'"t"', b'{"t": 1}', b"{", b"\xff"])
def test_a_line_that_is_no_entry_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b'{"t": "guard"}\n' + line + b"\n")
    first, second = ledger.read(path)
    assert first == {"t": "guard"}
    assert second["t"] == "damaged"
    assert second["why"].startswith("line 2")


def test_what_a_program_put_in_its_place_leads_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    (tmp_path / "other.jsonl").write_text('{"t": "joined"}\n')
    path.symlink_to(tmp_path / "other.jsonl")
    assert ledger.read(path) == [{"t": "damaged", "why": "a link stands in its place"}]
    path.unlink()
    os.mkfifo(path)
    assert ledger.read(path) == [{"t": "damaged", "why": "it is no file any more"}]


def test_a_replay_that_wrote_none_has_no_entries(tmp_path: Path) -> None:
    assert ledger.read(tmp_path / "none.jsonl") == []
