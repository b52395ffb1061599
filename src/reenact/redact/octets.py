"""Bytes as a text that can be searched, and back again.

Bytes that are UTF-8 are that text. Others that hold none of the control characters that no text has are of an older
encoding: in Latin-1 every byte is a character. All the rest is no text, though texts may stand in it: there every byte
beyond ASCII is a character that no pattern takes for a letter or a digit (of a private use area of Unicode). Else one
of a million bytes drawn at random looks like a mail address.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

_NO_TEXT: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_CHARACTERS: Final = "".join(map(chr, (*range(0x80), *range(0xE080, 0xE100))))
_BYTES: Final = codecs.charmap_build(_CHARACTERS)


class Octets:
    """Bytes, read."""

    __slots__ = ("_encoding", "text")

    def __init__(self, value: bytes) -> None:
        """Read bytes."""
        self._encoding = "utf-8"
        try:
            self.text = value.decode()
        except UnicodeDecodeError:
            self._encoding = "latin-1" if _NO_TEXT.search(value) is None else ""
            self.text = value.decode("latin-1") if self._encoding else _characters(value)

    def spelled(self, text: str) -> bytes:
        """Give the bytes of another text, in the same encoding."""
        if not self._encoding:
            return codecs.charmap_encode(text, "replace", _BYTES)[0]
        return text.encode(self._encoding, "surrogatepass" if self._encoding == "utf-8" else "replace")

    def parts(self, pieces: Sequence[bytes]) -> Iterator[str]:
        """Read each of the pieces of which these are the whole. A character cut in two goes to the later piece."""
        if not self._encoding:
            yield from map(_characters, pieces)
            return
        decoder = codecs.getincrementaldecoder(self._encoding)()
        yield from map(decoder.decode, pieces)


def _characters(value: bytes) -> str:
    return codecs.charmap_decode(value, "strict", cast("Any", _CHARACTERS))[0]
