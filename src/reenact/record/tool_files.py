"""What the call of a tool does to files, from the first audit event inside it to its end.

Theory of operation. A call of a tool is answered in a replay, and does not run. What it wrote is then missing, and code
behind it that reads the file finds another one. So the call's span tells what each file was before and after, whole, to
a bound; an answer puts it there (`boundary.answered_files`).

Python's own writes raise an audit event before the act, by which the file is read. A database of SQLite's raises one
only where it is opened; so does any file that the program has open. Those are looked at by size and time before a call
and after it, and read where these differ from the last look. Of a database an image is taken (`sqlite3_serialize`) with
what stands in its write-ahead log.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from reenact.boundary.files import PathChange
from reenact.boundary.side_effects import is_temporary
from reenact.boundary.touches import aside
from reenact.record.file_text import kept, plain
from reenact.record.open_databases import BESIDE, Mark, database_mark
from reenact.record.open_files import appends, handles_on, open_path, open_paths
from reenact.values import alarms
from reenact.values.json import Json, compact

if TYPE_CHECKING:
    from reenact.record.unflushed import HeldBack

_KEPT: Final = 64 << 10
"""Characters of one state that are written down."""
_KEPT_OF_PROCESS: Final = 16 << 20
_READ: Final = 1 << 20
"""Bytes of one file that are read."""
_MOST: Final = 100
"""Files of one call that are told whole."""
_MOST_NAMED: Final = 1_000
_SYSTEM: Final = ("/proc/", "/dev/", "/sys/", "/run/")
_SQLITE: Final = b"SQLite format 3\0"
_HEADER: Final = 28
_TOO_LARGE: Final = "it is too large"
_HELD_BACK: Final = "the program has it open, and Python held back a part of what was written"

State: TypeAlias = dict[str, Json] | None


class _Call:
    """One open call."""

    __slots__ = ("amounts", "files", "marks", "outer", "spans")

    def __init__(self, outer: _Call | None) -> None:
        self.files: dict[str, State] = {}
        """What was at a path before it was changed."""
        self.marks: dict[str, tuple[Mark, State]] = {}
        """How files that are changed without an event stood when it began."""
        self.amounts: dict[str, tuple[int, int]] = {}
        """How much of what was written to open files was held back then, and how much was in all."""
        self.outer = outer
        self.spans = 1


class ToolFiles:
    """Notes the files of the tools of one process."""

    def __init__(
        self,
        stated: Callable[[str], State],
        content: Callable[[str, int, int], bytes],
        safe: Callable[[str], str],
        is_clean: Callable[[str], bool],
        read: dict[str, None],
        folder: str,
    ) -> None:
        """`stated` tells what is at a path, `content` reads a file, `safe` and `is_clean` redact paths and texts.

        What tools changed and other code reads then is put into `read`. What lies in the program's `folder` is named
        from there.
        """
        self._inside = f"{folder.rstrip(os.sep)}{os.sep}"
        self._stated, self._content, self._safe, self._is_clean = stated, content, safe, is_clean
        self._open: dict[int, _Call] = {}
        self._known: dict[str, tuple[Mark, State]] = {}
        """The last look at a file that is changed without an event."""
        self._databases: dict[str, bool] = {}
        """Those that tools opened."""
        self._changed, self._read = set[str](), read
        self._room = _KEPT_OF_PROCESS
        self._unflushed: HeldBack | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether any call is open."""
        return bool(self._open)

    @aside()
    def begin(self, span: int, parent: int, watched: Mapping[str, bool]) -> None:
        """Begin with a call of a tool; `watched` are files changed without an event, and whether each is a database."""
        call = self._open[span] = _Call(self._open.get(parent))
        for path, is_database in {**watched, **self._databases}.items():
            call.marks[path] = database_mark(path, self._content), self._look(path) if is_database else self._cut(path)
        call.amounts = self._held_back(call)

    def _held_back(self, call: _Call) -> dict[str, tuple[int, int]]:
        """Say how much of what was written to each file that stays open is held back, and how much was in all."""
        paths = {path for path in (*call.marks, *call.files) if path not in self._databases}
        if not (paths and (handles := handles_on(paths))):
            return {}
        if self._unflushed is None:
            from reenact.record.unflushed import HeldBack  # most programs leave no file open

            self._unflushed = HeldBack(open_path)
        return self._unflushed.amounts(paths, handles)

    def is_read(self, path: str) -> None:
        """Hear that other code reads a file."""
        if path in self._changed:
            self._read[path] = None

    def inherit(self, span: int, parent: int) -> None:
        """Have what is done inside another call count for the tool that made it."""
        if (call := self._open.get(parent)) is not None:
            self._open[span] = call
            call.spans += 1

    @aside()
    def changes(self, span: int, change: PathChange, *, is_database: bool) -> None:
        """Note that a path is about to be changed, or that a database is about to be opened."""
        call = self._open.get(span)
        if call is None or change.part_of or change.path.startswith(_SYSTEM):
            return
        if is_database and len(self._databases) < _MOST:
            self._databases[change.path] = True
        if change.path in call.files or change.path in call.marks or len(call.files) >= _MOST_NAMED:
            return
        if is_database:  # who opens one may only read it
            call.marks[change.path] = database_mark(change.path, self._content), self._look(change.path)
        elif len(call.files) >= _MOST:
            call.files[change.path] = {"lost": f"the call changed more than {_MOST} files"}
        else:
            call.files[change.path] = self._cut(change.path) if change.keeps else self._state(change.path)

    @aside()
    def end(self, span: int) -> str:
        """End a call; tell the files that it changed as JSON, or nothing."""
        call = self._open.pop(span, None)
        if call is None:
            return ""
        call.spans -= 1
        if call.spans:
            return ""
        for path, (mark, before) in call.marks.items():
            if mark != database_mark(path, self._content):
                call.files.setdefault(path, before)
        amounts = self._held_back(call)
        for path in {*amounts, *call.amounts}:
            (back, total), (back_now, total_now) = (each.get(path, (0, 0)) for each in (call.amounts, amounts))
            if total != total_now and (back or back_now):
                call.files[path] = {"lost": _HELD_BACK}
        if (outer := call.outer) is not None:
            outer.files = {**call.files, **outer.files}
        entries: list[Json] = []
        for path, before in call.files.items():
            if (entry := self._entry(path, before)) is not None:
                entries.append(entry)
        return compact(entries) if entries else ""

    def _entry(self, path: str, before: State) -> Json:
        try:
            after: State = self._after(path, before)
        except OSError as error:
            after = {"lost": f"it cannot be read: {error.strerror}"}
        if before == after:
            return None
        self._changed.add(path)
        entry: dict[str, Json] = {"path": self._safe(path.removeprefix(self._inside)), "before": before, "after": after}
        if is_temporary(path):
            folder = f"{tempfile.gettempdir().rstrip(os.sep)}{os.sep}"
            entry["temporary"] = self._safe(path.removeprefix(folder)) if path.startswith(folder) else ""
        return entry

    def _after(self, path: str, before: State) -> State:
        if before is not None and "cut" in before:
            return self._tail(path, before)
        return self._stated(path) if before is not None and "lost" in before else self._look(path)

    def _look(self, path: str) -> State:
        """Say what is at a path; where it stands as it did, what was said of it last."""
        state_mark = database_mark(path, self._content)
        if (known := self._known.get(path)) is not None and known[0] == state_mark:
            return known[1]
        state = self._state(path)
        if state is not None and "sqlite" in state:
            self._known[path] = state_mark, state
        return state

    def _cut(self, path: str) -> State:
        state = self._stated(path)
        return {"size": state["size"], "cut": True} if state is not None and "kind" not in state else state

    def _tail(self, path: str, before: dict[str, Json]) -> State:
        state, begin = self._stated(path), int(str(before["size"]))
        if state is None or "kind" in state or int(str(state["size"])) < begin:
            return {"lost": "it was cut and written anew"}
        if (size := int(str(state["size"]))) == begin:
            return before
        if size > _READ + begin:
            return {"from": begin, "lost": _TOO_LARGE}
        if path in open_paths() and not appends(path):
            return {"from": begin, "lost": "the program has it open, and not to append to it"}
        return {"from": begin, **self._spelled(self._content(path, size - begin, begin))}

    def _state(self, path: str) -> State:
        """Say what is at a path, its content included."""
        state = self._stated(path)
        if state is None or "kind" in state:
            return state
        mode, size = state["mode"], int(str(state["size"]))
        if size > _READ:
            return {"mode": mode, "size": size, "mtime": state["mtime"], "lost": _TOO_LARGE}
        try:
            content = self._content(path, size, 0)
            if not content.startswith(_SQLITE):
                return {"mode": mode, **self._spelled(content)}
            if self.is_under_way(path):
                return {"mode": mode, "sqlite": True, "lost": "a transaction was under way"}
            return {"mode": mode, "sqlite": True, **self._spelled(_image(path, self._content))}
        except Exception as error:
            alarms.pass_on()
            return {"mode": mode, "lost": f"it cannot be read: {error}"}

    def is_under_way(self, database: str) -> bool:
        """Tell whether a change of a database has begun and is not done.

        Its rollback journal stands there then; one that stays behind begins with zeros
        (https://sqlite.org/fileformat2.html#the_rollback_journal).
        """
        try:
            return any(self._content(database + BESIDE[1], _HEADER, 0))
        except OSError:
            return False

    def _spelled(self, content: bytes) -> dict[str, Json]:
        spelled, room = kept(content, _KEPT, self._room)
        if spelled is None:
            return {"lost": _TOO_LARGE}
        if not self._is_clean(plain(content)[0]):
            return {"lost": "redaction changes it"}
        self._room -= room
        return {"size": len(content), "digest": hashlib.blake2b(content, digest_size=16).hexdigest(), **spelled}


def _image(path: str, content: Callable[[str, int, int], bytes]) -> bytes:
    """Give a database as the bytes of one file, made from a copy of it and of its log."""
    import sqlite3

    folder = tempfile.mkdtemp(prefix="reenact-database-")
    try:
        copy = str(Path(folder, "copy"))
        for name in ("", "-wal"):
            if os.path.exists(path + name):  # noqa: PTH110 - a suffix
                Path(copy + name).write_bytes(content(path + name, _READ << 2, 0))
        with closing(sqlite3.connect(copy)) as database:
            database.execute("pragma journal_mode=delete")
            return database.serialize()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
