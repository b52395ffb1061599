"""The tables that say where the frames of a trace are; they can be made again from the frames."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from reenact.disk import frames, private
from reenact.disk.frames import Frame

SCHEMA = """
CREATE TABLE files (name TEXT PRIMARY KEY, scanned INTEGER NOT NULL, live INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE hot (
  trace BLOB NOT NULL, segment INTEGER NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL,
  PRIMARY KEY (trace, segment, at)
) WITHOUT ROWID;
CREATE TABLE traces (
  trace BLOB PRIMARY KEY, changed INTEGER NOT NULL, noted INTEGER NOT NULL DEFAULT 0, hot INTEGER NOT NULL,
  pack INTEGER, at INTEGER, size INTEGER, records INTEGER, raw INTEGER
) WITHOUT ROWID;
CREATE TABLE gone (trace BLOB PRIMARY KEY, time INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX traces_hot ON traces (changed) WHERE hot;
CREATE INDEX traces_due ON traces (changed) WHERE noted < changed;
CREATE INDEX traces_changed ON traces (changed);
"""
"""`live` counts what still lies in a file: rows of `hot` for a segment, bytes of current frames for a pack. `hot` of a
trace says that it has such rows; `gone` until when a trace was deleted, whatever of it lies in segments."""
_AT_ONCE = 500
_LOCKED_S = 30.0
Place: TypeAlias = tuple[int, int, int]
"""Number of a segment or pack, byte, bytes."""
InPack: TypeAlias = tuple[bytes, int, int, int, int]
"""Trace, byte, bytes, records, unpacked bytes."""
_PORTION_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A frame in a segment."""

    segment: int
    at: int
    size: int
    frame: Frame


def placed(frame_places: Iterable[tuple[int, int, bytes]]) -> Iterator[Placed]:
    """Say of frames that were written, each with its segment and byte, what the index is told of them."""
    for segment, at, frame in frame_places:
        yield Placed(segment=segment, at=at, size=len(frame), frame=frames.head(frame))


def connection(path: Path) -> sqlite3.Connection:
    """Open the index, as many processes may at once."""
    database = sqlite3.connect(private.touched(path), timeout=_LOCKED_S, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    database.execute("PRAGMA cache_size = -32768")
    return database


def note(database: sqlite3.Connection, placed: Iterable[Placed]) -> None:
    """Note frames of segments, and how far these are known now; those that are known already are passed over."""
    known_ends = dict(database.execute("SELECT name, scanned FROM files").fetchall())
    for each in placed:
        name, frame = f"seg-{each.segment:08}.rnf", each.frame
        if each.at != max(known_ends.get(name, 0), len(frames.MAGIC)):
            continue  # known already, or behind some that could not be noted: these are found by `catch_up`
        deleted = deleted_traces(database, frame.traces)
        traces = [trace for trace in frame.traces if deleted.get(trace, -1) < frame.time_ns]
        rows = [(trace, each.segment, each.at, each.size) for trace in traces]
        database.executemany("INSERT OR IGNORE INTO hot VALUES (?, ?, ?, ?)", rows)
        sql = (
            "INSERT INTO traces (trace, changed, hot) VALUES (?, ?, 1)"
            " ON CONFLICT DO UPDATE SET changed = max(changed, excluded.changed), hot = 1"
        )
        database.executemany(sql, [(trace, frame.time_ns) for trace in traces])
        known_ends[name] = each.at + each.size
        scanned(database, name, known_ends[name], len(rows))


def scanned(database: sqlite3.Connection, name: str, end: int, more: int = 0) -> None:
    """Note how far a file is known, and how much more of it counts."""
    sql = (
        "INSERT INTO files VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET scanned = max(scanned, excluded.scanned), live = live + excluded.live"
    )
    database.execute(sql, (name, end, more))


def note_whole(database: sqlite3.Connection, frame: Frame, place: tuple[int, int, int]) -> None:
    """Note a frame of a pack as it is read again."""
    for trace in frame.traces:
        if frame.kind == frames.DELETED:
            delete(database, trace, frame.time_ns)
            scanned(database, f"pack-{place[0]:08}.rnf", 0, place[2])
        else:
            note_pack(database, trace, (*place, frame.records, frame.raw), frame.time_ns)


def note_pack(
    database: sqlite3.Connection, trace: bytes, place: tuple[int, int, int, int, int], changed: int = 0
) -> None:
    """Note where a whole trace is now; `changed` for one that was not known."""
    old = pack(database, trace)
    if old is not None:
        scanned(database, f"pack-{old[0]:08}.rnf", 0, -old[2])
    scanned(database, f"pack-{place[0]:08}.rnf", 0, place[2])
    sql = (
        "INSERT INTO traces (trace, changed, hot, pack, at, size, records, raw) VALUES (?, ?, 0, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET pack = excluded.pack, at = excluded.at, size = excluded.size,"
        " records = excluded.records, raw = excluded.raw,"
        " hot = EXISTS (SELECT 1 FROM hot WHERE hot.trace = traces.trace)"
    )
    database.execute(sql, (trace, changed, *place))


def no_longer_hot(database: sqlite3.Connection, trace: bytes, places: Sequence[tuple[int, int, int]]) -> None:
    """Forget these places of a trace: what lies there is in a pack now, or nowhere."""
    for segment, at, _ in places:
        row = (trace, segment, at)
        deletions = database.execute("DELETE FROM hot WHERE trace = ? AND segment = ? AND at = ?", row).rowcount
        scanned(database, f"seg-{segment:08}.rnf", 0, -deletions)


def delete(database: sqlite3.Connection, trace: bytes, time_ns: int) -> None:
    """Forget a trace, and everything that came in of it until now."""
    database.execute("INSERT OR REPLACE INTO gone VALUES (?, ?)", (trace, time_ns))
    row = database.execute("SELECT changed FROM traces WHERE trace = ?", (trace,)).fetchone()
    if row is not None and row[0] > time_ns:
        return  # it came again since
    no_longer_hot(database, trace, hot(database, trace))
    if (old := pack(database, trace)) is not None:
        scanned(database, f"pack-{old[0]:08}.rnf", 0, -old[2])
    database.execute("DELETE FROM traces WHERE trace = ?", (trace,))


def hot(database: sqlite3.Connection, trace: bytes) -> list[tuple[int, int, int]]:
    """Give where frames of segments are that hold something of a trace."""
    sql = "SELECT segment, at, size FROM hot WHERE trace = ? ORDER BY segment, at"
    return database.execute(sql, (trace,)).fetchall()


def pack(database: sqlite3.Connection, trace: bytes) -> tuple[int, int, int] | None:
    """Give where the frame of a whole trace is; None where there is none."""
    row = database.execute("SELECT pack, at, size FROM traces WHERE trace = ?", (trace,)).fetchone()
    return row if row is not None and row[0] is not None else None


def live(database: sqlite3.Connection, name: str) -> int:
    """Give how much of a file still counts."""
    row = database.execute("SELECT live FROM files WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row else 0


def of_pack(database: sqlite3.Connection, number: int) -> list[InPack]:
    """Give trace, byte, bytes, records and unpacked bytes of each frame of a pack that counts."""
    sql = "SELECT trace, at, size, records, raw FROM traces WHERE pack = ? ORDER BY at"
    return database.execute(sql, (number,)).fetchall()


def deleted_traces(database: sqlite3.Connection, traces: Sequence[bytes]) -> dict[bytes, int]:
    """Give which of some traces were deleted, and until when."""
    deletion_times: dict[bytes, int] = {}
    for start in range(0, len(traces), _AT_ONCE):
        some = traces[start : start + _AT_ONCE]
        sql = f"SELECT trace, time FROM gone WHERE trace IN ({','.join('?' * len(some))})"  # noqa: S608 - marks alone
        deletion_times.update(database.execute(sql, some))
    return deletion_times


def forget(database: sqlite3.Connection, traces: Iterable[bytes]) -> None:
    """Forget that traces were deleted: no file holds anything of them from before."""
    database.executemany("DELETE FROM gone WHERE trace = ?", [(trace,) for trace in traces])


def packed_bytes(database: sqlite3.Connection) -> int:
    """Count the bytes of all traces that are in frames of their own."""
    return int(database.execute("SELECT coalesce(sum(size), 0) FROM traces").fetchone()[0])


def portions(pack_frames: Iterable[InPack]) -> Iterator[list[InPack]]:
    """Part frames of a pack into so many as are copied at once."""
    portion, size = list[InPack](), 0
    for each in pack_frames:
        portion.append(each)
        size += each[2]
        if size >= _PORTION_BYTES or len(portion) >= _AT_ONCE:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


class Ending:
    """The frames at the end of a segment that the index does not know yet."""

    def __init__(self, number: int, start: int) -> None:
        self._number, self.start = number, start
        self._end = start
        self._places: dict[bytes, list[Place]] = {}

    @property
    def traces(self) -> Iterable[bytes]:
        """The traces that they are of."""
        return self._places

    def read(self, path: Path) -> None:
        """Look at what was appended since."""
        with path.open("rb") as file:
            for at, size, frame in frames.scan(file, self._end):
                for trace in frame.traces:
                    self._places.setdefault(trace, []).append((self._number, at, size))
                self._end = at + size

    def places(self, trace: bytes) -> list[Place]:
        """Give where frames of a trace are."""
        return self._places.get(trace, [])
