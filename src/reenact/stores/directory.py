"""The default store: one folder. A file of OTLP/JSON lines a trace, an SQLite index that can be made again from them.

.reenact/traces/ab/ab12….jsonl    spans, appended; a span written twice is folded by its id when read
.reenact/journal/*.rnj            what recording processes write (formats.journal)
.reenact/index.sqlite             facts of runs, for `reenact ls`
"""

from __future__ import annotations

import fcntl
import io
import os
import re
import sqlite3
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reenact.errors import InputError
from reenact.formats import otlp_json
from reenact.values.span import SpanRecord

FOLDER = ".reenact"
_VERSION = 1
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_PREFIX = re.compile(r"[0-9a-f]{1,32}")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY, name TEXT, started INTEGER, ended INTEGER, status TEXT, session TEXT, user TEXT, tenant TEXT,
  recording TEXT, replay_of TEXT, summary TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS runs_started ON runs (started);
CREATE INDEX IF NOT EXISTS runs_user ON runs (user, started);
CREATE INDEX IF NOT EXISTS runs_session ON runs (session, started);
CREATE INDEX IF NOT EXISTS runs_recording ON runs (recording);
"""


_COLUMNS = (
    "id",
    "name",
    "started",
    "ended",
    "status",
    "session",
    "user",
    "tenant",
    "recording",
    "replay_of",
    "summary",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The facts by which a run is found."""

    id: str
    name: str
    started: int
    """Nanoseconds since the epoch."""
    ended: int
    status: str
    session: str | None = None
    user: str | None = None
    tenant: str | None = None
    recording: str | None = None
    replay_of: str | None = None
    summary: str = field(default="{}")
    """Whatever else `ls` shows and filters by, as JSON."""


def locate(start: Path, environ: dict[str, str]) -> Path:
    """Find the store: REENACT_STORE, else the nearest `.reenact` at or above `start`, else one to be made.

    It lies beside the project, as `.git` does, so that it is found again from another shell, user or empty environment.
    """
    if named := environ.get("REENACT_STORE"):
        return Path(named)
    for folder in (start, *start.parents):
        if (folder / FOLDER).is_dir():
            return folder / FOLDER
    return start / FOLDER


class DirectoryStore:
    """A store in a folder. Many processes may read and append at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @property
    def journals(self) -> Path:
        """Where recording processes write."""
        return self.folder / "journal"

    def prepare(self) -> None:
        """Make the folder. Raises `InputError` where that cannot be done."""
        try:
            self.journals.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
        except OSError as error:
            raise InputError(
                str(self.folder), f"the store cannot be made: {error.strerror}", hint=_ELSEWHERE
            ) from error

    def append(self, spans: Iterable[SpanRecord]) -> list[str]:
        """Add spans and give the ids of the traces they belong to."""
        by_trace: dict[str, list[SpanRecord]] = defaultdict(list)
        for span in spans:
            by_trace[span.trace_id].append(span)
        for trace_id, found in by_trace.items():
            path = self._path(trace_id)
            data = otlp_json.FORMAT.encode(found)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                _append(path, data)
            except OSError as error:
                raise InputError(str(path), f"cannot be written: {error.strerror}", hint=_ELSEWHERE) from error
        return list(by_trace)

    def spans(self, trace_id: str) -> Iterator[SpanRecord]:
        """Read the spans of one trace. Raises `InputError` where there is none or its file is damaged.

        A last line that a crash cut short, or that is being written at this moment, is left out.
        """
        path = self._path(trace_id)
        try:
            with path.open("rb", buffering=0) as file, io.BufferedReader(_Whole(file), 1 << 20) as stream:
                yield from otlp_json.FORMAT.decode(stream, path)
        except FileNotFoundError as error:
            raise InputError(str(self.folder), f"holds no trace {trace_id}") from error
        except OSError as error:
            raise InputError(str(path), f"cannot be read: {error.strerror}") from error

    def index(self, entries: Iterable[Entry]) -> None:
        """Note the facts of runs."""
        rows = [[_storable(getattr(entry, name)) for name in _COLUMNS] for entry in entries]
        with self._database() as database, database:
            database.executemany("INSERT OR REPLACE INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?)", rows)

    @property
    def indexed(self) -> bool:
        """Whether there is an index; without one, traces are there and no run is found."""
        return self._index.exists()

    def forget_index(self) -> None:
        """Delete the index, to make it again from the traces."""
        for suffix in ("", "-journal", "-wal", "-shm"):
            self._index.with_name(self._index.name + suffix).unlink(missing_ok=True)

    def find(
        self, where: Sequence[tuple[str, Any]] = (), *, newest: int | None = None, replays: bool = True
    ) -> list[Entry]:
        """List runs, newest first, for which every (condition, value) of `where` holds."""
        if not self.indexed:
            return []
        clauses = [condition for condition, _ in where]
        if not replays:
            clauses.append("replay_of IS NULL")
        chosen = f" WHERE {' AND '.join(clauses)}" if clauses else ""
        sql = f"SELECT * FROM runs{chosen} ORDER BY started DESC, id"  # noqa: S608 - conditions are code, values are bound
        if newest is not None:
            sql += f" LIMIT {int(newest)}"
        with self._database() as database:
            rows = database.execute(sql, [_storable(value) for _, value in where]).fetchall()
        return [Entry(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]

    def resolve(self, prefix: str) -> list[str]:
        """Give the ids of the traces that begin with `prefix`."""
        if not _PREFIX.fullmatch(prefix):
            return []
        return sorted(path.stem for path in (self.folder / "traces").glob(f"{prefix[:2]}*/{prefix}*.jsonl"))

    def _path(self, trace_id: str) -> Path:
        if not _TRACE_ID.fullmatch(trace_id):
            raise InputError(repr(trace_id), "is not a trace id (32 lower-case hexadecimal digits)")
        return self.folder / "traces" / trace_id[:2] / f"{trace_id}.jsonl"

    @property
    def _index(self) -> Path:
        return self.folder / "index.sqlite"

    @contextmanager
    def _database(self) -> Generator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._index, timeout=30)) as database:
                if database.execute("PRAGMA user_version").fetchone() != (_VERSION,):
                    database.executescript(f"{_SCHEMA}PRAGMA user_version = {_VERSION};")
                yield database
        except sqlite3.OperationalError as error:  # locked, read-only, a full disk
            raise InputError(str(self._index), f"the index cannot be used now: {error}", hint=_ELSEWHERE) from error
        except sqlite3.DatabaseError as error:
            hint = "run `reenact ls --reindex`, which makes it again; the traces themselves are not in it"
            raise InputError(str(self._index), f"the index is damaged: {error}", hint=hint) from error

    def trace_ids(self) -> list[str]:
        """List every trace, in no order."""
        found = (path.stem for path in (self.folder / "traces").glob("??/*.jsonl"))
        return [trace_id for trace_id in found if _TRACE_ID.fullmatch(trace_id)]


_ELSEWHERE = "set REENACT_STORE to a folder that can be written"


def _storable(value: Any) -> Any:
    """Make a value one that SQLite takes: whole numbers of 64 bits with a sign, text without lone surrogates."""
    if isinstance(value, int):
        return max(-(2**63), min(value, 2**63 - 1))
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


class _Whole(io.RawIOBase):
    """A file of lines up to the last whole one."""

    def __init__(self, file: io.FileIO) -> None:
        super().__init__()
        self._file = file
        fcntl.flock(file, fcntl.LOCK_SH)  # only for a look: what is appended later lies behind
        try:
            self._left = _last_line_end(file.fileno(), os.fstat(file.fileno()).st_size)
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        taken = self._file.readinto(memoryview(buffer)[: self._left]) or 0
        self._left -= taken
        return taken


def _append(path: Path, data: bytes) -> None:
    """Append whole lines, under a lock, after mending a line that a crash cut short."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            os.ftruncate(fd, _last_line_end(fd, size))
        written = 0
        while written < len(data):
            written += os.write(fd, data[written:])
    finally:
        os.close(fd)


def _last_line_end(fd: int, size: int) -> int:
    step = 1 << 20
    while size > 0:
        start = max(0, size - step)
        found = os.pread(fd, size - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        size = start
    return 0
