"""A ledger is written by the program's own process: what it holds is read with suspicion."""

from __future__ import annotations

from pathlib import Path

import pytest

from reenact.errors import InputError
from reenact.replay import ledger


@pytest.mark.parametrize("line", [b'{"refused": "so"}', b"[]", b'"t"', b'{"t": 1}', b"{", b"\xff"])
def test_a_line_that_is_no_entry_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b'{"t": "guard"}\n' + line + b"\n")
    with pytest.raises(InputError, match="the ledger is damaged") as raised:
        ledger.read(path)
    assert f"{path}:2" in str(raised.value)


def test_a_replay_that_wrote_none_has_no_entries(tmp_path: Path) -> None:
    assert ledger.read(tmp_path / "none.jsonl") == []
