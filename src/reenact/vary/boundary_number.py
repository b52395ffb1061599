"""A number stands at a boundary: zero, negative, very large, a fraction where there was none."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.json import Json
from reenact.values.variation import Group, Variation


def _vary(subject: Subject, chance: Random) -> Iterator[Variation]:
    candidates = [
        (place, new)
        for place in subject.places
        if isinstance(place.value, int | float) and not isinstance(place.value, bool)
        for new in _boundaries(place.value)
        if new != place.value
    ]
    chance.shuffle(candidates)
    candidates.sort(key=lambda each: each[1] not in (0, 0.0))  # nothing breaks as much as zero
    for place, new in candidates:
        yield subject.giving("boundary number", place, new, _description(new))


def _boundaries(value: float) -> tuple[Json, ...]:
    if isinstance(value, float):
        return (0.0, -value, value * 1000, 1e308, 5e-324, float(round(value)))
    return (0, -value, -1, value * 1000, 2**31, 2**53 + 1, value + 0.5)


def _description(new: Json) -> str:
    return "zero" if new in (0, 0.0) else "a number at a boundary"


BOUNDARY_NUMBER = Perturbation(
    name="boundary number",
    groups=frozenset({Group.TOOLS}),
    does="a number is zero, negative, very large or broken",
    of_call=_vary,
)
