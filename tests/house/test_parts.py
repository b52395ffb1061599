"""What runs the parts of `make test` and `make slow` goes on after a failing one and says so at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MAKEFILE = """
whole:
\t@echo 'SKIPPED [2] tests/a.py:3: no compiler here'
\t@echo 'SKIPPED [1] tests/b.py:9: no compiler here'
\t@echo '===== 5 passed, 3 skipped in 1.20s ====='
failing:
\t@echo '===== 1 failed, 4 passed in 0.50s ====='
\t@exit 1
aside:
\t@echo 'said aside'
.made:
\t@true
"""


@pytest.fixture
def parts(root: Path, tmp_path: Path) -> list[str]:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    return [sys.executable, str(root / ".ci" / "parts.py")]


def run(parts: list[str], folder: Path, *stages: str) -> tuple[int, list[str]]:
    environ = {**os.environ, "MAKE": f"make -f '{folder / 'Makefile'}'"}
    environ.pop("MAKEFLAGS", None)
    done = subprocess.run([*parts, *stages], env=environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_a_failing_part_stops_no_other_and_fails_the_whole(parts: list[str], tmp_path: Path) -> None:
    code, lines = run(parts, tmp_path, "failing whole")
    assert code == 1
    summary = lines[lines.index("summary") + 1 :]
    assert [line.split()[:2] for line in summary[:2]] == [["failing", "FAILED"], ["whole", "ok"]]
    assert summary[0].endswith("1 failed, 4 passed")
    assert summary[1].endswith("5 passed, 3 skipped")
    assert summary[2:] == ["    3 skipped: no compiler here"]


def test_what_runs_aside_is_shown_whole_when_the_stage_ends(parts: list[str], tmp_path: Path) -> None:
    code, lines = run(parts, tmp_path, ".made", "whole | aside failing")
    assert code == 1
    assert lines.index("said aside") > lines.index("===== 5 passed, 3 skipped in 1.20s =====")
    assert ".made" not in " ".join(lines[lines.index("summary") :])


def test_a_stage_waits_for_a_whole_one_before_it(parts: list[str], tmp_path: Path) -> None:
    code, lines = run(parts, tmp_path, "failing", "whole")
    assert code == 1
    assert lines[-1].split()[:3] == ["whole", "not", "run"]
    assert run(parts, tmp_path, "whole")[0] == 0
