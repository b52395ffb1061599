"""A list of candidates comes in another order, with one twice, or with one less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.answer import Place
from reenact.values.json import Json
from reenact.values.json_path import entries
from reenact.values.variation import Group, Variation

_ALL = frozenset({Group.TOOLS, Group.CHUNKS})


def _lists(subject: Subject, least: int) -> list[tuple[Place, list[Json]]]:
    pairs = [(place, place.value) for place in subject.places]
    return [(place, items) for place, items in pairs if isinstance(items, list) and len(entries(items)) >= least]


def _reordered(subject: Subject, chance: Random) -> Iterator[Variation]:
    for place, items in _lists(subject, 2):
        swaps = [
            replace(
                subject.giving("reordered", place, _swapped(items, at), f"entries {at} and {at + 1} change places"),
                size=2,
                marks=(),
            )
            for at in range(min(len(items) - 1, 8))
            if items[at] != items[at + 1]
        ]
        shuffled = [*items]
        chance.shuffle(shuffled)
        for new, order in ((items[::-1], "in the reverse order"), (shuffled, "in another order")):
            if new != items:
                whole = subject.giving("reordered", place, new, order)
                yield replace(whole, marks=(), smaller=tuple(swaps), size=max(3, whole.size))


def _swapped(items: list[Json], at: int) -> list[Json]:
    return [*items[:at], items[at + 1], items[at], *items[at + 2 :]]


def _duplicated(subject: Subject, chance: Random) -> Iterator[Variation]:
    for place, items in _lists(subject, 1):
        at = chance.randrange(len(items))
        once = replace(
            subject.giving("duplicated", place, [*items, items[at]], f"entry {at} comes twice"), size=1, marks=()
        )
        yield once
        many = subject.giving("duplicated", place, [*items, *[items[at]] * 200], f"entry {at} comes 201 times")
        yield replace(many, size=200, marks=(), smaller=(once,))


def _dropped(subject: Subject, chance: Random) -> Iterator[Variation]:
    for place, items in _lists(subject, 2):
        order = [*range(len(items))]
        chance.shuffle(order)
        for at in order:
            new: Json = [*items[:at], *items[at + 1 :]]
            yield replace(subject.giving("dropped", place, new, f"entry {at} is left out"), size=1, marks=())


REORDERED = Perturbation(name="reordered", groups=_ALL, does="a list comes in another order", of_call=_reordered)
DUPLICATED = Perturbation(name="duplicated", groups=_ALL, does="an entry comes twice", of_call=_duplicated)
DROPPED = Perturbation(name="dropped", groups=_ALL, does="an entry of a list is left out", of_call=_dropped)
