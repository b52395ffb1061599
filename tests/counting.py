"""Work counted instead of timed: how many lines of Python something takes, which no busy machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], object]) -> int:
    """Count the lines of Python that `work` runs in this thread; what built-in functions do inside is not seen."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def growth(work: Callable[[int], Callable[[], object]], size: int) -> float:
    """Tell how many times more lines twice the size takes: 2 where work grows with the size, 4 with its square.

    `work(size)` prepares something of a size, which is not counted, and gives what is to be counted.
    """
    small, large = (steps(work(each)) for each in (size, 2 * size))
    return large / small
