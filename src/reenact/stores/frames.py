"""The collector's way to keep traces: frames appended to segments, then each trace that is over in a frame of its own.

.reenact/frames/seg-00000001.rnf     requests as they came in (values.frames), each frame of many traces
.reenact/frames/pack-00000001.rnf    whole traces, a frame each: a tenth of the bytes, and one read gets one
.reenact/frames/index-1.sqlite       where the frames of a trace are; 1 is the version of its tables. It can be made
                                     again from the frames, and is where it is missing
.reenact/frames/writer.lock          held by the one process that appends to segments
.reenact/frames/forwarding           the first segment that a backend is still to have something of

What is acknowledged is in a segment and on disk. The index follows a moment later: frames behind what it knows are
found by looking at the end of the segments. A frame of a pack counts in place of those before it of the same trace.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from reenact.contracts.extra_store import FurtherKeeping, GrewError
from reenact.contracts.parcel import Parcel, ParcelGoneError
from reenact.disk import frame_index, frames, private
from reenact.disk.appender import Appender, append_whole, packing
from reenact.disk.frame_index import Ending, InPack, Place, Placed
from reenact.disk.frames import Frame
from reenact.disk.gathering import Gathering
from reenact.disk.writable_folder import is_refusal, temporary_folder
from reenact.errors import InputError
from reenact.formats import otlp_proto
from reenact.values import locks
from reenact.values.log import Record
from reenact.values.span import SpanRecord

FOLDER = "frames"
_VERSION = 1
_PACK_BYTES = 256 << 20
_LATE_NS = 600 * 10**9
"""Frames may be written so much later than they were made."""
_TRIES = 5
_NAME = re.compile(r"(seg|pack)-(\d{8,})\.rnf")
_NEEDED = "forwarding"
_PARCEL = re.compile(r"frames/(\d+)")
_HINT = "the index of frames can be deleted: it is made again from the frames"


class FramesUnusableError(InputError):
    """The frames or their index cannot be used now: locked for long, read-only, damaged, or the disk is full."""


class FrameStore:
    """The frames in a store's folder. Any number of processes may read; one appends, and one compacts."""

    def __init__(self, store: Path) -> None:
        self.folder = store.absolute() / FOLDER
        self._index = self.folder / f"index-{_VERSION}.sqlite"
        self._lock = locks.rlock()
        self._database: sqlite3.Connection | None = None
        self._inode = 0
        self._tails: dict[int, Ending] = {}
        self._since_ns: int | None = None
        self._aside = False
        """The index is a copy in a temporary folder, since this one cannot be written."""

    # ------------------------------------------------------------------------------------------------------- reading

    def records(self, trace_id: str) -> Iterator[Record] | None:
        """Read the spans and log events of a trace, each once, in the order of their coming; None where it is none."""
        payload = self._payload(trace_id)
        return None if payload is None else decoded(*payload, place=f"{self.folder}: trace {trace_id}")

    def raw(self, trace_id: str) -> bytes | None:
        """Give the protobuf of a trace, in which every text stands as it is."""
        payload = self._payload(trace_id)
        return None if payload is None else payload[0] + payload[1]

    def _payload(self, trace_id: str) -> tuple[bytes, bytes] | None:
        try:
            trace = bytes.fromhex(trace_id)
        except ValueError:
            return None
        for _ in range(_TRIES):
            pack, hot = self._places(trace)
            try:
                return self._gathered(trace, pack, hot)
            except FileNotFoundError:  # compacted between the look and the read
                continue
        raise FramesUnusableError(str(self.folder), f"the frames of trace {trace_id} are gone", hint=_HINT)

    def _gathered(self, trace: bytes, pack: Place | None, hot: Sequence[Place]) -> tuple[bytes, bytes] | None:
        if pack is None and not hot:
            return None
        if pack is not None:
            spans, logs = frames.halves(self._read_frame("pack", *pack).payload)
            if not hot:
                return spans, logs
        else:
            spans, logs = b"", b""
        gathering = Gathering({trace})
        gathering.add_whole(trace, spans, logs)
        for place in hot:
            self._gather(gathering, place)
        return gathering.whole(trace)

    def _places(self, trace: bytes) -> tuple[Place | None, list[Place]]:
        with self._reading() as database:
            row = database.execute("SELECT pack, at, size FROM traces WHERE trace = ?", (trace,)).fetchone()
            hot = database.execute("SELECT segment, at, size FROM hot WHERE trace = ? ORDER BY segment, at", (trace,))
            places = hot.fetchall()
            offsets = self._offsets(database)
        at_end = [place for ending in self._endings(offsets) for place in ending.places(trace)]
        pack = row if row is not None and row[0] is not None else None
        return pack, sorted({*places, *at_end})

    def _gather(self, gathering: Gathering, place: Place) -> None:
        """Take what a frame of a segment has; one that was taken back, since it could not be written, has nothing."""
        number, at, size = place
        if self._file("seg", number).stat().st_size >= at + size:
            gathering.add(self._read_frame("seg", number, at, size))

    def _read_frame(self, kind: str, number: int, at: int, size: int) -> Frame:
        with self._file(kind, number).open("rb", buffering=0) as file:
            data = os.pread(file.fileno(), size, at)
        try:
            return frames.read(data)
        except frames.FrameDamagedError as error:
            place = f"{self._file(kind, number)}: byte {at}"
            raise FramesUnusableError(place, f"a frame is damaged: {error}", hint="`reenact store check`") from None

    def resolve(self, prefix: str) -> list[str]:
        """Give the ids of the traces that begin with `prefix`."""
        first, last = bytes.fromhex(prefix.ljust(32, "0")), bytes.fromhex(prefix.ljust(32, "f"))
        with self._reading() as database:
            rows = database.execute("SELECT trace FROM traces WHERE trace BETWEEN ? AND ?", (first, last)).fetchall()
            offsets = self._offsets(database)
        late = {trace for ending in self._endings(offsets) for trace in ending.traces if first <= trace <= last}
        return sorted(trace.hex() for trace in {trace for (trace,) in rows} | late)

    def trace_ids(self) -> list[str]:
        """List every trace."""
        return self.resolve("")

    def changed_since(self, ns: int) -> list[str]:
        """List the traces that something came in of since."""
        with self._reading() as database:
            rows = database.execute("SELECT trace FROM traces WHERE changed >= ?", (ns,)).fetchall()
            offsets = self._offsets(database)
        late = {trace for ending in self._endings(offsets) for trace in ending.traces}
        return sorted(trace.hex() for trace in {trace for (trace,) in rows} | late)

    def unnoted(self, most: int, before_ns: int | None = None) -> list[str]:
        """List traces that grew since they were noted, those that waited longest first; none that grew since then."""
        with suppress(FramesUnusableError):  # where the index cannot be written, what it knows has to do
            self.catch_up()
        sql = "SELECT trace FROM traces WHERE noted < changed AND changed < ? ORDER BY changed LIMIT ?"
        with self._reading() as database:
            return [
                trace.hex() for (trace,) in database.execute(sql, (2**63 - 1 if before_ns is None else before_ns, most))
            ]

    def noted(self, trace_ids: list[str], at_ns: int) -> None:
        """Take it that these are in the index of runs as they were at an instant."""
        rows = [(at_ns, bytes.fromhex(trace_id)) for trace_id in trace_ids]
        with self._writing() as database:
            database.executemany("UPDATE traces SET noted = ? WHERE trace = ?", rows)

    def weight(self, trace_id: str) -> int:
        """Give the bytes of a trace's frame; 0 where it has none of its own yet."""
        with self._reading() as database:
            place = frame_index.pack(database, bytes.fromhex(trace_id))
        return place[2] if place is not None else 0

    def packed_bytes(self) -> int:
        """Give the bytes on disk of all traces that are in frames of their own."""
        with self._reading() as database:
            return frame_index.packed_bytes(database)

    def sizes(self) -> tuple[int, int]:
        """Give how many traces there are, and their bytes on disk."""
        with self._reading() as database:
            (count,) = database.execute("SELECT count(*) FROM traces").fetchone()
        return count, sum(path.stat().st_size for path, _ in self._files())

    def parcel(self, parcel: Parcel) -> list[SpanRecord]:
        """Read the spans of one frame again, as they came in."""
        payload = self.request(parcel)
        return [record for record in decoded(payload, b"", place="") if isinstance(record, SpanRecord)]

    def request(self, parcel: Parcel) -> bytes:
        """Give the request that one frame holds, of spans or of log records. Raises `ParcelGoneError`."""
        number = int((_PARCEL.fullmatch(parcel.trace_id) or ["", "0"])[1])
        try:
            return self._read_frame("seg", number, parcel.at, parcel.size).payload
        except FileNotFoundError as error:
            raise ParcelGoneError(str(self._file("seg", number)), "was deleted") from error

    # ------------------------------------------------------------------------------------------------------- writing

    def prepare(self) -> None:
        """Make the folder. Raises `FramesUnusableError`."""
        try:
            private.folder(self.folder, self.folder.parent)
        except OSError as error:
            raise FramesUnusableError(str(self.folder), f"cannot be made: {error.strerror}") from error

    def appender(self, *, within: bool = False) -> Appender:
        """Be the one that appends, until it is closed. What a crash tore is cut off. Raises `FramesUnusableError`.

        `within` says that this is within `packing`. Else it waits for that: a keeper may have outlived its collector.
        """
        self.prepare()
        lock = self.lock()
        try:
            with nullcontext() if within else packing(self.folder):
                self.catch_up(cut=True)
            segments = [number for _, number in self._files("seg")]
            return Appender(self.folder, max(segments, default=0) + 1, lock)
        except BaseException:
            os.close(lock)
            raise

    def lock(self) -> int:
        """Be the only one that appends, until this file is closed. Raises `FramesUnusableError`."""
        lock = private.opened(self.folder / "writer.lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise FramesUnusableError(str(self.folder), "another collector writes here") from None
        return lock

    def note(self, placed: Iterable[Placed]) -> None:
        """Have the index know of frames, those of one segment in their order. Raises `FramesUnusableError`."""
        with self._writing() as database:
            frame_index.note(database, placed)

    def catch_up(self, *, cut: bool = False) -> int:
        """Have the index know what it does not yet, by reading the ends of the files; say how many frames that was.

        With `cut`, what a crash tore off is cut: only for the one that appends.
        """
        count = 0
        with self._reading() as database:
            offsets = self._offsets(database)
        for path, number in self._files("seg"):
            count += self._caught_up(path, number, offsets.get(path.name, 0), cut=cut)
        for path, number in self._files("pack"):
            self._caught_up_pack(path, number, offsets.get(path.name, 0), cut=cut)
        return count

    def _caught_up(self, path: Path, number: int, scanned: int, *, cut: bool) -> int:
        count, end, batch = 0, max(scanned, len(frames.MAGIC)), list[Placed]()
        if not cut and path.stat().st_size <= end:
            return 0
        with path.open("rb") as file:
            if file.read(len(frames.MAGIC)) != frames.MAGIC:
                if cut:
                    path.unlink()
                return 0
            for at, size, frame in frames.scan(file, end):
                batch.append(Placed(segment=number, at=at, size=size, frame=replace(frame, packed=b"")))
                end, count = at + size, count + 1
                if len(batch) >= 500:
                    self.note(batch)
                    batch = []
        self.note(batch)
        if cut and path.stat().st_size > end:
            os.truncate(path, end)
        return count

    def _caught_up_pack(self, path: Path, number: int, scanned: int, *, cut: bool) -> None:
        end = max(scanned, len(frames.MAGIC))
        if path.stat().st_size <= end:
            return
        with path.open("rb") as file, self._writing() as database:
            for at, size, frame in frames.scan(file, end):
                frame_index.note_whole(database, frame, (number, at, size))
                end = at + size
            frame_index.scanned(database, path.name, end)
        if cut and path.stat().st_size > end:
            os.truncate(path, end)

    # ---------------------------------------------------------------------------------------------------- compacting

    def idle(self, before_ns: int, most: int) -> list[str]:
        """List traces of which something lies in segments and nothing came in since, those idle longest first."""
        with self._reading() as database:
            sql = "SELECT trace FROM traces WHERE hot AND changed < ? ORDER BY changed LIMIT ?"
            return [trace.hex() for (trace,) in database.execute(sql, (before_ns, most))]

    def compact(self, trace_ids: Sequence[str]) -> dict[str, tuple[bytes, bytes]]:
        """Put traces into frames of their own and give them, spans and logs each as a request.

        Spans and log records that are there twice, byte for byte, are kept once. Only for the one that compacts.
        Raises `FramesUnusableError`; what is half done then counts as not done.
        """
        with self._reading() as database:
            hot = {
                trace: rows for each in trace_ids if (rows := frame_index.hot(database, trace := bytes.fromhex(each)))
            }
            packs = {trace: place for trace in hot if (place := frame_index.pack(database, trace)) is not None}
        gathering = Gathering(hot)
        for trace, place in packs.items():
            gathering.add_whole(trace, *frames.halves(self._read_frame("pack", *place).payload))
        for place in sorted({place for places in hot.values() for place in places}):
            self._gather(gathering, place)
        payloads = {trace: gathering.whole(trace) for trace in hot}
        pack_frames = {
            trace: frames.framed(
                frames.TRACE, frames.whole(*payload), [trace], records=gathering.count(trace), time_ns=time.time_ns()
            )
            for trace, payload in payloads.items()
        }
        placed = self._append_packs(pack_frames)
        with self._writing() as database:
            for trace, (number, at, size) in placed.items():
                frame_index.no_longer_hot(database, trace, hot[trace])
                raw = sum(map(len, payloads[trace]))
                frame_index.note_pack(database, trace, (number, at, size, gathering.count(trace), raw))
            for number in {number for number, _, _ in placed.values()}:
                end = max(at + size for other, at, size in placed.values() if other == number)
                frame_index.scanned(database, self._file("pack", number).name, end)
        self.tidy()
        return {trace.hex(): payload for trace, payload in payloads.items()}

    def _append_packs(self, pack_frames: Mapping[bytes, bytes], after: int = 0) -> dict[bytes, Place]:
        """Append frames to the newest pack behind `after`, wholly and on disk, and say where they are."""
        packs = self._files("pack")
        path, number = packs[-1] if packs else (self._file("pack", 1), 1)
        if packs and (path.stat().st_size > _PACK_BYTES or number <= after):
            number += 1
            path = self._file("pack", number)
        try:
            places = append_whole(path, list(pack_frames.values()))
        except OSError as error:
            raise FramesUnusableError(str(path), f"cannot be written: {error.strerror}") from error
        return {trace: (number, at, len(frame)) for at, (trace, frame) in zip(places, pack_frames.items(), strict=True)}

    def rewrite(self, least: float = 0.5) -> int:
        """Write packs anew of which more than this part is dead, within `packing`; give the bytes that this freed."""
        freed, packs = 0, self._files("pack")
        for path, number in packs:
            with self._reading() as database:
                live, entries = frame_index.live(database, path.name), frame_index.of_pack(database, number)
            size = path.stat().st_size - len(frames.MAGIC)
            if size - live <= least * size:
                continue
            self._keep_deleted(path, packs[-1][1], first=number == self._files("pack")[0][1])
            for some in frame_index.portions(entries):
                self._copy(path, some, packs[-1][1])
            path.unlink()
            freed += size - live
        return freed

    def _keep_deleted(self, path: Path, after: int, *, first: bool) -> None:
        """Copy the frames of a pack that say what was deleted, but those of which no file holds anything any more."""
        deletion_times, oldest = frames.deletions(path), 0
        if first:  # what was deleted lies in packs up to this one, and in segments
            segments = self.segments()
            oldest = frames.began(segments[0][1]) if segments else 2**63 - 1
        with self._writing() as database:
            indexed_times = frame_index.deleted_traces(database, list(deletion_times))
            deletion_times = {trace: at for trace, at in deletion_times.items() if indexed_times.get(trace) == at}
            frame_index.forget(database, [trace for trace, at in deletion_times.items() if at < oldest - _LATE_NS])
        left = {trace: frames.deleted(trace, at) for trace, at in deletion_times.items() if at >= oldest - _LATE_NS}
        placed = self._append_packs(left, after)  # be it empty: numbers of packs are never used again
        with self._writing() as database:
            self._note_deleted(database, placed)

    def _note_deleted(self, database: sqlite3.Connection, placed: Mapping[bytes, Place]) -> None:
        for number, at, size in placed.values():
            frame_index.scanned(database, self._file("pack", number).name, at + size, size)

    def _copy(self, path: Path, entries: Sequence[InPack], after: int) -> None:
        with path.open("rb") as file:
            pack_frames = {trace: os.pread(file.fileno(), length, at) for trace, at, length, *_ in entries}
        placed = self._append_packs(pack_frames, after)
        with self._writing() as database:
            for trace, _, _, records, raw in entries:
                number, at, length = placed[trace]
                frame_index.note_pack(database, trace, (number, at, length, records, raw))
                frame_index.scanned(database, self._file("pack", number).name, at + length)

    def tidy(self, *, newest: bool = False) -> None:
        """Delete the segments of which nothing is needed any more, but the one that is written unless `newest`."""
        segments = self._files("seg")
        with self._reading() as database:
            rows = {name: (scanned, live) for name, scanned, live in database.execute("SELECT * FROM files")}
        needed = self.needed_from()
        for path, number in segments if newest else segments[:-1]:
            scanned, live = rows.get(path.name, (0, 1))
            if live == 0 and scanned >= path.stat().st_size and (needed is None or number < needed):
                path.unlink(missing_ok=True)

    def segments(self) -> list[tuple[int, Path]]:
        """List the segments, oldest first."""
        return [(number, path) for path, number in self._files("seg")]

    def segment(self, number: int) -> Path:
        """Name a segment."""
        return self._file("seg", number)

    def needed_from(self) -> int | None:
        """Give the first segment that somebody is still to be sent something of; None where nobody is."""
        try:
            return int((self.folder / _NEEDED).read_text())
        except (FileNotFoundError, ValueError):
            return None

    def need_from(self, number: int) -> None:
        """Have the segments from this one on stay."""
        if self.needed_from() != number:
            draft = self.folder / f"{_NEEDED}.draft"
            private.write_text(draft, f"{number}\n")
            draft.replace(self.folder / _NEEDED)

    # ------------------------------------------------------------------------------------------------------ deleting

    def delete(self, trace_id: str) -> bool:
        """Delete a trace, what lies in segments too; its bytes go when its pack is rewritten.

        Within `sparing` raises `GrewError` for a trace of which something came in since.
        """
        trace, since = bytes.fromhex(trace_id), self._since_ns
        with packing(self.folder), self._writing() as database:  # nothing is noted between the look and the deed
            row = database.execute("SELECT changed FROM traces WHERE trace = ?", (trace,)).fetchone()
            if row is None:
                return False
            if since is not None and self._grew(database, trace, max(row[0], self._packed_ns(database, trace)), since):
                raise GrewError(trace_id, "something came in of it meanwhile")
            until = time.time_ns() if since is None else since
            self._note_deleted(database, self._append_packs({trace: frames.deleted(trace, until)}))
            frame_index.delete(database, trace, until)
        return True

    @contextmanager
    def sparing(self, since_ns: int) -> Generator[None]:
        """Within it, `delete` raises `GrewError` for a trace of which something came in at or after an instant."""
        self._since_ns = since_ns
        try:
            yield
        finally:
            self._since_ns = None

    def _packed_ns(self, database: sqlite3.Connection, trace: bytes) -> int:
        """Say when a trace was put together; what says that it was deleted has to be younger, or it is found again."""
        place = frame_index.pack(database, trace)
        return self._read_frame("pack", *place).time_ns if place is not None else 0

    def _grew(self, database: sqlite3.Connection, trace: bytes, changed: int, since: int) -> bool:
        return changed >= since or any(ending.places(trace) for ending in self._endings(self._offsets(database)))

    # ------------------------------------------------------------------------------------------------------ the index

    def _file(self, kind: str, number: int) -> Path:
        return self.folder / f"{kind}-{number:08}.rnf"

    def _files(self, kind: str = "") -> list[tuple[Path, int]]:
        try:
            names = [path.name for path in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        matches = [(self.folder / name, match) for name in names if (match := _NAME.fullmatch(name))]
        return sorted((path, int(match[2])) for path, match in matches if kind in ("", match[1]))

    @staticmethod
    def _offsets(database: sqlite3.Connection) -> dict[str, int]:
        return dict(database.execute("SELECT name, scanned FROM files").fetchall())

    def _endings(self, offsets: Mapping[str, int]) -> list[Ending]:
        """Give what the index does not know yet, of each segment that is longer than what it knows."""
        endings: list[Ending] = []
        for path, number in self._files("seg"):
            scanned = max(offsets.get(path.name, 0), len(frames.MAGIC))
            with suppress(FileNotFoundError):
                if path.stat().st_size > scanned:
                    ending = self._tails.get(number)
                    if ending is None or ending.start > scanned:
                        ending = self._tails[number] = Ending(number, scanned)
                    ending.read(path)
                    endings.append(ending)
                    continue
            self._tails.pop(number, None)
        return endings

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        with self._lock, self._connected() as database:
            database.execute("BEGIN")
            try:
                yield database
            finally:
                with suppress(sqlite3.Error):
                    database.execute("ROLLBACK")

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        with self._lock, self._connected() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    database.execute("ROLLBACK")
                raise

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        try:
            database = self._opened_somewhere()
            yield database
        except sqlite3.OperationalError as error:
            raise FramesUnusableError(str(self._index), f"the index of frames cannot be used now: {error}") from error
        except sqlite3.DatabaseError as error:
            self._drop()
            raise FramesUnusableError(str(self._index), f"it is damaged: {error}", hint=_HINT) from error

    def _opened_somewhere(self) -> sqlite3.Connection:
        try:
            return self._connection()
        except (OSError, sqlite3.OperationalError) as error:
            if not is_refusal(error) or not self.read_aside():
                raise FramesUnusableError(
                    str(self._index), f"the index of frames cannot be used now: {error}"
                ) from error
            return self._connection()

    def read_aside(self) -> bool:
        """Have the index in a temporary folder: as it is here, or made from the frames. False where that is no help."""
        folder = None if self._aside else temporary_folder()
        if folder is None:
            return False
        self._drop()
        for suffix in ("", "-wal"):
            with suppress(OSError):
                shutil.copyfile(self._index.with_name(self._index.name + suffix), folder / (self._index.name + suffix))
        self._index, self._aside = folder / self._index.name, True
        return True

    def _connection(self) -> sqlite3.Connection:
        """Give the connection, of this very file: made where there is none, and filled from the frames."""
        try:
            inode = self._index.stat().st_ino
        except FileNotFoundError:
            inode = 0
        if self._database is not None and inode == self._inode != 0:
            return self._database
        self._drop()
        if not inode:
            self._make()
            inode = self._index.stat().st_ino
        self._database, self._inode = frame_index.connection(self._index), inode
        return self._database

    def _make(self) -> None:
        """Make the index from the frames. Whoever does it at the same time makes the same."""
        draft = self._index.parent / f"index.{os.getpid()}-{threading.get_ident()}.draft"
        try:
            database = frame_index.connection(draft)
            database.executescript(frame_index.SCHEMA)
            database.execute("BEGIN")
            for path, number in self._files("pack"):
                end = len(frames.MAGIC)
                with path.open("rb") as file:
                    for at, size, frame in frames.scan(file, end):
                        frame_index.note_whole(database, frame, (number, at, size))
                        end = at + size
                frame_index.scanned(database, path.name, end)
            database.execute("COMMIT")
            database.close()
            with suppress(FileExistsError):
                os.link(draft, self._index)
        finally:
            for suffix in ("", "-wal", "-shm", "-journal"):
                draft.with_name(draft.name + suffix).unlink(missing_ok=True)

    def _drop(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            with suppress(sqlite3.Error):
                database.close()

    def forget_index(self) -> None:
        """Delete the index, to make it again from the frames."""
        self.close()
        self._tails.clear()
        for suffix in ("", "-wal", "-shm"):
            self._index.with_name(self._index.name + suffix).unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the index; it is opened again where it is needed."""
        with self._lock:
            self._drop()


def place_name(segment: int) -> str:
    """Name a segment as parcels do."""
    return f"frames/{segment}"


def decoded(spans: bytes, logs: bytes, *, place: str) -> Iterator[Record]:
    """Decode a request of spans and one of log records. Raises `InputError`."""
    yield from otlp_proto.spans_of(spans, place)
    if logs:
        yield from otlp_proto.logs_of(logs, place)


def _opened(store: Path) -> FrameStore | None:
    return FrameStore(store) if (store / FOLDER).is_dir() else None


FRAMES = FurtherKeeping(folder=FOLDER, open=_opened, owns=lambda name: _PARCEL.fullmatch(name) is not None)
