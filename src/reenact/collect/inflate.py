"""Unpacks the bodies of requests, never past the limit: what would grow over it is stopped while it grows."""

from __future__ import annotations

import io
import zlib

from reenact.collect.refusals import UNIMPLEMENTED, Refusal, malformed, too_large

ENCODINGS = ("gzip", "zstd", "deflate", "identity")
_WINDOW = 8 << 20
"""What a zstd frame may ask for to look back at (RFC 8878, section 3.1.1.1.2: decoders support at least 8 MB)."""
_STEP = 1 << 20


def inflate(data: bytes, encoding: str, limit: int) -> bytes:
    """Unpack a body of at most `limit` bytes. Raises `Refusal`."""
    if encoding in ("", "identity"):
        if len(data) > limit:
            raise too_large(limit)
        return data
    if encoding in ("gzip", "x-gzip"):
        return _zlib(data, 31, limit)
    if encoding == "deflate":  # RFC 9110: zlib's format; what many send is the bare one
        bare = len(data) < 2 or data[0] & 0x0F != 8 or (data[0] << 8 | data[1]) % 31
        return _zlib(data, -15 if bare else 15, limit)
    if encoding == "zstd":
        return _zstd(data, limit)
    known_encodings = ", ".join(ENCODINGS)
    raise Refusal(
        UNIMPLEMENTED,
        415,
        f"content encoding {encoding[:40]!r} is none of {known_encodings}",
        headers=(("accept-encoding", known_encodings),),
    )


def _zlib(data: bytes, bits: int, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        unpacking = zlib.decompressobj(bits)
        try:
            pieces.append(unpacking.decompress(data, limit + 1 - size))
        except zlib.error as error:
            raise malformed(f"the compressed body is damaged ({error})") from None
        size += len(pieces[-1])
        if size > limit:
            raise too_large(limit)
        if not unpacking.eof:
            raise malformed("the compressed body is cut off")
        data = unpacking.unused_data
        if not data.strip(b"\0") or bits != 31:  # gzip may have members one after another
            return b"".join(pieces)


def _zstd(data: bytes, limit: int) -> bytes:
    from zstandard import ZstdDecompressor, ZstdError

    pieces: list[bytes] = []
    size = 0
    try:
        unpacker = ZstdDecompressor(max_window_size=_WINDOW)
        with unpacker.stream_reader(io.BytesIO(data), read_across_frames=True) as reader:
            while piece := reader.read(min(_STEP, limit + 1 - size)):
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    raise too_large(limit)
    except ZstdError as error:
        raise malformed(f"the compressed body is damaged ({error})") from None
    if not pieces and data:
        raise malformed("the compressed body is cut off")
    return b"".join(pieces)
