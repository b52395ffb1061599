"""Every command of the front page, run as it stands there, prints what stands there below it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from desk import EXAMPLES, Desk

README = Path(__file__).resolve().parents[2] / "README.md"
VOLATILE = {
    r"\b[0-9a-f]{12}\b": "ID",
    r"\d{4}-\d\d-\d\dT[\d:.]+Z": "WHEN",
    r"\b\d+(?:\.\d+)? (?:ms|s)\b": "TOOK",
}
CUT = "…"


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Give each command of the console blocks, with the lines below it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line:
                found[-1][1].append(line)
    return found


def settled(text: str) -> str:
    for pattern, word in VOLATILE.items():
        text = re.sub(pattern, word, text)
    return text


def stands(shown: str, printed: str) -> bool:
    """Tell whether a line is printed as it is shown; a dot triple stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, settled(shown).split(CUT))), settled(printed)) is not None


def missing(shown: list[str], printed: list[str]) -> str | None:
    """Name the first shown line that is not printed next; a line of a dot triple alone stands for any lines."""
    at, skips = 0, False
    for line in shown:
        if line == CUT:
            skips = True
            continue
        while skips and at < len(printed) and not stands(line, printed[at]):
            at += 1
        if at >= len(printed) or not stands(line, printed[at]):
            return line
        at, skips = at + 1, False
    return None


@pytest.mark.slow
def test_the_commands_of_the_front_page_print_what_it_says(desk: Desk) -> None:
    shutil.copytree(EXAMPLES, desk.folder / "examples")
    ran = commands(README.read_text(encoding="utf-8"))
    assert len(ran) == 4
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**desk.settings(), "PATH": path, "COLUMNS": "100"}
    for command, shown in ran:
        done = desk.run(shlex.split(command), environ)
        assert done.returncode == 0, (command, done.stderr)
        printed = [each for each in (done.stdout + done.stderr).splitlines() if each]
        assert missing(shown, printed) is None, (command, missing(shown, printed), printed)


@pytest.mark.parametrize(
    ("shown", "printed", "lost"),
    [
        (["a", CUT, "c"], ["a", "b", "c"], None),
        (["a", "c"], ["a", "b", "c"], "c"),
        (["run 0123456789ab  12 ms"], ["run ba9876543210  3.4 s"], None),
        (["x … z"], ["x y w"], "x … z"),
        ([CUT, "d"], ["a"], "d"),
    ],
)
def test_what_is_shown_and_not_printed_is_seen(shown: list[str], printed: list[str], lost: str | None) -> None:
    assert missing(shown, printed) == lost
