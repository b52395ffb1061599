from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

MADE = {".git", "__pycache__", "build", "dist", ".pytest_cache", ".ruff_cache", ".import_linter_cache", ".hypothesis"}


@pytest.fixture(scope="session")
def files(root: Path) -> list[Path]:
    """Every file of the project, relative to its top: what git knows or would add, or all that make did not make."""
    if (root / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        try:
            listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return walk(root)
        names = sorted(os.fsdecode(name) for name in listed.split(b"\0") if name)
        return [Path(name) for name in names if (root / name).is_file()]
    return walk(root)


def walk(root: Path) -> list[Path]:
    found: list[Path] = []
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name not in MADE and not name.startswith(".venv")]
        found += [(Path(folder) / name).relative_to(root) for name in names]
    return sorted(found)


@pytest.fixture(scope="session")
def sources(files: list[Path]) -> list[Path]:
    """Every Python file of the package, relative to the top."""
    found = [path for path in files if path.suffix == ".py" and path.parts[:2] == ("src", "reenact")]
    assert found, "the package has no source files"
    return found
