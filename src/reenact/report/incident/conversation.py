"""Conversations that grow: what a model call repeats of an earlier one is named and not kept again."""

from __future__ import annotations

from collections.abc import Sequence

from reenact.report.incident.pool import Pool
from reenact.values.json import Json
from reenact.values.message import Message

_Place = tuple[int, int]
"""A prefix of conversations: the number of the one before it, and the message that it adds."""


class Conversations:
    """The conversations of a run's model calls, kept as a tree of prefixes."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._prefixes: dict[_Place, int] = {}
        self._owner: list[int] = [-1]
        """Which call a prefix was first seen in."""

    def place(self, call: int, messages: Sequence[Message]) -> dict[str, Json]:
        """Place the messages of a call: `as` names what they begin with, `new` holds the numbers of those behind.

        `as` is `[call, n]`: the first n messages of that earlier call. It is absent where nothing is repeated.
        """
        numbers = [self._pool.message(message) for message in messages]
        state = prefix_length = 0
        for number in numbers:
            below = self._prefixes.get((state, number))
            if below is None:
                break
            state, prefix_length = below, prefix_length + 1
        owner = self._owner[state]
        for number in numbers[prefix_length:]:
            self._prefixes[state, number] = state = len(self._owner)
            self._owner.append(call)
        placed: dict[str, Json] = {"new": [*numbers[prefix_length:]]}
        if prefix_length:
            placed["as"] = [owner, prefix_length]
        return placed
