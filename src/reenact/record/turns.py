"""The long texts that a journal holds already, so that the next turn of a conversation writes down only what is new.

An agent sends its conversation whole with every turn, and it grows at its end; written whole each time, fifty turns
would be written more than a thousand times over. A chain of turns is broken off now and then by one that is written
whole, so that a damaged place in the file costs no more than the turns up to the next.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from reenact.formats.journal import CONVERSATIONS
from reenact.values.prefix import Cut

LONG: Final = 2048
"""From this length on a text is worth looking up."""
_LEAST: Final = 1024
"""A beginning shorter than this is written again."""
_LARGEST: Final = 4 << 20
_HEAD: Final = 256
"""Texts that begin with the same so many characters are taken for turns of one conversation."""
_CHAIN: Final = 16
"""After so many turns one is written whole."""


class Turn(NamedTuple):
    """A text as it goes into a frame."""

    number: int
    """What later turns name it by; unique in its journal."""
    head: int
    """What tells its conversation."""
    text: Cut[str]
    of: int
    """The number of the conversation's text before it, which is forgotten; 0 for none."""
    shared: int
    """How many characters of that one it begins with; 0 where it is written whole."""
    links: int
    """How many turns must be read to know this one."""


class Turns:
    """Remembers the last text of some conversations. A text counts as written only when `wrote` was told so."""

    __slots__ = ("_last", "_number")

    def __init__(self) -> None:
        self._last: dict[int, Turn] = {}
        self._number = 0

    def next(self, text: str) -> Turn | None:
        """Say how to write `text`; None for one that is written whole and forgotten. Not safe between threads."""
        if not LONG <= len(text) <= _LARGEST:
            return None
        self._number = number = self._number + 1
        head = hash(text[:_HEAD])
        before = self._last.get(head)
        if before is None:
            return Turn(number, head, Cut(text), 0, 0, 0)
        shared_length = before.text.shared(text)
        cut = before.text.become(text, shared_length)
        if shared_length < _LEAST or before.links >= _CHAIN:
            return Turn(number, head, cut, before.number, 0, 0)
        return Turn(number, head, cut, before.number, shared_length, before.links + 1)

    def wrote(self, turn: Turn) -> None:
        """Remember a text that is in the journal now."""
        self._last.pop(turn.head, None)
        self._last[turn.head] = turn
        if len(self._last) > CONVERSATIONS:
            del self._last[next(iter(self._last))]

    def forget(self) -> None:
        """Begin anew, as every journal does."""
        self._last = {}
