"""Every command of the front page, run as it stands there, prints what stands there below it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

import documents
from desk import EXAMPLES, Desk
from documents import CUT, missing


@pytest.mark.slow
def test_the_commands_of_the_front_page_print_what_it_says(desk: Desk) -> None:
    shutil.copytree(EXAMPLES, desk.folder / "examples")
    ran = [command for command in documents.commands("README.md") if command.shown]
    assert len(ran) == 4
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**desk.settings(), "PATH": path, "COLUMNS": "100"}
    for command in ran:
        done = desk.run(shlex.split(command.text), environ)
        assert done.returncode == 0, (command, done.stderr)
        printed = [each for each in (done.stdout + done.stderr).splitlines() if each]
        lost = missing([*command.shown], printed)
        assert lost is None, (command.text, lost, printed)


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
