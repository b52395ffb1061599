"""What an answered tool did to files, done again in the copy of a sealed replay.

A file is changed only where it is what it was when the recorded call began: else something else in the replay differs,
and what the tool left would hide it. Then it stays, and what reads it differs. A database is not written over under
whoever has it open: its content comes by SQLite's own backup, which asks for the locks and tells other connections
(https://sqlite.org/backup.html).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from reenact.boundary import path_copies
from reenact.boundary.side_effects import made_temporary
from reenact.values.file_writes import content_of
from reenact.values.json import Json
from reenact.values.lenient import as_count, as_object, as_text
from reenact.values.tool_files import ToolFile, read

_SYSTEM: Final = ("/proc/", "/dev/", "/sys/", "/run/")
"""What is no file of the copy, whatever a trace says."""
_LARGEST: Final = 1 << 20
_LOCKED_S: Final = 2.0


class NotPutBack(Exception):
    """Says which file is not as the tool left it, and why."""


_may_change: list[Callable[[str], bool]] = []
_folder = [""]


def judge(may_change: Callable[[str], bool] | None) -> None:
    """Have a function tell from here on which files lie in a copy and may be changed; None to change none.

    Files of the program's folder are looked for in the working folder of now.
    """
    _may_change[:] = [] if may_change is None else [may_change]
    _folder[0] = os.getcwd()  # noqa: PTH109 - a text


def put_back(entries: list[Json]) -> None:
    """Do to files what a tool did. Raises `NotPutBack`."""
    for file in read(entries) if _may_change else ():
        if file.lost:
            continue
        try:
            _put(file)
        except OSError as error:
            raise NotPutBack(f"{file.path}: {error.strerror}") from error


def _put(file: ToolFile) -> None:
    named = os.path.join(_folder[0], file.path)  # noqa: PTH118 - a path of the program's
    path = _copy_of(named) if file.temporary is None else _temporary(named, file.temporary)
    if os.path.normpath(named).startswith(_SYSTEM) or _is(path, file.after, file.before):
        return
    if not _is(path, file.before, None):  # whoever reads it finds another one, and tells of it
        return
    if not _may_change[0](named):
        raise NotPutBack(f"{file.path} does not lie in a copy")
    after = file.after
    if after is None:
        _remove(path)
    elif kind := as_text(after.get("kind")):
        _make(path, kind, as_text(after.get("to")))
    elif (content := content_of(after)) is None:
        raise NotPutBack(f"{file.path}: what it was is damaged")
    elif after.get("sqlite") is True:
        _fill(path, content)
    else:
        with open(path, "ab" if "from" in after else "wb") as stream:  # noqa: PTH123 - a path of the program's
            stream.write(content)
        if (mode := as_count(after.get("mode"))) is not None:
            os.chmod(path, mode & 0o777)  # noqa: PTH101 - as above


def _temporary(named: str, name: str) -> str:
    """Give where a temporary file of the recorded run lies in this one, whose folder for them may be another."""
    made_temporary(named)
    leads = path_copies.of_this_process()
    if leads is None or not name or name.startswith(os.sep) or ".." in Path(name).parts:
        return _copy_of(named)
    import tempfile  # only where nothing can be mounted

    path = os.path.join(tempfile.gettempdir(), name)  # noqa: PTH118 - a path of the program's
    made_temporary(path)
    leads.add(named, path)
    return path


def _copy_of(path: str) -> str:
    leads = path_copies.of_this_process()
    return path if leads is None else str(leads.led(path))


def _is(path: str, state: Any, before: Any) -> bool:
    """Tell whether a file is in a state."""
    if state is None:
        return not os.path.lexists(path)
    if kind := as_text(state.get("kind")):
        return {"folder": os.path.isdir, "link": os.path.islink}.get(kind, os.path.lexists)(path)
    if not os.path.isfile(path):  # noqa: PTH113 - as above
        return False
    size = os.path.getsize(path)  # noqa: PTH202 - as above
    if state.get("cut") is True:
        return size == state.get("size")
    if (begin := as_count(state.get("from"))) is not None:
        return size != as_object(before).get("size") and _bytes(path, begin) == content_of(state)
    if state.get("sqlite") is True:
        content = content_of(state)
        return content is not None and _lines(path) == _lines_of(content)
    data = _bytes(path, 0)
    return hashlib.blake2b(data, digest_size=16).hexdigest() == state.get("digest")


def _bytes(path: str, begin: int) -> bytes:
    with open(path, "rb") as stream:  # noqa: PTH123 - as above
        stream.seek(begin)
        return stream.read(_LARGEST + 1)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114 - as above
        os.rmdir(path)  # noqa: PTH106 - as above
    else:
        os.unlink(path)  # noqa: PTH108 - as above


def _make(path: str, kind: str, target: str) -> None:
    if kind == "folder":
        os.makedirs(path, exist_ok=True)  # noqa: PTH103 - as above
    elif kind == "link":
        os.symlink(target, path)  # noqa: PTH211 - as above


def _lines(path: str) -> list[str]:
    """Give what a database holds as SQL; of one that is new, nothing."""
    import sqlite3

    with closing(sqlite3.connect(path, timeout=_LOCKED_S)) as database:
        return [*_dumped(database)]


def _lines_of(content: bytes) -> list[str]:
    import sqlite3

    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(content)
        return [*_dumped(database)]


def _dumped(database: Any) -> Iterator[str]:
    try:
        yield str(database.execute("PRAGMA user_version").fetchone())
        yield from database.iterdump()
    except Exception as error:
        raise NotPutBack(f"a database cannot be read: {error}") from error


def _fill(path: str, content: bytes) -> None:
    import sqlite3

    with closing(sqlite3.connect(":memory:")) as kept, closing(sqlite3.connect(path, timeout=_LOCKED_S)) as database:
        kept.deserialize(content)
        try:
            kept.backup(database)
        except sqlite3.Error as error:
            raise NotPutBack(f"{path}: {error}") from error
