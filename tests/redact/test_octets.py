"""Bytes that are no text pass redaction as they are; a text that stands in them does not."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.redact.engine import Engine
from reenact.redact.octets import Octets
from reenact.values.redaction_marks import classes_in, count_in, tokens_in

pytestmark = pytest.mark.sample(4)

MAIL = "joe.smith@acme-corp.com"


def spelled(data: bytes) -> str:
    return json.dumps({"stdout": {"$bytes": base64.b64encode(data).decode()}})


def redacted(data: bytes) -> bytes:
    return base64.b64decode(json.loads(Engine().text(spelled(data)))["stdout"]["$bytes"])


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=4))
def test_bytes_are_read_and_spelled_again(data: bytes, cuts: list[int]) -> None:
    held = Octets(data)
    assert held.spelled(held.text) == data
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(places)]
    assert "".join(held.parts(pieces)) == held.text


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_what_is_drawn_at_random_passes(seed: int) -> None:
    """Read as Latin-1, each of these held what looked like a mail address."""
    data = random.Random(seed).randbytes(1_500_000)
    assert redacted(data) == data


@pytest.mark.parametrize(
    ("data", "left"),
    [
        (b"\x01\x00\xff" + MAIL.encode() + b"\xff\xfe\x00", (b"\x01\x00\xff", b"\xff\xfe\x00")),
        (b"\x12\x17" + MAIL.encode() + b"\x1a\x02\xc3\x28", (b"\x12\x17", b"\x1a\x02\xc3\x28")),
        ("Grüße an ".encode("latin-1") + MAIL.encode(), ("Grüße an ".encode("latin-1"), b"")),
        ("an müller@example.de, ".encode("latin-1"), (b"an ", b", ")),
    ],
)
def test_a_text_in_them_is_replaced_and_the_rest_stays(data: bytes, left: tuple[bytes, bytes]) -> None:
    found = redacted(data)
    assert found.startswith(left[0] + b"REDACTED_e_mail_")
    assert found.endswith(b"@redacted.invalid" + left[1])


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_was_replaced_in_bytes_is_counted(before: int, pack: type[bytes]) -> None:
    data = bytes(before) + b"\xff " + MAIL.encode() + b" \xfe"
    clean = Engine().text(spelled(pack(data)))
    assert classes_in(clean) == {"e_mail": 1}
    assert count_in(clean) == 1
    assert len(tokens_in(clean)) == 1
    assert count_in(spelled(pack(data))) == 0
