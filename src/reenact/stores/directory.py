"""The default store: one folder. A file of OTLP/JSON lines a trace, an SQLite index that can be made again from them.

.reenact/traces/ab/ab12….jsonl    spans, appended; a span written twice is folded by its id when read
.reenact/blobs/ab/ab12…           values too large for a line of their trace (stores.blobs)
.reenact/outbox/                  what is still owed to backends (stores.outbox)
.reenact/frames/                  traces that a collector took in (stores.frames), read as if they were here
.reenact/journal/*.rnj            what recording processes write (formats.journal)
.reenact/journal/*.removed        what stood in files of theirs that were carried and removed (keep.journal_release)
.reenact/index-3*.sqlite          facts of runs, for `reenact ls`; 3 is the version of its tables. One that was made
                                  again has a name of its own, and the newest name counts: whoever still writes to
                                  the one before, or reads it, is not disturbed

A store that cannot be written is read all the same (`read_aside`): what a reader would write goes to a temporary
folder, and is read from there and from here.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from reenact.discover import entries
from reenact.disk import private
from reenact.disk.blob import BlobLostError, cut, is_cut, restored
from reenact.disk.lines import WholeLines, append_lines
from reenact.disk.run_index import COLUMNS, SCHEMA, VERSION, Entry, Search, newest_of_process, note, storable
from reenact.errors import InputError
from reenact.formats import otlp_json
from reenact.values.finding import Filters
from reenact.values.log import Record
from reenact.values.origin import ORIGIN, without_proof
from reenact.values.span import SpanRecord

if TYPE_CHECKING:
    import sqlite3

    from reenact.contracts.blobs import Blobs
    from reenact.contracts.extra_store import Further, FurtherKeeping
    from reenact.contracts.parcel import Parcel
    from reenact.disk.durable import Unforced

FOLDER = ".reenact"
_SETTINGS = ("policy.toml", "redaction.key")
"""Files of a store by which redaction goes (`redact.in_force`, `redact.keys`)."""
_PARTS = ("journal", "traces", "blobs", "outbox", "frames", "flags")
_UNLINKED = "set REENACT_STORE, or REENACT_BLOBS for large values, to where it is to be; or delete the link"
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_PREFIX = re.compile(r"[0-9a-f]{1,32}")
_LOCKED_S = 30.0
_ABANDONED_S = 3600.0
_PARCEL_SPANS = 64
_PARCEL_BYTES = 512 << 10


class IndexUnusableError(InputError):
    """The index cannot be used now: it is locked for long, may not be written, or the disk is full."""


class IndexDamagedError(IndexUnusableError):
    """The index is no database any more. The traces are not in it: it can be made again from them."""


def locate(start: Path, environ: dict[str, str]) -> Path:
    """Find the store: REENACT_STORE, else the nearest `.reenact` at or above `start`, else one to be made.

    It lies beside the project, as `.git` does, so that it is found again from another shell, user or empty environment.
    From below none is found in a folder that anybody may write to, as `/tmp`: it may be anybody's.
    """
    if folder_name := environ.get("REENACT_STORE"):
        return Path(folder_name)
    for folder in (start, *start.parents):
        if (folder / FOLDER).is_dir() and (folder == start or not _is_everybodys(folder)):
            return folder / FOLDER
    return start / FOLDER


def _is_everybodys(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IWOTH)


class DirectoryStore:
    """A store in a folder. Many processes may read and append at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._blobs: Blobs | None = None
        self._further: tuple[Further, ...] = ()
        self._aside: Path | None = None
        self._unforced: Unforced | None = None

    @property
    def journals(self) -> Path:
        """Where recording processes write."""
        return self.folder / "journal"

    def check_links(self) -> None:
        """Raise `InputError` where anything inside the folder is a link: what is written there would land elsewhere.

        A store may come with a repository, and a repository may hold links to anywhere.
        """
        for place in (self.folder, *(self.folder / name for name in _PARTS)):
            if place is not self.folder and place.is_symlink():
                raise InputError(str(place), "is a link, and nothing is written through it", hint=_UNLINKED)
            with suppress(FileNotFoundError, NotADirectoryError), os.scandir(place) as contents:
                for each in contents:
                    if each.is_symlink():
                        raise InputError(each.path, "is a link, and nothing is written through it", hint=_UNLINKED)

    def prepare(self) -> None:
        """Make the folder, for this user alone. Raises `InputError` where that cannot be done, or it is another's."""
        if self._aside is not None:
            return
        self.check_owner()
        try:
            self.check_links()
            private.folder(self.journals, self.folder)
            private.closed(self.folder)
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                private.write_text(ignore, "*\n")
        except OSError as error:
            raise InputError(
                str(self.folder), f"the store cannot be made: {error.strerror}", hint=_ELSEWHERE
            ) from error

    def check_owner(self) -> None:
        """Refuse a store that another user owns, or that another user's link leads to. Raises `NotOursError`."""
        private.check_ours(self.folder, "this store", hint=_OWN)

    @property
    def aside(self) -> Path | None:
        """The temporary folder that is written to in the store's place; None where the store itself is."""
        return self._aside

    def read_aside(self) -> bool:
        """From here on write to a temporary folder, and read from both. False where there is no room for one."""
        from reenact.disk.writable_folder import temporary_folder

        folder = self._aside or temporary_folder()
        if folder is None:
            return False
        if self._aside is None:
            from reenact.contracts.blobs import BlobKeeping

            (keeping,) = entries("stores", BlobKeeping)
            blobs, index = self.blobs, self._index
            self._aside, self._blobs = folder, _Beside(blobs, keeping.load().open(folder))
            with suppress(OSError):  # where it cannot be read it is made again
                shutil.copyfile(index, folder / index.name)
            for further in self.further():
                further.read_aside()
        return True

    def to_write_to(self) -> DirectoryStore:
        """Give the store itself where there is room in it, else a temporary one with the same policy and keys.

        Raises `InputError` where there is no room anywhere.
        """
        from reenact.disk.writable_folder import has_room, is_refusal, temporary_folder

        failed: InputError | None = None
        try:
            self.prepare()
        except InputError as error:
            if not is_refusal(error):
                raise
            failed = error
        if failed is None and self._aside is None and has_room(self.journals):
            return self
        folder = temporary_folder()
        if folder is None:
            raise failed or InputError(str(self.folder), "there is no room in it", hint=_ELSEWHERE)
        for name in _SETTINGS:
            with suppress(OSError):
                shutil.copyfile(self.folder / name, folder / name)
        store = DirectoryStore(folder)
        store.prepare()
        return store

    @property
    def _folders(self) -> tuple[Path, ...]:
        return (self.folder,) if self._aside is None else (self.folder, self._aside)

    def append(self, spans: Iterable[SpanRecord], *, proofs: bool = False) -> list[str]:
        """Add spans and give the ids of the traces they belong to; `proofs` as for `put`."""
        return list(dict.fromkeys(parcel.trace_id for parcel in self.put(spans, proofs=proofs)))

    def note_unforced(self) -> None:
        """From here on note what is written, so that `force` can have it on the disk; blobs are there at once."""
        if self._unforced is None:
            from reenact.disk.durable import Unforced

            self._unforced = Unforced(self.folder)

    def force(self) -> None:
        """Have on the disk itself what was written since it is noted, and the index of runs. Raises `OSError`."""
        if self._unforced is None or self._aside is not None:
            return
        if (index := self._index).exists():
            self._unforced.note(index)
        self._unforced.force()

    def put(self, spans: Iterable[SpanRecord], *, proofs: bool = False) -> list[Parcel]:
        """Add spans and give where they lie, in parcels of few. Their large values go to the blobs first.

        Only who carries a recorder's journal brings `proofs` of origin along; from whatever else is stored they go.
        """
        by_trace: dict[str, list[SpanRecord]] = defaultdict(list)
        put_blob = partial(self.blobs.put, forced=self._unforced is not None)
        for span in spans if proofs else map(_unproven, spans):
            by_trace[span.trace_id].append(cut(span, self.blobs.threshold, put_blob))
        return [self._append_spans(trace_id, some) for trace_id, records in by_trace.items() for some in _some(records)]

    def _append_spans(self, trace_id: str, spans: Sequence[SpanRecord]) -> Parcel:
        path = self._path(trace_id, self._aside)
        data = otlp_json.encode(spans)
        try:
            private.folder(path.parent, self._aside or self.folder)
            if self._unforced is not None:
                self._unforced.note(path)
            at = append_lines(path, data)
        except OSError as error:
            raise InputError(str(path), f"cannot be written: {error.strerror}", hint=_ELSEWHERE) from error
        from reenact.contracts.parcel import Parcel

        return Parcel(trace_id=trace_id, at=at, size=len(data), spans=len(spans))

    def parcel(self, parcel: Parcel) -> list[SpanRecord]:
        """Read a parcel again, references to blobs as they are. Raises `ParcelGoneError`, or another `InputError`."""
        from reenact.contracts.parcel import ParcelGoneError

        for keeping in self._keepings():
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
            spans = [span for span in otlp_json.FORMAT.decode(io.BytesIO(data), path) if isinstance(span, SpanRecord)]
        except InputError:
            spans = []
        if len(spans) != parcel.spans or any(span.trace_id != parcel.trace_id for span in spans):
            raise ParcelGoneError(str(path), "holds other spans at this place than it did")
        return list(map(_unproven, spans))

    @property
    def blobs(self) -> Blobs:
        """Where large values are kept. Raises `InputError` where its settings make no sense."""
        if self._blobs is None:
            from reenact.contracts.blobs import BlobKeeping

            (keeping,) = entries("stores", BlobKeeping)
            self._blobs = keeping.load().open(self.folder)
        return self._blobs

    def spans(self, trace_id: str) -> Iterator[SpanRecord]:
        """Read the spans of one trace, whole: the values of blobs are put back, and lost ones named (`disk.blob`).

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
        traces = [records for each in self.further() if (records := each.records(trace_id)) is not None]
        paths = [path for folder in self._folders if (path := self._path(trace_id, folder)).exists()]
        if not traces and not paths:
            raise InputError(str(self.folder), f"holds no trace {trace_id}")
        recorded = set[str]()
        for path in paths:
            for span in self._lines(trace_id, path):
                recorded.add(span.span_id)
                yield span
        for records in traces:  # what was sent here adds to what was recorded here, and changes nothing in it
            for one in records:
                if not recorded or not isinstance(one, SpanRecord):
                    yield _unproven(one)
                elif one.span_id not in recorded:
                    yield replace(_unproven(one), sent=True)

    def further(self) -> tuple[Further, ...]:
        """Give what else keeps traces in this folder."""
        if not self._further:
            opened = (keeping.open(self.folder) for keeping in self._keepings())
            self._further = tuple(each for each in opened if each is not None)
        return self._further

    def _keepings(self) -> Iterator[FurtherKeeping]:
        """Give the other ways to keep traces of which there is something in this folder."""
        from reenact.contracts.extra_store import FurtherKeeping

        every = entries("stores", FurtherKeeping)
        return (each.load() for each in every if (self.folder / each.outline["folder"]).is_dir())

    def _lines(self, trace_id: str, path: Path) -> Iterator[SpanRecord]:
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
        self.unlist(trace_id)

    def unlist(self, trace_id: str) -> None:
        """Take a run out of the index, whatever the store holds of its trace. Raises `IndexUnusableError`."""
        if self.indexed:
            with _opened(self._index) as database:
                database.execute("DELETE FROM runs WHERE id = ?", (trace_id,))

    def index(self, entries: Iterable[Entry]) -> None:
        """Note the facts of runs. Raises `IndexUnusableError`."""
        facts, path = list(entries), self._index
        while True:
            try:
                _note(path, facts)
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
        place = self._aside or self.folder
        draft = place / f"index-{VERSION}.{time.time_ns():016x}-{os.getpid():x}.draft"
        for abandoned in place.glob("index-*.draft"):
            if abandoned.stat().st_mtime < time.time() - _ABANDONED_S:
                _remove(abandoned)
        try:
            _note(draft, [])
            yield lambda entries: _note(draft, entries)
            outdated = [*place.glob("index-*.sqlite"), place / "index.sqlite"]
            draft.replace(draft.with_suffix(".sqlite"))
        finally:
            _remove(draft)
        for path in outdated:
            _remove(path)

    def forget_index(self) -> None:
        """Delete the index, to make it again from the traces."""
        for path in [*self.folder.glob("index-*.sqlite"), self.folder / "index.sqlite"]:
            _remove(path)

    def find(
        self, where: Sequence[tuple[str, Any]] = (), *, newest: int | None = None, replays: bool = True
    ) -> list[Entry]:
        """List runs, newest first, for which every (condition, value) of `where` holds."""
        clauses = [condition for condition, _ in where]
        if not replays:
            clauses.append("replay_of IS NULL")
        chosen = f" WHERE {' AND '.join(clauses)}" if clauses else ""
        columns = ", ".join(COLUMNS)
        sql = f"SELECT {columns} FROM runs{chosen} ORDER BY started DESC, id"  # noqa: S608 - conditions are code, values are bound
        if newest is not None:
            sql += f" LIMIT {int(newest)}"
        with self._reading() as database:
            rows = database.execute(sql, [storable(value) for _, value in where]).fetchall() if database else []
        return [Entry(**dict(zip(COLUMNS, row, strict=True))) for row in rows]

    def search(self, filters: Filters, *, newest: int | None = None, skip: int = 0) -> list[Entry]:
        """List the runs that fit, newest first: all of `filters` but its text, which no index holds."""
        with self._reading() as database:
            if database is None:
                return []
            rows = Search(database, filters).rows(newest, skip)
        return [Entry(**dict(zip(COLUMNS, row, strict=True))) for row in rows]

    def newest_of_process(self, recording: str, process: int) -> str | None:
        """Give the id of the newest run that a process of a recording made; None where the index knows of none."""
        with self._reading() as database:
            return newest_of_process(database, recording, process) if database else None

    def explained(self, filters: Filters) -> list[str]:
        """Say how SQLite goes about a search, one step a line."""
        with self._reading() as database:
            return Search(database, filters).plan() if database else []

    def resolve(self, prefix: str) -> list[str]:
        """Give the ids of the traces that begin with `prefix`."""
        if not _PREFIX.fullmatch(prefix):
            return []
        trace_ids = {path.stem for path in self._traces(f"{prefix[:2]}*/{prefix}*.jsonl")}
        return sorted(trace_ids.union(*(each.resolve(prefix) for each in self.further())))

    def _traces(self, pattern: str) -> Iterator[Path]:
        return (path for folder in self._folders for path in (folder / "traces").glob(pattern))

    def _path(self, trace_id: str, folder: Path | None = None) -> Path:
        if not _TRACE_ID.fullmatch(trace_id):
            raise InputError(repr(trace_id), "is not a trace id (32 lower-case hexadecimal digits)")
        return (folder or self.folder) / "traces" / trace_id[:2] / f"{trace_id}.jsonl"

    @property
    def _index(self) -> Path:
        return max(self._indexes(), key=_generation, default=(self._aside or self.folder) / f"index-{VERSION}.sqlite")

    def _indexes(self) -> list[Path]:
        return list((self._aside or self.folder).glob(f"index-{VERSION}*.sqlite"))

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection | None]:
        path = self._index
        if not path.exists():
            yield None
            return
        with _opened(path) as database:
            yield database if _version(database) == VERSION else None

    def recorded(self, trace_id: str) -> bool:
        """Tell whether a trace that was recorded here is kept."""
        return any(self._path(trace_id, folder).exists() for folder in self._folders)

    def trace_ids(self) -> list[str]:
        """List every trace, in no order."""
        names = {path.stem for path in self._traces("??/*.jsonl") if _TRACE_ID.fullmatch(path.stem)}
        return list(names.union(*(each.trace_ids() for each in self.further())))

    def changed_since(self, ns: int) -> list[str]:
        """List the traces that were written to at or after an instant, in nanoseconds since the epoch."""
        trace_ids: list[str] = []
        for path in self._traces("??/*.jsonl"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime_ns >= ns and _TRACE_ID.fullmatch(path.stem):
                    trace_ids.append(path.stem)
        return list(dict.fromkeys(trace_ids + [more for each in self.further() for more in each.changed_since(ns)]))

    def may_hold(self, trace_id: str, text: str) -> bool:
        """Tell at the cost of reading alone whether a trace can hold `text`, letter case aside; True where in doubt.

        JSON spells letters and digits of ASCII in one way, so what is not among the bytes is in no attribute.
        """
        if not text.isascii() or not text.replace(" ", "").isalnum():
            return True
        wanted = text.lower().encode()
        try:
            contents = [raw for each in self.further() if (raw := each.raw(trace_id)) is not None]
            if any(wanted in raw.lower() or any(letter in raw for letter in _LOWER_IN_ASCII) for raw in contents):
                return True
            paths = [path for folder in self._folders if (path := self._path(trace_id, folder)).exists()]
            if not contents and not paths:
                return True  # reading it in earnest names the error
            raw = b"".join(path.read_bytes() for path in paths)
        except (OSError, InputError):
            return True  # reading it in earnest names the error
        return not raw.isascii() or wanted in raw.lower()


_Stored = TypeVar("_Stored", bound=Record)


def _unproven(one: _Stored) -> _Stored:
    """Give a record as anybody may have sent it: without a proof of origin."""
    if not isinstance(one, SpanRecord) or ORIGIN not in one.attributes:
        return one
    return replace(one, attributes=without_proof(one.attributes))


_LOWER_IN_ASCII = ("\u212a".encode(), "\u0130".encode())  # the Kelvin sign, and I with a dot


class _Beside:
    """Blobs that cannot be added to, and those that are put aside in their place."""

    def __init__(self, blobs: Blobs, aside: Blobs) -> None:
        self._blobs, self._put_aside = blobs, aside

    @property
    def place(self) -> str:
        """Where they are that were there before."""
        return self._blobs.place

    @property
    def threshold(self) -> int:
        """From how many bytes on a value is put aside."""
        return self._blobs.threshold

    def put(self, digest: str, pieces: Iterator[bytes], *, forced: bool = False) -> None:
        """Put a blob aside."""
        self._put_aside.put(digest, pieces, forced=forced)

    def get(self, digest: str) -> bytes:
        """Give a blob from wherever it is."""
        try:
            return self._put_aside.get(digest)
        except BlobLostError:
            return self._blobs.get(digest)

    def sizes(self) -> Mapping[str, int]:
        """Look at every blob."""
        return {**self._blobs.sizes(), **self._put_aside.sizes()}

    def old(self, seconds: float) -> Mapping[str, int]:
        """Name none: nothing is to be deleted here."""
        del seconds
        return {}

    def delete(self, digest: str) -> None:
        """Delete what was put aside."""
        self._put_aside.delete(digest)


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


_ELSEWHERE = "set REENACT_STORE to a folder that can be written"
_OWN = (
    "set REENACT_STORE (or --store) to a folder of your own; to take over what is in it, `reenact export` it as its "
    f"owner, or name the owner's number in {private.TRUSTED}"
)


def _note(path: Path, entries: Iterable[Entry]) -> None:
    """Write entries into an index, made where there is none, in one transaction."""
    with _opened(path) as database:
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("PRAGMA cache_size = -65536")  # KiB at most: facts lie scattered
        database.execute("BEGIN IMMEDIATE")  # at once: a reader that becomes a writer later may never be let in
        try:
            if _version(database) != VERSION:
                for statement in SCHEMA.split(";"):
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {VERSION}")
            for entry in entries:
                note(database, entry)
            database.execute("COMMIT")
        except BaseException:
            with suppress(database.Error):
                database.execute("ROLLBACK")
            raise


@contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection]:
    import sqlite3

    try:
        with closing(sqlite3.connect(private.touched(path), timeout=_LOCKED_S, isolation_level=None)) as database:
            yield database
    except sqlite3.OperationalError as error:  # locked, read-only, a full disk
        raise IndexUnusableError(str(path), f"the index cannot be used now: {error}", hint=_ELSEWHERE) from error
    except sqlite3.DatabaseError as error:
        hint = "run `reenact ls --reindex`, which makes it again; the traces themselves are not in it"
        raise IndexDamagedError(str(path), f"the index is damaged: {error}", hint=hint) from error


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _generation(path: Path) -> str:
    return path.name.removeprefix(f"index-{VERSION}").removesuffix(".sqlite")


def _remove(path: Path) -> None:
    for suffix in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
