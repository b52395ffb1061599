"""A value is of another type: a number as text, one object where a list is due, a list where one object is."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.json import Json, compact
from reenact.values.variation import Group, Variation


def _vary(subject: Subject, chance: Random) -> Iterator[Variation]:
    places = [*subject.places]
    chance.shuffle(places)
    for place in places:
        for new, description in _others(place.value):
            yield subject.giving("wrong type", place, new, description)


def _others(value: Json) -> Iterator[tuple[Json, str]]:
    match value:
        case bool():
            yield ("true" if value else "false"), "a text in place of a truth value"
        case int() | float():
            yield compact(value), "a text in place of a number"
            yield f"{value:,}", "a text with separators in place of a number"
        case str() if value.lstrip()[:1] not in ("{", "["):
            yield [value], "a list in place of a text"
            yield (int(value), "a number in place of a text") if value.isdigit() else ({"value": value}, "an object")
        case list() if len(value) > 0:
            yield value[0], "one entry in place of a list"
            yield {str(number): item for number, item in enumerate(value)}, "an object in place of a list"
        case dict() if not any(key.startswith("$") for key in value):
            yield [value], "a list in place of an object"
            yield compact(value), "JSON in a text in place of an object"
        case _:
            return


WRONG_TYPE = Perturbation(
    name="wrong type", groups=frozenset({Group.TOOLS}), does="a value is of another type", of_call=_vary
)
