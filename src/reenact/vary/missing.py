"""A field is missing."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.answer import with_answer, without_place
from reenact.values.difference import Absent
from reenact.values.variation import Group, Variation


def _vary(subject: Subject, chance: Random) -> Iterator[Variation]:
    if isinstance(subject.value, Absent):
        return
    fields = [place for place in subject.places if isinstance(place.name, str) and place.name]
    chance.shuffle(fields)
    for place in fields:
        left = without_place(subject.value, place.path)
        if not isinstance(left, Absent):
            outcome = with_answer(subject.node.outcome, left)
            yield subject.answering("missing", outcome, "missing", place=place, size=place.leaves)


MISSING = Perturbation(
    name="missing", groups=frozenset({Group.TOOLS, Group.CHUNKS}), does="a field is missing", of_call=_vary
)
