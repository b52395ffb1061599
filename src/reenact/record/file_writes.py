"""What a program writes past every boundary: which files, what they were before, what they are at its end.

Theory of operation. An audit event comes before the act that it tells of. So the first event about a path finds what
stood there; it is read then, to a bound, since afterwards it is gone. What stands there at the end of the run is read
then. A file that is only appended to stays as it was up to its size: nothing of it is read before, and at the end only
what was added. Texts are redacted before they are written down, and a digest is that of the redacted text.

Who closes a file gives up every lock that its process has on it (fcntl(2), "Advisory record locking"), those of SQLite
among them: another process would then write into the middle of a transaction. So what we read a database or a locked
file through stays open (`_Readers`).

Whose a file is goes by where the code stands: that of the unit of work that came in, of the run opened with
`with reenact.run`, or of the process. What a declared tool does inside is the tool's, and is not told here.
"""

from __future__ import annotations

import os
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from reenact.boundary import children, flows, program_threads, touches
from reenact.boundary.files import PathChange
from reenact.boundary.forgiving import forgive
from reenact.boundary.inbound import Inbound
from reenact.boundary.own_code import opens_data
from reenact.record.listing import Listing
from reenact.record.open_files import digest_of, file_bytes, file_digest, open_path, open_paths, readers, state_of
from reenact.values import alarms
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text
from reenact.values.run import NOTHING_WRITTEN, WRITTEN

if TYPE_CHECKING:
    from reenact.boundary.sqlite_statements import Statement
    from reenact.record.file_text import Holding
    from reenact.record.listed_folders import ListedFolders
    from reenact.record.open_databases import OpenDatabase, Overlap
    from reenact.record.tool_files import ToolFiles

_MOST: Final = 1000
"""Paths of one run that are noted."""
_KEPT: Final = 64 << 10
"""Characters of one text that are written down."""
_KEPT_OF_RUN: Final = 256 << 10
_KEPT_AT_START, _MOST_AT_START = 8 << 10, 20
_READ: Final = 1 << 20
"""Bytes of one file that are read before it is changed."""
_READ_OF_RUN: Final = 4 << 20
_SYSTEM: Final = ("/proc/", "/dev/", "/sys/", "/etc/", "/usr/", "/lib", "/run/")
"""What lies there is no data of the program's."""
_MOST_OF_READS: Final = 200
"""Files of one run that are read as data and told."""
_MOST_READ: Final = 4096
"""Paths that were opened to read and are remembered."""
_MOST_NAMES: Final = 200
_MOST_TOUCHED: Final = 10_000
_MOST_LOGGED: Final = 4 << 20
"""Characters of what libraries log to files that are remembered."""
_SLACK_NS: Final = 1_000_000_000
_COARSE_NS: Final = 10_000_000
"""So far the clock of a disk may be behind: a tick of the slowest kernel (CONFIG_HZ=100)."""
_now: Callable[[], int] = time.time_ns  # the real one, before the clock integration stands in front of it

Redacted = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Scrubs attributes."""
Owner: TypeAlias = Inbound | int | None
"""Whose code runs: that of a unit of work, that of a run, by the id of its root span, or the process's."""


class _File:
    """One path of one run."""

    __slots__ = (
        *("at", "before", "content", "first", "handler", "is_cache", "is_log", "is_others", "is_read"),
        *("is_read_back", "overlap", "part_of", "path", "reads", "touch", "touched_ns"),
    )

    def __init__(self, path: str, at: str, part_of: str) -> None:
        self.path, self.at, self.part_of = path, at, part_of
        self.before: dict[str, Json] | None = None
        self.content: bytes | None = None
        """What it held before, where that may be kept."""
        self.reads = False
        """What it held before was read, or may have been."""
        self.is_read = False
        """It was opened to read as a plain file, too."""
        self.overlap: Overlap | None = None
        """What other units that were under way at the same time did to it, where it is a database that a unit uses."""
        self.is_others: bool | None = None
        """Whether anybody else had touched it when the unit ended; None before that."""
        self.is_cache = False
        """It lies in a cache: what it was before matters, and not what it became."""
        self.is_log = False
        self.is_read_back = False
        """The program read a log that it had written lines to."""
        self.handler: Callable[[], Any] | None = None
        """Gives the handler of `logging` that writes it, while it lives."""
        self.first = self.touch = 0
        """The numbers of its first touch and of its last one."""
        self.touched_ns = _now()


class _Part:
    """What one unit, one run, or the process wrote."""

    __slots__ = (
        *("began_ns", "begun", "files", "folders", "is_unit", "last_touch"),
        *("more", "number", "read", "reads", "threads"),
    )

    def __init__(self, began_ns: int, number: int, *, is_unit: bool) -> None:
        self.began_ns, self.number, self.is_unit = began_ns, number, is_unit
        self.begun = program_threads.begun()
        self.files: dict[str, _File] = {}
        self.reads: dict[str, _File] = {}
        """What was only read, or read before it was written."""
        self.folders: ListedFolders | None = None
        self.read = 0
        self.more = 0
        self.threads = False
        self.last_touch = 0
        """The number of the last touch that was written down."""


class Writes:
    """Notes what one process writes while it is recorded or replayed."""

    def __init__(
        self, redacted: Redacted, owner: Callable[[], Owner], names: Callable[[], Iterable[str]] = tuple
    ) -> None:
        """`redacted` scrubs attributes, `owner` says whose code runs now, `names` gives what `tempfile` made."""
        self._redact, self._owner, self._names = redacted, owner, names
        self._began = _now()
        self._parts: dict[int | None, _Part] = {}
        self._reads: dict[str, None] = {}
        self._touched: dict[str, tuple[int, int]] = {}
        """The number of the part that touched a path last, and of the touch since which no other one did."""
        self._databases: dict[str, OpenDatabase] = {}
        self._logged: dict[str, Counter[str]] = {}
        """What libraries logged, by the file that it went to."""
        self._logged_left = _MOST_LOGGED
        self._unspelled, self._at_start = list[str](), list[Json]()
        self._count = self._part_count = 0
        self._copy, self._tools = False, cast("ToolFiles | None", None)
        self._tool_reads: dict[str, None] = {}
        self._listing: Listing | None = Listing()
        self._folder = os.getcwd()  # noqa: PTH109 - a text is compared with it in a hook

    @property
    def tools(self) -> ToolFiles:
        """What the tools of this process do to files."""
        if self._tools is None:
            from reenact.record.tool_files import ToolFiles  # many programs have none

            self._tools = ToolFiles(state_of, file_bytes, self._safe, self._is_clean, self._tool_reads, self._folder)
        return self._tools

    @property
    def has_tools(self) -> bool:
        """Tell whether a call of a tool is open."""
        return self._tools is not None and self._tools.is_open

    def watched(self) -> dict[str, bool]:
        """Name what may be changed without an event, and whether it is a database."""
        opened = set(open_paths()).intersection(self._touched)
        beside = {f"{path}{end}" for path in self._databases for end in ("-wal", "-shm", "-journal")}
        return {**dict.fromkeys(opened - beside, False), **dict.fromkeys(self._databases, True)}

    def forked(self) -> None:
        """Leave to the parent what it wrote: this process is a copy of it."""
        self._parts, self._touched, self._copy, self._began, self._tools = {}, {}, True, _now(), None
        self._listing = None

    def _part(self, owner: Owner) -> _Part:
        if isinstance(owner, Inbound):
            if owner.written is None:
                owner.written = self._new(_now(), is_unit=True)
            return cast("_Part", owner.written)
        part = self._parts.get(owner)
        return part or self._parts.setdefault(owner, self._new(self._began if owner is None else _now()))

    def _new(self, began_ns: int, *, is_unit: bool = False) -> _Part:
        self._part_count += 1
        return _Part(began_ns, self._part_count, is_unit=is_unit)

    def _part_of(self, owner: Owner) -> _Part | None:
        return cast("_Part | None", owner.written) if isinstance(owner, Inbound) else self._parts.get(owner)

    def logged(self, path: str, text: str) -> None:
        """Remember a text that an installed library logged to a file: it is none of the program's."""
        self._logged_left -= len(text)
        if self._logged_left > 0:
            self._logged.setdefault(path, Counter())[text] += 1

    def reads(self, path: str, *, is_data: bool) -> None:
        """Remember that a file was opened to read, or looked for in vain; `is_data` says that we did not do it."""
        if len(self._reads) < _MOST_READ:
            self._reads[path] = None
        if not is_data or path.startswith(_SYSTEM) or touches.is_code(path):  # nearly all that a start opens
            return
        if opens_data(path, self._folder):
            self._note_read(path)

    def _note_read(self, path: str) -> None:
        """Note what a file holds that is read for the first time, unless that is none of the beginning."""
        owner = self._owner()
        part, is_unit = self._part(owner), isinstance(owner, Inbound)
        if self._tools is not None:
            self._tools.is_read(path)
        if (file := part.files.get(path)) is not None:
            file.is_read = True
            file.is_read_back = file.is_read_back or (file.is_log and _has_grown(file))
            return
        if path in part.reads or len(part.reads) >= _MOST_OF_READS:
            return
        if path in self._touched and not is_unit:  # it is as the process left it
            return
        file, state = _File(path, "", ""), state_of(path)
        if state is not None:
            if "kind" in state or not (is_unit or int(str(state["mtime"])) < self._began - _COARSE_NS):
                return  # native code or a child of the program may have made it so
            if int(str(state["size"])) > _READ:  # its size and its time tell enough
                file.before, file.reads = {**state, "lost": "it is too large"}, True
            else:
                _look(file, part, PathChange(path), read=True)
        part.reads[path] = file

    def lists(self, path: str) -> None:
        """Note what stands in a folder that the agent's own code lists."""
        if path.startswith(_SYSTEM) or not opens_data(f"{path}{os.sep}", self._folder):
            return
        from reenact.record.listed_folders import ListedFolders  # most programs list none

        part = self._part(self._owner())
        part.folders = part.folders or ListedFolders()
        part.folders.note(path)

    def locks(self, handle: int) -> None:
        """Note that the program asks for a lock on a file that it has open. Raises `OSError`."""
        readers.lock(handle)

    def note(
        self, change: PathChange, at: str, *, handler: object = None, is_log: bool = False, is_cache: bool = False
    ) -> None:
        """Note that a path is about to be changed."""
        self._note(self._owner(), change, at, handler=handler, is_log=is_log, is_cache=is_cache)

    def connects(self, changes: list[PathChange], at: str) -> None:
        """Note that a database is opened: `changes` are its own path and those beside it."""
        from reenact.record.open_databases import OpenDatabase  # most programs have none

        database = self._databases.setdefault(changes[0].path, OpenDatabase(changes, at, file_bytes))
        database.connect(owner if isinstance(owner := self._owner(), Inbound) else None)

    def begin(self, unit: Inbound) -> None:
        """Note for a unit that begins the databases that others have left open: it may go on over their connections."""
        open_now = Counter(open_paths()) if self._databases else Counter[str]()
        for path, database in tuple(self._databases.items()):
            database.openers = [each for each in database.openers if not each.ended]
            if open_now[path] > len(database.openers):
                for change in database.changes:
                    self._note(unit, change, database.at)

    def end(self, unit: Inbound) -> None:
        """Note that a unit has ended, before anything is told of it: what others change from now on it did not read."""
        part = self._part_of(unit)
        if part is None:
            return
        for path, file in tuple(part.files.items()):
            file.is_others = self._is_others(file, part)
            if (database := self._databases.get(path)) is not None:
                database.leave(unit)

    def _is_others(self, file: _File, part: _Part) -> bool:
        """Tell whether anybody else touched a file since a part did; of a database, whether that was no unit.

        Of units that opened the same one, `OpenDatabase` tells whether they changed it.
        """
        database = self._databases.get(file.part_of or file.path)
        if database is not None and part.is_unit:
            return database.may_change(file.first)
        last, since = self._touched.get(file.path, (part.number, file.first))
        return last != part.number or since > file.first

    def _note(
        self,
        owner: Owner,
        change: PathChange,
        at: str,
        *,
        handler: object = None,
        is_log: bool = False,
        is_cache: bool = False,
    ) -> None:
        part = self._part(owner)
        file = part.files.get(change.path)
        if file is None:
            if len(part.files) >= _MOST:
                part.more += 1
                return
            file = _File(change.path, at, change.part_of)
            file.is_read = getattr(part.reads.get(change.path), "before", None) is not None
            _look(file, part, change, read=change.reads or change.path in self._reads or self._reads_are_unknown)
            file.is_cache = is_cache
            part.files.setdefault(change.path, file)
            database = self._databases.get(change.path)
            if isinstance(owner, Inbound) and database is not None:
                file.overlap = database.use(owner)
                file.overlap.is_single = self._has_siblings and children.is_only_child()
        elif file.before is not None and "cut" in file.before and not change.keeps:
            _look_behind(file, part, change)
        if is_log:
            file.is_log = True
            file.handler = weakref.ref(handler) if handler is not None else file.handler
        self._count += 1
        file.touch = self._count
        file.first = file.first or self._count
        if not part.is_unit and (database := self._databases.get(change.part_of or change.path)) is not None:
            database.last_touch = self._count
        last = self._touched.pop(change.path, (0, 0))
        self._touched[change.path] = last if last[0] == part.number else (part.number, self._count)
        if len(self._touched) > _MOST_TOUCHED:
            self._touched.pop(next(iter(self._touched)), None)
        part.threads = part.threads or program_threads.others_work()

    @property
    def _reads_are_unknown(self) -> bool:
        return len(self._reads) >= _MOST_READ

    def paths(self) -> list[str]:
        """List every path that this process touched."""
        return [*self._touched]

    def unspelled(self) -> list[str]:
        """Take texts of files in which draws of libraries are looked for, too: long ones, and ids like addresses."""
        texts, self._unspelled = self._unspelled, []
        return texts

    @property
    def pending(self) -> bool:
        """Tell whether the process wrote anything outside of every run that was not told yet."""
        part = self._parts.get(None)
        return part is not None and any(file.touch > part.last_touch for file in part.files.values())

    def report(
        self,
        owners: Iterable[Owner],
        write_statements: Callable[[list[Statement]], None] | None = None,
        *,
        alone: bool,
        root: int = 0,
    ) -> str:
        """Tell what was written by the owners of one run, as JSON. `alone` is said of a whole process.

        `write_statements` writes down what a database was asked that no copy can stand for, `root` is the root span of
        the run. What is told of a run that is no process is forgotten. Never raises an `Exception`.
        """
        parts = [(owner, part) for owner in owners if (part := self._part_of(owner)) is not None]
        new_paths, rewritten = (self._unnoted(), self._rewritten()) if alone else ([], [])
        at_start = self._reads_at_start() if not alone else []
        temporary = [*self._names()][-_MOST_NAMES:]
        if not (parts or new_paths or rewritten or at_start or (alone and temporary)):
            return NOTHING_WRITTEN
        files, caches = self._files_of(parts, write_statements, alone=alone, root=root)
        began = min((part.began_ns for _, part in parts), default=self._began)
        report: dict[str, Json] = {"span": [began - _SLACK_NS, _now() + _SLACK_NS], "pid": os.getpid(), "files": files}
        report |= {"offset": time.localtime().tm_gmtoff, "of_tools": [*map(self._safe, self._tool_reads)]}
        if caches:
            report["caches"] = caches
        if reads := [*at_start, *self._reads_of(part for _, part in parts)]:
            report["reads"] = reads
        if noted := [part.folders for _, part in parts if part.folders is not None]:
            report["folders"] = [entry for each in noted for entry in each.take(self._safe, self._is_clean)]
        if new_paths:
            report["made"] = new_paths
        if rewritten:
            report["rewritten"] = rewritten
        if more := sum(part.more for _, part in parts):
            report["more"] = more
        begun = program_threads.begun()
        if any(part.threads or part.begun < begun for _, part in parts) or program_threads.others_work():
            report["threads"] = True
        if temporary:
            report["temporary"] = [*self._safe("\n".join(temporary)).split("\n")]
        spelled = compact(report)
        ids = program_threads.among(spelled)
        return compact({**report, "thread_ids": [*ids]}) if ids else spelled

    def _files_of(
        self,
        parts: Iterable[tuple[Owner, _Part]],
        write_statements: Callable[[list[Statement]], None] | None,
        *,
        alone: bool,
        root: int,
    ) -> tuple[list[Json], list[Json]]:
        """Tell of each file of these parts, those in caches apart."""
        size_total = [0]
        files: list[Json] = []
        caches: list[Json] = []
        for owner, part in parts:
            for file in tuple(part.files.values()):
                if file.is_cache:
                    caches.append(self._said_of_cache(file, size_total))
                    continue
                try:
                    files.append(self._file_entry(file, part, size_total, alone=alone))
                except Exception:  # its path is told all the same
                    alarms.pass_on()
                    files.append({"path": self._safe(file.path), "before": file.before, "after": {"kind": "other"}})
            asker = owner if isinstance(owner, Inbound) else root if owner is None else 0
            if asker and write_statements is not None and not self._databases.keys().isdisjoint(part.files):
                try:
                    self._answer_databases(asker, part, files, write_statements)
                except Exception:  # its files are told all the same
                    forgive("Writes.answer_databases")
            part.last_touch = self._count
            if isinstance(owner, int):
                del self._parts[owner]
        return files, caches

    def _answer_databases(
        self,
        asker: Inbound | int,
        part: _Part,
        entries: list[Json],
        write_statements: Callable[[list[Statement]], None],
    ) -> None:
        """Have the databases answered in a replay that no copy can stand for: what was asked of them becomes calls."""
        from reenact.record.answered_databases import is_no_copy, mark_answered, statements_of

        for path in self._databases.keys() & part.files.keys():
            name = self._safe(path)
            notes = [each for each in entries if isinstance(each, dict)]
            own = [each for each in notes if name in (each["path"], each.get("part_of"))]
            file = part.files[path]
            is_others = self._is_others(file, part) if file.is_others is None else file.is_others
            if is_others or file.is_read or not any(map(is_no_copy, own)):
                continue
            statements = statements_of(asker, path)
            if statements is not None:
                write_statements(statements)
                mark_answered(own)

    def _unnoted(self) -> list[Json]:
        """List what came into being in the program's folder and was not noted, each with its time of change."""
        new_paths = self._listing.made(frozenset(self._touched)) if self._listing is not None else []
        return [[self._safe(touches.program_path(path)), changed_ns] for path, changed_ns in new_paths]

    def _reads_at_start(self) -> list[Json]:
        """Tell each unit of the files that its process had read; little is kept of them, since it is told each time."""
        part = self._parts.get(None)
        files = [*part.reads.values()][:_MOST_AT_START] if part is not None else []
        if len(files) != len(self._at_start):
            size_total = [_KEPT_OF_RUN - _KEPT_AT_START]
            self._at_start = [self._said_of_cache(file, size_total) for file in files]
        return self._at_start

    def _reads_of(self, parts: Iterable[_Part]) -> list[Json]:
        """Tell of the files that were only read what they held, each time one is told once."""
        size_total = [0]
        reads: list[Json] = []
        for part in parts:
            left, part.reads = part.reads, {}
            reads += [self._said_of_cache(file, size_total) for path, file in left.items() if path not in part.files]
        return reads

    def _rewritten(self) -> list[Json]:
        """List the files of the program's folder that native code may have written over."""
        paths = self._listing.rewritten(frozenset(self._touched)) if self._listing is not None else []
        return [self._safe(touches.program_path(path)) for path in paths]

    def _said_of_cache(self, file: _File, size_total: list[int]) -> Json:
        """Tell of a file in a cache, or one that was read, what stood there, which a replay begins with."""
        try:
            before = self._before(file, size_total)
        except Exception:
            alarms.pass_on()
            before = file.before
        return {"path": self._safe(file.path), "touched": file.touched_ns, "before": before}

    def _file_entry(self, file: _File, part: _Part, size_total: list[int], *, alone: bool) -> dict[str, Json]:
        entry: dict[str, Json] = {"path": self._safe(file.path), "at": self._safe(file.at), "touched": file.touched_ns}
        if file.is_log:
            from reenact.record import file_logs

            entry |= file_logs.facts(file.handler() if file.handler is not None else None)
            if "log_of" in entry:
                entry["log_of"] = self._safe(str(entry["log_of"]))
            if file.is_read_back and file_logs.tells_time(str(entry["log"])):
                entry["read_back"] = True
        if file.part_of:
            entry["part_of"] = self._safe(file.part_of)
        if not alone:
            entry |= self._sharing(file, part)
        entry["before"] = self._before(file, size_total)
        logged = self._logged.get(str(entry.get("log_of", file.path)), Counter[str]())
        entry["after"] = {"kind": "other"} if file.part_of else self._after(file, size_total, logged)
        return entry

    def _sharing(self, file: _File, part: _Part) -> dict[str, Json]:
        """Say whether others may have changed a file since a part touched it, and while its code may have read it."""
        overlap, is_others = part.files.get(file.part_of, file).overlap, self._is_others(file, part)
        changed = overlap is not None and overlap.changed
        followed = overlap is not None and overlap.followed
        single = overlap is not None and overlap.is_single
        entry: dict[str, Json] = {}
        if is_others or changed or followed or (self._has_siblings and "cut" in (file.before or ())):
            entry["shared"] = True
        others = changed or (is_others if file.is_others is None else file.is_others)
        if self._has_siblings and (file.part_of or file.path) in self._databases:
            others = others or not (single and children.is_only_child())
        is_read = file.reads and "cut" not in (file.before or {})
        if others and is_read and (changed or any(map(_has_changed, self._parts_of(file, part)))):
            entry["mixed"] = True
        return entry

    def _parts_of(self, file: _File, part: _Part) -> list[_File]:
        """List a file, and what belongs to it: what is written to a database may stand in its log alone."""
        log = part.files.get(f"{file.path}-wal") if file.path in self._databases else None
        return [file] if log is None else [file, log]

    @property
    def _has_siblings(self) -> bool:
        """Whether this is a server's worker, beside others that may write to the same files."""
        return self._copy or children.is_worker()

    def _before(self, file: _File, size_total: list[int]) -> Json:
        before, content = file.before, file.content
        if before is None or content is None:
            if before is not None and "lost" in before and file.reads:
                return {**before, "read": True}
            return before
        facts = {name: before[name] for name in ("mode", "mtime", "attributes") if name in before}
        entry: dict[str, Json] = {"size": len(content), **facts}
        from reenact.record.file_text import kept, plain

        spelled, room = kept(content, _KEPT, _KEPT_OF_RUN - size_total[0])
        if spelled is None:
            entry |= {"digest": digest_of(content), "lost": "it is too large"}
        elif not self._is_clean(plain(content)[0]):
            entry["lost"] = "redaction changes it"
        else:
            size_total[0] += room
            entry |= {"digest": digest_of(content), **spelled}
        if "lost" in entry and file.reads:
            entry["read"] = True
        return entry

    def _after(self, file: _File, size_total: list[int], logged: Counter[str]) -> Json:
        from reenact.record.file_text import LARGEST, holding

        state = state_of(file.path)
        if state is None or "kind" in state:
            return state
        entry: dict[str, Json] = {**state}
        size, begin = int(str(state["size"])), 0
        if file.before is not None and "cut" in file.before and size >= int(str(file.before["size"])):
            begin = int(str(file.before["size"]))
            entry["from"] = begin
            if size == begin:
                return {**entry, "same": True}
        if size - begin > LARGEST:
            return {**entry, **file_digest(file.path, begin), "of": "bytes"}
        data = file_bytes(file.path, size - begin, begin)
        if file.content is not None and data == file.content:
            entry["same"] = True
        body = holding(data, file.path, text=begin > 0, read=file_bytes)
        return self._told_text(body, data, entry, size_total, logged)

    def _told_text(
        self, held: Holding, data: bytes, said: dict[str, Json], kept: list[int], logged: Counter[str]
    ) -> Json:
        """Tell the text that a file holds, redacted; a digest where it is none, or too long."""
        said["of"] = held.of
        text, others = held.text, 0
        if logged and held.of == "text" and held.text is not None:
            from reenact.record import file_logs

            text, others = file_logs.own_text(held.text, logged)
        if others:
            said["of_libraries"] = others
        if text is None:
            return {**said, "digest": digest_of(data)}
        if len(text) > _KEPT:
            if flows.are_held():
                self._unspelled.append(self._scrubbed(text)[0])
            return {**said, "digest": digest_of(text.encode())}
        clean, count = self._scrubbed(text)
        said["digest"] = digest_of(clean.encode())
        if count:
            said["redacted"] = count
            from reenact.values.redaction_marks import lines_with_addresses

            self._unspelled.append(lines_with_addresses(text, clean))
        if kept[0] + len(clean) <= _KEPT_OF_RUN:
            kept[0] += len(clean)
            said["text"] = clean
        return said

    def _scrubbed(self, text: str) -> tuple[str, int]:
        """Redact a text as it will be where it is written down; give how many values were replaced."""
        clean = self._told_as("text", text)
        return clean, clean.count("REDACTED_") if clean != text else 0

    def _safe(self, path: str) -> str:
        return self._told_as("path", path)

    def _told_as(self, name: str, text: str) -> str:
        """Give a text as it will be told under a name; nothing where a policy drops it."""
        around = {"openinference.span.kind": "CHAIN", WRITTEN: compact({"files": [{name: text}]})}
        redacted_writes = as_object(parsed_or_none(str(self._redact(around).get(WRITTEN, ""))))
        files = [as_object(each) for each in as_list(redacted_writes.get("files"))]
        return as_text(files[0].get(name)) if files else ""

    def _is_clean(self, spelled: str) -> bool:
        return self._scrubbed(spelled)[0] == spelled

    def flush(self) -> None:
        """Have the files that were written and are still open written out: the program is at its end."""
        if not self._touched.keys().isdisjoint(open_paths()):
            from reenact.record import unflushed  # most programs leave no file open

            unflushed.write_out(self._touched, open_path)


def _look(file: _File, part: _Part, change: PathChange, *, read: bool) -> None:
    """See what stands at a path that is about to be changed."""
    file.before = state = state_of(file.path)
    if state is None or "kind" in state:
        return
    file.reads = read
    if change.keeps:
        state["cut"] = True
    else:
        _keep(file, state, part)


def _has_grown(file: _File) -> bool:
    """Tell whether more stands in a file now than when it was touched first."""
    return (state_of(file.path) or {}).get("size", 0) != (file.before or {}).get("size", 0)


def _has_changed(file: _File) -> bool:
    """Tell whether something else stands at a path now than when it was touched first."""
    if file.before is None:
        return (state_of(file.path) or {}).get("size", 0) != 0
    if file.content is None:
        return True
    state, size = state_of(file.path), len(file.content)
    return state is None or state.get("size") != size or file_bytes(file.path, size) != file.content


def _look_behind(file: _File, part: _Part, change: PathChange) -> None:
    """Read what was there before anything was appended: that much of the file is still there."""
    before = file.before or {}
    del before["cut"]
    file.reads = file.reads or change.reads
    _keep(file, before, part)


def _keep(file: _File, before: dict[str, Json], part: _Part) -> None:
    size = int(str(before["size"]))
    try:
        if size > _READ or part.read + size > _READ_OF_RUN:
            before |= file_digest(file.path)
            before["lost"] = "it is too large"
            return
        file.content = file_bytes(file.path, size)
        part.read += len(file.content)
    except OSError as error:
        before["lost"] = f"it cannot be read: {error.strerror}"
