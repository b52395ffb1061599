"""What stays on a screen of a text that goes up again and writes over its own lines, as a terminal folds it (ECMA-48).

How often a table or a bar is drawn anew goes by the clock; what it shows at its end does not. Everything that was
printed before and behind stays, line by line: the screen is as high as the text.
"""

from __future__ import annotations

import re
from typing import Final

_GOES_UP: Final = re.compile(r"\x1b\[\d*[AF]")
_PIECE: Final = re.compile(r"\x1b\[([0-9;:?]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.?|[\r\n\b]|[^\x1b\r\n\b]+")


def goes_up(text: str) -> int:
    """Count how often a text moves up to a line before."""
    return len(_GOES_UP.findall(text))


def settled(text: str) -> str:
    """Give what stays of a text, without styles."""
    screen = _Screen()
    for match in _PIECE.finditer(text):
        piece, final = match[0], match[2]
        if final is not None:
            screen.control(match[1], final)
        elif piece == "\n":
            screen.move_to(screen.row + 1, 0)
        elif piece == "\r":
            screen.column = 0
        elif piece == "\b":
            screen.column = max(0, screen.column - 1)
        elif not piece.startswith("\x1b"):
            screen.write(piece)
    return "\n".join("".join(row).rstrip() for row in screen.rows)


class _Screen:
    def __init__(self) -> None:
        self.rows: list[list[str]] = [[]]
        self.row = self.column = 0

    def move_to(self, row: int, column: int) -> None:
        self.row, self.column = max(0, row), max(0, column)
        while len(self.rows) <= self.row:
            self.rows.append([])

    def write(self, text: str) -> None:
        row = self.rows[self.row]
        row.extend(" " * (self.column - len(row)))
        row[self.column : self.column + len(text)] = text
        self.column += len(text)

    def control(self, parameter: str, final: str) -> None:
        """Follow a control sequence: moves by default one, erasures from here on."""
        count = int(parameter) if parameter.isdecimal() else 1
        match final:
            case "A" | "F":
                self.move_to(self.row - count, 0 if final == "F" else self.column)
            case "B" | "E":
                self.move_to(self.row + count, 0 if final == "E" else self.column)
            case "C":
                self.column += count
            case "D":
                self.column = max(0, self.column - count)
            case "G":
                self.column = count - 1
            case "K" | "J":
                self._erase(parameter or "0", rows=final == "J")
            case _:
                return

    def _erase(self, what: str, *, rows: bool) -> None:
        row = self.rows[self.row]
        if what == "0":
            del row[self.column :]
            if rows:
                del self.rows[self.row + 1 :]
        elif what == "1":
            row[: self.column] = " " * min(self.column, len(row))
        else:
            row.clear()
            if rows:
                for each in self.rows:
                    each.clear()
