"""What a packed body of HTTP says (RFC 9110, section 8.4.1)."""

from __future__ import annotations

import zlib
from typing import Final

_PACKINGS: Final = frozenset({"gzip", "x-gzip", "deflate"})
_EITHER: Final = 32 + zlib.MAX_WBITS
"""Tells zlib to find out by itself whether it reads gzip or its own format."""
_MOST: Final = 64 << 20
"""Bytes that a body may unpack to; a larger one stays packed."""


def unpacked(body: bytes, encoding: str) -> bytes:
    """Unpack a body, as far as it came; one in another encoding, or a spoiled one, stays as it is."""
    if encoding.strip().lower() not in _PACKINGS:
        return body
    try:
        reader = zlib.decompressobj(_EITHER)
        text = reader.decompress(body, _MOST)
        text += b"" if reader.unconsumed_tail else reader.flush()
    except zlib.error:
        return body
    return body if reader.unconsumed_tail or reader.unused_data else text
