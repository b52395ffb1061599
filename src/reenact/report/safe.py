"""Trace text in the lines of a report: cleaned (`values.terminal`), brought into one line, cut to a width."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reenact.values.terminal import clean

_NARROW = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2500-\u257f]*")
"""Characters of one cell each: Latin, dashes and dots, lines of a tree. Most texts hold no other."""
_BREAK = re.compile(r"\s*[^\S ]\s*")
"""White space with more in it than blanks, of which two texts may have another number."""
__all__ = ["clean", "fitted", "lines", "one_line"]


def one_line(text: str) -> str:
    """Clean a text and bring it into one line: a line's end, with what white space is around it, becomes one blank."""
    return _BREAK.sub(" ", clean(text)).strip()


def lines(texts: Iterable[str]) -> list[str]:
    """Clean whole lines; one with a line feed inside becomes several, and tabs become blanks."""
    return [line.expandtabs(4).rstrip() for text in texts for line in (clean(text).split("\n") if text else [""])]


def cells(text: str) -> int:
    """Count the terminal cells of a text: an East Asian character takes two, a combining one none."""
    if _NARROW.fullmatch(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fitted(text: str, width: int | None) -> str:
    """Cut a line to `width` terminal cells (an East Asian character takes two), with an ellipsis; None leaves it."""
    if width is None or len(text) * 2 <= width or cells(text) <= width:
        return text
    if _NARROW.fullmatch(text):
        return f"{text[: max(0, width - 1)].rstrip()}…"
    from rich.cells import set_cell_size

    return f"{set_cell_size(text, max(0, width - 1)).rstrip()}…"
