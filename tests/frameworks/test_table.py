"""The table of the frameworks names the programs that are there, in the versions that are installed for them."""

from __future__ import annotations

from pathlib import Path

from frameworks import table
from frameworks.rows import PROGRAMS, ROWS


def test_the_table_has_a_line_for_each_program() -> None:
    named = [Path(each.partition("(")[2].rstrip(")")).stem for each in table.lines()]
    assert named == list(ROWS)
    assert set(ROWS) == {path.stem for path in PROGRAMS.glob("*.py")}


def test_the_versions_are_those_of_the_environments() -> None:
    told = {each.split("|")[2].strip() for each in table.lines().values()}
    assert told == {f"{row.framework} {row.wants[row.framework]}" for row in ROWS.values()}
