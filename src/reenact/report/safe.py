"""Trace text in the lines of a report: cleaned (`values.terminal`), brought into one line, cut to a width."""

from __future__ import annotations

from collections.abc import Iterable

from reenact.values.terminal import clean

__all__ = ["clean", "fitted", "lines", "one_line"]


def one_line(text: str) -> str:
    """Clean a text and bring it into one line, any white space as one blank."""
    return " ".join(clean(text).split())


def lines(texts: Iterable[str]) -> list[str]:
    """Clean whole lines; one with a line feed inside becomes several, and tabs become blanks."""
    return [line.expandtabs(4).rstrip() for text in texts for line in (clean(text).split("\n") if text else [""])]


def fitted(text: str, width: int | None) -> str:
    """Cut a line to `width` terminal cells (an East Asian character takes two), with an ellipsis; None leaves it."""
    if width is None or len(text) * 2 <= width:
        return text
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    return f"{set_cell_size(text, max(0, width - 1)).rstrip()}…"
