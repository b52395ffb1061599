from __future__ import annotations

import re
from pathlib import Path

REQUIRED = {"LICENSE", "Makefile", "README.md", "constraints.txt", "examples", "pyproject.toml", "src", "tests"}
ALLOWED = REQUIRED | {
    *("CHANGELOG.md", "CONTRIBUTING.md", "collector", "constraints-older.txt", "docs", "otel-collector-config.yaml"),
}
DRAWERS = re.compile(r"_?(utils?|helpers?|common|misc|base|managers?)")


def test_the_top_level_holds_these_names_and_no_others(files: list[Path]) -> None:
    top = {path.parts[0] for path in files if not path.parts[0].startswith(".")}
    assert top - ALLOWED == set(), "a new name at the top of the tree"
    assert REQUIRED - top == set(), "missing at the top of the tree"


def test_the_source_holds_one_package(sources: list[Path], files: list[Path]) -> None:
    assert {path.parts[1] for path in files if path.parts[0] == "src"} == {"reenact"}
    assert Path("src/reenact/py.typed") in files
    assert Path("src/reenact/__init__.py") in sources


def test_no_file_or_folder_is_a_drawer(sources: list[Path]) -> None:
    names = {(path, part) for path in sources for part in (*path.parts[2:-1], path.stem)}
    assert [str(path) for path, part in names if DRAWERS.fullmatch(part)] == []
