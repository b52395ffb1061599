from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reenact.report.incident.worded import Pieces, side_by_side

TEXTS = st.text(st.sampled_from("ab \n.{}é"), max_size=60)


def said(pieces: Pieces, *words: str) -> str:
    return "".join(text for word, text in pieces if word in words)


@given(TEXTS, TEXTS)
def test_each_side_says_its_text_and_both_share_what_is_the_same(a: str, b: str) -> None:
    left, right = side_by_side(a, b)
    assert said(left, "same", "other") == a
    assert said(right, "same", "other") == b
    assert said(left, "same") == said(right, "same")


def test_words_that_differ_are_marked_and_no_more() -> None:
    left, right = side_by_side("delete it in staging now", "delete it in production now")
    assert said(left, "other") == "staging"
    assert said(right, "other") == "production"


def test_long_texts_are_shortened_around_what_differs() -> None:
    alike = "the same words " * 10_000
    left, right = side_by_side(f"{alike}left {alike}", f"{alike}right {alike}")
    assert said(left, "other") == "left"
    assert said(right, "other") == "right"
    assert said(left, "gap").count("characters alike") == 2
    assert sum(len(text) for _, text in left) < 2000


def test_very_long_differences_are_cut_and_say_so() -> None:
    left, right = side_by_side("x" * 100_000, "y " * 100_000)
    assert "94,000 characters more" in said(left, "gap")
    assert "194,000 characters more" in said(right, "gap")
