"""A working folder and the command line, for tests that speak in whole sentences."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


@dataclass
class Desk:
    """A working folder with a store of its own, and the command line."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    def reenact(self, *words: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run one command."""
        return self.run([sys.executable, "-m", "reenact", *words], environ)

    def run(self, argv: list[str], environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run any program here."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("REENACT_", "OTEL_", "OPENAI_"))}
        settings = {**inherited, **self.environ} if environ is None else environ
        if "REENACT_KEY" not in settings:  # else the recordings of the tests are known by the key of who runs them
            settings = {"XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"], **settings}
        return subprocess.run(
            argv,
            cwd=self.folder,
            env=settings,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def bare(self) -> dict[str, str]:
        """Give what `env -i` with an empty home leaves, and the same user's configuration."""
        home = self.folder / "empty-home"
        home.mkdir(exist_ok=True)
        return {"HOME": str(home), "XDG_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"]}

    def write(self, name: str, source: str) -> str:
        """Write a program and give its name."""
        (self.folder / name).write_text(source)
        return name
