"""Every command of the documents, run as it stands there, prints what stands there below it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import documents
from desk import Desk
from stories import RUN, not_run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("page", "start"), RUN)
def test_the_commands_of_a_block_print_what_it_says(desk: Desk, page: str, start: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with RUN[page, start](desk) as words:
        for command in documents.block(page, start):
            if not_run(page, command.text):
                continue
            text, *shown = (_with(line, words) for line in (command.text, *command.shown))
            done = subprocess.run(
                ["sh", "-c", f"{{ {text}\n}} 2>&1"],
                cwd=desk.folder,
                env={**desk.settings(), "PATH": path, "COLUMNS": "100"},
                capture_output=True,
                text=True,
                timeout=500,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            printed = [each for each in done.stdout.replace(f"{desk.folder}/", "").splitlines() if each]
            assert done.returncode in ((0, 1, 3) if command.shown else (0,)), (text, printed)
            assert "Traceback" not in done.stdout, printed
            lost = documents.missing(shown, printed)
            assert lost is None, (text, lost, printed)


def _with(line: str, words: Mapping[str, str]) -> str:
    """Give a line with what stands for some words in this scene."""
    for word, stands_for in words.items():
        line = line.replace(word, stands_for)
    return line
