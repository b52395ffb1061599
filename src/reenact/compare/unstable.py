"""Values that differ from replay to replay: a line may differ in its numbers or tokens alone, and do so again.

What a program prints or writes may hold what nobody takes down: how much memory it has, when `logging` was imported.
Only a second replay of the same program tells such a value from one that the program came to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from reenact.compare.volatile import Volatile

UNSTABLE: Final = "values that differ from replay to replay"
_VALUE: Final = re.compile(
    r"[0-9A-Za-z+/_-]{16,}|0x[0-9a-fA-F]+|[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4,12})+|\d+(?:[.,:]\d+)*(?:e[-+]\d+)?"
)


def differs_in_values(one: str, other: str) -> bool:
    """Tell that two lines are equal but for their numbers and tokens."""
    return _VALUE.sub("#", one) == _VALUE.sub("#", other)


def is_unstable(one: str, other: str, again: str, volatile: Volatile, log: str | None = None) -> bool:
    """Tell that each value in which a line of a replay differs from the recorded one differs in a second replay, too.

    `log` is the format of a logged line.
    """
    if volatile.are_swapped(one, other, log=log):
        return False
    if not (differs_in_values(one, other) and differs_in_values(other, again)):
        return False
    values = zip(*(_VALUE.findall(each) for each in (one, other, again)), strict=True)
    return all(now != later or volatile.alike(before, now, log=log) is not None for before, now, later in values)


def is_another_order(pairs: Iterable[tuple[str, str]]) -> bool:
    """Tell that lines hold the recorded values, each in another place: no value is another, their order is."""
    sides = [[value for each in side for value in _VALUE.findall(each)] for side in zip(*pairs, strict=True)]
    return bool(sides) and sorted(sides[0]) == sorted(sides[1])
