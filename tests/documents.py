"""The documents as a test reads them: their code blocks, the commands in these, and the lines that stand below each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), ROOT / "collector" / "README.md")
}
CUT = "…"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NAMES = ("reenact", "python", "pip", "make", "curl", "git", "collector/_build/otelcol-reenact")
_START = re.compile(rf"(?:[A-Z_]+=\S+ )*(?:{'|'.join(map(re.escape, _NAMES))}) ")
_REMARK = re.compile(r" +# .*|  .*")
_SPOKEN = re.compile(r"(?<!`)`((?:[A-Z_]+=\S+ )?reenact [^`]+)`(?!`)")
_VOLATILE = {
    r"\b[0-9a-f]{12}\b": "ID",
    r"\b[0-9a-f]{40}\b": "COMMIT",
    r"REDACTED_(\w+?)_[0-9a-f]{18,20}": r"REDACTED_\1_TOKEN",
    r"\b[0-9a-f]{16}-[0-9a-f]{16}\b": "JOURNAL",
    r"of process \d+": "of process PID",
    r"\d{4}-\d\d-\d\d[T ][\d:.]+Z": "WHEN",
    r"\b\d+(?:\.\d+)? (?:ms|s)\b": "TOOK",
    r"\b\d+(?:\.\d+)? (?:KB|KiB|MB|MiB)\b": "SIZE",
    r"\b\d+\.\d a second\b": "RATE a second",
    r"[A-Za-z]:\d+\b": "LINE",
    r" {2,}": "  ",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a code block, and the lines that stand below it."""

    page: str
    block: int
    line: int
    text: str
    shown: tuple[str, ...]


def blocks(page: str) -> Iterator[tuple[int, str, str]]:
    """Give each code block of a page: the line of its first line, its language and its text."""
    text = PAGES[page].read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        yield text.count("\n", 0, match.start()) + 2, match[1], match[2]


def commands(page: str) -> list[Command]:
    """Give the commands of a page, in its order.

    A block with `$ ` shows what is printed below each command; one whose first line is a command has one a line, with a
    remark behind it. A line that ends in a backslash goes on.
    """
    listed: list[Command] = []
    for first, language, text in blocks(page):
        lines = text.splitlines()
        if language not in {"", "console"} or not lines:
            continue
        if any(line.startswith("$ ") for line in lines):
            listed += _prompted(page, first, lines)
        elif _START.match(lines[0] + " "):
            listed += (
                Command(page, first, first + at, _REMARK.sub("", line), ())
                for at, line in enumerate(lines)
                if _START.match(line + " ")
            )
    return listed


def _prompted(page: str, first: int, lines: list[str]) -> Iterator[Command]:
    at = 0
    while at < len(lines):
        start, text = at, lines[at][2:]
        assert lines[at].startswith("$ "), (page, first + at, "a line before the first command")
        at += 1
        while text.endswith("\\"):
            text, at = text[:-1].rstrip() + " " + lines[at].strip(), at + 1
        shown = []
        while at < len(lines) and not lines[at].startswith("$ "):
            if lines[at]:
                shown.append(lines[at])
            at += 1
        yield Command(page, first, first + start, re.sub(r" +# .*", "", text), tuple(shown))


def block(page: str, start: str) -> list[Command]:
    """Give the commands of the first block of a page whose first command begins so."""
    listed = commands(page)
    firsts = {command.block: command for command in reversed(listed)}
    chosen = min((first.block for first in firsts.values() if first.text.startswith(start)), default=0)
    return [command for command in listed if command.block == chosen]


def spoken(page: str) -> Iterator[Command]:
    """Give the commands that stand in the sentences of a page."""
    text = PAGES[page].read_text(encoding="utf-8")
    outside = _BLOCK.sub(lambda match: "\n" * match[0].count("\n"), text)
    for match in _SPOKEN.finditer(outside):
        yield Command(page, 0, outside.count("\n", 0, match.start()) + 1, " ".join(match[1].split()), ())


def settled(text: str) -> str:
    """Give a line without what is another in each run: ids, times, sizes, keyed tokens, widths of columns."""
    for pattern, word in _VOLATILE.items():
        text = re.sub(pattern, word, text)
    return text.rstrip()


def stands(shown: str, printed: str) -> bool:
    """Tell whether a line is printed as it is shown; a dot triple stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, settled(shown).split(CUT))), settled(printed)) is not None


def missing(shown: list[str], printed: list[str]) -> str | None:
    """Name the first shown line that is not printed next; a line of a dot triple alone stands for any lines."""
    at, skips = 0, False
    for line in shown:
        if line.strip() == CUT:
            skips = True
            continue
        while skips and at < len(printed) and not stands(line, printed[at]):
            at += 1
        if at >= len(printed) or not stands(line, printed[at]):
            return line
        at, skips = at + 1, False
    return None
