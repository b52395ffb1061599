from __future__ import annotations

from pathlib import Path

import pytest

from reenact.testing.project import folder_of_tests, root_of


@pytest.mark.parametrize("tests", ["tests", "test", "tests/agents"])
def test_a_project_without_a_mark_is_the_folder_that_holds_its_tests(tmp_path: Path, tests: str) -> None:
    folder = tmp_path / "desk" / tests
    (folder / "recordings").mkdir(parents=True)
    file = folder / "test_desk.py"
    file.write_text("")
    assert {root_of(file), root_of(folder), root_of(folder / "recordings")} == {tmp_path / "desk"}
    assert root_of(tmp_path / "desk") == tmp_path / "desk"
    assert folder_of_tests(tmp_path / "desk") == tmp_path / "desk" / tests.partition("/")[0]


def test_a_mark_goes_before_the_name_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "packages" / "desk" / "tests").mkdir(parents=True)
    assert root_of(tmp_path / "packages" / "desk" / "tests") == tmp_path
