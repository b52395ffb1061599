"""Patterns of policies: what is taken runs in no time on any text, what is refused says what to write instead."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.redact.patterns import PatternRefused, linear
from strategies_pattern import HOSTILE, PATTERNS

TAKEN = {
    r"ACME-[0-9]{6,10}": ("ACME-",),
    r"(?:cus|acct)_[A-Za-z0-9]{8,32}": ("cus", "acct"),
    r"\b(?:foo|bar\d)[a-z]{1,9}\b": ("foo", "bar"),
    r"(?P<secret>[0-9]{4}(?:[ -]?[0-9]{4}){3})": (),
    r"[A-Z]{3}[0-9]{4}": (),
    r"id[:=]\s{0,3}(?P<secret>[A-Z0-9]{8})(?![A-Z0-9])": ("id",),
    r"(?:a(?:b|c){1,3}d){2,5}": (),
}
REFUSED = {
    "a+b": "`+` has no end",
    "ab[0-9]*": "`*` has no end",
    "ab[0-9]{2,}": "`{2,}` has no end",
    "[*+]ab.*": "`*` has no end",
    r"(a)b\1": "it refers back",
    "(a)?b(?(1)c|d)": "it refers back",
    "(?:a{1,9}){1,20}b": "more than 20000 ways",
    "(?:a|a){1,40}b": "more than 20000 ways",
    "ab.{0,500}.{0,500}c": "more than 20000 ways",
    "(?:a?){1,50}b": "it repeats what may be empty",
    "a?": "it matches the empty text",
    "ab|": "it matches the empty text",
    "ab(": "it is no pattern of `re`",
    "a{5000}": "a repeat of more than 4096",
    "(?:ab{1,4000}){1,2}": "it may match 8002 characters",
}


@pytest.mark.parametrize("pattern", TAKEN)
def test_a_pattern_with_bounds_is_taken_with_its_anchors(pattern: str) -> None:
    assert linear(pattern).anchors == TAKEN[pattern]


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_pattern_that_may_be_slow_is_refused(pattern: str) -> None:
    with pytest.raises(PatternRefused, match=re.escape(REFUSED[pattern])):
        linear(pattern)


def test_a_refusal_says_what_to_write() -> None:
    with pytest.raises(PatternRefused) as refused:
        linear("key=[a-z]+")
    assert "{1,200}" in refused.value.hint
    assert refused.value.at == len("key=[a-z]")


@given(PATTERNS)
def test_what_is_taken_matches_no_more_than_its_width_of_texts_made_to_be_slow(pattern: str) -> None:
    try:
        found = linear(pattern)
    except PatternRefused:
        return
    compiled = re.compile(pattern, re.ASCII)
    for text in HOSTILE:
        for start in range(40):
            hit = compiled.match(text, start)
            assert hit is None or len(hit[0]) <= found.width


@given(PATTERNS, st.text("abx01 ", max_size=40))
def test_every_match_holds_an_anchor(pattern: str, text: str) -> None:
    try:
        anchors = linear(pattern).anchors
    except PatternRefused:
        return
    if anchors:
        for hit in re.finditer(pattern, text, re.ASCII):
            assert any(anchor in hit[0] for anchor in anchors), (pattern, hit[0], anchors)
