"""What the agent does to the outside world past every boundary: not recorded, but noted, since no replay can redo it.

Files are apart (`record.file_writes`): a replay writes them to a copy, and compares. Both are seen by an audit hook
(PEP 578), as in a replay, which refuses the rest. It hears of more than it looks at (`id` raises an event too), at some
0.15 µs each: `REENACT_UNDECLARED=off` leaves it out. An audit hook cannot be taken away again; while no recording is in
charge it turns everything away.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final

from reenact.boundary import audit, inbound, place, side_effects, telemetry, touches
from reenact.boundary.files import PathChange, opened_path, path_changes
from reenact.boundary.inbound import Inbound
from reenact.boundary.source_line import where
from reenact.boundary.touches import Touch
from reenact.record.file_writes import Writes
from reenact.values import alarms

_MOST: Final = 50
"""Different acts of one unit of work that are listed; one more line says that there were more."""
_LISTS: Final = frozenset({"os.listdir", "os.scandir"})
"""The audit events of a program that lists a folder."""
_LOCKS: Final = frozenset({"fcntl.flock", "fcntl.lockf"})
"""The audit events of a program that asks for a lock on a file."""
_RECORD_LOCKS: Final = frozenset({"fcntl.fcntl", "fcntl.lockf", "os.lockf"})
"""Events before a lock that a process gives up where it closes the file, by whichever descriptor (fcntl(2))."""


class Undeclared:
    """What one recording's process did undeclared outside every unit that came in; a unit keeps its own."""

    def __init__(self) -> None:
        self._acts: dict[str, None] = {}

    def note(self, unit: Inbound | None, what: str) -> None:
        """Note one act."""
        acts = self._acts if unit is None else unit.undeclared
        if len(acts) < _MOST:
            acts[what] = None
        elif what not in acts:
            acts["and more"] = None

    def listed(self, unit: Inbound | None) -> list[str]:
        """List what a unit did; without one, what the process did so far, which every run of it shares."""
        return [*(self._acts if unit is None else unit.undeclared)]

    def forked(self) -> None:
        """Leave to the parent what was done before a fork."""
        self._acts = {}


class _Hook:
    """The one hook of the process, and who hears of what it sees."""

    __slots__ = ("busy", "hooked", "leave", "listener", "writes")

    def __init__(self) -> None:
        self.listener: Undeclared | None = None
        self.writes: Writes | None = None
        self.hooked = False
        self.leave: Callable[[], None] = lambda: None
        """Has it hear of no more units."""
        self.busy = threading.local()


_HOOK: Final = _Hook()


def listen(listener: Undeclared | None, writes: Writes | None = None) -> None:
    """Have `listener` told from here on, and `writes` of files; None to stop."""
    _HOOK.listener, _HOOK.writes = listener, writes
    _HOOK.leave()
    _HOOK.leave = inbound.hear(_begins, _ends) if writes is not None else lambda: None
    if (listener is not None or writes is not None) and not _HOOK.hooked:
        audit.hear(side_effects.EVENTS | _LISTS | _LOCKS | _RECORD_LOCKS | {touches.ABSENT}, _hook)
        _HOOK.hooked = True


def _begins(unit: Inbound) -> None:
    _tell_of(unit, Writes.begin)


def _ends(unit: Inbound) -> None:
    _tell_of(unit, Writes.end)


def _tell_of(unit: Inbound, hear: Callable[[Writes, Inbound], None]) -> None:
    writes = _HOOK.writes
    if writes is None or getattr(_HOOK.busy, "now", False):
        return
    _HOOK.busy.now = True
    try:
        hear(writes, unit)
    except Exception:
        alarms.pass_on()
    finally:
        _HOOK.busy.now = False


def _hook(event: str, args: tuple[Any, ...]) -> None:
    listener, writes = _HOOK.listener, _HOOK.writes
    if (listener is None and writes is None) or getattr(_HOOK.busy, "now", False):
        return
    here = place.current()
    within = here is not None and here.whole  # its outcome stands for all that is done inside
    if within and (writes is None or not writes.has_tools):
        return
    _HOOK.busy.now = True
    try:
        if here is not None and within:
            _note_of_tool(event, args, here.span_id, writes)
            return
        if event in _RECORD_LOCKS:
            _note_lock(event, args, writes)
        _tell(event, args, listener, writes)
    except Exception as failure:  # our failure is never the agent's; what is not known is taken for done
        alarms.pass_on()
        if listener is not None:
            listener.note(None, f"{event} ({type(failure).__name__})")
    finally:
        _HOOK.busy.now = False


def _note_of_tool(event: str, args: tuple[Any, ...], span: int, writes: Writes | None) -> None:
    """Note the files that a tool is about to change."""
    if writes is None or event not in side_effects.EVENTS or (event == "open" and touches.opens_to_read(args)):
        return
    touch = side_effects.side_effect(event, args, "REENACT_RECORD", logs=True, temporary=True)
    if touch is None or touch.kind not in side_effects.WRITES:
        return
    for change in path_changes(event, args):
        if side_effects.is_temporary(change.path) or not side_effects.is_left_out(change.path, event):
            writes.tools.changes(span, change, is_database=event in touches.DATABASES)


def _tell(event: str, args: tuple[Any, ...], listener: Undeclared | None, writes: Writes | None) -> None:
    if event in _LOCKS:
        if side_effects.is_by_us():
            return
        from reenact.boundary.file_locks import foreign_lock  # most programs ask for none

        if listener is not None and (lock := foreign_lock(args)):
            listener.note(inbound.current(), f"{lock} at {where()}")
        return
    if event in _LISTS or event == touches.ABSENT or (event == "open" and touches.opens_to_read(args)):
        if writes is not None:
            _note_reads(writes, event, args)
        return
    touch = side_effects.side_effect(event, args, "REENACT_RECORD", logs=writes is not None, reads=writes is not None)
    if touch is None or (touch.kind == "socket" and not touch.path):
        return
    if touch.kind in side_effects.WRITES or touch.kind in {"cache", "socket"} or event in touches.DATABASES:
        if writes is not None and not telemetry.is_sending():
            _note_writes(writes, event, args, touch)
    elif listener is not None and not (touch.kind == "network" and telemetry.is_sending()):
        listener.note(inbound.current(), f"{touch.what} at {where()}")


def _note_reads(writes: Writes, event: str, args: tuple[Any, ...]) -> None:
    """Note a file that is about to be read, or a folder that is about to be listed."""
    if event in _LISTS:
        if not isinstance(args[0], int) and not side_effects.is_by_us():
            writes.lists(os.path.abspath(touches.program_path(os.fsdecode(args[0] or "."))))  # noqa: PTH100 - as below
        return
    path = args[0] if event == touches.ABSENT else opened_path(args)
    if path:
        writes.reads(path, is_data=event == touches.ABSENT or not side_effects.is_by_us())


def _note_lock(event: str, args: tuple[Any, ...], writes: Writes | None) -> None:
    import fcntl

    is_one = event != "fcntl.fcntl" or args[1] in {fcntl.F_SETLK, fcntl.F_SETLKW}
    if is_one and writes is not None and isinstance(args[0], int):
        writes.locks(args[0])


def _note_writes(writes: Writes, event: str, args: tuple[Any, ...], touch: Touch) -> None:
    line, changes = "", [*path_changes(event, args)]
    if event == "os.link":  # by the new name the file can be changed
        changes.append(PathChange(os.path.abspath(touch.path)))  # noqa: PTH100 - in an audit hook
    if event in touches.DATABASES and changes and not side_effects.is_left_out(changes[0].path, event):
        writes.connects(changes, where())
    for change in changes:
        is_left_out = side_effects.is_left_out(change.path, event)
        if is_left_out and touch.kind != "cache":
            continue
        line = line or where()
        writes.note(change, line, handler=touch.handler, is_log=touch.is_log, is_cache=is_left_out)
