"""The tables by which runs are found, and the search of them; they can be made again from the traces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reenact.errors import InputError
from reenact.values.finding import Filters, ToolUse, sought

if TYPE_CHECKING:
    import sqlite3

SCHEMA = """
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
CREATE TABLE names (kind TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID;
"""
"""`facts` names the runs, newest last, of which something can be said: a digest of `tool`, `argument`, `use` (both),
`model`, `entry`, `commit` or `process` (of a recording) with its value. `call` tells the calls of one run apart, so
that arguments are those of one call. `names` holds what is asked for by a part of it: models, entry points, commits."""
VERSION = 3


COLUMNS = (
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
NAMED = ("user", "session", "tenant", "status")


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
    """Written only, as all that follows: `find` and `search` give none."""
    entries: tuple[str, ...] = ()
    """How the program that ran is called: its file, its service, the route or task that it did."""
    commits: tuple[str, ...] = ()
    uses: tuple[ToolUse, ...] = ()
    process: int | None = None
    """The number of the process of a recording that made it."""


def note(database: sqlite3.Connection, entry: Entry) -> None:
    """Note the facts of a run, whatever was known of it; within a transaction."""
    row = [storable(getattr(entry, name)) for name in COLUMNS]
    started = storable(entry.started)
    earlier_row = database.execute("SELECT number, started FROM runs WHERE id = ?", (entry.id,)).fetchone()
    if earlier_row is not None and earlier_row[1] == started:
        number = earlier_row[0]
        assigned = ", ".join(f"{name} = ?" for name in COLUMNS)
        database.execute(f"UPDATE runs SET {assigned} WHERE number = ?", [*row, number])  # noqa: S608 - names are this module's, values are bound
    else:  # a new number, where an earlier span turned up: facts lie by the start, and those of no run are passed over
        database.execute("DELETE FROM runs WHERE id = ?", (entry.id,))
        marks = ", ".join("?" for _ in COLUMNS)
        sql = f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({marks})"  # noqa: S608 - names are this module's, values are bound
        number = database.execute(sql, row).lastrowid
    groups = (("model", entry.models), ("entry", entry.entries), ("commit", entry.commits))
    names = [(kind, storable(name)) for kind, group in groups for name in group]
    facts = {(_fact(kind, name), 0) for kind, name in names}
    for use in entry.uses:
        call = _fact("call", use.id)
        facts.add((_fact("tool", use.tool), call))
        facts |= {(_fact("argument", path, value), call) for path, value in use.arguments}
        facts |= {(_fact("use", use.tool, path, value), call) for path, value in use.arguments}
    if entry.process is not None and entry.recording is not None:
        facts.add((_of_process(entry.recording, entry.process), 0))
    database.executemany(
        "INSERT OR IGNORE INTO facts VALUES (?, ?, ?, ?)", [(fact, started, number, call) for fact, call in facts]
    )
    database.executemany("INSERT OR IGNORE INTO names VALUES (?, ?)", names)


def newest_of_process(database: sqlite3.Connection, recording: str, process: int) -> str | None:
    """Give the newest run that a process of a recording made; None where it made none, or none that was noted so."""
    sql = "SELECT r.id FROM facts f JOIN runs r ON r.number = f.run WHERE f.fact = ? ORDER BY f.started DESC LIMIT 1"
    row = database.execute(sql, (_of_process(recording, process),)).fetchone()
    return str(row[0]) if row is not None else None


def _of_process(recording: str, process: int) -> int:
    return _fact("process", recording, str(process))


_MOST_NAMES = 10_000
"""In so many models, entry points or commits what is asked for may occur."""


class Search:
    """One search of the index: it starts from the rarest thing that was asked for, newest run first."""

    _COMMON = 20_000
    """From this many on, how many more does not matter: an answer is near wherever one starts."""

    def __init__(self, database: sqlite3.Connection, filters: Filters) -> None:
        self._database, self._filters = database, filters
        self._first, self._last = filters.window or (-(2**63), 2**63 - 1)
        if filters.window is not None:  # what began earlier than the longest run took was over by then
            (longest,) = database.execute("SELECT max(ended - started) FROM runs").fetchone()
            self._first = storable(self._first - (longest or 0))
        of = ("argument",) if filters.tool is None else ("use", filters.tool)
        self._call = [_fact(*of, path, sought(value)) for path, value in filters.arguments]
        if filters.tool is not None and not self._call:
            self._call.append(_fact("tool", filters.tool))
        self._one_of: list[list[int]] = []
        for kind in ("model", "entry", "commit"):
            if (asked := getattr(filters, kind)) is not None:
                self._one_of.append([_fact(kind, name) for name in self._names(kind, asked)])

    def _names(self, kind: str, asked: str) -> list[str]:
        """Give the names that hold what is asked for; a commit begins with it."""
        sql = "SELECT name FROM names WHERE kind = ? AND instr(name, ?) BETWEEN 1 AND ? LIMIT ?"
        place = 1 if kind == "commit" else 2**31
        rows = self._database.execute(sql, (kind, storable(asked), place, _MOST_NAMES + 1)).fetchall()
        if len(rows) > _MOST_NAMES:
            raise InputError(f"--{kind} {asked}", f"is in more than {_MOST_NAMES} names", hint="say more of it")
        return [name for (name,) in rows]

    def rows(self, newest: int | None, skip: int) -> list[tuple[Any, ...]]:
        """Give the columns of each run that fits, once."""
        sql, values = self._statement()
        rows_by_number: dict[int, tuple[Any, ...]] = {}
        for number, *row in self._database.execute(sql, values):
            rows_by_number.setdefault(number, tuple(row))  # a tool that was called twice leads here twice
            if newest is not None and len(rows_by_number) >= newest + skip:
                break
        return list(rows_by_number.values())[skip:]

    def plan(self) -> list[str]:
        """Give SQLite's own account of the statement."""
        sql, values = self._statement()
        return [str(row[3]) for row in self._database.execute(f"EXPLAIN QUERY PLAN {sql}", values)]

    def _statement(self) -> tuple[str, list[Any]]:
        """Write the statement. Its text is code; every value that was asked for is bound."""
        calls = sorted(self._call, key=self._count)
        starts: list[tuple[int, str, Any]] = [(self._count(calls[0]), "facts", calls[0])] if calls else []
        starts += [(self._count(group[0]), "facts", group[0]) for group in self._one_of if len(group) == 1]
        name_filters = [(name, value) for name in NAMED if (value := getattr(self._filters, name)) is not None]
        starts += [(self._count_named(name, value), name, value) for name, value in name_filters]
        if self._filters.window is not None:
            starts.append((self._count_window(), "started", None))
        _, start, value = min(starts, key=lambda each: each[0], default=(0, "started", None))
        columns = ", ".join(f"r.{name}" for name in ("number", *COLUMNS))
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
        yield f"{at}.started BETWEEN ? AND ?", [self._first, storable(self._last)]
        if self._filters.window is not None:
            yield "r.ended >= ?", [storable(self._filters.window[0])]
        for name in NAMED:
            if (value := getattr(self._filters, name)) is not None:
                yield f"r.{name} = ?", [storable(value)]
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
        for group in self._one_of:
            if start not in group:
                marks = ", ".join(map(str, group))
                inner = (
                    f"SELECT 1 FROM facts m WHERE m.fact IN ({marks}) AND m.started = r.started AND m.run = r.number"  # noqa: S608 - numbers of this module's
                )
                yield f"EXISTS ({inner})", []

    def _count(self, fact: int) -> int:
        inner = f"SELECT 1 FROM facts WHERE fact = ? AND started BETWEEN ? AND ? LIMIT {self._COMMON}"  # noqa: S608 - names are this module's, values are bound
        return self._count_rows(inner, fact, self._first, storable(self._last))

    def _count_named(self, name: str, value: str) -> int:
        inner = f"SELECT 1 FROM runs INDEXED BY runs_{name} WHERE {name} = ? AND started BETWEEN ? AND ?"  # noqa: S608 - names are this module's, values are bound
        return self._count_rows(f"{inner} LIMIT {self._COMMON}", storable(value), self._first, storable(self._last))

    def _count_window(self) -> int:
        inner = f"SELECT 1 FROM runs WHERE started BETWEEN ? AND ? LIMIT {self._COMMON}"  # noqa: S608 - names are this module's, values are bound
        return self._count_rows(inner, self._first, storable(self._last))

    def _count_rows(self, inner: str, *values: Any) -> int:
        (count,) = self._database.execute(f"SELECT count(*) FROM ({inner})", values).fetchone()  # noqa: S608 - names are this module's, values are bound
        return int(count)


_SAME_RUN = "m.started = r.started AND m.run = r.number"
_SAME_CALL = "SELECT 1 FROM facts s WHERE s.fact = ? AND s.started = r.started AND s.run = r.number AND s.call = {call}"


def _fact(kind: str, *words: str) -> int:
    """Name a fact by 64 bits of BLAKE2b, as the whole number with a sign that SQLite keeps."""
    text = "\0".join((kind, *words)).encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)


def storable(value: Any) -> Any:
    """Make a value one that SQLite takes: whole numbers of 64 bits with a sign, text without lone surrogates."""
    if isinstance(value, int):
        return max(-(2**63), min(value, 2**63 - 1))
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
