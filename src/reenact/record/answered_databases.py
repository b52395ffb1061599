"""Whether a replay answers a database of SQLite's, and what the note of its file says then.

A copy stands for a database where its file was kept as it was when the unit began, and nobody else changed it
meanwhile. Elsewhere the unit's own statements stand for it, if all of them were seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from reenact.boundary.inbound import Inbound
from reenact.values.json import Json
from reenact.values.lenient import as_object

if TYPE_CHECKING:
    from reenact.boundary.sqlite_statements import Statement


def is_no_copy(entry: dict[str, Json]) -> bool:
    """Tell of the note of a file that a replay has no copy of what the unit read."""
    return entry.get("mixed") is True or as_object(entry.get("before")).get("read") is True


def statements_of(owner: Inbound | int, path: str) -> list[Statement] | None:
    """Give what a unit asked a database, or the process whose run has this root; None where it is not known whole."""
    known = sys.modules.get("reenact.boundary.sqlite_statements")
    if known is None:
        return None
    return known.statements_of_process(owner, path) if isinstance(owner, int) else known.statements_of(owner, path)


def mark_answered(entries: Iterable[dict[str, Json]]) -> None:
    """Note of the files of a database that a replay answers it, and does not compare them."""
    for entry in entries:
        entry.pop("mixed", None)
        entry["answered"] = True
        if isinstance(before := entry.get("before"), dict):
            entry["before"] = {name: value for name, value in before.items() if name != "read"}
