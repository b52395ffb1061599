"""A fix that tells a database something else is judged by what the program gives out, as far as that can be known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg")

CHARGED = 'stdout contains "charged 1170"'
WRITTEN = 'every database "INSERT orders" has parameters[0] = 1170'
JUDGED = {
    "the bug": ("recording", (), CHARGED, "reproduced", "recorded"),
    "another value": ("recording", ("fixed",), CHARGED, "fixed", "writes"),
    "another value, asserted on": ("recording", ("fixed",), WRITTEN, "fixed", "recorded"),
    "no write": ("recording", ("guarded",), 'stdout contains "refused"', "fixed", "writes"),
    "read again": ("read", ("read", "fixed"), CHARGED, "unjudged", "recorded"),
}
"""The recording, the words of the program, the assertion, and the word and the basis of the judgement."""


def replayed(root: Path, folder: Path, name: str, words: tuple[str, ...], *more: str) -> dict[str, Any]:
    golden = root / "tests" / "golden" / "databases" / "orders"
    command = [sys.executable, "-m", "reenact", "replay", str(golden / f"{name}.jsonl"), "--json", *more, "--"]
    command += [sys.executable, str(golden / "program.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False, timeout=120)
    return json.loads(done.stdout[done.stdout.index('{"') :])


@pytest.mark.sample(6)
@pytest.mark.parametrize("case", JUDGED)
def test_a_fix_of_what_is_written(case: str, root: Path, tmp_path: Path) -> None:
    name, words, assertion, word, basis = JUDGED[case]
    told = replayed(root, tmp_path, name, words, "--assert", assertion)
    assert (told["check"]["word"], told["check"]["basis"]) == (word, basis), told["check"]["why"]
    assert (told["live"], told["refused"]) == (0, [])
    assert ("database SELECT orders" in told["check"]["why"]) is (name == "read")
