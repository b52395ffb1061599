"""The default store: one folder. A file of OTLP/JSON lines a trace, an SQLite index that can be made again from them.

.reenact/traces/ab/ab12….jsonl    spans, appended; a span written twice is folded by its id when read
.reenact/blobs/ab/ab12…           values too large for a line of their trace (stores.blobs)
.reenact/outbox/                  what is still owed to backends (stores.outbox)
.reenact/frames/                  traces that a collector took in (stores.frames), read as if they were here
.reenact/journal/*.rnj            what recording processes write (formats.journal)
.reenact/index-2*.sqlite          facts of runs, for `reenact ls`; 2 is the version of its tables. One that was made
                                  again has a name of its own, and the newest name counts: whoever still writes to
                                  the one before, or reads it, is not disturbed
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reenact.contracts.blobs import BlobKeeping, Blobs
from reenact.contracts.further import Further, FurtherKeeping
from reenact.contracts.parcel import Parcel, ParcelGoneError
from reenact.discover import members
from reenact.errors import InputError
from reenact.formats import otlp_json
from reenact.values.blob import cut, is_cut, restored
from reenact.values.finding import Filters, ToolUse, sought
from reenact.values.lines import WholeLines, append_lines
from reenact.values.log import Record
from reenact.values.span import SpanRecord

FOLDER = ".reenact"
_VERSION = 2
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_PREFIX = re.compile(r"[0-9a-f]{1,32}")
_LOCKED_S = 30.0
_ABANDONED_S = 3600.0
_PARCEL_SPANS = 64
_PARCEL_BYTES = 512 << 10

_SCHEMA = """
CREATE TABLE runs (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, name TEXT, started INTEGER, ended INTEGER,
  status TEXT, session TEXT, user TEXT, tenant TEXT, recording TEXT, replay_of TEXT, summary TEXT NOT NULL
);
CREATE INDEX runs_started ON runs (started, ended);
CREATE INDEX runs_recorded ON runs (started) WHERE replay_of IS NULL;
CREATE INDEX runs_user ON runs (user, started);
CREATE INDEX runs_session ON runs (session, started);
CREATE INDEX runs_tenant ON runs (tenant, started);
CREATE INDEX runs_status ON runs (status, started);
CREATE INDEX runs_recording ON runs (recording);
CREATE INDEX runs_length ON runs (ended - started);
CREATE TABLE facts (
  fact INTEGER NOT NULL, started INTEGER NOT NULL, run INTEGER NOT NULL, call INTEGER NOT NULL,
  PRIMARY KEY (fact, started, run, call)
) WITHOUT ROWID;
CREATE TABLE models (name TEXT PRIMARY KEY) WITHOUT ROWID;
"""
"""`facts` names the runs, newest last, of which something can be said: a digest of `tool`, `argument` or `model` with
its value. `call` tells the calls of one run apart, so that a tool and its arguments are those of one call."""


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
_NAMED = ("user", "session", "tenant", "status")


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
    """What `ls` shows, as JSON."""
    models: tuple[str, ...] = ()
    """Written only: `find` and `search` give none."""
    uses: tuple[ToolUse, ...] = ()
    """Written only, as `models`."""


class IndexUnusableError(InputError):
    """The index cannot be used now: it is locked for long, may not be written, or the disk is full."""


class IndexDamagedError(IndexUnusableError):
    """The index is no database any more. The traces are not in it: it can be made again from them."""


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
        self._blobs: Blobs | None = None
        self._further: tuple[Further, ...] = ()

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
        return list(dict.fromkeys(parcel.trace_id for parcel in self.put(spans)))

    def put(self, spans: Iterable[SpanRecord]) -> list[Parcel]:
        """Add spans and give where they lie, in parcels of few. Their large values go to the blobs first."""
        by_trace: dict[str, list[SpanRecord]] = defaultdict(list)
        for span in spans:
            by_trace[span.trace_id].append(cut(span, self.blobs.threshold, self.blobs.put))
        return [self._put(trace_id, some) for trace_id, found in by_trace.items() for some in _some(found)]

    def _put(self, trace_id: str, spans: Sequence[SpanRecord]) -> Parcel:
        path = self._path(trace_id)
        data = otlp_json.encode(spans)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            at = append_lines(path, data)
        except OSError as error:
            raise InputError(str(path), f"cannot be written: {error.strerror}", hint=_ELSEWHERE) from error
        return Parcel(trace_id=trace_id, at=at, size=len(data), spans=len(spans))

    def parcel(self, parcel: Parcel) -> list[SpanRecord]:
        """Read a parcel again, references to blobs as they are. Raises `ParcelGoneError`, or another `InputError`."""
        for keeping in members("stores", FurtherKeeping):
            if keeping.owns(parcel.trace_id) and (further := keeping.open(self.folder)) is not None:
                return further.parcel(parcel)
        path = self._path(parcel.trace_id)
        try:
            with path.open("rb") as file:
                file.seek(parcel.at)
                data = file.read(parcel.size)
        except FileNotFoundError as error:
            raise ParcelGoneError(str(path), "was deleted") from error
        except OSError as error:
            raise InputError(str(path), f"cannot be read: {error.strerror}") from error
        try:
            found = [span for span in otlp_json.FORMAT.decode(io.BytesIO(data), path) if isinstance(span, SpanRecord)]
        except InputError:
            found = []
        if len(found) != parcel.spans or any(span.trace_id != parcel.trace_id for span in found):
            raise ParcelGoneError(str(path), "holds other spans at this place than it did")
        return found

    @property
    def blobs(self) -> Blobs:
        """Where large values are kept. Raises `InputError` where its settings make no sense."""
        if self._blobs is None:
            (keeping,) = members("stores", BlobKeeping)
            self._blobs = keeping.open(self.folder)
        return self._blobs

    def spans(self, trace_id: str) -> Iterator[SpanRecord]:
        """Read the spans of one trace, whole: the values of blobs are put back, and lost ones named (`values.blob`).

        A last line that a crash cut short, or that is being written at this moment, is left out. Raises `InputError`
        where there is no such trace or its file is damaged.
        """
        return (record for record in self.records(trace_id) if isinstance(record, SpanRecord))

    def records(self, trace_id: str) -> Iterator[Record]:
        """Read the spans of one trace, whole, and the log events that a collector took in; otherwise as `spans`."""
        for one in self._bare(trace_id):
            yield restored(one, self.blobs.get) if isinstance(one, SpanRecord) and is_cut(one) else one

    def bare_spans(self, trace_id: str) -> Iterator[SpanRecord]:
        """Read the spans of one trace as they lie there, with references to blobs; otherwise as `spans`."""
        return (record for record in self._bare(trace_id) if isinstance(record, SpanRecord))

    def _bare(self, trace_id: str) -> Iterator[Record]:
        known = [found for each in self.further() if (found := each.records(trace_id)) is not None]
        if not known or self._path(trace_id).exists():
            yield from self._lines(trace_id)
        for found in known:
            yield from found

    def further(self) -> tuple[Further, ...]:
        """Give what else keeps traces in this folder."""
        if not self._further:
            opened = (keeping.open(self.folder) for keeping in members("stores", FurtherKeeping))
            self._further = tuple(each for each in opened if each is not None)
        return self._further

    def _lines(self, trace_id: str) -> Iterator[SpanRecord]:
        path = self._path(trace_id)
        try:
            with path.open("rb", buffering=0) as file, io.BufferedReader(WholeLines(file), 1 << 20) as stream:
                for record in otlp_json.FORMAT.decode(stream, path):
                    if isinstance(record, SpanRecord):
                        yield record
        except FileNotFoundError as error:
            raise InputError(str(self.folder), f"holds no trace {trace_id}") from error
        except OSError as error:
            raise InputError(str(path), f"cannot be read: {error.strerror}") from error

    def delete(self, trace_id: str) -> None:
        """Delete a trace and its entry in the index; its blobs stay, others may use them. Raises `InputError`."""
        path = self._path(trace_id)
        deleted = [each.delete(trace_id) for each in self.further()]
        try:
            path.unlink(missing_ok=any(deleted))
        except FileNotFoundError as error:
            raise InputError(str(self.folder), f"holds no trace {trace_id}") from error
        except OSError as error:
            raise InputError(str(path), f"cannot be deleted: {error.strerror}") from error
        if self.indexed:
            with _opened(self._index) as database:
                database.execute("DELETE FROM runs WHERE id = ?", (trace_id,))

    def index(self, entries: Iterable[Entry]) -> None:
        """Note the facts of runs. Raises `IndexUnusableError`."""
        kept, path = list(entries), self._index
        while True:
            try:
                _note(path, kept)
                return
            except IndexUnusableError:
                if (newer := self._index) == path:
                    raise
                path = newer  # it was made again at this moment, and the one before was deleted under our hands

    @property
    def indexed(self) -> bool:
        """Whether there is an index; without one, traces are there and no run is found."""
        return self._index.exists()

    def probe_index(self) -> None:
        """Raise `IndexDamagedError` where a first look finds the index damaged."""
        with self._reading() as database:
            if database is not None:
                database.execute("SELECT number FROM runs ORDER BY started DESC LIMIT 1").fetchone()

    @contextmanager
    def index_anew(self) -> Generator[Callable[[Iterable[Entry]], None]]:
        """Make the index again: give a function that notes runs in a new one, which counts when the block ends well.

        What others note meanwhile in the one before is not in it: look for traces that changed since the block began.
        """
        draft = self.folder / f"index-{_VERSION}.{time.time_ns():016x}-{os.getpid():x}.draft"
        for abandoned in self.folder.glob("index-*.draft"):
            if abandoned.stat().st_mtime < time.time() - _ABANDONED_S:
                _remove(abandoned)
        try:
            _note(draft, [])
            yield lambda entries: _note(draft, entries)
            outdated = [*self._indexes(), self.folder / "index.sqlite"]
            draft.replace(draft.with_suffix(".sqlite"))
        finally:
            _remove(draft)
        for path in outdated:
            _remove(path)

    def forget_index(self) -> None:
        """Delete the index, to make it again from the traces."""
        for path in [*self._indexes(), self.folder / "index.sqlite"]:
            _remove(path)

    def find(
        self, where: Sequence[tuple[str, Any]] = (), *, newest: int | None = None, replays: bool = True
    ) -> list[Entry]:
        """List runs, newest first, for which every (condition, value) of `where` holds."""
        clauses = [condition for condition, _ in where]
        if not replays:
            clauses.append("replay_of IS NULL")
        chosen = f" WHERE {' AND '.join(clauses)}" if clauses else ""
        columns = ", ".join(_COLUMNS)
        sql = f"SELECT {columns} FROM runs{chosen} ORDER BY started DESC, id"  # noqa: S608 - conditions are code, values are bound
        if newest is not None:
            sql += f" LIMIT {int(newest)}"
        with self._reading() as database:
            rows = database.execute(sql, [_storable(value) for _, value in where]).fetchall() if database else []
        return [Entry(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]

    def search(self, filters: Filters, *, newest: int | None = None, skip: int = 0) -> list[Entry]:
        """List the runs that fit, newest first: all of `filters` but its text, which no index holds."""
        with self._reading() as database:
            if database is None:
                return []
            rows = Search(database, filters).rows(newest, skip)
        return [Entry(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]

    def explained(self, filters: Filters) -> list[str]:
        """Say how SQLite goes about a search, one step a line."""
        with self._reading() as database:
            return Search(database, filters).plan() if database else []

    def resolve(self, prefix: str) -> list[str]:
        """Give the ids of the traces that begin with `prefix`."""
        if not _PREFIX.fullmatch(prefix):
            return []
        found = {path.stem for path in (self.folder / "traces").glob(f"{prefix[:2]}*/{prefix}*.jsonl")}
        return sorted(found.union(*(each.resolve(prefix) for each in self.further())))

    def _path(self, trace_id: str) -> Path:
        if not _TRACE_ID.fullmatch(trace_id):
            raise InputError(repr(trace_id), "is not a trace id (32 lower-case hexadecimal digits)")
        return self.folder / "traces" / trace_id[:2] / f"{trace_id}.jsonl"

    @property
    def _index(self) -> Path:
        return max(self._indexes(), key=_generation, default=self.folder / f"index-{_VERSION}.sqlite")

    def _indexes(self) -> list[Path]:
        return list(self.folder.glob(f"index-{_VERSION}*.sqlite"))

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection | None]:
        path = self._index
        if not path.exists():
            yield None
            return
        with _opened(path) as database:
            yield database if _version(database) == _VERSION else None

    def trace_ids(self) -> list[str]:
        """List every trace, in no order."""
        found = {path.stem for path in (self.folder / "traces").glob("??/*.jsonl") if _TRACE_ID.fullmatch(path.stem)}
        return list(found.union(*(each.trace_ids() for each in self.further())))

    def changed_since(self, ns: int) -> list[str]:
        """List the traces that were written to at or after an instant, in nanoseconds since the epoch."""
        found: list[str] = []
        for path in (self.folder / "traces").glob("??/*.jsonl"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime_ns >= ns and _TRACE_ID.fullmatch(path.stem):
                    found.append(path.stem)
        return list(dict.fromkeys(found + [more for each in self.further() for more in each.changed_since(ns)]))

    def may_hold(self, trace_id: str, text: str) -> bool:
        """Tell at the cost of reading alone whether a trace can hold `text`, letter case aside; True where in doubt.

        JSON spells letters and digits of ASCII in one way, so what is not among the bytes is in no attribute.
        """
        if not text.isascii() or not text.replace(" ", "").isalnum():
            return True
        wanted = text.lower().encode()
        try:
            told = [raw for each in self.further() if (raw := each.raw(trace_id)) is not None]
            if any(wanted in raw.lower() or any(letter in raw for letter in _LOWER_IN_ASCII) for raw in told):
                return True
            raw = self._path(trace_id).read_bytes() if not told or self._path(trace_id).exists() else b""
        except (OSError, InputError):
            return True  # reading it in earnest names the error
        return not raw.isascii() or wanted in raw.lower()


_LOWER_IN_ASCII = ("\u212a".encode(), "\u0130".encode())  # the Kelvin sign, and I with a dot


class Search:
    """One search of the index: it starts from the rarest thing that was asked for, newest run first."""

    _COMMON = 20_000
    """From this many on, how many more does not matter: an answer is near wherever one starts."""

    def __init__(self, database: sqlite3.Connection, filters: Filters) -> None:
        self._database, self._filters = database, filters
        self._first, self._last = filters.window or (-(2**63), 2**63 - 1)
        if filters.window is not None:  # what began earlier than the longest run took was over by then
            (longest,) = database.execute("SELECT max(ended - started) FROM runs").fetchone()
            self._first = _storable(self._first - (longest or 0))
        self._call = [_fact("argument", path, sought(value)) for path, value in filters.arguments]
        if filters.tool is not None:
            self._call.append(_fact("tool", filters.tool))
        self._models: list[int] | None = None
        if filters.model is not None:
            names = database.execute("SELECT name FROM models WHERE instr(name, ?) > 0", (_storable(filters.model),))
            self._models = [_fact("model", name) for (name,) in names]

    def rows(self, newest: int | None, skip: int) -> list[tuple[Any, ...]]:
        """Give the columns of each run that fits, once."""
        sql, values = self._statement()
        found: dict[int, tuple[Any, ...]] = {}
        for number, *row in self._database.execute(sql, values):
            found.setdefault(number, tuple(row))  # a tool that was called twice leads here twice
            if newest is not None and len(found) >= newest + skip:
                break
        return list(found.values())[skip:]

    def plan(self) -> list[str]:
        """Give SQLite's own account of the statement."""
        sql, values = self._statement()
        return [str(row[3]) for row in self._database.execute(f"EXPLAIN QUERY PLAN {sql}", values)]

    def _statement(self) -> tuple[str, list[Any]]:
        """Write the statement. Its text is code; every value that was asked for is bound."""
        calls = sorted(self._call, key=self._count)
        starts: list[tuple[int, str, Any]] = [(self._count(calls[0]), "facts", calls[0])] if calls else []
        if self._models is not None and len(self._models) == 1:
            starts.append((self._count(self._models[0]), "facts", self._models[0]))
        named = [(name, value) for name in _NAMED if (value := getattr(self._filters, name)) is not None]
        starts += [(self._count_named(name, value), name, value) for name, value in named]
        if self._filters.window is not None:
            starts.append((self._count_window(), "started", None))
        _, start, value = min(starts, key=lambda each: each[0], default=(0, "started", None))
        columns = ", ".join(f"r.{name}" for name in ("number", *_COLUMNS))
        if start == "facts":
            table, at = "facts f CROSS JOIN runs r ON r.number = f.run", "f"
            chosen, values = ["f.fact = ?"], [value]
        else:
            recorded = start == "started" and not self._filters.replays
            table, at = f"runs r INDEXED BY runs_{'recorded' if recorded else start}", "r"
            chosen, values = [], []
        for condition, bound in self._conditions(at, calls, value if start == "facts" else None):
            chosen.append(condition)
            values += bound
        order = f"{at}.started DESC, {'f.run' if at == 'f' else 'r.number'} DESC"
        where = " AND ".join(chosen)
        return f"SELECT {columns} FROM {table} WHERE {where} ORDER BY {order}", values  # noqa: S608 - names are this module's, values are bound

    def _conditions(self, at: str, calls: list[int], start: int | None) -> Iterator[tuple[str, list[Any]]]:
        yield f"{at}.started BETWEEN ? AND ?", [self._first, _storable(self._last)]
        if self._filters.window is not None:
            yield "r.ended >= ?", [_storable(self._filters.window[0])]
        for name in _NAMED:
            if (value := getattr(self._filters, name)) is not None:
                yield f"r.{name} = ?", [_storable(value)]
        if not self._filters.replays:
            yield "r.replay_of IS NULL", []
        rest = [fact for fact in calls if fact != start]
        if start is not None and start in calls:
            for fact in rest:
                yield f"EXISTS ({_SAME_CALL.format(call='f.call')})", [fact]
        elif calls:
            same = "".join(f" AND EXISTS ({_SAME_CALL.format(call='c.call')})" for _ in rest[1:])
            outer = "SELECT 1 FROM facts c WHERE c.fact = ? AND c.started = r.started AND c.run = r.number"
            yield f"EXISTS ({outer}{same})", rest
        if self._models is not None and start not in self._models:
            marks = ", ".join("?" for _ in self._models)
            inner = f"SELECT 1 FROM facts m WHERE m.fact IN ({marks}) AND m.started = r.started AND m.run = r.number"  # noqa: S608 - names are this module's, values are bound
            yield f"EXISTS ({inner})", list(self._models)

    def _count(self, fact: int) -> int:
        inner = f"SELECT 1 FROM facts WHERE fact = ? AND started BETWEEN ? AND ? LIMIT {self._COMMON}"  # noqa: S608 - names are this module's, values are bound
        return self._counted(inner, fact, self._first, _storable(self._last))

    def _count_named(self, name: str, value: str) -> int:
        inner = f"SELECT 1 FROM runs INDEXED BY runs_{name} WHERE {name} = ? AND started BETWEEN ? AND ?"  # noqa: S608 - names are this module's, values are bound
        return self._counted(f"{inner} LIMIT {self._COMMON}", _storable(value), self._first, _storable(self._last))

    def _count_window(self) -> int:
        inner = f"SELECT 1 FROM runs WHERE started BETWEEN ? AND ? LIMIT {self._COMMON}"  # noqa: S608 - names are this module's, values are bound
        return self._counted(inner, self._first, _storable(self._last))

    def _counted(self, inner: str, *values: Any) -> int:
        (count,) = self._database.execute(f"SELECT count(*) FROM ({inner})", values).fetchone()  # noqa: S608 - names are this module's, values are bound
        return int(count)


def _some(spans: Sequence[SpanRecord]) -> Iterator[Sequence[SpanRecord]]:
    """Cut spans into parcels, so that what is owed of them can be read again bit by bit."""
    first = size = 0
    for number, span in enumerate(spans):
        size += sum(len(value) for value in span.attributes.values() if isinstance(value, str | bytes))
        if size >= _PARCEL_BYTES or number + 1 - first >= _PARCEL_SPANS:
            yield spans[first : number + 1]
            first, size = number + 1, 0
    if first < len(spans):
        yield spans[first:]


_SAME_CALL = "SELECT 1 FROM facts s WHERE s.fact = ? AND s.started = r.started AND s.run = r.number AND s.call = {call}"
_ELSEWHERE = "set REENACT_STORE to a folder that can be written"


def _fact(kind: str, *said: str) -> int:
    """Name a fact by 64 bits of BLAKE2b, as the whole number with a sign that SQLite keeps."""
    text = "\0".join((kind, *said)).encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


def _note(path: Path, entries: Iterable[Entry]) -> None:
    """Write entries into an index, made where there is none, in one transaction."""
    with _opened(path) as database:
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA cache_size = -65536")  # KiB at most: facts lie scattered
        database.execute("BEGIN IMMEDIATE")  # at once: a reader that becomes a writer later may never be let in
        try:
            if _version(database) != _VERSION:
                for statement in _SCHEMA.split(";"):
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {_VERSION}")
            for entry in entries:
                _note_one(database, entry)
            database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            raise


def _note_one(database: sqlite3.Connection, entry: Entry) -> None:
    row = [_storable(getattr(entry, name)) for name in _COLUMNS]
    started = _storable(entry.started)
    known = database.execute("SELECT number, started FROM runs WHERE id = ?", (entry.id,)).fetchone()
    if known is not None and known[1] == started:
        number = known[0]
        assigned = ", ".join(f"{name} = ?" for name in _COLUMNS)
        database.execute(f"UPDATE runs SET {assigned} WHERE number = ?", [*row, number])  # noqa: S608 - names are this module's, values are bound
    else:  # a new number, where an earlier span turned up: facts lie by the start, and those of no run are passed over
        database.execute("DELETE FROM runs WHERE id = ?", (entry.id,))
        marks = ", ".join("?" for _ in _COLUMNS)
        sql = f"INSERT INTO runs ({', '.join(_COLUMNS)}) VALUES ({marks})"  # noqa: S608 - names are this module's, values are bound
        number = database.execute(sql, row).lastrowid
    facts = {(_fact("model", _storable(name)), 0) for name in entry.models}
    for use in entry.uses:
        call = _fact("call", use.id)
        facts.add((_fact("tool", use.tool), call))
        facts |= {(_fact("argument", path, value), call) for path, value in use.arguments}
    database.executemany(
        "INSERT OR IGNORE INTO facts VALUES (?, ?, ?, ?)", [(fact, started, number, call) for fact, call in facts]
    )
    database.executemany("INSERT OR IGNORE INTO models VALUES (?)", [(_storable(name),) for name in entry.models])


@contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(path, timeout=_LOCKED_S, isolation_level=None)) as database:
            yield database
    except sqlite3.OperationalError as error:  # locked, read-only, a full disk
        raise IndexUnusableError(str(path), f"the index cannot be used now: {error}", hint=_ELSEWHERE) from error
    except sqlite3.DatabaseError as error:
        hint = "run `reenact ls --reindex`, which makes it again; the traces themselves are not in it"
        raise IndexDamagedError(str(path), f"the index is damaged: {error}", hint=hint) from error


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _generation(path: Path) -> str:
    return path.name.removeprefix(f"index-{_VERSION}").removesuffix(".sqlite")


def _remove(path: Path) -> None:
    for suffix in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _storable(value: Any) -> Any:
    """Make a value one that SQLite takes: whole numbers of 64 bits with a sign, text without lone surrogates."""
    if isinstance(value, int):
        return max(-(2**63), min(value, 2**63 - 1))
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
