"""The rows of `ls`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from reenact.report.safe import cells, fitted, one_line
from reenact.report.times import duration
from reenact.values.json import Json
from reenact.values.lenient import as_object, as_text

_HEADS: Final = ("RUN", "STARTED", "NAME", "STATUS", "TOOK", "CALLS", "VERDICT", "SESSION", "USER")
_ELASTIC: Final = ("NAME", "CALLS", "SESSION", "USER")
_NARROWEST: Final = 8


def listing(summaries: Iterable[Mapping[str, Json]], *, width: int | None = None) -> list[str]:
    """Lay out one line a run below a heading, columns aligned by blanks; a column that is empty throughout is left out.

    `width` is in terminal cells: names are cut to fit it. None, as for a pipe, cuts nothing.
    """
    rows = [_row(summary) for summary in summaries]
    if not rows:
        return ["no run"]
    columns = [at for at, head in enumerate(_HEADS) if head not in _ELASTIC or any(row[at] for row in rows)]
    table = [[row[at] for at in columns] for row in (_HEADS, *rows)]
    widths = [max(cells(row[at]) for row in table) for at in range(len(columns))]
    widths = _narrowed(widths, [_HEADS[at] for at in columns], width)
    lines: list[str] = []
    for row in table:
        cut = [fitted(cell, room) for cell, room in zip(row, widths, strict=True)]
        padded = [cell + " " * (room - cells(cell)) for cell, room in zip(cut, widths, strict=True)]
        lines.append(fitted("  ".join(padded).rstrip(), width))
    return lines


def _narrowed(widths: list[int], heads: Sequence[str], width: int | None) -> list[int]:
    """Take cells from the widest elastic column until the table fits."""
    if width is None:
        return widths
    widths = list(widths)
    elastic = [at for at, head in enumerate(heads) if head in _ELASTIC]
    while elastic and sum(widths) + 2 * (len(widths) - 1) > width:
        widest = max(elastic, key=lambda at: widths[at])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _started(instant: str) -> str:
    """Spell the start to the second, with the `Z` that `--at` understands: it is UTC, wherever one reads it."""
    return f"{instant[:19].replace('T', ' ')}Z" if instant else ""


def _row(summary: Mapping[str, Json]) -> tuple[str, ...]:
    counts = as_object(summary.get("calls"))
    ms = summary.get("duration_ms")
    verdict = summary.get("verdict")
    grade = as_object(verdict).get("grade") if isinstance(verdict, dict) else verdict
    name = as_text(summary.get("name")) + (" (replay)" if summary.get("replay_of") else "")
    if parent := as_text(summary.get("fork_of")):
        name += f" (fork of {parent[:12]})"
    row = (
        as_text(summary.get("id"))[:12],
        _started(as_text(summary.get("started"))),
        name,
        as_text(summary.get("status")),
        duration(ms) if isinstance(ms, int | float) else "?",
        ", ".join(f"{count} {kind}" for kind, count in counts.items()),
        as_text(grade) or ("not judged" if summary.get("judged") is False else ""),
        as_text(summary.get("session")),
        as_text(summary.get("user")),
    )
    return tuple(one_line(cell) for cell in row)
