"""Whoever silences a checker says why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SILENCE = re.compile(r"#\s*(?:noqa(?::\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*)?|(?:type|pyright): ignore(?:\[[^\]]*\])?)")
REASON = re.compile(r"\s+(?:-{1,2}|#)\s+\S|\s*#\s*(?:noqa|type|pyright)")


def silences(path: Path) -> list[str]:
    """Give the lines that silence a checker and say nothing of why."""
    found: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        marks = list(SILENCE.finditer(line))
        if marks and not REASON.match(line[marks[-1].end() :]):
            found.append(f"{path.name}:{number}: {line.strip()}")
    return found


def test_every_silence_has_its_reason(root: Path) -> None:
    assert [each for path in sorted((root / "src").rglob("*.py")) for each in silences(path)] == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("x = 1  # noqa: S608 - names are ours", True),
        ("x = 1  # noqa: BLE001 -- told to the client", True),
        ("x = f()  # type: ignore[misc]  # wrapt is untyped", True),
        ("x = f()  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - as above", True),
        ("x = f()  # type: ignore[misc]", False),
        ("x = 1  # noqa: S608", False),
        ("x = 1  # noqa", False),
    ],
)
def test_a_reason_is_told_from_none(tmp_path: Path, line: str, *, told: bool) -> None:
    (tmp_path / "x.py").write_text(line)
    assert (silences(tmp_path / "x.py") == []) is told


def test_no_wrapper_asks_for_a_frame_that_may_not_be_there(root: Path, sources: list[Path]) -> None:
    """Native code on a thread of its own calls with no frame of Python's below: see `boundary.tape`."""
    wrappers = [path for path in sources if path.parts[2] == "integrations"]
    lines = [(path, line) for path in wrappers for line in (root / path).read_text("utf-8").splitlines()]
    asked = [f"{path}: {line.strip()}" for path, line in lines if re.search(r"_getframe\([1-9]\)(?!\.f_back)", line)]
    assert len(wrappers) > 40
    assert asked == []
