"""Running a program in a cell (Landlock, a filter of system calls, a copy of its folder) as the launcher does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reenact.seal import launch

LIMIT_S = 60


class Cells:
    """Makes cells, each in a folder of its own."""

    def __init__(self) -> None:
        self.folders: list[Path] = []

    def run(
        self, argv: list[str], cwd: Path, environ: dict[str, str] | None = None, **more: Any
    ) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        """Run a program in `cwd`; give how it ended, and what is told of the world, with `upper`, where the copy lies.

        `levels` names what is tried, `prefix` stands before the launcher's command, `owner` owns the copy's folder,
        `told` is the path of the ledger.
        """
        upper = Path(tempfile.mkdtemp(prefix="reenact-cell-"))  # as long as in a replay, whose copies are cleared away
        self.folders.append(upper)
        order, answer = upper / "order.json", upper / "answer.jsonl"
        levels, prefix = more.pop("levels", ("cell",)), more.pop("prefix", [])
        owner = more.pop("owner", os.geteuid())
        ledger = {"told": more.pop("told")} if "told" in more else {}
        given = {level: {"upper": str(upper), **more} for level in levels}
        order.write_text(json.dumps({"argv": argv, "cwd": str(cwd), "answer": str(answer), **ledger, **given}))
        for path in (upper, order):
            os.chown(path, owner, -1)
        done = subprocess.run(
            [*prefix, *launch.command(order)],
            env={**os.environ, **(environ or {})},
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        told: dict[str, Any] = {"upper": upper}
        for line in answer.read_text().splitlines():
            told |= json.loads(line)
        if "Landlock" in str(told.get("refused")):
            pytest.skip(f"no cell can be made here: {told['refused']}")
        return done, told

    def copy(self, told: dict[str, Any], folder: Path) -> Path:
        """Give where the copy of a folder lies."""
        return Path(told["upper"], "r", folder.name)


def cells() -> Iterator[Cells]:
    """Make cells, and take away what is left of them."""
    made = Cells()
    yield made
    for folder in made.folders:
        subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=False, capture_output=True)
        shutil.rmtree(folder)
