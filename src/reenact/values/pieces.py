"""Read the bytes of a piece of a stream, and build a copy of the piece with other bytes."""

from __future__ import annotations

from dataclasses import replace

from reenact.values.call import Chunk
from reenact.values.json import compact, parsed_or_none


def bytes_of(chunk: Chunk) -> bytes:
    """Give what a piece says: bytes as they are, a text that a generator yielded, any other value as a line of JSON."""
    if chunk.data is not None:
        return chunk.data
    if isinstance(chunk.value, str):
        return chunk.value.encode("utf-8", "surrogatepass")
    return f"{compact(chunk.value)}\n".encode("utf-8", "surrogatepass")  # numbers one after the other are no number


def with_bytes(chunk: Chunk, content: bytes) -> Chunk:
    """Give a piece that says `content` in the place of what it said."""
    if chunk.data is not None:
        return replace(chunk, data=content)
    text = content.decode("utf-8", "surrogatepass")
    if isinstance(chunk.value, str):
        return replace(chunk, value=text)
    value = parsed_or_none(text)
    return replace(chunk, value=text if value is None and text.strip() != "null" else value)
