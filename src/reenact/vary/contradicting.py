"""Retrieved documents contradict each other: one comes a second time and says the opposite, or other figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.answer import Place
from reenact.values.json import Json
from reenact.values.json_path import with_value
from reenact.values.variation import Group, Variation

_NUMBER = re.compile(r"[0-9]+")


def _vary(subject: Subject, chance: Random) -> Iterator[Variation]:
    texts = [place for place in subject.places if _is_text(place)]
    chance.shuffle(texts)
    for place in texts:
        for new, claim in _opposites(str(place.value)):
            above = next((each for each in subject.places if each.path == place.path[:1]), None)
            whole = subject.places[0]
            if above is not None and isinstance(whole.value, list):
                other = with_value(above.value, place.path[1:], new)
                added: Json = [*whole.value, other]
                yield replace(subject.giving("contradicting", whole, added, f"a further document {claim}"), size=1)
            yield subject.giving("contradicting", place, new, f"the document {claim}")


def _is_text(place: Place) -> bool:
    return isinstance(place.value, str) and " " in place.value.strip() and place.value.lstrip()[:1] not in ("{", "[")


def _opposites(text: str) -> Iterator[tuple[str, str]]:
    if _NUMBER.search(text):
        yield _NUMBER.sub(lambda match: str(int(match[0]) + 1), text), "has other figures"
    yield f"This is no longer true: {text}", "says the opposite"


CONTRADICTING = Perturbation(
    name="contradicting",
    groups=frozenset({Group.CHUNKS}),
    does="retrieved documents contradict each other",
    of_call=_vary,
)
