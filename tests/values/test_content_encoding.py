from __future__ import annotations

import gzip
import zlib

import pytest

from reenact.values import content_encoding
from reenact.values.content_encoding import unpacked

TEXT = b'{"answer": "tea"}' * 40
PACKED = gzip.compress(TEXT, mtime=0)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(PACKED, "gzip"), (PACKED, " GZip"), (zlib.compress(TEXT), "deflate"), (TEXT, "")],
)
def test_a_packed_body_is_unpacked(body: bytes, encoding: str) -> None:
    assert unpacked(body, encoding) == TEXT


@pytest.mark.parametrize(
    ("body", "encoding"),
    [(TEXT, "gzip"), (PACKED, "br"), (PACKED * 2, "gzip"), (PACKED, "gzip, br")],
)
def test_what_cannot_be_unpacked_stays(body: bytes, encoding: str) -> None:
    assert unpacked(body, encoding) == body


def test_a_part_is_unpacked_as_far_as_it_came() -> None:
    body = gzip.compress(bytes(range(256)) * 40, 1)
    assert bytes(range(256)).startswith(unpacked(body[:40], "gzip"))


def test_a_body_that_unpacks_to_more_than_the_most_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_encoding, "_MOST", 100)
    assert unpacked(PACKED, "gzip") == PACKED
