"""Which place of one sequence goes with which of another: a longest common subsequence, near enough and fast.

Equal ends go first. What is left is cut at tokens that each side has exactly once (Bram Cohen's patience diff), then at
the k-th occurrence of each token, until nothing is common. Two sequences of thousands of equal tokens cost n log n.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

Pair = tuple[int, int]
_Block = tuple[int, int, int, int]


def aligned(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    """Pair equal tokens of `a` and `b` in order, by their places; no pair crosses another."""
    pairs: list[Pair] = []
    blocks: list[_Block] = [(0, len(a), 0, len(b))]
    while blocks:
        start_a, end_a, start_b, end_b = blocks.pop()
        while start_a < end_a and start_b < end_b and a[start_a] == b[start_b]:
            pairs.append((start_a, start_b))
            start_a, start_b = start_a + 1, start_b + 1
        while start_a < end_a and start_b < end_b and a[end_a - 1] == b[end_b - 1]:
            end_a, end_b = end_a - 1, end_b - 1
            pairs.append((end_a, end_b))
        block = (start_a, end_a, start_b, end_b)
        anchors = _anchors(a, b, block) if start_a < end_a and start_b < end_b else []
        pairs += anchors
        blocks += _between(block, anchors)
    return sorted(pairs)


def _between(block: _Block, anchors: list[Pair]) -> list[_Block]:
    """Give the blocks that anchors leave between them."""
    if not anchors:
        return []
    start_a, end_a, start_b, end_b = block
    blocks: list[_Block] = []
    for at_a, at_b in [*anchors, (end_a, end_b)]:
        if start_a < at_a and start_b < at_b:
            blocks.append((start_a, at_a, start_b, at_b))
        start_a, start_b = at_a + 1, at_b + 1
    return blocks


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable], block: _Block) -> list[Pair]:
    """Find pairs to cut a block at: tokens that are there once on both sides, else the k-th of each token."""
    start_a, end_a, start_b, end_b = block
    count_a, count_b = Counter(a[start_a:end_a]), Counter(b[start_b:end_b])
    once = {token for token, count in count_a.items() if count == 1 and count_b.get(token) == 1}
    where: dict[Hashable, list[int]] = defaultdict(list)
    for place in range(start_b, end_b):
        if b[place] in once or (not once and b[place] in count_a):
            where[b[place]].append(place)
    met: Counter[Hashable] = Counter()
    candidates: list[Pair] = []
    for place in range(start_a, end_a):
        token = a[place]
        if met[token] < len(where.get(token, ())):
            candidates.append((place, where[token][met[token]]))
            met[token] += 1
    return _rising(candidates)


def _rising(pairs: list[Pair]) -> list[Pair]:
    """Keep a longest run of pairs that rises on both sides (patience sorting); they rise on the first already."""
    tails: list[int] = []
    tops: list[int] = []
    before: list[int] = []
    for index, (_, right) in enumerate(pairs):
        pile = bisect_left(tails, right)
        before.append(tops[pile - 1] if pile else -1)
        if pile == len(tails):
            tails.append(right)
            tops.append(index)
        else:
            tails[pile], tops[pile] = right, index
    chain: list[Pair] = []
    at = tops[-1] if tops else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]
