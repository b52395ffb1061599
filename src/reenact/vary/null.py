"""A value is null: the whole answer, or one field of it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.difference import Absent
from reenact.values.variation import Group, Variation


def _vary(subject: Subject, chance: Random) -> Iterator[Variation]:
    if isinstance(subject.value, Absent):
        return
    whole, *inner = subject.places
    chance.shuffle(inner)
    for place in [*inner[:1], whole, *inner[1:]]:
        if place.value is not None:
            yield subject.giving("null", place, None, "null", fails=not place.path)


NULL = Perturbation(name="null", groups=frozenset({Group.TOOLS, Group.CHUNKS}), does="a value is null", of_call=_vary)
