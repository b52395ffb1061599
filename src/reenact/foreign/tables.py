"""Rows of an export, whether they come as JSON, as lines of JSON, or as CSV with a line of names at the top."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

from reenact.errors import InputError
from reenact.foreign.documents import documents
from reenact.values.json import Json

_BOM = b"\xef\xbb\xbf"
_LONGEST_HEADER = 64 << 10


def columns(head: bytes) -> frozenset[str]:
    """Give the column names of what may be CSV, by its first line; empty for JSON and for anything else."""
    line, newline, _ = head.removeprefix(_BOM).partition(b"\n")
    if not newline or line.lstrip()[:1] in (b"{", b"[", b"") or b"\0" in line or b"," not in line:
        return frozenset()
    try:
        names = next(csv.reader([line.decode().rstrip("\r")]))
    except (UnicodeDecodeError, csv.Error, StopIteration):
        return frozenset()
    return frozenset(names)


def rows(stream: BinaryIO, place: str) -> Iterator[tuple[int, Json]]:
    """Read the documents or the CSV rows of `stream`, each with the number of the line that it begins on.

    A CSV row is an object of texts by column name. Raises `InputError` as `documents` does, and for CSV that is none.
    """
    buffered = _Peeking(stream)
    head = buffered.peek(_LONGEST_HEADER).removeprefix(_BOM).lstrip()
    if head[:1] in (b"{", b"[", b""):
        yield from documents(cast("BinaryIO", buffered), place)
        return
    yield from _csv(io.TextIOWrapper(cast("BinaryIO", buffered), "utf-8-sig", newline=""), place)


def _csv(lines: Iterable[str], place: str) -> Iterator[tuple[int, Json]]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    reader = csv.reader(lines, strict=True)
    try:
        names = next(reader, list[str]())
        before = reader.line_num
        for cells in reader:
            if len(cells) != len(names):
                problem = f"this row has {len(cells)} cells where the header names {len(names)} columns"
                raise InputError(f"{place}:{before + 1}", problem)
            yield before + 1, dict(zip(names, cells, strict=True))
            before = reader.line_num
    except (csv.Error, UnicodeDecodeError) as refusal:
        raise InputError(f"{place}:{reader.line_num + 1}", f"this is not CSV: {refusal}") from None


class _Peeking(io.BufferedReader):
    """Any binary stream, read through a buffer that can be looked into. Closing it leaves the stream open."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(_Raw(stream), _LONGEST_HEADER)


class _Raw(io.RawIOBase):
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        view = memoryview(cast("bytearray", buffer))
        data = self._stream.read(len(view))
        view[: len(data)] = data
        return len(data)
