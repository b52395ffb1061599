"""Every command of the documents, run as it stands there, prints what stands there below it."""

from __future__ import annotations

import os
import sys
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
            text = command.text
            for word, stands_for in words.items():
                text = text.replace(word, stands_for)
            done = desk.run(["sh", "-c", f"{{ {text}\n}} 2>&1"], {**desk.settings(), "PATH": path, "COLUMNS": "100"})
            printed = [each for each in done.stdout.replace(f"{desk.folder}/", "").splitlines() if each]
            assert done.returncode in ((0, 1, 3) if command.shown else (0,)), (text, printed)
            assert "Traceback" not in done.stdout, printed
            lost = documents.missing([*command.shown], printed)
            assert lost is None, (text, lost, printed)
