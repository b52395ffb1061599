"""A body is cut off: the status says that all is well, and the rest never came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from reenact.contracts.perturbation import Perturbation, Subject
from reenact.values.answer import body_of, with_body
from reenact.values.call import FunctionCall, Outcome, Returned, Streamed
from reenact.values.json import parsed_or_none
from reenact.values.variation import Group, Variation


def _vary(subject: Subject, chance: Random) -> Iterator[Variation]:
    if isinstance(subject.node.call.request, FunctionCall):
        yield from _texts(subject, chance)
        return
    outcome = subject.node.outcome
    body = body_of(outcome)
    if len(body) < 2 or (subject.group is Group.MODELS and isinstance(outcome, Streamed)):
        return  # where streams are cut is told by `cut stream`
    last = _cut(subject, outcome, body, len(body) - 1)
    for at in (len(body) // 2, chance.randrange(1, len(body))):
        yield replace(_cut(subject, outcome, body, at), smaller=(last,))
    yield replace(_cut(subject, outcome, body, 0), smaller=(last,))


def _cut(subject: Subject, outcome: Outcome, body: bytes, at: int) -> Variation:
    description = f"the body ends after {at} of {len(body)} bytes"
    cut = with_body(outcome, body[:at])
    return subject.answering("truncated", cut, description, fails=True, size=len(body) - at)


def _texts(subject: Subject, chance: Random) -> Iterator[Variation]:
    """Cut texts of which a function's result is made: those that hold JSON first."""
    if not isinstance(subject.node.outcome, Returned):
        return
    places = [place for place in subject.places if isinstance(place.value, str) and len(place.value) > 1]
    chance.shuffle(places)
    places.sort(key=lambda place: not isinstance(parsed_or_none(str(place.value)), dict | list))
    for place in places:
        text = str(place.value)
        at = len(text) // 2
        description = f"ends after {at} of {len(text)} characters"
        yield subject.giving("truncated", place, text[:at], description, fails=not place.path)


TRUNCATED = Perturbation(
    name="truncated",
    groups=frozenset({Group.TOOLS, Group.CHUNKS, Group.MODELS}),
    does="a body is cut off",
    of_call=_vary,
)
