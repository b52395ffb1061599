"""Journals as they are read: file after file, while they grow and after their writers are gone."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reenact.formats.journal import FORMAT, Reader, segment_name, segment_of
from reenact.keep import journal_release
from reenact.values.span import SpanRecord

_HEAD = 1 << 16
_PIECE = 2 << 20
"""So many bytes of a journal are read at once, more only for a frame that is larger: an exit waits for no more."""


def journals(folder: Path, prefix: str = "") -> dict[str, list[Path]]:
    """Find the journals whose name begins with `prefix`: the files of each, in the order in which they were begun."""
    journal_files: dict[str, list[Path]] = {}
    for path in sorted(folder.glob(f"{prefix}*{FORMAT.suffix}"), key=lambda path: segment_of(path.name)):
        journal_files.setdefault(segment_of(path.name)[0], []).append(path)
    return journal_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged:
    """What was found in a journal whose writer is gone."""

    name: str
    recording: str
    pid: int | None
    finished: int
    """Spans that had ended, in what was read of it now."""
    unfinished: int
    torn: int
    """Bytes at its end that are no whole frame."""
    damaged: int
    """Places that had to be passed over."""
    dropped: int
    """Records that its writer could not write, or not whole, as it says itself."""


@dataclass(slots=True)
class Tail:
    """One journal and how far it was read."""

    path: Path
    """Its first file."""
    files: list[Path] = field(default_factory=list[Path])
    """Those of its files that are known of, in order."""
    reader: Reader = field(init=False)
    over: bool = False
    """What was still open when its writer went has been given."""
    span_counts: dict[str, int] = field(default_factory=dict[str, int])
    """How many spans were given, by where they ended: a file, or none (unfinished ones)."""
    unfinished: int = 0
    _at: Path = field(init=False)
    """The file that is read."""
    _offset: int = 0

    def __post_init__(self) -> None:
        self.reader = Reader(str(self.path))
        self.files = self.files or [self.path]
        self._at = self.path
        self.reader.file = segment_of(self.path.name)[1]
        self.reader.release = journal_release.read(self.note)
        self._count_crossings()

    @property
    def name(self) -> str:
        """What the journal is called."""
        return segment_of(self.path.name)[0]

    @property
    def note(self) -> Path:
        """The file that says what stood in the files that were removed."""
        return self.path.with_name(f"{self.name}{journal_release.SUFFIX}")

    @property
    def file(self) -> str:
        """The name of the file that is read: in it ended what was given last."""
        return self._at.name

    @property
    def is_forced(self) -> bool:
        """Whether its writer has it on the disk itself (REENACT_JOURNAL_FSYNC)."""
        return bool(self.reader.header.get("fsync"))

    def poll(self) -> list[SpanRecord] | None:
        """Read on, and give the spans that ended in the next few megabytes; None at the end."""
        later = [path for path in self.files if segment_of(path.name)[1] > self.reader.file]
        before = self._offset
        spans = list(self.reader.feed(self._more()))  # listed first: who begins a further file writes here no more
        if self._offset > before:
            return spans
        if not later:
            return None
        self._at, self._offset = later[0], 0
        self.reader.next_file(segment_of(later[0].name)[1])
        self._count_crossings()
        return []

    def _count_crossings(self) -> None:
        """Count as given the spans that ended in this file, and began in one that was carried and removed."""
        release = self.reader.release
        if release is None or release.file != self.reader.file:
            return
        there = {segment_of(path.name)[1] for path in self.files}
        for number, spans in release.crossings.items():
            if number not in there:
                self.reader.crossings[number] = spans
                self.span_counts[self.file] = self.span_counts.get(self.file, 0) + spans

    def note_again(self) -> None:
        """Read again what its writer wrote over at the beginning of its files, when it could write no more."""
        for path in self.files:
            with suppress(OSError), path.open("rb") as stream:
                self.reader.note_again(stream.read(_HEAD))

    def whole(self) -> list[SpanRecord]:
        """Read it to its end, and give all that it holds."""
        spans: list[SpanRecord] = []
        while (more := self.poll()) is not None:
            spans += more
        self.note_again()
        return [*spans, *self.reader.unfinished()]

    def _more(self) -> bytes:
        try:
            with self._at.open("rb", buffering=0) as stream:
                stream.seek(self._offset)
                data = stream.read(max(_PIECE, self.reader.wanted())) or b""
        except FileNotFoundError:
            return b""
        self._offset += len(data)
        return data

    def is_written(self) -> bool:
        """Tell whether a living process still holds the journal. A further file is found on the way."""
        while True:
            last = self.files[-1]
            if _is_locked(last):
                return True
            name, number = segment_of(last.name)
            further = last.with_name(segment_name(name, number + 1))
            if not further.exists():
                return False
            self.files.append(further)

    def release(self) -> None:
        """Do away with the files that were read to their end and hold nothing of a span that is still open."""
        if self.reader.damaged:
            return  # kept whole, for whoever can read more of it
        needed, last = self.reader.needed(), self.reader.file
        numbers = {path: segment_of(path.name)[1] for path in self.files}
        over = [path for path, number in numbers.items() if number < last and number not in needed]
        if not over:
            return
        try:
            journal_release.write(self.note, self.reader.next_release(), forced=self.is_forced)
        except OSError:
            return  # whoever reads on would count wrongly
        for path in over:
            with suppress(OSError):
                path.unlink(missing_ok=True)
                self.files.remove(path)

    def salvaged(self) -> Salvaged:
        """Say what was found."""
        resource: dict[str, Any] = self.reader.header.get("resource", {})
        pid, dropped = resource.get("process.pid"), self.reader.notes.get("dropped")
        return Salvaged(
            name=self.name,
            recording=self.name.partition("-")[0],
            pid=pid if isinstance(pid, int) else None,
            finished=self.reader.spans,
            unfinished=self.unfinished,
            torn=self.reader.torn(),
            damaged=self.reader.damaged,
            dropped=dropped if isinstance(dropped, int) else 0,
        )


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: others may be asking at this moment
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
