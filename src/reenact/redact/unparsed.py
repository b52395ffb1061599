"""Long texts of JSON that hold nothing to replace, told without parsing them or looking at their beginning again.

A text passes where no keyword, no sensitive key in any case and no escape occurs that could hide one, so that parsing
it could find nothing either: what is replaced never depends on which way a text went.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from reenact.redact.gate import Gate
from reenact.values.prefix import Cut

_ESCAPES = ("\\u", "\\/")
"""Spellings in JSON behind which a keyword may hide."""
_SPELLED_OTHERWISE = frozenset('"\\')
_LONG, _LARGEST = 2048, 1 << 20
"""A text of a length between these is worth remembering."""
_HEAD = 256
"""Texts that begin with the same so many characters are taken for turns of one conversation."""
_CONVERSATIONS = 16
_NOTHING = Cut("")


class Unparsed:
    """Remembers the last clean text of some conversations."""

    def __init__(self, keywords: Iterable[str], keys: Iterable[str]) -> None:
        words, names = tuple(keywords), tuple(keys)
        self._gate = Gate((*words, *_ESCAPES), names)
        self._overlap = max(map(len, (*words, *names)))
        # A known secret that JSON spells otherwise than it is cannot be looked for in the text as it stands.
        self._usable = all(word.isprintable() and _SPELLED_OTHERWISE.isdisjoint(word) for word in words)
        self._last: dict[int, Cut[str]] = {}
        self._same = ""
        self._lock = threading.Lock()

    def renew(self) -> None:
        """Renew the lock, in a forked process."""
        self._lock = threading.Lock()

    def passes(self, text: str) -> bool:
        """Tell that `text` holds nothing to replace; False says nothing."""
        if not self._usable:
            return False
        if text == self._same:  # a replay asks, and then records what it asked
            return True
        if not _LONG < len(text) < _LARGEST:
            if self._gate.holds(text):
                return False
            self._same = text
            return True
        head = hash(text[:_HEAD])
        before = self._last.get(head, _NOTHING)
        known = before.shared(text)
        if self._gate.holds(text[max(0, known - self._overlap) :]):
            return False
        self._same = text
        with self._lock:
            self._last.pop(head, None)
            self._last[head] = before.become(text, known)
            if len(self._last) > _CONVERSATIONS:  # the one that was not heard of for longest
                del self._last[next(iter(self._last))]
        return True
