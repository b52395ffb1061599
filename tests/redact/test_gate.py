from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.contracts.detector import Detector
from reenact.redact.fields import SENSITIVE_KEYS
from reenact.redact.gate import ESCAPE, KEY, Entry, Gate, runs, shape_of
from reenact.redact.scan import Scanner

EXACT = Detector(
    name="exact", group="credentials", anchors=("ghp_", "gh", "AKIA", "sk-", "sk-ant-", "aaaa"), pattern="x"
)
ANY = Detector(name="any", group="credentials", anchors=("Password", "x-api-key", "k"), any_case=True, pattern="x")
SHAPE = Detector(
    name="shape", group="personal", anchors=("000-00-0000", "00000000", "A0A"), run="shapes", pattern="x", after=40
)
GATE = Gate((EXACT, ANY, SHAPE), SENSITIVE_KEYS)
PIECES = [
    "ghp_",
    "gh",
    "AKIA",
    "akia",
    "sk-",
    "ant-",
    "aaaa",
    "a",
    "pAssWord",
    "X-Api-Key",
    "K",
    "123-45-6789",
    "12345678",
]
TEXTS = st.lists(st.sampled_from([*PIECES, "b2c", " ", "Æ", "\N{KELVIN SIGN}", "中", "cookie"]) | st.text(max_size=3))


def anchors(data: bytes, gate: Gate = GATE) -> list[tuple[int, Entry]]:
    return gate.anchors(data, shape_of(data))


def shape(text: str) -> str:
    return re.sub("[A-Za-z]", "A", re.sub("[0-9]", "0", text))


def places(text: str, detector: Detector) -> set[int]:
    """Find anchors one after another, without the ones that begin right behind the same anchor."""
    found: set[int] = set()
    looked_at = shape(text) if detector.run else text
    for anchor in detector.anchors:
        spelled = re.escape(anchor)
        pattern = re.compile(f"(?=({spelled}))", (re.IGNORECASE if detector.any_case else 0) | re.ASCII)
        starts = [match.start() for match in pattern.finditer(looked_at)]
        found |= {at for at in starts if detector.run or at - 1 not in starts}
    return found


@given(pieces=TEXTS)
def test_it_finds_every_anchor_where_it_stands(pieces: list[str]) -> None:
    text = re.sub("[0-9]{32,}", "", "".join(pieces))  # nobody's
    data = text.encode("utf-8", "surrogatepass")
    found = anchors(data)
    for row, detector in enumerate((EXACT, ANY, SHAPE)):
        starts = {len(data[:at].decode("utf-8", "surrogatepass")) for at, entry in found if entry[0] == row}
        assert starts == places(text, detector)


@pytest.mark.parametrize("key", sorted(SENSITIVE_KEYS))
@pytest.mark.parametrize("spelled", [str.lower, str.upper, str.title, str.swapcase])
def test_every_sensitive_key_is_found_in_every_case(key: str, spelled: object) -> None:
    assert callable(spelled)
    assert any(entry[0] == KEY for _, entry in anchors(f'{{"{spelled(key)}": "x"}}'.encode()))


@pytest.mark.parametrize("text", ["\\u0040", "%40", "&#64;", "&commat;", "=40", "\\x41", "\\/", "\\u{40}", "a=\nb"])
def test_the_beginnings_of_escapes_are_found(text: str) -> None:
    assert any(entry[0] == ESCAPE for _, entry in anchors(text.encode()))


def test_a_number_without_end_is_not_looked_at_digit_by_digit() -> None:
    assert len(anchors(b"7" * 100_000)) < 10


@given(text=st.text("ab1 -\n", max_size=200))
def test_runs_are_what_a_pattern_finds(text: str) -> None:
    assert runs(shape_of(text.encode())) == [match.span() for match in re.finditer("[a-zA-Z0-9]{16,}", text)]


def test_a_policy_of_nothing_but_digits_finds_them() -> None:
    digits = Detector(name="digits", group="personal", run="shapes", anchors=("0000000000",), pattern="[0-9]{10,12}")
    gate = Gate([digits])
    assert [at for at, _ in anchors(b"no 1234567890, and no 123456789", gate)] == [3]
    assert [found.secret for found in Scanner([digits]).find("no 1234567890, and 12345678901")] == [
        "1234567890",
        "12345678901",
    ]
