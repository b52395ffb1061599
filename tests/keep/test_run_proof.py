"""The key of a recording lies in a folder of its own, which goes with its maker, however that one ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from reenact.keep.run_proof import handed_on
from reenact.values.origin import VARIABLE

MAKER = """
import sys
from reenact.keep.run_proof import handed_on
with handed_on("ab" * 8, print) as told:
    print(*told.values(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("REENACT_KEY", "of this test")
    return tmp_path


def maker() -> tuple[subprocess.Popen[str], Path]:
    """Start a process that makes a folder and stays; the folder looks as if it had been there for long."""
    command = [sys.executable, "-c", MAKER]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stdout is not None
    made = Path(process.stdout.readline().strip())
    os.utime(made.parent, (1, 1))
    return process, made


def test_what_a_killed_process_left_is_taken_away_and_what_a_living_one_needs_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    living, needed = maker()
    killed, left = maker()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert left.exists()
    monkeypatch.setenv("REENACT_KEY", "of this test")
    with handed_on("cd" * 8, print) as told:
        assert Path(told[VARIABLE]).exists()
        assert not left.parent.exists()
        assert needed.exists()
    living.communicate("")
    assert living.returncode == 0
    assert [*folder.iterdir()] == []
