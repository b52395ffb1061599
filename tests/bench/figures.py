"""Medians, spreads and plain tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value: the median of its rounds, and the quartiles that half of the rounds lie between."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Figure:
        """Sum up the rounds of one measurement."""
        if len(values) < 2:
            return Figure(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return Figure(median, low, high)

    def shown(self, digits: int = 0) -> str:
        """Spell it as `median (low–high)`."""
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}–{self.high:.{digits}f})"

    def json(self) -> dict[str, float]:
        """Give it for `--json`."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay rows out in columns: the first to the left, the others to the right."""
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, ["-" * width for width in widths], *rows)
    ]
    return "\n".join(f"  {line}" for line in lines)
