"""What is still owed to which backend, on disk, so that neither a crash nor an exit forgets it.

.reenact/outbox/outbox.sqlite    who is to have what, how far each journal was carried, and what became of it all
.reenact/outbox/<number>.lock    held by whoever sends to that backend at the moment, so that nobody else does

The spans themselves stay in the traces: what is owed is a place in one of them (`contracts.parcel.Parcel`). Taking
spans in and owing them is one transaction with the note of how far their journal was carried, and so is settling a
request with the counting of its spans. Whatever moment a process is killed at, every span that a backend was to have
is waiting, exported or counted as dropped, exactly once.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from reenact.contracts.parcel import Parcel
from reenact.disk import private
from reenact.disk.durable import force, force_entry
from reenact.errors import InputError

_VERSION = 1
_LOCKED_S = 30.0
_OVER_NS = 7 * 24 * 3600 * 10**9
"""So long after it began, nothing more is expected of a recording."""
_HINT = "spans are in the store: `reenact export RUN --to URL` sends them; a damaged outbox is made anew once deleted"
_SCHEMA = """
CREATE TABLE backends (
  number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, since INTEGER NOT NULL,
  created INTEGER NOT NULL DEFAULT 0, exported INTEGER NOT NULL DEFAULT 0, referred INTEGER NOT NULL DEFAULT 0,
  delivered INTEGER, error TEXT, failed INTEGER, tries INTEGER NOT NULL DEFAULT 0, next_try INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE dropped (
  backend INTEGER NOT NULL, reason TEXT NOT NULL, spans INTEGER NOT NULL, PRIMARY KEY (backend, reason)
) WITHOUT ROWID;
CREATE TABLE owed (
  backend INTEGER NOT NULL, number INTEGER NOT NULL, trace TEXT NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL,
  spans INTEGER NOT NULL, done INTEGER NOT NULL DEFAULT 0, since INTEGER NOT NULL, PRIMARY KEY (backend, number)
) WITHOUT ROWID;
CREATE TABLE numbers (next INTEGER NOT NULL);
INSERT INTO numbers VALUES (1);
CREATE TABLE recordings (
  recording TEXT NOT NULL, backend INTEGER NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (recording, backend)
) WITHOUT ROWID;
CREATE TABLE journals (name TEXT PRIMARY KEY, spans INTEGER NOT NULL) WITHOUT ROWID;
"""

_ASKED = "CREATE TABLE IF NOT EXISTS asked (backend INTEGER PRIMARY KEY, until INTEGER NOT NULL)"
"""Made when it is first needed: an outbox of an earlier version has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """A parcel that a backend is to have; the first `done` spans of it are settled."""

    number: int
    parcel: Parcel
    done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What became of the first spans that were owed."""

    spans: int
    """How many, in the order in which they are owed: exported and dropped ones together."""
    exported: int = 0
    referred: int = 0
    """How many of the exported went with a reference in place of a large value."""
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Spans by reason."""
    note: str = ""
    """What the backend said to those it dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """How things stand with one backend. `created` is `exported`, `waiting` and all of `dropped` together."""

    number: int
    name: str
    created: int
    exported: int
    referred: int
    waiting: int
    dropped: Mapping[str, int]
    oldest_ns: int | None
    """When the one that waits longest was taken in, in nanoseconds since the epoch."""
    error: str | None
    """What went wrong last, of what was not made good since."""
    failed_ns: int | None
    delivered_ns: int | None
    tries: int
    next_try_ns: int
    recordings: tuple[str, ...]
    """Recordings whose spans it is to have."""


class OutboxUnusableError(InputError):
    """The outbox cannot be used now: it is locked for long, may not be written, is damaged, or the disk is full."""


class Outbox:
    """The outbox of one store. Many processes may use it at once."""

    def __init__(self, store: Path) -> None:
        self.folder = store / "outbox"
        self._path = self.folder / "outbox.sqlite"

    @property
    def exists(self) -> bool:
        """Whether anything was ever owed to anybody."""
        return self._path.exists()

    def force(self) -> None:
        """Have what was noted so far on the disk itself. Raises `OSError`."""
        if self.exists:
            force(self._path)
            force_entry(self._path, self.folder)

    def register(self, recording: str, backends: Sequence[str]) -> dict[str, int]:
        """Note to whom the spans of a recording are to go, and give the number of each backend."""
        self._prepare()
        now = time.time_ns()
        with self._writing() as database:
            for name in backends:
                database.execute("INSERT OR IGNORE INTO backends (name, since) VALUES (?, ?)", (name, now))
            numbers = _numbers(database, backends)
            rows = [(recording, number, now) for number in numbers.values()]
            database.execute("DELETE FROM recordings WHERE since < ?", (now - _OVER_NS,))
            database.executemany("INSERT OR REPLACE INTO recordings VALUES (?, ?, ?)", rows)
        return numbers

    def known(self, backends: Sequence[str]) -> dict[str, int]:
        """Give the numbers of those of these backends that anything was ever owed to."""
        if not self.exists:
            return {}
        with self._connection() as database:
            return _numbers(database, backends)

    def recipients(self, recording: str) -> list[int]:
        """Give the backends that are to have the spans of a recording."""
        if not self.exists:
            return []
        with self._connection() as database:
            rows = database.execute("SELECT backend FROM recordings WHERE recording = ? ORDER BY backend", (recording,))
            return [number for (number,) in rows]

    @contextmanager
    def taking_in(self, journal: str, backends: Sequence[int]) -> Generator[Intake]:
        """Take spans of a journal in: what is owed by the end of the block is noted wholly, or not at all."""
        with self._writing() as database:
            yield Intake(database, journal, backends)

    def note_journals(self, carried: Mapping[str, int]) -> None:
        """Note how many spans of journals are in the store that nobody is owed. Raises `OutboxUnusableError`."""
        self._prepare()
        with self._writing() as database:
            database.executemany("INSERT OR REPLACE INTO journals VALUES (?, ?)", list(carried.items()))

    def forget_journals(self, journals: Sequence[str]) -> None:
        """Forget how far journals were carried that are no more. Their names never come again."""
        with self._writing() as database:
            database.executemany("DELETE FROM journals WHERE name = ?", [(name,) for name in journals])

    def next(self, backend: int, spans: int, size: int) -> list[Owed]:
        """Give what is owed first, of about so many spans and bytes, at least one parcel where any is."""
        parcels: list[Owed] = []
        with self._connection() as database:
            columns = "number, trace, at, size, spans, done"
            rows = database.execute(f"SELECT {columns} FROM owed WHERE backend = ? ORDER BY number", (backend,))  # noqa: S608 - the columns are this module's
            for number, trace, at, length, count, progress in rows:
                if parcels and (count - progress > spans or length > size):
                    break
                spans, size = spans - (count - progress), size - length
                parcel = Parcel(trace_id=trace, at=at, size=length, spans=count)
                parcels.append(Owed(number=number, parcel=parcel, done=progress))
                if spans <= 0 or size <= 0:
                    break
        return parcels

    def first_owed(self, traces: str) -> str | None:
        """Give the trace of what is owed first to any backend, of those like `traces` (`%` stands for any text)."""
        with self._connection() as database:
            row = database.execute("SELECT trace FROM owed WHERE trace LIKE ? ORDER BY number LIMIT 1", (traces,))
            first = row.fetchone()
        return str(first[0]) if first else None

    def settle(self, backend: int, settlement: Settlement) -> None:
        """Count what became of the first spans that were owed, and owe them no longer."""
        with self._writing() as database:
            _take_off(database, backend, settlement.spans)
            for reason, spans in settlement.dropped.items():
                sql = "INSERT INTO dropped VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET spans = spans + excluded.spans"
                database.execute(sql, (backend, reason, spans))
            now, well = time.time_ns(), not settlement.dropped
            sql = "UPDATE backends SET exported = exported + ?, referred = referred + ?, tries = 0, next_try = 0"
            database.execute(f"{sql} WHERE number = ?", (settlement.exported, settlement.referred, backend))
            if settlement.exported:
                database.execute("UPDATE backends SET delivered = ? WHERE number = ?", (now, backend))
            failure = (None, None) if well else (settlement.note or None, now)
            database.execute("UPDATE backends SET error = ?, failed = ? WHERE number = ?", (*failure, backend))

    def failed(self, backend: int, error: str, next_try_ns: int, *, tries: int) -> None:
        """Note that nothing could be delivered, how often in a row, and when to try again."""
        with self._writing() as database:
            sql = "UPDATE backends SET error = ?, failed = ?, next_try = ?, tries = ? WHERE number = ?"
            database.execute(sql, (error[:1000], time.time_ns(), next_try_ns, tries, backend))

    def asked(self, backend: int, until_ns: int) -> None:
        """Note that a backend asked to be left alone until a moment (`Retry-After`), whoever would send to it."""
        with self._writing() as database:
            database.execute(_ASKED)
            database.execute("INSERT OR REPLACE INTO asked VALUES (?, ?)", (backend, until_ns))

    def asked_until(self, backend: int) -> int:
        """Give the moment until which a backend asked to be left alone, in ns since the epoch; 0 where it did not."""
        with self._connection() as database:
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'asked'").fetchone() is None:
                return 0
            row = database.execute("SELECT until FROM asked WHERE backend = ?", (backend,)).fetchone()
        return int(row[0]) if row else 0

    def patience(self, backend: int) -> tuple[int, int]:
        """Give how often in a row sending failed, and the moment before which not to try again (ns since the epoch)."""
        with self._connection() as database:
            row = database.execute("SELECT tries, next_try FROM backends WHERE number = ?", (backend,)).fetchone()
        return (int(row[0]), int(row[1])) if row else (0, 0)

    def waiting(self, backend: int) -> int:
        """Count the spans that a backend is still to have."""
        with self._connection() as database:
            return _waiting(database, backend)

    def give_up(self, backend: int, reason: str) -> int:
        """Drop what a backend is still to have, counted under `reason`, and say how many spans that was."""
        spans = self.waiting(backend)
        self.settle(backend, Settlement(spans=spans, dropped={reason: spans} if spans else {}, note=reason))
        return spans

    def accounts(self) -> list[Account]:
        """Say how things stand with every backend, as of one moment."""
        with self.snapshot() as snapshot:
            return snapshot.accounts()

    @contextmanager
    def snapshot(self) -> Generator[Snapshot]:
        """Look at everything as of one moment; nothing changes until the block ends."""
        if not self.exists:
            yield Snapshot(None)
            return
        with self._connection() as database:
            database.execute("BEGIN")
            yield Snapshot(database)
            database.execute("COMMIT")

    @contextmanager
    def sending(self, backend: int) -> Generator[bool]:
        """Be the only one that sends to a backend; False where somebody else does."""
        path = self.folder / f"{backend}.lock"
        try:
            fd = private.opened(path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise OutboxUnusableError(str(path), f"cannot be locked: {error.strerror}", hint=_HINT) from error
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(fd)

    def _prepare(self) -> None:
        try:
            private.folder(self.folder, self.folder.parent)
        except OSError as error:
            raise OutboxUnusableError(str(self.folder), f"cannot be made: {error.strerror}", hint=_HINT) from error

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        try:
            with closing(
                sqlite3.connect(private.touched(self._path), timeout=_LOCKED_S, isolation_level=None)
            ) as database:
                database.execute("PRAGMA synchronous = NORMAL")
                if int(database.execute("PRAGMA user_version").fetchone()[0]) == 0:
                    _make(database)
                yield database
        except sqlite3.Error as error:
            raise OutboxUnusableError(str(self._path), f"the outbox cannot be used now: {error}", hint=_HINT) from error

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        with self._connection() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    database.execute("ROLLBACK")
                raise


class Snapshot:
    """An outbox at one moment."""

    def __init__(self, database: sqlite3.Connection | None) -> None:
        self._database = database
        if database is not None:
            database.execute("SELECT next FROM numbers").fetchone()  # from here on it does not change

    def accounts(self) -> list[Account]:
        """Say how things stand with every backend."""
        if self._database is None:
            return []
        numbers = [number for (number,) in self._database.execute("SELECT number FROM backends ORDER BY number")]
        return [_account(self._database, number) for number in numbers]

    def carried(self, journal: str) -> int:
        """Give how many spans of a journal are in the store and owed."""
        return _carried(self._database, journal) if self._database is not None else 0


class Intake:
    """Spans on their way from a journal into the store, in one transaction."""

    def __init__(self, database: sqlite3.Connection, journal: str, backends: Sequence[int]) -> None:
        self._database, self._journal, self._backends = database, journal, backends
        self.carried = _carried(database, journal)
        """How many spans of the journal were taken in before."""

    def beside(self, journal: str, backends: Sequence[int]) -> Intake:
        """Take what is for other backends in within the same transaction, counted by itself under another name."""
        return Intake(self._database, journal, backends)

    def owe(self, parcels: Iterable[Parcel]) -> None:
        """Owe parcels, which are in the store, to every backend."""
        now, count = time.time_ns(), 0
        (number,) = self._database.execute("SELECT next FROM numbers").fetchone()
        for parcel in parcels:
            place = (parcel.trace_id, parcel.at, parcel.size, parcel.spans)
            rows = [(backend, number, *place, 0, now) for backend in self._backends]
            self._database.executemany("INSERT INTO owed VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            number, count = number + 1, count + parcel.spans
        self._database.execute("UPDATE numbers SET next = ?", (number,))
        for backend in self._backends:
            self._database.execute("UPDATE backends SET created = created + ? WHERE number = ?", (count, backend))
        self.carried += count
        self._database.execute("INSERT OR REPLACE INTO journals VALUES (?, ?)", (self._journal, self.carried))


def _make(database: sqlite3.Connection) -> None:
    database.execute("BEGIN IMMEDIATE")
    if int(database.execute("PRAGMA user_version").fetchone()[0]) == 0:  # nobody else was faster
        for statement in _SCHEMA.split(";"):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {_VERSION}")
    database.execute("COMMIT")


def _numbers(database: sqlite3.Connection, backends: Sequence[str]) -> dict[str, int]:
    rows = dict(database.execute("SELECT name, number FROM backends").fetchall())
    return {name: int(rows[name]) for name in backends if name in rows}


def _carried(database: sqlite3.Connection, journal: str) -> int:
    row = database.execute("SELECT spans FROM journals WHERE name = ?", (journal,)).fetchone()
    return int(row[0]) if row else 0


def _waiting(database: sqlite3.Connection, backend: int) -> int:
    (count,) = database.execute("SELECT sum(spans - done) FROM owed WHERE backend = ?", (backend,)).fetchone()
    return int(count or 0)


def _take_off(database: sqlite3.Connection, backend: int, spans: int) -> None:
    sql = "SELECT number, spans, done FROM owed WHERE backend = ? ORDER BY number"
    left, whole = spans, 0
    for number, count, progress in database.execute(sql, (backend,)):
        if count - progress > left:
            if left:
                changed = (progress + left, backend, number)
                database.execute("UPDATE owed SET done = ? WHERE backend = ? AND number = ?", changed)
            break
        left, whole = left - (count - progress), number
        if not left:
            break
    database.execute("DELETE FROM owed WHERE backend = ? AND number <= ?", (backend, whole))


def _account(database: sqlite3.Connection, number: int) -> Account:
    columns = "name, created, exported, referred, error, failed, delivered, tries, next_try"
    row = database.execute(f"SELECT {columns} FROM backends WHERE number = ?", (number,)).fetchone()  # noqa: S608 - the columns are this module's
    oldest = database.execute("SELECT min(since) FROM owed WHERE backend = ?", (number,)).fetchone()[0]
    dropped = database.execute("SELECT reason, spans FROM dropped WHERE backend = ? ORDER BY reason", (number,))
    recordings = database.execute("SELECT recording FROM recordings WHERE backend = ?", (number,))
    return Account(
        number=number,
        name=row[0],
        created=row[1],
        exported=row[2],
        referred=row[3],
        waiting=_waiting(database, number),
        dropped=dict(dropped.fetchall()),
        oldest_ns=oldest,
        error=row[4],
        failed_ns=row[5],
        delivered_ns=row[6],
        tries=row[7],
        next_try_ns=row[8],
        recordings=tuple(recording for (recording,) in recordings.fetchall()),
    )
