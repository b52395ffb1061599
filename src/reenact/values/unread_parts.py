"""What a file holds that is not read, gathered while the rest of it is, and told in a few notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

SPANS: Final = "spans without a valid trace and span id, not read"
PARENTS: Final = "ids of parents that are no ids, left out"
LINKS: Final = "links without a valid trace and span id, left out"
NUMBERS: Final = "spans with a number that is none, not read"
LOGS: Final = "log events with a number that is none, not read"
LOG_IDS: Final = "ids in log events that are no ids, left out"
_MOST_SHOWN: Final = 3

Told: TypeAlias = Callable[[str, str], None]
"""Told of one thing that is not read: what it is, such as `SPANS`, and why."""


def lost_spans(notes: Iterable[str]) -> list[str]:
    """Give those of some notes that tell of spans which were not read: any of them may be a call."""
    return [note for note in notes if note.startswith((SPANS, NUMBERS))]


class Unread:
    """Counts what is not read of one file."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        """Tell whether there is anything that was not read."""
        return bool(self._counts)

    def at(self, place: str) -> Told:
        """Give what notes things at a place in the file, such as `line 3`."""

        def note(what: str, why: str) -> None:
            self._counts[what] = self._counts.get(what, 0) + 1
            examples = self._examples.setdefault(what, [])
            if len(examples) < _MOST_SHOWN:
                examples.append(f"{place}: {why}")

        return note

    @property
    def notes(self) -> list[str]:
        """One line for each kind of thing: how many, and the first places."""
        return [
            f"{what}: {count} ({self._name} {'; '.join(self._examples[what])}{'; …' if count > _MOST_SHOWN else ''})"
            for what, count in self._counts.items()
        ]
