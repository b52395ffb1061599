"""The beginnings of long documents that were looked at already: a conversation is sent whole with every turn.

What of a document is the same as in the one before it has the same edits; only what follows is looked at. Where that
begins is a place outside of every string, so that nothing found there depends on what stood before.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from reenact.redact.documents import Edit, outside
from reenact.values import locks
from reenact.values.prefix import Cut

_LONG, _LARGEST = 2048, 8 << 20
"""A text of a length between these is worth remembering."""
_HEAD: Final = 256
"""Texts that begin with the same so many characters are taken for turns of one conversation."""
_CONVERSATIONS: Final = 16


class CachedEdit(NamedTuple):
    """An edit, and the classes of what was replaced by it."""

    edit: Edit
    names: tuple[str, ...]


class Head(NamedTuple):
    """A document that was looked at."""

    text: Cut[str]
    outside: int
    """A place that is outside of every string."""
    edits: tuple[CachedEdit, ...]


class PriorKnowledge(NamedTuple):
    """What is known of a document before it is looked at."""

    begin: int
    """What stands before was looked at."""
    edits: tuple[CachedEdit, ...]
    """What is to be changed there."""
    shared: int
    before: Head


_NOTHING: Final = Head(Cut(""), 0, ())


class Heads:
    """Remembers the last document of some conversations."""

    def __init__(self) -> None:
        self._last: dict[int, Head] = {}
        self._lock = locks.lock()

    def known(self, text: str) -> PriorKnowledge | None:
        """Say what is known of a document; None for one that is not worth asking."""
        if not _LONG < len(text) < _LARGEST:
            return None
        before = self._last.get(hash(text[:_HEAD]), _NOTHING)
        shared = before.text.shared(text)
        if shared <= before.outside:
            return PriorKnowledge(0, (), shared, before)
        begin = outside(text, before.outside, shared)
        edits = before.edits
        if edits and edits[-1].edit.end > begin:
            edits = tuple(cached_edit for cached_edit in edits if cached_edit.edit.end <= begin)
        return PriorKnowledge(begin, edits, shared, before)

    def looked_at(self, text: str, knowledge: PriorKnowledge, edits: tuple[CachedEdit, ...]) -> None:
        """Remember a document, and all edits that are to be made in it."""
        head = hash(text[:_HEAD])
        new_head = Head(knowledge.before.text.become(text, knowledge.shared), knowledge.begin, edits)
        with self._lock:
            self._last.pop(head, None)
            self._last[head] = new_head
            if len(self._last) > _CONVERSATIONS:  # the one that was not heard of for longest
                del self._last[next(iter(self._last))]
