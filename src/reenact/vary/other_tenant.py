"""An id is somebody else's: one of the same form that the run holds in another place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.variation import Group, Variation

_DIGITS, _LETTERS = re.compile(r"[0-9]+"), re.compile(r"[A-Za-z]+")


def _vary(subject: Subject, chance: Random) -> Iterator[Variation]:
    places = [place for place in subject.places if isinstance(place.value, str)]
    chance.shuffle(places)
    for place in places:
        own = str(place.value)
        others = sorted(
            {
                text
                for field, text in subject.others
                if text != own and (field == place.field or _form(text) == _form(own)) and _form(text)
            }
        )
        chance.shuffle(others)
        for other in others[:3]:
            yield subject.giving("other tenant", place, other, "somebody else's id, seen elsewhere in the run")


def _form(text: str) -> str:
    """Give what an id looks like: `u-17` and `u-9` do alike. Nothing for what is no id."""
    if len(text) > 80 or not any(letter.isdigit() for letter in text) or " " in text:
        return ""
    prefix = text if not text[:1].isalpha() else _LETTERS.match(text)[0]  # type: ignore[index] - it begins with one
    return f"{prefix if text[:1].isalpha() else ''}|{_LETTERS.sub('a', _DIGITS.sub('9', text))}"


OTHER_TENANT = Perturbation(
    name="other tenant",
    groups=frozenset({Group.TOOLS, Group.CHUNKS}),
    does="an id is somebody else's",
    of_call=_vary,
)
