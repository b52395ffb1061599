"""What tools print while they run: an answer to them has to print it again.

The streams are heard (`record.console`) while a tool is open. A text belongs to every open tool around it, on whatever
thread or task its work is done.
"""

from __future__ import annotations

from typing import Any, Final

from reenact.boundary import place
from reenact.record import console
from reenact.values import locks

_LONGEST: Final = 1_000_000
"""Characters of one call that are kept."""


class Printed:
    """What one call printed."""

    __slots__ = ("_length", "is_cut", "mixed", "outer", "pieces", "span", "texts")

    def __init__(self, span: int, outer: Printed | None) -> None:
        self.span, self.outer = span, outer
        self.texts: list[list[Any]] = []
        """Stream, text, how many pieces it had yielded before; what it is where it is no text of the agent's own."""
        self.pieces = 0
        self.mixed = False
        """Something else printed in between: an answer prints it as one."""
        self.is_cut = False
        """It was too much to be printed again."""
        self._length = 0

    def add(self, stream: str, text: str, source: console.Source | None) -> None:
        """Hear a text."""
        passed = [source.what] if source is not None and not source.own else []
        self._length += len(text)
        if self._length > _LONGEST:
            self.is_cut = True
        elif self.texts and self.texts[-1][0] == stream and self.texts[-1][2:] == [self.pieces, *passed]:
            self.texts[-1][1] += text
        else:
            self.texts.append([stream, text, self.pieces, *passed])


_open: Final[dict[int, Printed]] = {}
"""By span: tools that are open, and calls inside them, which print as the tool."""
_lock = locks.rlock()


def is_open() -> bool:
    """Tell whether a tool is open."""
    return bool(_open)


def is_of_tool(span: int) -> bool:
    """Tell whether what is printed in the call with this span is printed again by the answer to a tool."""
    return span in _open


def begin(span: int, parent: int) -> None:
    """Begin to hear what the call with this span prints."""
    with _lock:
        if not _open:
            console.listen(_note)
        _open[span] = Printed(span, _open.get(parent))


def inherit(span: int, parent: int) -> None:
    """Have a call inside a tool print as that."""
    if (outer := _open.get(parent)) is not None:
        _open[span] = outer


def piece(span: int) -> None:
    """Hear that a generator yielded."""
    if _open and (capture := _open.get(span)) is not None and capture.span == span:
        capture.pieces += 1


def end(span: int) -> Printed | None:
    """End hearing, and give what was printed."""
    with _lock:
        capture = _open.pop(span, None)
        if capture is not None and not _open:
            console.leave(_note)
    return capture


def _note(name: str, text: str, source: console.Source | None) -> None:
    here = place.current()
    capture = _open.get(here.span_id) if here is not None else None
    around = set[int]()
    while capture is not None:
        capture.add(name, text, source)
        around.add(id(capture))
        capture = capture.outer
    for each in tuple(_open.values()):
        if id(each) not in around and each.texts and each.texts[-1][2] == each.pieces:
            each.mixed = True
