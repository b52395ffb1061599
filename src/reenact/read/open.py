"""Opens a file of spans, whatever it is: its packing and its format are told by content, never by name.

A folder and a zip file are read as one recording: every file in them that is a trace file, in the order of the names.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from reenact.contracts.format import Format, HeadMarks
from reenact.discover import Candidate, candidates
from reenact.discover import surest as surest_of
from reenact.disk.private import is_descriptor
from reenact.errors import InputError, UnknownShapeError
from reenact.read.unpack import ZIP, looked_at, unpacked, zip_members
from reenact.values.log import Record
from reenact.values.unread_parts import Unread

HEAD_BYTES = 64 << 10
"""So much of a file is looked at to tell its format."""
BIG = 32 << 20
"""Files of so many bytes are worth an index (`read.file_index`): smaller ones are read whole in a moment."""
_LEAST_CERTAINTY = 0.01
_LEAST_AMONG_OTHERS = 0.3
"""A file in a folder or zip file that no format is so sure of is no trace file: notes, licences, settings."""
_WITH_LOGS = re.compile(r"(.+)(\.jsonl?|\.pb)((?:\.gz|\.zst)?)")
_BLOB = re.compile(r"(?:.*/)?blobs/([0-9a-f]{2})/\1[0-9a-f]{30,}")
"""A value that a recording keeps beside its spans (`disk.blob`): no trace file, whatever it holds."""
_MOST_NAMED = 5
_READ = "docs/formats.md says what is read; plain, gzip, zstd or zip, or a directory of such files"
_MOST_FILES = 100_000
"""A directory of more files is none of a recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A recording that is open for reading."""

    records: Iterator[Record]
    notes: list[str] = field(default_factory=list[str])
    """What is to be told of the whole, such as files that were passed over. Complete once all records are read."""
    formats: list[str] = field(default_factory=list[str])
    """The formats that read it, each once. Complete once all records are read."""


def is_big(path: Path) -> bool:
    """Tell whether a file is too big to keep all its runs in memory where one is asked for."""
    try:
        return str(path) != "-" and path.is_file() and path.stat().st_size >= BIG
    except (OSError, ValueError):  # reading it tells what is wrong
        return False


def open_spans(path: Path, note_hearer: Callable[[str], object] | None = None) -> Iterator[Record]:
    """Open a file of spans, or standard input for `-`, and read its spans and log events one at a time, in file order.

    The same as the records of `open_recording`, whose notes `note_hearer` is told once all are read.
    """
    opened = open_recording(path)
    return opened.records if note_hearer is None else _telling(opened, note_hearer)


def _telling(opened: Opened, note_hearer: Callable[[str], object]) -> Iterator[Record]:
    yield from opened.records
    for note in opened.notes:
        note_hearer(note)


def open_recording(path: Path) -> Opened:
    """Open a file, a folder or standard input for `-`, and read its spans and log events one at a time, in order.

    gzip (RFC 1952), Zstandard (RFC 8878), the Collector's framed Zstandard and zip are unpacked on the way. The formats
    are the members of `reenact.formats`. A file is opened and its format settled before this returns; the records
    follow as they are asked for. A file `x.otlp.jsonl` is followed by its log events in `x.otlp.logs.jsonl` beside it.
    In OTLP, a span or link whose ids are none is passed over and told in the notes.

    Raises `InputError`, at once or from the iterator, whose place is the path with line or byte: for a file that
    cannot be opened, is empty, is no trace file, is damaged or cut off, or holds no spans; and for packed data that
    expands without bounds.
    """
    if str(path) != "-" and _is_folder(path):
        return _folder(path)
    with contextlib.ExitStack() as opened:
        place = Path("<stdin>") if str(path) == "-" else path
        notes: list[str] = []
        try:
            head, stream = looked_at(unpacked(opened.enter_context(_source(path)), str(place)), HEAD_BYTES)
        except OSError as failure:
            raise InputError(str(place), f"reading failed: {failure.strerror or failure}") from None
        if not head:
            raise InputError(str(place), "the file is empty", hint=_READ)
        if head.startswith(ZIP):
            formats: list[str] = []
            records = _zipped(stream, place, opened.pop_all(), notes, formats)
            return Opened(records=records, notes=notes, formats=formats)
        chosen = _format_of(head, str(place))
        records = _whole(chosen, stream, place, opened.pop_all(), notes, head)
        beside = logs_beside(path)
        whole = _followed(records, beside, notes) if beside is not None else records
        return Opened(records=whole, notes=notes, formats=[chosen.name])


def first_bytes(path: Path) -> bytes | None:
    """Give the first bytes of a file by which its format is told, unpacked; None for what holds several files."""
    if str(path) == "-" or _is_folder(path):
        return None
    with _source(path) as source:
        head, _ = looked_at(unpacked(source, str(path)), HEAD_BYTES)
    return None if head.startswith(ZIP) else head


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name too long, or with a zero byte: opening it tells
        return False


def _source(path: Path) -> contextlib.AbstractContextManager[BinaryIO]:
    if str(path) == "-":
        return contextlib.nullcontext(sys.stdin.buffer)
    try:
        kind = path.stat().st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind) and not is_descriptor(path):
            hint = "Give it as standard input: reenact show - < FILE" if stat.S_ISFIFO(kind) else "Name a file."
            raise InputError(str(path), f"this is {_kind(kind)}, not a trace file", hint=hint)
        # what became a pipe or a device since is not waited for
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | (os.O_NONBLOCK if stat.S_ISREG(kind) else 0)
        return os.fdopen(os.open(path, flags), "rb")
    except FileNotFoundError:
        raise InputError(str(path), "there is no such file") from None
    except IsADirectoryError:
        raise InputError(str(path), "this is a directory, not a trace file", hint="Name a file in it.") from None
    except PermissionError:
        raise InputError(str(path), "permission to read this file is denied") from None
    except (OSError, ValueError) as refusal:
        raise InputError(str(path), f"the file cannot be opened: {refusal}") from None


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _spans(chosen: Format, stream: BinaryIO, place: Path, notes: list[str], head: bytes = b"") -> Iterator[Record]:
    unread = Unread(place.name)
    try:
        yield from chosen.tolerant(stream, place, unread) if chosen.tolerant else chosen.decode(stream, place)
    except UnknownShapeError as refusal:
        raise unknown(head, refusal.place) if head else refusal from None
    except OSError as failure:
        raise InputError(str(place), f"reading failed: {failure.strerror or failure}") from None
    notes += unread.notes


def _whole(
    chosen: Format, stream: BinaryIO, place: Path, opened: contextlib.ExitStack, notes: list[str], head: bytes
) -> Iterator[Record]:
    has_spans = False
    with opened:
        for record in _spans(chosen, stream, place, notes, head):
            has_spans = True
            yield record
    if not has_spans:
        raise InputError(str(place), "; ".join([f"the file is {chosen.name} and holds no spans", *notes]))


# ------------------------------------------------------------------------------------------------- more than one file


def logs_beside(path: Path) -> Path | None:
    """Give the file of log events that an exporter wrote beside a file of spans: the same name with `.logs` in it."""
    match = _WITH_LOGS.fullmatch(path.name)
    if match is None or not match[1].endswith(".otlp"):
        return None
    beside = path.with_name(f"{match[1]}.logs{match[2]}{match[3]}")
    return beside if beside.is_file() else None


def _followed(records: Iterator[Record], beside: Path, notes: list[str]) -> Iterator[Record]:
    yield from records
    count = 0
    for record in open_spans(beside, notes.append):
        count += 1
        yield record
    notes.append(f"{count} log events read from {beside.name} beside it")


def _folder(path: Path) -> Opened:
    try:
        paths = (each for each in path.rglob("*") if each.is_file() and not _hidden(each, path))
        files = sorted(islice(paths, _MOST_FILES + 1))
    except OSError as failure:
        raise InputError(str(path), f"the directory cannot be read: {failure.strerror or failure}") from None
    if len(files) > _MOST_FILES:
        hint = "Name a file in it, or a directory of its own for each recording."
        raise InputError(str(path), f"this directory holds more than {_MOST_FILES:,} files", hint=hint)
    notes: list[str] = []
    formats: list[str] = []

    def each_file() -> Iterator[tuple[str, Path, contextlib.AbstractContextManager[BinaryIO]]]:
        for file in files:
            yield str(file.relative_to(path)), file, _source(file)

    records = _several(each_file(), path, "directory", notes, formats)
    return Opened(records=records, notes=notes, formats=formats)


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _zipped(
    stream: BinaryIO, archive: Path, opened: contextlib.ExitStack, notes: list[str], formats: list[str]
) -> Iterator[Record]:
    def each_file() -> Iterator[tuple[str, Path, contextlib.AbstractContextManager[BinaryIO]]]:
        for name, member in zip_members(stream, str(archive)):
            yield name, Path(f"{archive}!{name}"), contextlib.nullcontext(member)

    with opened:
        yield from _several(each_file(), archive, "zip file", notes, formats)


def _several(
    files: Iterator[tuple[str, Path, contextlib.AbstractContextManager[BinaryIO]]],
    recording_place: Path,
    what: str,
    notes: list[str],
    formats: list[str],
) -> Iterator[Record]:
    """Read files as one recording. What is no trace file is passed over and told in `notes`; `formats` read others."""
    strays: list[str] = []
    count = 0
    for name, place, opening in files:
        if _BLOB.fullmatch(name):
            continue
        before = count
        with opening as source:
            head, stream = looked_at(unpacked(source, str(place)), HEAD_BYTES)
            chosen = surest(head) if head and not head.startswith(ZIP) else None
            for record in _spans(chosen, stream, place, notes) if chosen is not None else ():
                count += 1
                yield record
        if count == before:
            strays.append(name)
        elif chosen is not None and chosen.name not in formats:
            formats.append(chosen.name)
    if not count:
        problem = f"this {what} holds no file of spans" + (f": not {_name_list(strays)}" if strays else "; it is empty")
        raise InputError(str(recording_place), problem, hint=_READ)
    if strays:
        notes.append(f"{len(strays)} files in the {what} hold no spans and are passed over: {_name_list(strays)}")


def _name_list(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")


# ------------------------------------------------------------------------------------------------------------ formats


def surest(head: bytes, least: float = _LEAST_AMONG_OTHERS) -> Format | None:
    """Give the format that is surest of a file that begins so, or None where none is as sure as `least`."""
    certainty, chosen = surest_of(_formats(), head)
    return chosen if certainty >= least else None


@functools.cache
def _formats() -> tuple[Candidate[Format, bytes], ...]:
    return candidates("formats", Format, HeadMarks.read)


def _format_of(head: bytes, place: str) -> Format:
    chosen = surest(head, _LEAST_CERTAINTY)
    if chosen is None:
        raise unknown(head, place)
    return chosen


def unknown(head: bytes, place: str) -> UnknownShapeError:
    """Refuse a file that no format reads, and say which it is nearest to."""
    from reenact.read.likeness import nearest, outward

    near = nearest(head)
    problem = f"this is not a trace file that is known: {outward(head)}"
    return UnknownShapeError(place, f"{problem}; {near.sentence}" if near is not None else problem, hint=_READ)
