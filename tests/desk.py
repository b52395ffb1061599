"""A working folder and the command line, for tests that speak in whole sentences."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import in_process
import warm_python
from unchanged import Unchanged

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
_OURS = ("REENACT_", "OTEL_", "OPENAI_", "PYTHON")
"""What the caller of the tests may have set for Python or for an agent is none of the tests' business."""
_PROGRAMS = {"--all": (6, 6, 6), "--repeat": (0,) * 6, "fuzz": (0,) * 10, "promote": (0, 0), "collect": ()}
"""How many programs a command may start as forks, and how many each of them may."""


@dataclass
class Desk:
    """A working folder with a store of its own, and the command line.

    A command that only reads runs in this process, one that starts a program in a fork of a warm interpreter, as does
    the program that it starts. With `cold` each is a new process: where the start is what is tested, or the process.
    """

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    cold: bool = False
    limit_s: float = warm_python.LIMIT_S
    """How long a command may take."""
    unchanged: Unchanged = field(init=False)

    def __post_init__(self) -> None:
        self.unchanged = Unchanged(self.folder)

    def reenact(
        self, *words: str, environ: dict[str, str] | None = None, cold: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Run one command, under the law of `unchanged`."""
        done = self._command(words, environ, cold=cold)
        self.unchanged.heard(words, self.settings(environ), done)
        return done

    def _command(
        self, words: tuple[str, ...], environ: dict[str, str] | None, *, cold: bool
    ) -> subprocess.CompletedProcess[str]:
        settings, cold = self.settings(environ), cold or self.cold
        if not cold and in_process.fits(words, settings):
            return in_process.run(words, self.folder, settings)
        argv = [sys.executable, "-m", "reenact", *words]
        if cold:
            return self.run(argv, environ)
        programs = next((number for word, number in _PROGRAMS.items() if word in words), (0,))
        return warm_python.completed(argv, self.folder, settings, programs=programs, limit_s=self.limit_s)

    def run(self, argv: list[str], environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run any program here, in a new process; pytest in a fork, too, where this is not `cold`."""
        if argv[1:3] == ["-m", "pytest"] and not self.cold:
            return warm_python.completed(
                argv, self.folder, self.settings(environ), programs=(0, 0), limit_s=self.limit_s
            )
        return subprocess.run(
            argv,
            cwd=self.folder,
            env=self.settings(environ),
            capture_output=True,
            text=True,
            timeout=self.limit_s,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def settings(self, environ: dict[str, str] | None = None) -> dict[str, str]:
        """Give the environment of a command: `environ`, else the tests' own with what is set here."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        settings = {**inherited, **self.environ} if environ is None else environ
        if "REENACT_KEY" in settings:
            return settings
        # Else the recordings of the tests would be known by the key of who runs them.
        return {"XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"], **settings}

    def bare(self) -> dict[str, str]:
        """Give what `env -i` with an empty home leaves, and the same user's configuration."""
        home = self.folder / "empty-home"
        home.mkdir(exist_ok=True)
        return {"HOME": str(home), "XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"]}

    def write(self, name: str, source: str) -> str:
        """Write a program and give its name."""
        (self.folder / name).write_text(source)
        return name
