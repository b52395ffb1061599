"""Making runs of what dead processes left behind, and saying what was found."""

from __future__ import annotations

from dataclasses import dataclass

from reenact.keep.drain import Drain
from reenact.keep.journal_reader import Salvaged, journals
from reenact.keep.leftovers import say
from reenact.stores.directory import DirectoryStore
from reenact.values.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What was found, and what it became."""

    journals: tuple[Salvaged, ...]
    runs: tuple[Run, ...]
    made: int
    """Spans that stand for others whose record was destroyed."""
    damaged: tuple[str, ...]
    """Files that were set aside."""
    living: int
    """Journals that are still written, or that a living process carries."""


def recover(store: DirectoryStore) -> Recovered:
    """Carry the journals whose writers are gone. Raises `InputError` where the store cannot be written."""
    if not store.journals.is_dir():
        return Recovered(journals=(), runs=(), made=0, damaged=(), living=0)
    drain = Drain(store, living=False, report=say)
    runs = drain.finish()
    outcome = drain.done
    return Recovered(
        journals=tuple(outcome.journals),
        runs=tuple(runs),
        made=outcome.made,
        damaged=tuple(outcome.damaged),
        living=len(journals(store.journals)),
    )
