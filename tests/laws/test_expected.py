"""What a golden case says: nothing passes by itself where nothing is said yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_cases import expected


def test_what_nobody_wrote_yet_is_written_and_fails(tmp_path: Path) -> None:
    path = tmp_path / "read.json"
    with pytest.raises(pytest.fail.Exception, match="read it"):
        expected(path, {"b": [1], "a": "ü"})
    assert expected(path, {"b": [2]}) == {"a": "ü", "b": [1]}
