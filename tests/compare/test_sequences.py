from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from counting import growth
from reenact.compare.sequences import aligned

FEW = st.lists(st.integers(0, 4), max_size=14)


def longest(a: list[int], b: list[int]) -> int:
    """The length of a longest common subsequence, by the book."""
    row = [0] * (len(b) + 1)
    for x in a:
        diagonal = 0
        for at, y in enumerate(b, 1):
            diagonal, row[at] = row[at], diagonal + 1 if x == y else max(row[at], row[at - 1])
    return row[-1]


@given(FEW, FEW)
def test_pairs_are_equal_rise_on_both_sides_and_leave_nothing_between_them_that_fits(
    a: list[int], b: list[int]
) -> None:
    pairs = aligned(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))
    for (i, j), (k, m) in pairwise([(-1, -1), *pairs, (len(a), len(b))]):
        assert not set(a[i + 1 : k]) & set(b[j + 1 : m])
    assert len(pairs) <= longest(a, b)


@given(st.lists(st.integers(), unique=True, max_size=30), st.data())
def test_of_distinct_tokens_a_longest_subsequence_is_found(a: list[int], data: st.DataObject) -> None:
    b = data.draw(st.permutations(a))
    assert len(aligned(a, b)) == longest(a, b)


@given(FEW)
def test_equal_sequences_go_together_place_by_place(a: list[int]) -> None:
    assert aligned(a, a) == [(at, at) for at in range(len(a))]


def test_twice_as_many_equal_tokens_are_twice_the_work() -> None:
    def work(size: int) -> Callable[[], object]:
        a = ["llm", "tool"] * size
        b = ["tool", *a[:size], "tool", "tool", *a[size + 1 :], "llm"]
        assert len(aligned(a, b)) >= 2 * size - 10
        return lambda: aligned(a, b)

    assert growth(work, 1000) < 3
