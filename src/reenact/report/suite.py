"""What a suite of replays came to, for a person and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from reenact.report import safe
from reenact.values.json import Json


@dataclass(frozen=True, slots=True)
class Row:
    """What one replay came to."""

    word: str
    run: str
    name: str
    line: str
    """All of it in one line, the word first."""
    seconds: float


def suite(rows: Sequence[Row], seconds: float) -> list[str]:
    """Say what a suite came to: a line for each replay in the order of the suite, then how many came to what."""
    columns = list(zip(*((row.word, row.run, row.name) for row in rows), strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines = [_line(row, widths) for row in rows]
    counted = ", ".join(f"{count} {word}" for word, count in Counter(row.word for row in rows).most_common())
    lines.append(f"{len(rows)} recordings: {counted or 'none'}; {seconds:.1f} s")
    return [safe.clean(line).replace("\n", " ") for line in lines]


def _line(row: Row, widths: Sequence[int]) -> str:
    cells = [cell.ljust(width) for cell, width in zip((row.word, row.run, row.name), widths, strict=True)]
    detail = row.line.removeprefix(row.word).removeprefix(": ").strip()
    return "  ".join([*cells, f"{row.seconds:5.1f} s", detail]).rstrip()


def suite_document(documents: Sequence[dict[str, Json]], words: Sequence[str], exit_code: int) -> dict[str, Json]:
    """Make the document of `reenact replay --all --json`."""
    return {"runs": [*documents], "summary": dict[str, Json](Counter(words)), "exit": exit_code}
