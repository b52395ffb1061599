"""The beginning that two texts share: a conversation is sent whole with every turn, and grows at its end."""

from __future__ import annotations

from typing import AnyStr, Generic

_NEAR_THE_END = (512, 8192)
_PIECE = 8192


def shared_prefix(a: AnyStr, b: AnyStr) -> int:
    """Count the characters (of bytes, the bytes) at the beginning of `a` and `b` that are the same.

    A few memory compares, whatever the length: first whether they differ only near the end of `a`, then by halving.
    """
    low, high = 0, min(len(a), len(b))
    for distance in _NEAR_THE_END:
        near = len(a) - distance
        if not 0 < near <= high:
            continue
        if a[:near] == b[:near]:
            low = near
            break
        high = near
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class Cut(Generic[AnyStr]):
    """A text (or bytes) in pieces: a longer one is compared without a copy of all that is the same. Never changes."""

    __slots__ = ("_pieces",)

    def __init__(self, text: AnyStr) -> None:
        self._pieces = _pieces(text, 0)

    def shared(self, text: AnyStr) -> int:
        """Count the characters at the beginning of `text` that are the same."""
        at = 0
        for piece in self._pieces:
            if not text.startswith(piece, at):
                return at + shared_prefix(piece, text[at : at + _PIECE])
            at += len(piece)
        return at

    def become(self, text: AnyStr, shared: int) -> Cut[AnyStr]:
        """Give `text` in pieces, of which the first `shared` characters are the same as here."""
        whole = shared // _PIECE
        successor: Cut[AnyStr] = Cut(text[:0])
        successor._pieces = self._pieces[:whole] + _pieces(text, whole * _PIECE)
        return successor


def _pieces(text: AnyStr, begin: int) -> tuple[AnyStr, ...]:
    return tuple(text[at : at + _PIECE] for at in range(begin, len(text), _PIECE))
