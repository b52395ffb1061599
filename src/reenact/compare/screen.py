"""What a printed text says, less what is drawn over and less what depends on where it is shown.

- colours and other styles (ECMA-48, section 8.3.117) stand beside the text, and are compared where both sides have any
- of a line that is written over (a carriage return) the last state stays; in it how long and how fast is left out
- of a text that goes up and writes over its own lines, what a terminal shows at the end stays (`compare.redraws`)
- other lines that are moved to and erased are left out
- of a traceback the error stays: the frames are others where an answer comes from a recording, and after an edit
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from reenact.compare.redraws import goes_up, settled

_STYLE: Final = re.compile(r"\x1b\[[0-9;:]*m|\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[\?25[lh]")
_COLOUR: Final = re.compile(r"\x1b\[([0-9;:]*)m")
_MOVE: Final = re.compile(r"\x1b\[[0-9;?]*[A-HJKSTfsu]|\x1b[78M]")
_PACE: Final = re.compile(
    r"\d+:\d\d(?::\d\d)?|\?|\d+(?:\.\d+)?\s?(?:[kKMG]?i?[Bb]?(?:it|its|files?|items?|rows?)?/s|s/it|it/s|ms|µs|s|m)\b"
)
_BAR: Final = re.compile(
    r"\d+%.*(?:\bETA\b|\bElapsed\b|\[[^\]]*(?:it/s|s/it|\d\d:\d\d))|\d+% ?[|\[][ #=█▉▊▋▌▍▎▏░▒▓>·.-]{3,}[|\]]"
    r"|[━╸╺]{3,}.*\d(?:%|/\d|:\d\d)"
)
"""A bar of progress: so much, and how long it took or takes."""
_BLANKS: Final = re.compile(r"\s+")
_TRACEBACK: Final = re.compile(
    r"^\s*(?:[+|] )*(?:Exception Group )?Traceback \(most recent call last\):$|^\s*[╭┌]─+ ?Traceback "
)
_FRAME: Final = re.compile(r"^(?:\s*\| |(?!\s*\|))\s*?(?:  File \"|    |  \[Previous line repeated)|^\s*(?:\| *)*[│╰╭]")
"""A frame; what stands in a group of errors has a bar before it, and an error there is no frame for being indented."""
_CHAIN: Final = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text."""

    number: int
    text: str
    form: str = ""
    """The format of a logged line."""
    drawn: bool = False
    """It was written over: a progress bar."""
    styles: tuple[str, ...] = ()
    """The colours and other styles that it switches to, in their order."""


def lines(text: str, forms: dict[int, str], counts: Counter[str]) -> list[Line]:
    """Give the lines of a text; `forms` names the format of logged ones, by number; what is left out is counted."""
    rows: list[Line] = []
    if redrawn := goes_up(text):
        text, forms = settled(text), {}
        counts["states of lines that were written over"] += redrawn
    for number, raw in enumerate(text.split("\n"), 1):
        line = _STYLE.sub("", raw)
        drawn = "\r" in line.rstrip("\r")
        if drawn:
            line = next((part for part in reversed(line.split("\r")) if part.strip()), "")
            counts["states of lines that were written over"] += 1
        if _MOVE.search(line):
            counts["lines that were moved to or erased"] += 1
            bare = _MOVE.sub("", line)
            if drawn or not bare.strip():
                continue
            line, drawn = bare, True
        line = line.rstrip("\r")
        if drawn or _BAR.search(line):
            line, drawn = _BLANKS.sub(" ", _PACE.sub("…", line)).rstrip(), True
        styles = () if drawn else tuple(_COLOUR.findall(raw))
        rows.append(Line(number, line, forms.get(number, ""), drawn, styles))
    return [*_untraced(_last_states(rows, counts), counts)]


def _last_states(rows: list[Line], counts: Counter[str]) -> list[Line]:
    """Keep the last state of a bar that is drawn anew on a line of its own each time."""
    final_rows: list[Line] = []
    for line in rows:
        if final_rows and _BAR.search(line.text) and _BAR.search(final_rows[-1].text):
            final_rows[-1] = line
            counts["states of lines that were written over"] += 1
        else:
            final_rows.append(line)
    return final_rows


def _untraced(rows: list[Line], counts: Counter[str]) -> Iterator[Line]:
    """Leave out the frames of tracebacks, and the errors that another one came from."""
    if not any(_TRACEBACK.match(each.text) for each in rows):
        yield from rows
        return
    at = 0
    while at < len(rows):
        if not _TRACEBACK.match(rows[at].text):
            yield rows[at]
            at += 1
            continue
        end = _end(rows, at)
        while (behind := _chained(rows, end)) is not None:
            end = _end(rows, behind)
        counts["frames of tracebacks"] += end - at
        at = end


def _end(rows: list[Line], at: int) -> int:
    """Give where the frames of the traceback at a line end: at its error."""
    at += 1
    while at < len(rows) and _FRAME.match(rows[at].text):
        at += 1
    return at


def _chained(rows: list[Line], at: int) -> int | None:
    """Give where the next traceback begins, if the error here is what another one came from."""
    for number in range(at, min(len(rows), at + 50)):
        if rows[number].text.strip(" |") in _CHAIN:
            return next(
                (each for each in range(number, min(len(rows), number + 3)) if _TRACEBACK.match(rows[each].text)),
                None,
            )
        if _TRACEBACK.match(rows[number].text):
            return None
    return None
