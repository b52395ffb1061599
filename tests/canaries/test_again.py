"""A replay meets the secrets of today: what it asks, misses, reports and writes holds none of them either."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from canaries.later import PATHS, again
from canaries.matrix import Matrix


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_replay_says_and_writes_nothing_of_todays_secrets(tmp_path: Path) -> None:
    matrix = Matrix()
    for off in (False, True):
        matrix.add(again(tmp_path / f"{off}", off=off), off=off)
    sys.stdout.write(matrix.told() + "\n")
    assert matrix.wrong() == []
    assert {cell.path for cell in matrix.cells if cell.id in matrix.off} == set(PATHS)
