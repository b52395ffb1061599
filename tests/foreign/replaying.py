"""Replays a program against a foreign trace by the command line, as a stranger would: no key, a store of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def replayed(path: Path, folder: Path, *words: str) -> tuple[dict[str, Any], str]:
    """Run `python WORDS` in `folder`: what the command says as JSON, and what stood on stderr, the program's output."""
    environ = {**os.environ, "REENACT_STORE": str(folder / "store")}
    environ.pop("OPENAI_API_KEY", None)
    command = [sys.executable, "-m", "reenact", "replay", "--json", str(path), "--", sys.executable, *words]
    done = subprocess.run(command, check=False, cwd=folder, env=environ, capture_output=True, text=True, timeout=100)
    assert done.returncode in (0, 1), done.stderr
    result = json.loads(done.stdout)
    assert done.returncode == (0 if result["result"] == "same" else 1)
    return result, done.stderr
