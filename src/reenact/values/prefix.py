"""The beginning that two texts share: a conversation is sent whole with every turn, and grows at its end."""

from __future__ import annotations

_NEAR_THE_END = (512, 8192)


def shared_prefix(a: str, b: str) -> int:
    """Count the characters at the beginning of `a` and `b` that are the same.

    A few memory compares, whatever the length: first whether they differ only near the end of `a`, then by halving.
    """
    low, high = 0, min(len(a), len(b))
    for distance in _NEAR_THE_END:
        near = len(a) - distance
        if not 0 < near <= high:
            continue
        if b.startswith(a[:near]):
            low = near
            break
        high = near
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
