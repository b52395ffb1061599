"""JSON documents out of a stream of bytes, one at a time, each with the line it starts on.

JSON lines are the fast way: a line that is a whole document costs one call of orjson. What is laid out otherwise
(one document over many lines, documents set one after another) is cut apart by counting brackets first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NoReturn, cast

import orjson

from reenact.errors import InputError
from reenact.values.json import Json, exactly
from reenact.values.limits import RAISE_THE_LIMIT, max_record_bytes, spelled

_PIECE = 1 << 20
_BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|["\[\]{}]', re.DOTALL)
"""A whole string, a bracket, or the quote of a string that does not end on this line. Possessive: no backtracking."""


def documents(stream: BinaryIO, place: str) -> Iterator[tuple[int, Json]]:
    r"""Read every JSON document of `stream` and give it with the number of its first line, counted from 1.

    Accepts JSON lines, pretty-printed documents, and documents one after another, in any mixture; white space and a
    UTF-8 byte order mark at the start are passed over. Lone surrogates in `\uXXXX` escapes, and the bare words NaN
    and Infinity, are read as Python's own parser reads them. At most one document is in memory.

    Raises `InputError`, its place `place:line`, on anything that is no JSON: bad UTF-8, a document that is cut off, one
    nested deeper than 1,024 levels, one longer than `limits.max_record_bytes`.
    """
    limit = max_record_bytes()
    pending = _Splitter(place, limit)
    number = 0
    while line := _line(stream, limit, f"{place}:{number + 1}"):
        number += 1
        if number == 1 and line.startswith(_BOM):
            line = line[len(_BOM) :]
        if pending.empty:
            if line.isspace():
                continue
            try:
                yield number, orjson.loads(line)
                continue
            except orjson.JSONDecodeError:
                pass  # laid out otherwise, or broken: the slow way finds out which
        else:
            pending.refuse_a_cut(line)
        for start, text in pending.feed(line, number):
            yield start, _loads(text, place, start)
    pending.finish()


def wrong(refusal: Exception) -> str:
    """Say what is wrong with the shape of a document: the field that it lacks, else what stands where it cannot."""
    if isinstance(refusal, KeyError):
        return f"it lacks `{refusal.args[0]}`"
    return str(refusal) if type(refusal) is ValueError else f"{type(refusal).__name__}: {refusal}"


def _line(stream: BinaryIO, limit: int, place: str) -> bytes | bytearray:
    """Read up to the next newline, holding no more than the limit and never a second copy of a long line."""
    first = stream.readline(_PIECE)
    if len(first) < _PIECE or first.endswith(b"\n"):
        if len(first) > limit:
            _too_long(limit, place)
        return first
    whole = bytearray(first)
    while piece := stream.readline(_PIECE):
        whole += piece
        if len(whole) > limit:
            _too_long(limit, place)
        if piece.endswith(b"\n"):
            break
    return whole


def _too_long(limit: int, place: str) -> NoReturn:
    raise InputError(place, f"this line is longer than the limit of {spelled(limit)}", hint=RAISE_THE_LIMIT)


def _loads(text: bytes | bytearray, place: str, start: int) -> Json:
    """Parse one document that counting brackets found whole."""
    try:
        return cast("Json", orjson.loads(text))
    except orjson.JSONDecodeError as refusal:
        error = refusal
    where = f"{place}:{start + error.lineno - 1}"
    try:
        # Lone surrogates, NaN and numbers beyond a double: orjson refuses them, the standard library reads them.
        return exactly(text.decode())
    except UnicodeDecodeError as refusal:
        line = start + text.count(b"\n", 0, refusal.start)
        raise InputError(
            f"{place}:{line}",
            f"byte 0x{text[refusal.start]:02x} is not UTF-8",
            hint="Traces are UTF-8; the file was damaged or written in another encoding.",
        ) from None
    except ValueError:
        if "depth" in error.msg:
            raise InputError(where, "this document is nested deeper than 1,024 levels") from None
        raise InputError(where, f"this is not JSON: {error.msg} at column {error.colno}") from None


class _Splitter:
    """Gathers lines until the brackets of a document are closed."""

    def __init__(self, place: str, limit: int) -> None:
        self._place, self._limit = place, limit
        self._text = bytearray()
        self._start = self._depth = 0

    @property
    def empty(self) -> bool:
        return self._depth == 0

    def feed(self, line: bytes | bytearray, number: int) -> Iterator[tuple[int, bytearray]]:
        """Take one more line; give each document that ends on it, with the number of the line it began on."""
        begin = end = 0
        for token in _TOKEN.finditer(line):
            sign = line[token.start()]
            if self._depth == 0:
                self._check_gap(line[end : token.start()], number, opens=sign in b"{[")
                begin, self._start = token.start(), number
            if sign in b"{[":
                self._depth += 1
            elif sign in b"}]":
                self._depth -= 1
            elif token.end() - token.start() == 1:
                self._refuse_open_string(line, number)
            if self._depth == 0:
                end = token.end()
                self._text += line[begin:end]
                whole, self._text, begin = self._text, bytearray(), end
                yield self._start, whole
        if self._depth == 0:
            self._check_gap(line[end:], number, opens=True)
            return
        self._text += line[begin:]
        if len(self._text) > self._limit:
            problem = f"the document that begins here is longer than the limit of {spelled(self._limit)}"
            raise InputError(f"{self._place}:{self._start}", problem, hint=RAISE_THE_LIMIT)

    def refuse_a_cut(self, line: bytes | bytearray) -> None:
        """Tell a JSON line that was cut off from a document that spans lines: after the first comes a whole line."""
        if not (self._text.startswith(b"{") and line.startswith(b"{")):
            return
        try:
            orjson.loads(line)
        except orjson.JSONDecodeError:
            return
        raise InputError(f"{self._place}:{self._start}", "this line is cut off in the middle", hint=_DAMAGED)

    def finish(self) -> None:
        """Refuse a document that the end of the file left open."""
        if self._depth:
            problem = "the file ends in the middle of the document that begins here"
            raise InputError(f"{self._place}:{self._start}", problem, hint=_DAMAGED)

    def _check_gap(self, gap: bytes | bytearray, number: int, *, opens: bool) -> None:
        if gap.strip() or not opens:
            raise InputError(f"{self._place}:{number}", "this is not JSON: expected `{` or `[` to begin a document")

    def _refuse_open_string(self, line: bytes | bytearray, number: int) -> NoReturn:
        where = "this line is" if line.endswith(b"\n") else "the file ends here and its last line is"
        raise InputError(f"{self._place}:{number}", f"{where} cut off inside a string", hint=_DAMAGED)


_DAMAGED = "It was damaged or not yet written to its end: copy it again, or cut the broken line out."
