"""The command line in this process: as fast as a function, with what a shell would see of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner

from reenact.cli.main import reenact
from reenact.errors import ReenactError


@dataclass(frozen=True)
class Done:
    """What came of a command."""

    returncode: int
    stdout: str
    stderr: str


@dataclass
class Inside:
    """A working folder with a store of its own."""

    folder: Path
    patch: pytest.MonkeyPatch
    environ: dict[str, str] = field(default_factory=dict)

    def reenact(self, *words: str) -> Done:
        """Run one command. A defect of ours is raised, as no user may ever see a traceback."""
        self.patch.chdir(self.folder)
        settings = {"REENACT_STORE": str(self.folder / "store"), **self.environ}
        done = CliRunner().invoke(reenact, list(words), env=settings)
        if isinstance(done.exception, ReenactError):
            return Done(done.exception.exit_code, done.stdout, f"{done.stderr}reenact: {done.exception}\n")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)
