"""An index of a big file of OTLP/JSON lines: which lines hold which trace, and what a listing says of it.

Theory of operation. One pass parses every line, takes a glance at each span (`read.span_facts`), and writes rows to an
SQLite file, some ten thousand traces at a time, so that memory does not grow with the file. The index lies in the
user's cache folder (`$XDG_CACHE_HOME/reenact/files`, else `~/.cache/reenact/files`), never beside the file; its name is
a digest of the file's path, and it counts only while size, modification time and the digest of the file's first and
last 64 KiB are what they were. Where the cache folder cannot be written, the index lives as long as the process.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, cast

import orjson

from reenact.errors import InputError
from reenact.foreign import ids, otlp
from reenact.read import span_facts
from reenact.read.open import HEAD_BYTES, is_big, surest
from reenact.read.span_facts import KINDS, Glimpse, Row
from reenact.values.limits import RAISE_THE_LIMIT, max_record_bytes, spelled
from reenact.values.log import LogRecord, Record
from reenact.values.unread_parts import Unread

_VERSION: Final = 2
_END: Final = 64 << 10
_MOST_ROWS: Final = 20_000
"""So many traces are held in memory before they are written down."""
_MOST_KEPT: Final = 40
"""So many indexes stay in the cache folder; the oldest go."""
_STEP: Final = 8 << 20
_RECORDING: Final = "reenact.recording.id"
_COUNTS: Final = tuple(f"c{at}" for at in range(len(KINDS)))
_COLUMNS: Final = (
    "id", "name", "rooted", "topped", "started", "ended", "failed", "spans", "session", "user", "tenant", "recording",
    "models",
    *_COUNTS,
)  # fmt: skip
_TABLES: Final = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE places (run BLOB, at INTEGER, size INTEGER, PRIMARY KEY (run, at)) WITHOUT ROWID;
CREATE TABLE runs (id BLOB PRIMARY KEY, name TEXT, rooted INTEGER, topped INTEGER, started INTEGER, ended INTEGER,
  failed INTEGER, spans INTEGER, session TEXT, user TEXT, tenant TEXT, recording TEXT, models TEXT,
  {", ".join(f"{name} INTEGER" for name in _COUNTS)});
"""
_LINES: Final = ",\n  ".join(
    f"{name} = iif(excluded.{name} = '' OR instr({name}, excluded.{name}), {name}, "
    f"iif({name} = '', excluded.{name}, {name} || char(10) || excluded.{name}))"
    for name in ("session", "user", "tenant", "models")
)
_ABOVE: Final = (
    "excluded.rooted > rooted OR (excluded.rooted > 0 AND excluded.rooted = rooted AND excluded.topped < topped)"
)
_UPSERT: Final = f"""
INSERT INTO runs ({", ".join(_COLUMNS)}) VALUES ({", ".join("?" * len(_COLUMNS))})
ON CONFLICT (id) DO UPDATE SET
  name = iif({_ABOVE}, excluded.name, name),
  failed = iif({_ABOVE}, excluded.failed, iif(rooted, failed, max(failed, excluded.failed))),
  topped = iif({_ABOVE}, excluded.topped, topped), rooted = max(rooted, excluded.rooted),
  started = min(started, excluded.started), ended = max(ended, excluded.ended), spans = spans + excluded.spans,
  recording = iif(recording = '', excluded.recording, recording),
  {_LINES},
  {", ".join(f"{name} = {name} + excluded.{name}" for name in _COUNTS)}
"""  # noqa: S608 - of our own names alone
Progress = Callable[[int, int], None]
"""Told how many of how many bytes are read."""


class NotLinesError(Exception):
    """The file is no OTLP/JSON, a document a line; it is to be read whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What the index says of a trace."""

    id: str
    name: str
    started_ns: int
    ended_ns: int
    status: str
    calls: dict[str, Any]
    session: str | None
    user: str | None
    tenant: str | None
    recording: str | None
    models: tuple[str, ...]


class FileIndex:
    """The index of one file, open. Close it, or use it as a context manager."""

    def __init__(self, path: Path, database: sqlite3.Connection, closing: contextlib.ExitStack) -> None:
        self.path = path
        self._database, self._closing = database, closing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    @property
    def unplaced(self) -> int:
        """How many log events of the file name no trace."""
        (value,) = self._database.execute("SELECT value FROM facts WHERE name = 'unplaced'").fetchone()
        return int(value)

    @property
    def notes(self) -> list[str]:
        """What of the file is not read, as `values.unread_parts` tells it."""
        (value,) = self._database.execute("SELECT value FROM facts WHERE name = 'notes'").fetchone()
        return cast("list[str]", orjson.loads(value))

    def newest(self, where: Iterable[tuple[str, object]] = ()) -> Iterator[Listed]:
        """Give what is known of the traces that fit SQL conditions, newest first."""
        conditions = list(where)
        clause = f"WHERE {' AND '.join(text for text, _ in conditions)}" if conditions else ""
        values = [value for _, value in conditions]
        select = f"SELECT {', '.join(_COLUMNS)} FROM runs {clause} ORDER BY started DESC, id"  # noqa: S608 - ours
        for row in self._database.execute(select, values):
            yield _listed(row)

    def beginning_with(self, prefix: str, most: int = 9) -> list[str]:
        """Give the ids of traces that begin so, at most `most`."""
        low, high = bytes.fromhex(prefix.ljust(32, "0")), bytes.fromhex(prefix.ljust(32, "f"))
        rows = self._database.execute("SELECT id FROM runs WHERE id BETWEEN ? AND ? LIMIT ?", (low, high, most))
        return [cast("bytes", trace_id).hex() for (trace_id,) in rows]

    def count(self) -> int:
        """Count the traces."""
        return int(self._database.execute("SELECT count(*) FROM runs").fetchone()[0])

    def lines(self, trace_id: str) -> Iterator[bytes]:
        """Read the bytes of each stretch of lines that holds spans or log events of a trace, in file order."""
        select = "SELECT at, size FROM places WHERE run = ? ORDER BY at"
        places = self._database.execute(select, (bytes.fromhex(trace_id),)).fetchall()
        with self.path.open("rb") as file:
            for at, size in places:
                file.seek(at)
                yield file.read(size)

    def records(self, trace_id: str) -> Iterator[Record]:
        """Read the spans and log events of a trace, in file order. Raises `InputError`."""
        unread = Unread(self.path.name).at("")  # what is not read was told when the index was made
        for stretch in self.lines(trace_id):
            for line in stretch.splitlines():
                try:
                    for record in otlp.records(orjson.loads(line), unread) if line.strip() else ():
                        if record.trace_id == trace_id:
                            yield record
                except (orjson.JSONDecodeError, otlp.NotOtlpError, *otlp.SHAPELESS) as failure:
                    problem = f"a line that holds trace {trace_id} cannot be read: {failure}"
                    raise InputError(str(self.path), problem) from None


def _listed(values: tuple[Any, ...]) -> Listed:
    row = dict(zip(_COLUMNS, values, strict=True))
    return Listed(
        id=row["id"].hex(),
        name=row["name"],
        started_ns=row["started"],
        ended_ns=row["ended"],
        status=span_facts.status_word(row["failed"], rooted=bool(row["rooted"])),
        calls=span_facts.by_kind([row[name] for name in _COUNTS]),
        session=_first(row["session"]),
        user=_first(row["user"]),
        tenant=_first(row["tenant"]),
        recording=row["recording"] or None,
        models=tuple(sorted(row["models"].split("\n"))) if row["models"] else (),
    )


def may_be_indexed(path: Path) -> bool:
    """Tell whether a file is big, and begins like plain OTLP/JSON."""
    try:
        if not is_big(path):
            return False
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except (OSError, ValueError):  # reading it tells what is wrong
        return False
    chosen = surest(head)
    return chosen is not None and chosen.name == "otlp-json"


def _first(lines: str) -> str | None:
    return lines.partition("\n")[0] or None


def naming(column: str, value: str) -> tuple[str, object]:
    """Give the condition for `newest` that a trace names `value` as its session, user or tenant, or names none."""
    return f"({column} = '' OR instr(char(10) || {column} || char(10), char(10) || ? || char(10)) > 0)", value


def indexed(path: Path, progress: Progress | None = None) -> FileIndex:
    """Open the index of a file, made now where there is none that still counts.

    Raises `NotLinesError` where the file is no OTLP/JSON lines, `InputError` where it is and a line is broken.
    """
    try:
        key = _key(path)
        folder = cache_folder()
        index_path = folder / f"{hashlib.blake2b(str(path.resolve()).encode(), digest_size=16).hexdigest()}.db"
        index = _opened(path, index_path, key)
        return index if index is not None else _build_index(path, index_path, key, progress)
    except OSError as failure:
        raise InputError(str(path), f"reading failed: {failure.strerror or failure}") from None


def cache_folder() -> Path:
    """Give the folder for indexes; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(base) if base.startswith("/") else Path(os.environ.get("HOME") or tempfile.gettempdir()) / ".cache"
    return home / "reenact" / "files"


def _key(path: Path) -> str:
    stat = path.stat()
    with path.open("rb") as file:
        first = file.read(_END)
        file.seek(max(0, stat.st_size - _END))
        ends = hashlib.blake2b(first + file.read(_END), digest_size=16).hexdigest()
    return f"{_VERSION} {stat.st_size} {stat.st_mtime_ns} {ends}"


def _opened(path: Path, index_path: Path, key: str) -> FileIndex | None:
    if not index_path.is_file():
        return None
    closing = contextlib.ExitStack()
    try:
        database = sqlite3.connect(f"file:{index_path}?mode=ro&immutable=1", uri=True)
        closing.callback(database.close)
        (value,) = database.execute("SELECT value FROM facts WHERE name = 'key'").fetchone()
        if value == key:
            return FileIndex(path, database, closing)
    except (sqlite3.Error, TypeError):  # damaged, or another version's: it is made again
        pass
    closing.close()
    return None


def _build_index(path: Path, index_path: Path, key: str, progress: Progress | None) -> FileIndex:
    with contextlib.ExitStack() as opened:
        draft = _draft(index_path, opened)
        database = sqlite3.connect(draft)
        opened.callback(database.close)
        database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_TABLES}")
        with path.open("rb") as stream:
            scan = _Scan(str(path), database, path.stat().st_size, progress)
            with _no_collection():
                scan.read(stream)
        database.execute("CREATE INDEX by_start ON runs (started)")
        notes = orjson.dumps(scan.unread.notes).decode()
        facts = {"key": key, "path": str(path.resolve()), "unplaced": str(scan.unplaced), "notes": notes}
        database.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
        database.commit()
        if _key(path) == key:  # nobody wrote to it meanwhile
            with contextlib.suppress(OSError):
                shutil.move(draft, index_path)
                _swept(index_path.parent)
        return FileIndex(path, database, opened.pop_all())


@contextlib.contextmanager
def _no_collection() -> Generator[None]:
    """Keep the collector of cycles out: parsed lines make none, and looking for them takes a tenth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _draft(index_path: Path, opened: contextlib.ExitStack) -> Path:
    """Give a file to write the index to: in the cache folder, else one that goes with the process."""
    try:
        index_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = index_path.with_name(f"{index_path.name}.{os.getpid()}")
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    except OSError:
        return Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="reenact-index-"))) / "index.db"
    opened.callback(draft.unlink, missing_ok=True)
    return draft


def _swept(folder: Path) -> None:
    index_files = sorted(folder.glob("*.db"), key=lambda each: each.stat().st_mtime, reverse=True)
    for old in index_files[_MOST_KEPT:]:
        old.unlink(missing_ok=True)


class _Scan:
    """The one pass."""

    def __init__(self, place: str, database: sqlite3.Connection, size: int, progress: Progress | None) -> None:
        self._place, self._database, self._size, self._progress = place, database, size, progress
        self._rows: dict[str, Row] = {}
        self._ids_by_spelling: dict[str, str] = {}
        """Ids as the file has them, where that is not as they are spelled here."""
        self._places: list[tuple[bytes, int, int]] = []
        self._last: tuple[str, int, int] = ("", 0, 0)
        """The trace of the line before, if it held no other, and where it lies."""
        self.unplaced = 0
        self.unread = Unread(Path(place).name)

    def read(self, stream: BinaryIO) -> None:
        limit, number, at, last_report = max_record_bytes(), 0, 0, 0
        loads = orjson.loads
        while line := stream.readline(limit + 1):
            number += 1
            size = len(line)
            if size > limit:
                problem = f"this line is longer than the limit of {spelled(limit)}"
                raise InputError(f"{self._place}:{number}", problem, hint=RAISE_THE_LIMIT)
            try:
                trace_ids = self._traces(loads(line), number)
            except (orjson.JSONDecodeError, otlp.NotOtlpError, *otlp.SHAPELESS, ValueError) as failure:
                trace_ids = () if line.isspace() else self._refuse_line(line, number, failure)
            self._note(trace_ids, at, size)
            at += size
            if self._progress is not None and at - last_report >= _STEP:
                last_report = at
                self._progress(at, self._size)
            if len(self._rows) > _MOST_ROWS:
                self._write()
        self._note((), at, 0)
        self._write()
        if self._progress is not None:
            self._progress(self._size, self._size)

    def _refuse_line(self, line: bytes, number: int, failure: Exception) -> tuple[str, ...]:
        if number == 1:
            raise NotLinesError
        if line.startswith(b"\xef\xbb\xbf"):
            raise NotLinesError
        reason = failure.msg if isinstance(failure, orjson.JSONDecodeError) else str(failure)
        problem = f"this line is no OTLP/JSON document: {reason}"
        hint = "It was damaged or not yet written to its end: copy it again, or cut the broken line out."
        raise InputError(f"{self._place}:{number}", problem, hint=hint) from None

    def _traces(self, document: Any, number: int) -> Iterable[str]:
        """Note every span of a document and give the ids of the traces that it holds something of."""
        if type(document) is not dict:
            return self._slowly(document, number)
        fields = cast("dict[str, Any]", document)
        if "resourceSpans" not in fields and "resourceLogs" not in fields:
            return self._slowly(fields, number)
        glimpses: list[tuple[str, Glimpse]] = []
        logs: list[str] = []
        recording = ""
        try:
            for group in fields.get("resourceSpans") or ():
                recording = _recording(group) or recording
                for scope in group["scopeSpans"]:
                    glimpses += [(self._names(span), span_facts.of_told(span)) for span in scope["spans"] if span]
            for group in fields.get("resourceLogs") or ():
                for scope in group["scopeLogs"]:
                    logs += [self._log_id(log) for log in scope["logRecords"] if log]
        except (AttributeError, KeyError, TypeError, ValueError):
            return self._slowly(fields, number)
        return self._all(glimpses, logs, recording)

    def _names(self, span: dict[str, Any]) -> str:
        """Give the trace that a span is of. Raises what `_traces` expects where any of its ids is none."""
        if not any(_span_id(span["spanId"])):
            raise otlp.NotOtlpError("spanId is all zeros")
        if above := span.get("parentSpanId"):
            _span_id(above)
        for link in span.get("links") or ():
            _span_id(link["spanId"])
            if not ids.trace_id(link["traceId"]):
                raise otlp.NotOtlpError("a link names no trace")
        return self._id(span["traceId"])

    def _log_id(self, log: dict[str, Any]) -> str:
        raw, span_id = log.get("traceId"), log.get("spanId")
        if span_id:
            _span_id(span_id)
        return self._id(raw) if raw and not (isinstance(raw, str) and not raw.strip("0A=")) else ""

    def _all(self, glimpses: list[tuple[str, Glimpse]], logs: list[str], recording: str) -> Iterable[str]:
        trace_ids = self._add_glimpses(glimpses, recording)
        for trace_id in logs:
            if trace_id:
                self._row(trace_id)
                trace_ids[trace_id] = None
            else:
                self.unplaced += 1
        return trace_ids

    def _slowly(self, document: object, number: int) -> Iterable[str]:
        unread = self.unread.at(f"line {number}")
        glimpses: list[tuple[str, Glimpse]] = []
        logs: list[str] = []
        recording = ""
        for item in cast("list[object]", document) if isinstance(document, list) else [document]:
            for record in otlp.records(item, unread):
                if isinstance(record, LogRecord):
                    logs.append(record.trace_id)
                else:
                    glimpses.append((record.trace_id, span_facts.of_record(record)))
                    recording = str(record.resource.attributes.get(_RECORDING) or recording)
        return self._all(glimpses, logs, recording)

    def _add_glimpses(self, glimpses: list[tuple[str, Glimpse]], recording: str) -> dict[str, None]:
        trace_ids: dict[str, None] = {}
        for trace_id, glimpse in glimpses:
            row = self._row(trace_id)
            span_facts.add(row, glimpse)
            row.recording = row.recording or recording
            trace_ids[trace_id] = None
        return trace_ids

    def _row(self, trace_id: str) -> Row:
        row = self._rows.get(trace_id)
        if row is None:
            row = self._rows[trace_id] = Row()
        return row

    def _id(self, raw: object) -> str:
        text = raw if isinstance(raw, str) else ""
        if text in self._rows:
            return text
        trace_id = self._ids_by_spelling.get(text) if text else None
        if trace_id is None:
            trace_id = ids.trace_id(raw)
            if not trace_id.strip("0"):
                raise otlp.NotOtlpError(f"traceId {str(raw)[:60]!r} is not 32 hexadecimal digits")
            if text and trace_id != text and len(self._ids_by_spelling) < _MOST_ROWS:
                self._ids_by_spelling[text] = trace_id
        return trace_id

    def _note(self, trace_ids: Iterable[str], at: int, size: int) -> None:
        """Note where traces lie; lines in a row of one trace are one place."""
        names = tuple(trace_ids)
        last, begin, length = self._last
        if len(names) == 1 and names[0] == last and begin + length == at:
            self._last = (last, begin, length + size)
            return
        if last:
            self._places.append((bytes.fromhex(last), begin, length))
        if len(names) == 1:
            self._last = (names[0], at, size)
            return
        self._last = ("", 0, 0)
        self._places += [(bytes.fromhex(name), at, size) for name in names]

    def _write(self) -> None:
        self._database.executemany(_UPSERT, (_values(trace_id, row) for trace_id, row in self._rows.items()))
        self._database.executemany("INSERT OR REPLACE INTO places VALUES (?, ?, ?)", self._places)
        self._rows.clear()
        self._places.clear()


def _span_id(raw: Any) -> bytes:
    """Read the id of a span. Raises `ValueError` or `TypeError` where it is none."""
    if len(raw) == ids.SPAN_DIGITS:
        return bytes.fromhex(raw)
    if read := ids.span_id(raw):  # spelled in another way
        return bytes.fromhex(read)
    raise otlp.NotOtlpError("what stands for the id of a span is none")


def _recording(group: dict[str, Any]) -> str:
    resource: dict[str, Any] = group.get("resource") or {}
    pairs: list[dict[str, Any]] = resource.get("attributes") or []
    return next((str(pair["value"].get("stringValue") or "") for pair in pairs if pair["key"] == _RECORDING), "")


def _values(trace_id: str, row: Row) -> tuple[Any, ...]:
    times = (row.topped, row.started if row.spans else 0, row.ended)
    topped, started, ended = (min(max(each, 0), (1 << 63) - 1) for each in times)
    texts = (row.session, row.user, row.tenant, row.recording, row.models)
    return (
        bytes.fromhex(trace_id),
        _utf8(row.name),
        row.rooted,
        topped,
        started,
        ended,
        min(int(row.failed), 3),
        row.spans,
        *map(_utf8, texts),
        *row.counts,
    )


def _utf8(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
