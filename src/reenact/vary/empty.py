"""A text, list or object is empty: there is an answer, and nothing in it."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.json import Json
from reenact.values.variation import Group, Variation


def _vary(subject: Subject, chance: Random) -> Iterator[Variation]:
    whole, inner = subject.places[:1], [*subject.places[1:]]
    chance.shuffle(inner)
    for place in [*whole, *inner]:
        empty = _emptied(place.value)
        if empty is not None and empty != place.value:
            yield subject.giving("empty", place, empty, "empty", fails=not place.path)


def _emptied(value: Json) -> Json:
    if isinstance(value, str):
        return {"[": "[]", "{": "{}"}.get(value.lstrip()[:1], "")
    if isinstance(value, list):
        return []
    if isinstance(value, dict):
        return None if any(key.startswith("$") for key in value) else {}
    return None


EMPTY = Perturbation(
    name="empty", groups=frozenset({Group.TOOLS, Group.CHUNKS}), does="a text, list or object is empty", of_call=_vary
)
