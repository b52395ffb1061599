from __future__ import annotations

from itertools import takewhile

from hypothesis import example, given
from hypothesis import strategies as st

from reenact.values.prefix import Cut, shared_prefix

REPEATED = st.builds(lambda piece, times: piece * times, st.text("ab中", max_size=3), st.integers(0, 9000))
TEXTS = st.text("ab", max_size=5) | REPEATED


@given(shared=TEXTS, left=TEXTS, right=TEXTS)
@example(shared="a" * 20_000, left="b", right="")
@example(shared="", left="", right="")
def test_it_is_the_longest(shared: str, left: str, right: str) -> None:
    a, b = shared + left, shared + right
    longest = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    assert shared_prefix(a, b) == shared_prefix(b, a) == longest


@given(texts=st.lists(st.builds(lambda shared, own: shared + own, TEXTS, TEXTS), min_size=1, max_size=5))
@example(texts=["a" * 8192, "a" * 8192 + "b", "a" * 8192 + "c", "a" * 20_000, ""])
def test_a_text_in_pieces_tells_the_same_turn_after_turn(texts: list[str]) -> None:
    cut, before = Cut(""), ""
    for text in texts:
        known = cut.shared(text)
        assert known == shared_prefix(before, text)
        cut, before = cut.become(text, known), text
