"""Where a project begins, and where it keeps its tests."""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from reenact.disk.private import read_regular
from reenact.values.lenient import as_list, as_object, as_text

_MARKS = ("pyproject.toml", "setup.cfg", "setup.py", "pytest.ini", "tox.ini", ".git")
_TESTS = ("tests", "test")


def root_of(place: Path) -> Path:
    """Find the project that `place` (a folder, or a file in one) belongs to.

    That is the nearest folder at or above it with a `pyproject.toml`, a `setup.cfg`, a `.git` or the like; else the
    folder that holds the nearest `tests` or `test` at or above it; else the folder itself. The same tree gives the same
    answer wherever it is checked out.
    """
    folder = place if place.is_dir() else place.parent
    folder = folder.resolve()
    above = (folder, *folder.parents)
    marked = next((each for each in above if any((each / mark).exists() for mark in _MARKS)), None)
    tests = next((each.parent for each in above if each.name in _TESTS), None)
    return marked or tests or folder


def folder_of_tests(root: Path) -> Path:
    """Say where a project keeps its tests: what its pytest is told, else `tests` or `test`, else a new `tests`."""
    for folder in _test_paths(root):
        if (root / folder).is_dir():
            return root / folder
    return next((root / name for name in _TESTS if (root / name).is_dir()), root / _TESTS[0])


def _test_paths(root: Path) -> Iterator[str]:
    """Read pytest's `testpaths`. A file that cannot be read says nothing."""
    try:
        tool = as_object(cast("Any", tomllib.loads(read_regular(root / "pyproject.toml").decode())).get("tool"))
        asked = as_object(tool.get("pytest"))
        for section_fields in (asked, as_object(asked.get("ini_options"))):
            paths = section_fields.get("testpaths")
            yield from (as_text(paths).split() if isinstance(paths, str) else map(as_text, as_list(paths)))
    except (OSError, ValueError):
        pass
    for name, section in (("pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        read = configparser.ConfigParser(interpolation=None)
        try:
            read.read(root / name)
            yield from read.get(section, "testpaths", fallback="").split()
        except (OSError, ValueError, configparser.Error):
            continue
