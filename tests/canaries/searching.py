"""Searching every byte that a process left behind for canaries, whole or in part, however they are wrapped by then.

What is looked at is taken apart here by means of our own, none of them the engine's: compressed frames, JSON in JSON,
percent-encoding, entities, base64. A canary counts as found by any twelve characters in a row of it, as it is or as it
was planted.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import html
import json
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import zstandard
from ahocorasick_rs import AhoCorasick, Implementation

from canaries.encodings import BY_NAME
from canaries.values import canary

_PART = 12
"""So many characters of a canary in a row are a leak."""
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U000([0-9a-fA-F]{5})|([nrtbf"\\/]))')
"""Of JSON, and of Python's `repr`."""
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,}")
_DEEPEST = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One canary: along which path, in which spelling."""

    id: str
    name: str
    """The class of the value."""
    path: str
    encoding: str
    value: str
    text: str
    """What is planted."""

    @property
    def parts(self) -> set[str]:
        """The pieces of it that must not be found anywhere; what every value of its class holds is none."""
        value = self.value
        size = max(_PART, len(value) - 2) if value.isdecimal() else _PART
        step = 1 if value.isdecimal() else size // 3
        wanted = {value[at : at + size] for at in range(0, max(1, len(value) - size + 1), step)}
        spelled = BY_NAME[self.encoding].spell(value)
        long = max(size, math.ceil(len(spelled) * size / len(value)))
        wanted |= {spelled[at : at + long] for at in range(0, max(1, len(spelled) - long + 1), max(1, long // 2))}
        others = _others(self.name, self.encoding)
        return {part for part in wanted if not any(_mostly_in(part, other) for other in others)}


def _mostly_in(part: str, other: str) -> bool:
    """Tell whether two thirds of a piece are what another value has, too."""
    most = len(part) * 2 // 3
    return part[:most] in other or part[-most:] in other


@cache
def _others(name: str, encoding: str) -> tuple[str, ...]:
    """Give other values of a class, plain and spelled."""
    values = [canary(name, "another", number) for number in range(2)]
    return (*values, *(BY_NAME[encoding].spell(value) for value in values))


@dataclass
class Searched:
    """What was found: cell to the places it was found in."""

    found: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    size: int = 0
    """Bytes that were looked at, before they were taken apart."""


class Search:
    """Looks for all canaries of a matrix at once."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        owners: defaultdict[str, set[str]] = defaultdict(set)
        for cell in cells:
            for part in cell.parts:
                owners[part].add(cell.id)
        told = {part: owner for part, (owner, *others) in owners.items() if not others}
        self._owner = list(told.values())
        self._automaton = AhoCorasick(list(told), implementation=Implementation.ContiguousNFA)
        self._seen: set[int] = set()
        self.result = Searched()

    def bytes(self, data: bytes, where: str) -> None:
        """Look at bytes, compressed or not."""
        self.result.size += len(data)
        for plain in unpacked(data):
            self.text(plain.decode("utf-8", "replace"), where)
            if plain.find(b"\0") >= 0:  # text of two bytes a character, such as no format of ours has
                self.text(plain.decode("latin-1"), where)

    def text(self, text: str, where: str) -> None:
        """Look at a text, and at all that it may stand for; a line that was looked at before is known."""
        for line in text.split("\n"):
            mark = hash(line)
            if mark not in self._seen:
                self._seen.add(mark)
                for view in views(line):
                    self._look(view, where)
        if "\n" in text:
            self._look(text, where)

    def _look(self, text: str, where: str) -> None:
        for number, _, _ in self._automaton.find_matches_as_indexes(text, overlapping=True):
            self.result.found[self._owner[number]].add(where)

    def folder(self, folder: Path, where: str) -> None:
        """Look at every file of a folder, and at their names."""
        files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
        assert files, f"{where} is empty"
        for file in files:
            self.text(str(file.relative_to(folder)), f"{where}, a name")
            self.bytes(file.read_bytes(), f"{where}, {kind_of(file)}")

    def streams(self, runs: Iterable[Any], where: str) -> None:
        """Put the streams of runs together as a reader does, and look at what they say."""
        for run in runs:
            for node in run.nodes:
                pieces = [
                    chunk.data.decode("utf-8", "replace") if chunk.data is not None else json.dumps(chunk.value)
                    for chunk in getattr(node.outcome, "chunks", ())
                ]
                if pieces:
                    self.text("".join(pieces), where)
                    for said in told_in("".join(pieces), pieces):
                        self.text(said, where)


def kind_of(file: Path) -> str:
    """Name what a file is, so that all of a kind are one place."""
    if file.suffix == ".rnj":
        return "journal"
    return file.suffix.lstrip(".") or file.parent.name


def told_in(text: str, pieces: Sequence[str]) -> Iterator[str]:
    """Give what the events of a stream say, field by field."""
    said: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    lines = [line.removeprefix("data:").strip() for line in text.splitlines()]
    for line in (*lines, *pieces):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        index = (value.get("index"), value.get("output_index")) if isinstance(value, dict) else ()
        _leaves(value, (str(index),), said)
    yield from ("".join(each) for each in said.values())


def _leaves(value: Any, where: tuple[str, ...], said: defaultdict[tuple[str, ...], list[str]]) -> None:
    if isinstance(value, str):
        said[where].append(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            _leaves(inner, (*where, f"{key} {value.get('index', '')}"), said)
    elif isinstance(value, list):
        for inner in value:
            _leaves(inner, where, said)


def unpacked(data: bytes) -> Iterator[bytes]:
    """Give bytes, and what the compressed frames in them hold."""
    yield data
    for at in _all(data, b"\x1f\x8b\x08"):
        try:
            yield from unpacked(zlib.decompressobj(31).decompress(data[at:]))
        except zlib.error:
            continue
    for at in _all(data, b"\x28\xb5\x2f\xfd"):
        try:
            with zstandard.ZstdDecompressor().stream_reader(data[at:], read_across_frames=True) as reader:
                yield from unpacked(reader.read())
        except zstandard.ZstdError:
            continue
    for at in _all(data, b"PK\x03\x04"):
        plain = _zipped(data, at)
        if plain:
            yield from unpacked(plain)


def _all(data: bytes, mark: bytes) -> Iterator[int]:
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + 1)


def _zipped(data: bytes, at: int) -> bytes:
    """Inflate one member of a zip archive."""
    lengths = (int.from_bytes(data[at + where : at + where + 2], "little") for where in (26, 28))
    start = at + 30 + sum(lengths)
    if data[at + 8 : at + 10] != b"\x08\x00":
        return b""
    try:
        return zlib.decompressobj(-15).decompress(data[start:])
    except zlib.error:
        return b""


def views(text: str, depth: int = 0) -> Iterator[str]:
    """Give a text and what it stands for, with one wrapping after the other taken off."""
    yield text
    if depth == _DEEPEST:
        return
    if "\\" in text and (plain := _paired(_ESCAPE.sub(_unescaped, text))) != text:
        yield from views(plain, depth + 1)
        return  # what is below is in it, too
    if "%" in text and (plain := unquote(text, errors="replace")) != text:
        yield from views(plain, depth + 1)
        if "+" in text:  # in a form a blank
            yield unquote(text.replace("+", " "), errors="replace")
    if "&" in text and (plain := html.unescape(text)) != text:
        yield plain
    for run in _BASE64.findall(text):
        if (inner := _decoded(run)) is not None:
            yield from views(inner, depth + 1)


def _unescaped(found: re.Match[str]) -> str:
    number = found[1] or found[2] or found[3]
    return chr(int(number, 16)) if number else _PLAIN.get(found[4], found[4])


def _paired(text: str) -> str:
    """Put surrogates together that were escaped one by one; one that is alone is none of ours."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decoded(run: str) -> str | None:
    """Decode what may be base64 of text, or of something compressed."""
    standard = run.replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(standard + "=" * (-len(standard) % 4))
    except (binascii.Error, ValueError):
        return None
    if data[:3] == b"\x1f\x8b\x08":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return None
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        data = zstandard.ZstdDecompressor().stream_reader(data).read()
    elif data[:1] == b"\x78":
        try:
            data = zlib.decompress(data)
        except zlib.error:
            return None
    return data.decode("utf-8", "replace")


def counted(cells: Iterable[Cell], found: Mapping[str, set[str]], by: str) -> Counter[str]:
    """Count the cells that were found, by one of their facts."""
    return Counter(getattr(cell, by) for cell in cells if cell.id in found)
