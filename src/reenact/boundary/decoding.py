"""Content decoding of a stream as it passes (RFC 9110, section 8.4), so that what is kept is what the SDK reads."""

from __future__ import annotations

import zlib
from typing import Any, Protocol


class Decoder(Protocol):
    """Decodes a body piece by piece."""

    def decode(self, raw: bytes) -> bytes:
        """Give what `raw` adds to the decoded body, perhaps nothing yet."""
        ...


class _Plain:
    def decode(self, raw: bytes) -> bytes:
        return raw


class _Zlib:
    """gzip, or deflate with or without its zlib wrapper (servers disagree about RFC 1950)."""

    def __init__(self, window: int) -> None:
        self._window, self._engine = window, zlib.decompressobj(window)
        self._first = True

    def decode(self, raw: bytes) -> bytes:
        try:
            data = self._engine.decompress(raw)
        except zlib.error:
            if not self._first or self._window != zlib.MAX_WBITS:
                raise
            self._engine = zlib.decompressobj(-zlib.MAX_WBITS)
            data = self._engine.decompress(raw)
        self._first = False
        return data


class _Zstd:
    """Frames of RFC 8878, one after the other; a server that flushes may write one for each event."""

    def __init__(self) -> None:
        import zstandard

        self._engine = zstandard.ZstdDecompressor()
        self._frame = self._engine.decompressobj()

    def decode(self, raw: bytes) -> bytes:
        """Give what `raw` adds to the decoded body."""
        if not raw:
            return b""
        if self._frame.eof:
            self._frame = self._engine.decompressobj()
        decoded = self._frame.decompress(raw)
        while self._frame.eof and (rest := self._frame.unused_data):
            self._frame = self._engine.decompressobj()
            decoded += self._frame.decompress(rest)
        return decoded


class _Wrapped:
    """Whatever has a `decompress` method that takes pieces."""

    def __init__(self, engine: Any) -> None:
        self._decompress = getattr(engine, "decompress", None) or engine.process

    def decode(self, raw: bytes) -> bytes:
        return bytes(self._decompress(raw))


class _Chain:
    def __init__(self, decoders: list[Decoder]) -> None:
        self._decoders = decoders

    def decode(self, raw: bytes) -> bytes:
        for decoder in self._decoders:
            raw = decoder.decode(raw)
        return raw


def _one(coding: str) -> Decoder:
    match coding:
        case "gzip" | "x-gzip":
            return _Zlib(zlib.MAX_WBITS | 16)
        case "deflate":
            return _Zlib(zlib.MAX_WBITS)
        case "zstd":
            return _Zstd()
        case "br":
            import brotli  # pyright: ignore - present where the SDK's client asked for it

            return _Wrapped(brotli.Decompressor())
        case _:
            return _Plain()


def decoder_for(headers: Any) -> Decoder:
    """Make the decoder for a response with these headers; an unknown or absent library leaves the bytes as they are."""
    codings = [part.strip().lower() for part in headers.get("content-encoding", "").split(",") if part.strip()]
    if not codings:
        return _Plain()
    try:
        return _Chain([_one(coding) for coding in reversed(codings)])
    except ImportError:
        return _Plain()
