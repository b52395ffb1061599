"""What of a stream is not in the journal yet, since a secret may have begun in it that only the next piece ends.

Every piece is written before the agent gets it, but for those that end in what may be the beginning of a secret: they
wait for the piece that shows what it is, and all are scrubbed together. Of a process that dies meanwhile the recording
lacks these last pieces; half a secret is not written.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence

from reenact.contracts.redactor import Place, Redactor
from reenact.record.open_secrets import Following
from reenact.values.call import Chunk
from reenact.values.json import Json
from reenact.values.pieces import bytes_of, with_bytes

_BEFORE = 4
"""Pieces that were written before and are looked at again with those that come: a keyword may stand in them."""
_MOST, _LARGEST = 4096, 1 << 20
"""So many pieces, and so many bytes, are held back at most."""


def scrubbed(chunks: Sequence[Chunk], redactor: Redactor, place: Place | None = None) -> tuple[Chunk, ...]:
    """Scrub a whole stream, whose pieces may each hold a part of a secret; `place` is that of its text."""
    pieces = [bytes_of(chunk) for chunk in chunks]
    clean = redactor.pieces(pieces) if place is None else redactor.pieces(pieces, place=place)
    if clean == pieces:
        return tuple(chunks)
    triples = zip(chunks, pieces, clean, strict=True)
    return tuple(chunk if before == after else with_bytes(chunk, after) for chunk, before, after in triples)


def spelled(chunk: Chunk) -> Json:
    """Spell a piece as `reenact.stream.chunks` does."""
    if chunk.data is None:
        return {"json": chunk.value}
    try:
        return chunk.data.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(chunk.data).decode()}


def _is_framed(data: bytes) -> bool:
    """Tell Amazon's event stream, whose frames are spelled anew as a whole."""
    if data[:1] != b"\0":
        return False
    from reenact.values.event_stream import is_event_stream  # few are asked for

    return is_event_stream(data)


class Unwritten:
    """The pieces of one stream that wait to be written."""

    __slots__ = ("_backlog", "_before", "_following", "_is_first", "_is_framed", "_size")

    def __init__(self) -> None:
        self._following = Following()
        self._is_first, self._is_framed = True, False
        self._before: list[bytes] = []
        self._backlog: list[Chunk] = []
        self._size = 0

    def settle(self, chunk: Chunk, redactor: Redactor, *, whole: bool = False) -> Iterable[Chunk]:
        """Take the next piece, and give those that may be written now, scrubbed.

        None are where a policy takes payloads `whole`: what stands for a text is known at its end.
        """
        if whole or self._is_framed:
            return ()
        piece = bytes_of(chunk)
        if self._is_first and piece:
            self._is_first, self._is_framed = False, _is_framed(piece)
            if self._is_framed:
                return ()
        settles = self._following.settles(piece)
        if settles and not self._backlog and self._is_clean(piece, redactor):
            self._before = [*self._before[1 - _BEFORE :], piece]
            return (chunk,)
        self._backlog.append(chunk)
        self._size += len(piece)
        if not settles and len(self._backlog) < _MOST and self._size < _LARGEST:
            return ()
        before = [bytes_of(each) for each in self._backlog]
        after = redactor.pieces([*self._before, *before])[len(self._before) :]
        triples = zip(self._backlog, before, after, strict=True)
        clean_chunks = [each if old == new else with_bytes(each, new) for each, old, new in triples]
        self._before, self._backlog, self._size = [*self._before, *before][-_BEFORE:], [], 0
        return clean_chunks

    def _is_clean(self, piece: bytes, redactor: Redactor) -> bool:
        """Tell at little cost that a piece holds nothing to replace, in itself or with what was said before it."""
        try:
            text = piece.decode()
        except UnicodeDecodeError:
            return False
        if redactor.text(text) != text:
            return False
        return all("\\" not in joined and redactor.text(joined) == joined for joined in self._following.joined)
