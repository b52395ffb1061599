from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.redact.gate import Gate
from reenact.redact.rules import KEYWORDS, SENSITIVE_KEYS

PIECES = [*KEYWORDS, *SENSITIVE_KEYS, "\\u", "\\/", "tokens", "the ", "k", "_", "-", "=", "Æ", "\N{KELVIN SIGN}", "中"]
TEXTS = st.lists(st.sampled_from(PIECES) | st.sampled_from(PIECES).map(lambda piece: piece[:-1]) | st.text(max_size=3))


@given(pieces=TEXTS)
def test_it_says_what_looking_for_one_word_after_another_says(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert Gate(KEYWORDS).holds(text) == any(word in text for word in KEYWORDS)


@given(pieces=TEXTS, upper=st.booleans())
def test_folded_words_are_found_in_any_case_and_none_is_missed(pieces: list[str], *, upper: bool) -> None:
    text = "".join(pieces)
    text = text.upper() if upper else text
    found = any(word in text for word in KEYWORDS) or any(key in text.lower() for key in SENSITIVE_KEYS)
    # a character outside ASCII may stand for a letter in one reading of "any case" and not in the other
    assert Gate(KEYWORDS, SENSITIVE_KEYS).holds(text) == found or ("\N{KELVIN SIGN}" in text and not found)


@given(words=st.lists(st.text("ab_-.(K", min_size=1, max_size=4), min_size=1), text=st.text("ab_-.(K", max_size=30))
def test_any_words_will_do(words: list[str], text: str) -> None:
    assert Gate(words).holds(text) == any(word in text for word in words)


@pytest.mark.parametrize("key", sorted(SENSITIVE_KEYS))
@pytest.mark.parametrize("spelled", [str.lower, str.upper, str.title, str.swapcase])
def test_every_sensitive_key_is_found_in_every_case(key: str, spelled: object) -> None:
    assert callable(spelled)
    assert Gate((), SENSITIVE_KEYS).holds(f'{{"{spelled(key)}": "x"}}')


def test_of_nothing_it_finds_nothing() -> None:
    assert not Gate(()).holds("anything")
