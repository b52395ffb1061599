"""Where in a TOML file a value stands: `tomllib` says so of a syntax error only, and people look for a line.

The file is read once more, one statement after the other, and only when something is wrong.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, cast

Path = tuple[str | int, ...]
"""Keys and indexes that lead to a value."""

_LONGEST = 2000
"""Lines of one statement."""
_SYNTAX = re.compile(r"(?P<problem>.*) \((?:at line (?P<line>\d+), column (?P<column>\d+)|at end of document)\)")


def syntax(error: tomllib.TOMLDecodeError, text: str) -> tuple[int, int, str]:
    """Give line, column and message of a syntax error, counted from 1."""
    match = _SYNTAX.fullmatch(str(error))
    if match is None:
        return 1, 1, str(error)
    if match["line"] is None:
        lines = text.splitlines() or [""]
        return len(lines), len(lines[-1]) + 1, f"{match['problem']} at the end of the file"
    return int(match["line"]), int(match["column"]), match["problem"]


def place(text: str, path: Path) -> tuple[int, int]:
    """Give line and column, counted from 1, of the value at `path`, or of what is nearest above it.

    `text` is valid TOML.
    """
    best: tuple[int, int, int] = (0, 1, 1)
    lines = text.splitlines()
    for prefix, first, last in _statements(lines):
        shared = 0
        while shared < min(len(prefix), len(path)) and prefix[shared] == path[shared]:
            shared += 1
        if shared == len(prefix) and shared > best[0]:
            line, column = _within(lines[first:last], path[shared:], _key_column(lines[first]))
            best = shared, first + line, column
        elif shared == len(path) and shared > best[0]:  # a table that only its members make
            best = shared, first + 1, _key_column(lines[first])
    return best[1], best[2]


def _key_column(line: str) -> int:
    return len(line) - len(line.lstrip()) + 1


def _within(lines: list[str], rest: Path, column: int) -> tuple[int, int]:
    """Look for what is left of a path inside one statement: a key of an inline table, an item of an array."""
    key = next((part for part in reversed(rest) if isinstance(part, str)), None)
    if key is not None:
        spelled = re.compile(r"(?<![\w\"'-])[\"']?" + re.escape(key) + r"[\"']?\s*[=.]")
        for number, line in enumerate(lines, 1):
            if match := spelled.search(line):
                return number, match.start() + 1
    elif rest and isinstance(rest[0], int) and len(lines) > 1:
        items = [number for number, line in enumerate(lines, 1) if line.strip()[:1] in {'"', "'", "{"}]
        if rest[0] < len(items):
            at = items[rest[0]]
            return at, _key_column(lines[at - 1])
    return 1, column


def _statements(lines: list[str]) -> Iterator[tuple[Path, int, int]]:
    """Give the path of each key and table header, and the lines from which and up to which it reaches."""
    table: Path = ()
    counts: dict[Path, int] = {}
    at = 0
    while at < len(lines):
        stripped = lines[at].strip()
        if not stripped or stripped.startswith("#"):
            at += 1
            continue
        end, parsed = _statement(lines, at)
        if stripped.startswith("["):
            names = _names(parsed)
            table = ()
            for depth, name in enumerate(names):
                table = (*table, name)
                if stripped.startswith("[[") and depth == len(names) - 1:
                    counts[table] = counts.get(table, -1) + 1
                if table in counts:
                    table = (*table, counts[table])
            yield table, at, end
        else:
            yield (*table, *_names(parsed)), at, end
        at = end


def _statement(lines: list[str], at: int) -> tuple[int, Any]:
    for end in range(at + 1, min(len(lines), at + _LONGEST) + 1):
        try:
            return end, tomllib.loads("\n".join(lines[at:end]))
        except tomllib.TOMLDecodeError:
            continue
    return at + 1, {}


def _names(parsed: Any) -> list[str]:
    """Give the dotted key of a statement: down as far as there is one member, and no inline table is told from it."""
    names: list[str] = []
    while isinstance(parsed, dict) and len(cast("dict[str, Any]", parsed)) == 1:
        ((name, parsed),) = cast("dict[str, Any]", parsed).items()
        names.append(name)
        if isinstance(parsed, list) and parsed == [{}]:
            break
    return names
