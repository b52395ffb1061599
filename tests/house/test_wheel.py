from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package_and_only_them(root: Path, files: list[Path], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("reenact-*.whl")
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("reenact/")}
    package = {path.relative_to("src").as_posix() for path in files if path.parts[:2] == ("src", "reenact")}
    assert inside == package | {"reenact/demo/cleanup_agent.py"}
