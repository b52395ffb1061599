"""Small disks of tests: file systems of their own, which can be full or read only."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

_OUTSIDE = Path("/mnt")
"""Where a disk hangs that is in nobody's way.

A folder that holds a mount is divided in the sealed world of every replay that begins meanwhile. In the folder for
temporary files that is a copy for each of its entries.
"""


@contextmanager
def small_disk(options: str) -> Generator[Path]:
    """Mount a disk in memory; skip the test where that cannot be done: it needs root and a system that lets it."""
    mount = shutil.which("mount")
    where = _OUTSIDE if os.access(_OUTSIDE, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="reenact-tests-", dir=where))
    try:
        command = [mount or "mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("no disk can be mounted here (this needs root)")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=False, stderr=subprocess.DEVNULL)
    finally:
        folder.rmdir()
