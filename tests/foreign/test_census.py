"""Every file of real data: read by the same way as the commands, none crashes, and what gives nothing says why."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from foreign.census import Row, counted, files, table


def told(rows: list[Row], folder: Path, record_property: object) -> None:
    totals: Counter[str] = Counter()
    for row in rows:
        totals.update(row.calls)
    figure = (
        f"census of {folder.name}: {len(rows)} files, {sum(row.runs for row in rows)} runs, {totals['llm']} llm, "
        f"{totals['tool']} tool, {totals['http']} http, {sum(row.messages for row in rows)} messages; "
        f"{sum(row.is_empty for row in rows)} files without a call, each with its reason; 0 crashes"
    )
    record_property("figure", figure)  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["traces", "cassettes"])
def test_no_file_crashes_and_every_empty_one_is_explained(
    name: str, shared_data: Path, record_property: pytest.FixtureRequest
) -> None:
    rows = [counted(path) for path in files(shared_data / name)]
    assert rows
    lines = "\n".join(table(rows, shared_data / name))
    assert not [row.crash for row in rows if row.crash], lines
    assert not [row.path for row in rows if row.is_empty and not row.why], lines
    assert any(not row.is_empty for row in rows), lines
    told(rows, shared_data / name, record_property)


@pytest.mark.slow
def test_a_name_says_nothing(shared_data: Path, tmp_path: Path) -> None:
    """A file is known by what it holds: under another name it gives the same."""
    for path in files(shared_data / "cassettes")[::12]:
        other = tmp_path / "renamed"
        shutil.copyfile(path, other)
        one, two = counted(path), counted(other)
        assert (one.runs, one.calls, one.messages, one.verdicts) == (two.runs, two.calls, two.messages, two.verdicts)
