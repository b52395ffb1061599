"""Which audit events (PEP 578) are side effects: what a replay refuses, and what a recording must not pass over.

Reading is none, nor is what stays among the processes of one program. Of the writes those are spared that change
nothing which was there before the program: files made with `tempfile` in this process, caches (`XDG_CACHE_HOME`), our
own journal and ledger, a folder that is there, the removal of a file that is not; where they are led to nowhere, log
files that `logging` writes.
"""

from __future__ import annotations

import inspect
import os
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any, Final

from reenact.boundary import touches
from reenact.boundary.files import spelled
from reenact.boundary.installed import OURS, PACKAGES, PYTHON
from reenact.boundary.own_processes import is_own_pipe, stays_within
from reenact.boundary.touches import Touch

_MADE: Final = frozenset({"tempfile.mkstemp", "tempfile.mkdtemp"})
_PASSING_ON: Final = (
    "integrations/native_writers.py",
    "boundary/audit.py",
    "boundary/children.py",
    "boundary/lanes.py",
    "boundary/sqlite_statements.py",
    "boundary/touches.py",
    "boundary/wrapping.py",
    "integrations/duckdb_connections.py",
    "integrations/native_addresses.py",
    "integrations/native_clients.py",
    "integrations/pools.py",
    "integrations/process_controls.py",
    "integrations/processes.py",
    "integrations/sqlite_connections.py",
    "integrations/sqlite_functions.py",
    "record/undeclared.py",
    "replay/attached_databases.py",
    "replay/guard.py",
    "replay/path_redirection.py",
    "replay/writes.py",
)
_HOOKS: Final = frozenset({__file__, *(f"{OURS}{name}" for name in _PASSING_ON)})
"""Where an audit hook of ours looks on, or the agent's work runs on a thread of its own: no writing of ours."""

EVENTS: Final = (touches.EVENTS | _MADE) - {
    "os.listdir",  # reading changes nothing
    "os.scandir",
    "socket.gethostbyaddr",  # a machine asks for its own name
    "socket.getnameinfo",
    "os.fork",  # a copy of this process, hooks and all
    "os.forkpty",
}
"""The audit events to look at; a hook may turn away all others before anything else."""

WRITES: Final = frozenset({"write", "database"})
"""The kinds of touches that change files."""
_REMOVALS: Final = frozenset({"os.remove", "os.rmdir", "shutil.rmtree"})
_IN_FOLDERS: Final = frozenset(
    {"os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.utime", "shutil.rmtree", touches.NODE}
)
"""Events whose last argument is an open folder that the path begins in, where there is one."""
_OF_NAMES: Final = _REMOVALS | {
    touches.NODE,
    "socket.bind",
    "os.mkdir",
    "os.rename",
    "os.link",
    "os.symlink",
    "shutil.move",
}
"""Events that change what a name stands for, and not what a link with that name leads to."""
_TRIES_FOLDERS: Final = "_get_default_tempdir"
"""The function of `tempfile` that writes a file to see whether it can."""
_LOGS: Final = frozenset({"logging", "logging.handlers"})
_made: dict[str, None] = {}
_replaced = threading.local()


@contextmanager
def replaced_in_a_replay() -> Generator[None]:
    """Spare what this thread does in the block: an integration of ours puts something else in its place in a replay."""
    before, _replaced.now = getattr(_replaced, "now", False), True
    try:
        yield
    finally:
        _replaced.now = before


def temporary_paths() -> list[str]:
    """List the paths that `tempfile` made in this process, as far as a hook heard of it, the longest first."""
    return sorted(_made, key=len, reverse=True)


def made_temporary(path: str) -> None:
    """Hear that `tempfile` made a path, in this process or in the recorded one, as an answer does it again."""
    _made[path] = _made[os.path.realpath(path)] = None


def side_effect(
    event: str, args: tuple[Any, ...], mark: str, *, logs: bool = False, temporary: bool = False, reads: bool = False
) -> Touch | None:
    """Say what an event does to the world outside this program; None where that is nothing, or is spared.

    Python children that inherit the variable `mark` belong to the program; `logs` says that what `logging` writes is
    not spared; nor is it spared where it moves or removes a log. `temporary` says so of what `tempfile` made, `reads`
    of a database that is only read. Must hear of every event in `EVENTS`, since it learns of temporary files as they
    are made.
    """
    if event in _MADE:
        if args:
            made_temporary(os.path.abspath(os.fsdecode(args[0])))  # noqa: PTH100 - inside a hook: no object for each
        return None
    if event == "open" and touches.opens_to_read(args):
        return None
    touch = touches.described(event, args)
    if touch is None or (touch.kind == "read" and not reads) or getattr(_replaced, "now", False):
        return None
    if touch.kind == "native":
        return touch if event == touches.CHILD or _asks_itself() else None
    if touch.kind == "pipe":
        spared = is_left_out(os.path.abspath(touch.path))  # noqa: PTH100 - in an audit hook
        return None if spared or is_own_pipe(os.fsdecode(args[0])) else touch
    if touch.kind == "socket":
        spared = touch.path and is_left_out(os.path.abspath(touch.path), event)  # noqa: PTH100 - as above
        return None if spared else touch
    if touch.kind in WRITES or touch.kind == "read":
        return _unless_spared(event, args, touch, logs=logs, temporary=temporary)
    return None if stays_within(event, args, mark) else touch


def _asks_itself() -> bool:
    """Tell whether the agent's own code asks for a native function, and no library for one of its own."""
    frame = inspect.currentframe()
    while frame is not None:
        name, module = frame.f_code.co_filename, frame.f_globals.get("__name__")
        if name not in _HOOKS and not (isinstance(module, str) and module.startswith("ctypes")):
            return not (touches.is_code(name) or name.startswith("<frozen"))
        frame = frame.f_back
    return False


def _unless_spared(event: str, args: tuple[Any, ...], touch: Touch, *, logs: bool, temporary: bool) -> Touch | None:
    folder = args[-1] if event in _IN_FOLDERS else -1
    beneath = isinstance(folder, int) and folder >= 0
    path = spelled(args[0], folder) if beneath else os.path.abspath(touch.path)  # noqa: PTH100 - in an audit hook
    if event == "os.mkdir" and os.path.isdir(path):  # noqa: PTH112 - as above
        return None
    if event in _REMOVALS and not os.path.lexists(path):
        return None
    if temporary and is_temporary(path):
        return touch
    if touch.source and is_left_out(os.path.abspath(touch.source), event):  # noqa: PTH100 - as above
        touch = replace(touch, source="")
    if is_left_out(path, event):
        if not touch.source:
            spared = is_temporary(path) or _author() is not None
            return None if spared else replace(touch, kind="cache", what=f"the cache {path}")
        touch = replace(touch, path=touch.source)
    author = _author()
    if author is not None:
        is_log = author.f_globals.get("__name__") in _LOGS
        if not is_log or not (logs or event in _OF_NAMES):  # a log is led to nowhere, and not those that lie there
            return None
        touch = replace(touch, is_log=True, handler=author.f_locals.get("self"))
    return touch


def is_left_out(path: str, event: str = "open") -> bool:
    """Tell a path that `tempfile` made in this process, or one in a cache; but for one that leads elsewhere."""
    if not (is_temporary(path) or f"{path}{os.sep}".startswith(_cache())):
        return False
    location = os.path.dirname(path) if event in _OF_NAMES else path  # noqa: PTH120 - in an audit hook
    real = os.path.realpath(location)
    if real != location and not (is_temporary(real) or f"{real}{os.sep}".startswith(os.path.realpath(_cache()))):
        return False
    return event in _OF_NAMES or not _has_another_name(real)


def _has_another_name(path: str) -> bool:
    """Tell whether a file can be found by a second name (a hard link), which may lie anywhere."""
    try:
        status = os.stat(path)  # noqa: PTH116 - in an audit hook
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def is_temporary(path: str) -> bool:
    """Tell a path that `tempfile` made in this process, or one below it."""
    if not _made:
        return False
    above: str = path
    while above not in _made:
        shorter: str = os.path.dirname(above)  # noqa: PTH120 - as above
        if shorter == above:
            return False
        above = shorter
    return True


def _cache() -> str:
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - as above
    return os.path.join(folder, "")  # noqa: PTH118 - as above


def is_by_us() -> bool:
    """Tell whether our own code, or `logging`, does what an audit event tells of, and not the agent."""
    return _author() is not None


def _author() -> FrameType | None:
    """Find by the innermost frame that is not Python's whether our own code writes; or `tempfile`, or `logging`."""
    frame = inspect.currentframe()
    while frame is not None:
        name, module = frame.f_code.co_filename, frame.f_globals.get("__name__")
        if name in _HOOKS:
            pass
        elif module in _LOGS or (module == "tempfile" and frame.f_code.co_name == _TRIES_FOLDERS):
            return frame
        elif name.startswith(PACKAGES) or not name.startswith((*PYTHON, "<")):
            return frame if name.startswith(OURS) else None
        frame = frame.f_back
    return None
