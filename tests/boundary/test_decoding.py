from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

import pytest
import zstandard

from reenact.boundary.decoding import decoder_for

TEXT = b'data: {"choices":[{"delta":{"content":"h\xc3\xa9llo"}}]}\n\n' * 200


def raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush()


def frames(data: bytes) -> bytes:
    """A frame of its own for each event, as servers that flush write it."""
    return b"".join(zstandard.compress(part) for part in (data[:700], data[700:5000], data[5000:]))


CODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-Gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "deflate without its wrapper": ("deflate", raw_deflate),
    "zstd": ("zstd", zstandard.compress),
    "zstd in several frames": ("zstd", frames),
    "two": ("gzip, zstd", lambda data: zstandard.compress(gzip.compress(data))),
    "none": ("", bytes),
    "identity": ("identity", bytes),
    "one that is not known": ("x-secret", bytes),
}


@pytest.mark.parametrize(("coding", "encode"), CODINGS.values(), ids=CODINGS)
def test_a_body_is_decoded_as_it_passes_wherever_it_is_cut(coding: str, encode: Callable[[bytes], bytes]) -> None:
    sent = encode(TEXT)
    for seed in range(5):
        chance = random.Random(seed)
        decoder, got, at = decoder_for({"content-encoding": coding}), b"", 0
        while at < len(sent):
            size = chance.randrange(1, 200)
            got += decoder.decode(sent[at : at + size])
            at += size
        assert got == TEXT


def test_without_a_header_bytes_are_left_as_they_are() -> None:
    assert decoder_for({}).decode(b"\x00\xff") == b"\x00\xff"


def test_a_broken_encoding_is_the_reader_s_to_meet() -> None:
    with pytest.raises(zlib.error):
        decoder_for({"content-encoding": "gzip"}).decode(b"this is no gzip")
