"""The one way of trace text to a terminal.

A trace is written by strangers: it may hold escape sequences that move the cursor, set the clipboard or hide lines, and
direction marks that make text read backwards (CVE-2021-42574).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,256}[ -/]{0,64}[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]{0,16}[0-~]"  # two-character sequences
)
"""ECMA-48, sections 5.4 and 8.3. One that never ends loses only its introducer, lest it swallow what follows."""

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 less tab and line feed, DEL, C1
    "\u061c\u200b\u200e\u200f\u2060-\u2064\u202a-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb"  # directions, invisible
    "\U000e0000-\U000e007f]"  # tag characters: text that no one sees
)
_BREAKS = re.compile("\r\n?|[\u2028\u2029\x0b\x0c\x85]")
_NARROW = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027\u2500-\u257f]*")
"""Characters of one cell each: Latin, dashes and dots, lines of a tree. Most texts hold no other."""
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Take out whatever a terminal could act on; line feeds and tabs stay. Applied twice it changes nothing more."""
    text = _SEQUENCES.sub("", _BREAKS.sub("\n", text))
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))


def one_line(text: str) -> str:
    """Clean a text and bring it into one line, any white space as one blank."""
    return " ".join(clean(text).split())


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
