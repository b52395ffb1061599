"""At its very end a recorded program says what it says alone: nothing of ours, and nothing of its own otherwise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BOOTSTRAP = HERE.parents[1] / "src" / "reenact" / "bootstrap"
PLACES = [
    *("global", "a package of the recorder's"),
    *(
        pytest.param(place, marks=pytest.mark.slow)
        for place in ("cycle", "builtins", "sys", "os", "atexit", "a codec", "excepthook", "an audit hook", "its class")
    ),
]


def live(place: str, path: Path, store: Path | None, *words: str) -> tuple[int, str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_"))}
    if store is not None:
        plain |= {"REENACT_RECORD": "1", "REENACT_STORE": str(store), "PYTHONPATH": str(BOOTSTRAP)}
    command = [sys.executable, str(HERE / "late.py"), place, str(path), *words]
    done = subprocess.run(command, env=plain, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, re.sub("0x[0-9a-f]+", "0x", done.stderr)


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", PLACES)
def test_it_ends_as_it_does_alone(tmp_path: Path, place: str) -> None:
    alone = live(place, tmp_path / "written", None, "remove")
    recorded = live(place, tmp_path / "written", tmp_path / "store", "remove")
    assert recorded == alone
    assert list((tmp_path / "store" / "journal").iterdir())


@pytest.mark.parametrize("place", ["global", pytest.param("a package of the recorder's", marks=pytest.mark.slow)])
def test_a_replay_lets_nothing_be_written_at_the_end_either(tmp_path: Path, place: str) -> None:
    environ = {**os.environ, "REENACT_STORE": str(tmp_path / "store")}
    program = [sys.executable, str(HERE / "late.py"), place, str(tmp_path / "written")]
    subprocess.run(
        [sys.executable, "-m", "reenact", "run", "-q", "--", *program], env=environ, check=True, capture_output=True
    )
    assert (tmp_path / "written").exists()
    (tmp_path / "written").unlink()
    words = [sys.executable, "-m", "reenact", "replay", "last"]
    done = subprocess.run(words, env=environ, check=False, capture_output=True, text=True)
    assert not (tmp_path / "written").exists(), done.stderr
    assert "in audit hook" not in done.stderr
