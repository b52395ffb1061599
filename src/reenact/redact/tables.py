"""Cells under a heading that calls them secrets, in tables of Markdown and in lines with separators (RFC 4180).

A heading is looked for where the gate tells of a word that calls for secrecy, so that a text without one costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from reenact.redact.fields import SENSITIVE_KEYS

HEADINGS: Final = frozenset({"api key", "secret key", "access key", "private key", "passphrase", "passcode", "pwd"})
"""What headings say beside the keys that are sensitive."""
_WORDS: Final = frozenset(each.replace("-", " ").replace("_", " ") for each in SENSITIVE_KEYS | HEADINGS)
_RULE: Final = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*){0,200}\|?[ \t\r]*")
_HEADING: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.#\-]{0,39}(?: [A-Za-z0-9_.#\-]{1,39}){0,3}")
_CELL: Final = re.compile(r'"(?:[^"\n]|"")*+"')
_NOTHING: Final = re.compile(
    r"(?i)\W*|.{0,3}|(?:yes|no|true|false|none|null|n/?a|string|text|varchar.*|required|optional|hidden|secret|password)|"
    r"(?:\S+\s+){4,}.*"
)
"""What is no secret: marks alone, what says whether there is one, a sentence that describes it."""
_MOST_LINES: Final = 10_000
_LONGEST_LINE: Final = 4096
_BREAK: Final = "\n\x1f\n"


def cells(text: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Give the cells that hold secrets; `places` are those of words that a heading may have, in order.

    Where `text` is several that are put together (`glance.BETWEEN`) and one of them is such a word alone, it may be the
    name of a value beside it: that is given with what stands between the texts.
    """
    scanned_end = -1
    for at in places:
        if at < scanned_end:
            continue
        begin = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        if end < 0 or end - begin > _LONGEST_LINE:
            continue
        scanned_end = end
        line = text[begin:end]
        alone = text.startswith(_BREAK, end) and (not begin or text.startswith(_BREAK, begin - len(_BREAK)))
        if alone and line.lower() in SENSITIVE_KEYS:
            yield begin, end + 2
            continue
        table_cells, scanned_end = _table(text, line, begin, end)
        yield from table_cells


def _table(text: str, line: str, begin: int, end: int) -> tuple[list[tuple[int, int]], int]:
    """Give the secret cells of the table whose heading a line is, and where its last line ends."""
    if "|" in line and (rule := _line(text, end + 1)) is not None and _RULE.fullmatch(text, *rule):
        return _below(text, _split(line, begin, "|"), rule[1], "|", ragged=True)
    for mark in ",\t;|":
        heads = _split(line, begin, mark)
        if len(heads) > 1 and _is_heading(text, heads, mark):
            return _below(text, heads, end, mark, ragged=False)
    return [], end


def _below(
    text: str, heads: list[tuple[int, int]], end: int, mark: str, *, ragged: bool
) -> tuple[list[tuple[int, int]], int]:
    secret = [number for number, (a, b) in enumerate(heads) if _is_sensitive(text[a:b])]
    cells: list[tuple[int, int]] = []
    for _ in range(_MOST_LINES if secret else 0):
        following = _line(text, end + 1)
        if following is None or not text[slice(*following)].strip():
            break
        row = _split(text[slice(*following)], following[0], mark)
        if len(row) != len(heads) if not ragged else mark not in text[slice(*following)]:
            break
        cells += [row[at] for at in secret if at < len(row) and _NOTHING.fullmatch(text, *row[at]) is None]
        end = following[1]
    return cells, end


def _line(text: str, begin: int) -> tuple[int, int] | None:
    if begin > len(text):
        return None
    end = text.find("\n", begin)
    end = len(text) if end < 0 else end
    return (begin, end) if begin < len(text) and end - begin <= _LONGEST_LINE else None


def _split(line: str, begin: int, mark: str) -> list[tuple[int, int]]:
    """Cut a line into cells, and give where each begins and ends without blanks, quotes and Markdown's emphasis."""
    cell_spans: list[tuple[int, int]] = []
    at = 0
    while at <= len(line):
        quoted = _CELL.match(line, at + len(line[at:]) - len(line[at:].lstrip(" "))) if mark != "|" else None
        end = line.find(mark, quoted.end() if quoted else at)
        end = len(line) if end < 0 else end
        cell = line[at:end]
        inner = cell.strip(" \t\r\"'`*")
        start = at + cell.find(inner) if inner else at
        cell_spans.append((begin + start, begin + start + len(inner)))
        at = end + 1
    return cell_spans


def _is_heading(text: str, heads: Sequence[tuple[int, int]], mark: str) -> bool:
    """Tell the first line of a table from a sentence with commas: names, each of a few words."""
    words = [text[a:b] for a, b in heads]
    if any(_HEADING.fullmatch(word) is None for word in words):
        return False
    spaced = mark == "," and any(text[a - 1 : a] == " " for a, _ in heads[1:])
    return not spaced or not any(" " in word for word in words)


def _is_sensitive(heading: str) -> bool:
    plain = heading.lower().replace("_", " ").replace("-", " ").strip()
    words = plain.split()
    return any(" ".join(words[at : at + size]) in _WORDS for at in range(len(words)) for size in (1, 2, 3))
