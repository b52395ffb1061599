"""Which statements set a connection up."""

from __future__ import annotations

import pytest

from reenact.values.query import SETS


@pytest.mark.parametrize(
    ("text", "sets"),
    [
        ("SET search_path TO shop", True),
        (" set\ttimezone = 'UTC'", True),
        ("SELECT pg_catalog.set_config('jit', 'off', false)", True),
        ("SET", False),  # Redis keeps a value by it
        ("SETEX", False),
        ("SELECT 1", False),
        ("settle", False),
    ],
)
def test_a_statement_that_sets_a_connection_up_is_told_by_how_it_begins(text: str, *, sets: bool) -> None:
    assert bool(SETS.match(text)) is sets
