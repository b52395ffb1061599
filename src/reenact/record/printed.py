"""What found tools print while they run: an answer to them has to print it again.

`print`, `sys.stdout.write` and what else writes text to the standard streams is heard by an attribute `write` of the
stream object, which stands before the method of its class. It is set while a found tool is open and taken away with
the last one. What is written to the bytes below (`sys.stdout.buffer`, `os.write`) is not heard. A text belongs to every
open tool around it, on whatever thread or task its work is done.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from reenact.boundary import place
from reenact.boundary.forgiving import forgive

_LONGEST: Final = 1_000_000
"""Characters of one call that are kept."""


class Printed:
    """What one call printed."""

    __slots__ = ("_length", "mixed", "outer", "pieces", "span", "texts")

    def __init__(self, span: int, outer: Printed | None) -> None:
        self.span, self.outer = span, outer
        self.texts: list[list[Any]] = []
        """Stream, text, how many pieces it had yielded before."""
        self.pieces = 0
        self.mixed = False
        """Something else printed in between, or it was too much: it cannot be printed again as it was."""
        self._length = 0

    def add(self, stream: str, text: str) -> None:
        """Hear a text."""
        self._length += len(text)
        if self._length > _LONGEST:
            self.mixed = True
        elif self.texts and self.texts[-1][0] == stream and self.texts[-1][2] == self.pieces:
            self.texts[-1][1] += text
        else:
            self.texts.append([stream, text, self.pieces])


_open: Final[dict[int, Printed]] = {}
"""By span: found tools that are open, and calls inside them, which print as the tool."""
_lock = threading.RLock()
_heard: Final[list[tuple[Any, Any]]] = []
"""The streams that have our attribute, each with it."""


def is_open() -> bool:
    """Tell whether a found tool is open."""
    return bool(_open)


def begin(span: int, parent: int) -> None:
    """Begin to hear what the call with this span prints."""
    with _lock:
        _open[span] = Printed(span, _open.get(parent))
        for name in ("stdout", "stderr"):
            _hear(name, getattr(sys, name, None))


def inherit(span: int, parent: int) -> None:
    """Have a call inside a found tool print as that."""
    if (outer := _open.get(parent)) is not None:
        _open[span] = outer


def piece(span: int) -> None:
    """Hear that a generator yielded."""
    if _open and (found := _open.get(span)) is not None and found.span == span:
        found.pieces += 1


def end(span: int) -> Printed | None:
    """End hearing, and give what was printed."""
    with _lock:
        found = _open.pop(span, None)
        if not _open:
            while _heard:
                stream, ours = _heard.pop()
                if vars(stream).get("write") is ours:
                    del stream.write
    return found


def _hear(name: str, stream: Any) -> None:
    try:
        if stream is None or any(stream is each for each, _ in _heard) or "write" in vars(stream):
            return
        stream.write = ours = _hearing(name, stream.write)
        _heard.append((stream, ours))
    except Exception:  # it takes no attributes
        forgive("printed.hear")


def _hearing(name: str, write: Callable[[str], Any]) -> Callable[[str], Any]:
    def heard(text: str, /) -> Any:
        try:
            if _open and type(text) is str:
                _note(name, text)
        except Exception:
            forgive("printed.heard")
        return write(text)

    return heard


def _note(name: str, text: str) -> None:
    here = place.current()
    found = _open.get(here.span_id) if here is not None else None
    around = set[int]()
    while found is not None:
        found.add(name, text)
        around.add(id(found))
        found = found.outer
    for each in tuple(_open.values()):
        if id(each) not in around and each.texts and each.texts[-1][2] == each.pieces:
            each.mixed = True  # an answer prints it behind the other
