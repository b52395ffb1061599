"""Whether `git bisect` is under way: it takes every exit code from 1 to 127 but 125 for a bad commit."""

from __future__ import annotations

import subprocess
from pathlib import Path


def is_bisecting(folder: Path) -> bool:
    """Tell whether a bisection is under way in the repository around `folder`."""
    words = ["git", "-C", str(folder), "rev-parse", "--git-path", "BISECT_START"]
    try:
        process = subprocess.run(words, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return process.returncode == 0 and (folder / process.stdout.strip()).exists()
