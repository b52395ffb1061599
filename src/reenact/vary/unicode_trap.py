"""A text holds what terminals, logs and encoders stumble over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.call import FunctionCall
from reenact.values.json import Json
from reenact.values.variation import Group, Variation

_TRAPS = (
    ("\x00", "a zero byte"),
    ("\u202e", "a right-to-left override"),
    ("\u200b", "a space of no width"),
    ("\x1b[2J", "a terminal escape"),
    ("e\u0301", "a letter and its accent apart"),
    ("\U0001f469\u200d\U0001f680", "an emoji of several code points"),
    ("\ufffd", "a replacement character"),
    ("\r\n", "a line break"),
    ("'\"<b>{{1}}", "quotes and markup"),
)
_MOST = 10
"""So many are tried on one call."""
_LONE = "\ud800"


def _vary(subject: Subject, chance: Random) -> Iterator[Variation]:
    places = [place for place in subject.places if isinstance(place.value, str)]
    pairs = [(place, text, description) for place in places for text, description in _TRAPS]
    chance.shuffle(pairs)
    del pairs[_MOST:]
    for place in places[:1] if isinstance(subject.node.call.request, FunctionCall) else ():
        text = f"{place.value}{_LONE}".encode("unicode_escape").decode()
        trap: Json = {"$str": text}
        yield replace(subject.giving("unicode trap", place, trap, "half of a surrogate pair"), size=1)
    for place, text, description in pairs:
        yield subject.giving("unicode trap", place, f"{place.value}{text}", description)
    for place in places[:2]:
        long = f"{place.value} " * (20_000 // (len(str(place.value)) + 1))
        yield replace(subject.giving("unicode trap", place, long, "20,000 characters"), size=20_000, marks=())


UNICODE_TRAP = Perturbation(
    name="unicode trap",
    groups=frozenset({Group.TOOLS, Group.CHUNKS}),
    does="a text holds what terminals, logs and encoders stumble over",
    of_call=_vary,
)
