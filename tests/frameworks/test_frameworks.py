"""Programs on frameworks of agents, recorded and replayed as a user does, and looked at from outside."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import pytest

from frameworks import table
from frameworks.rows import ROWS, Row
from frameworks.trial import tried

REPLAYS = int(os.environ.get("REPLAYS", "3"))


def is_here(row: Row) -> bool:
    """Tell whether this environment is the one in which a program is tried."""
    try:
        return all(version(name) == wanted for name, wanted in row.wants.items())
    except PackageNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("program", [name for name, row in ROWS.items() if is_here(row)])
def test_a_program_on_a_framework_replays_as_it_was(
    program: str, record_property: Callable[[str, object], None]
) -> None:
    row = ROWS[program]
    trial = tried(row, REPLAYS)
    record_property(table.PROPERTY, table.line(row, trial))
    why = "\n".join(each.why for each in trial.processes)
    assert trial.is_untouched, f"a replay changed a file of the program's folder\n{why}"
    if trial.verdicts == ["exact"]:
        assert trial.results == ["same"], why
    if "same" in trial.results:
        assert trial.is_identical, f"a replay says same, and printed something else\n{why}"
    assert (trial.made, trial.ran) == (row.llm, row.tools), why
    assert trial.verdicts == [row.verdict], why
    assert trial.results == [row.result], why
    assert (trial.llm, trial.tools) == (trial.made, trial.ran), why
    if row.structure:
        assert trial.structure in {row.structure, row.elsewhere or row.structure}
        assert trial.outside == 0
