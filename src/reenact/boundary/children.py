"""Child processes: where each hangs in the run of the process that started it, and who takes it in there.

A child's lane is the spawning lane and `p:<what it runs>#<n>`: the same in a replay, whatever the pids are. Where it
hangs goes along with it: in REENACT_PARENT for a program, with the process object or the pool's job for
`multiprocessing`, in memory over `os.fork`. The host (whoever records or replays this process) says where a child
hangs, gives it the environment in which it records itself, and takes it in on the other side.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from reenact.boundary import lanes
from reenact.boundary.lanes import Lane
from reenact.values import alarms
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lane import MARK

VARIABLE = "REENACT_PARENT"
"""The environment variable in which a child program finds where it hangs."""
REPLACED = "REENACT_REPLACED"
"""Tells a program that it took the place of another, recorded one (`os.exec`)."""
HANDED = "REENACT_HANDED"
"""Tells a replayed process the number of the descriptor with the keys of its redaction (`pipeline.keyring`)."""


class _Inheritance:
    """What a child inherits that the agent's own code changed."""

    __slots__ = ("folder", "variables")

    def __init__(self) -> None:
        self.folder = ""
        """Where the program was when recording, or replaying, began; empty where nobody asked."""
        self.variables: dict[str, None] = {}


_INHERITANCE: Final = _Inheritance()
_TRACKER: Final = b"multiprocessing.resource_tracker"


def inherits_from_here() -> None:
    """Note where the program is: a child that starts in another folder is asked there."""
    with suppress(OSError):
        _INHERITANCE.folder = os.getcwd()  # noqa: PTH109 - on the way of every start


def inherits_variable(name: str) -> None:
    """Note a variable of the environment that the agent's own code sets."""
    _INHERITANCE.variables[name] = None


def own_variables() -> list[str]:
    """List the variables of the environment that the agent's own code has set."""
    return sorted(_INHERITANCE.variables)


def folder_moved_to() -> str | None:
    """Give the folder that a child starts in, as seen from where the program began; None where it has not moved."""
    with suppress(OSError):
        here, start = os.getcwd(), _INHERITANCE.folder  # noqa: PTH109 - as above
        if start and here != start:
            return os.path.relpath(here, start) if here.startswith(start + os.sep) else here
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """Where a child process, or a job in a pool of processes, hangs. Picklable."""

    trace_id: int
    span_id: int
    lane: str
    name: str
    """What it runs, such as `researcher.py`."""
    root: int = 0
    """The root span that stands for this process in the run."""
    identity: Mapping[str, str] = field(default_factory=dict[str, str])
    """The session, user and tenant of the run, as span attributes."""
    within: bool = False
    """It was started inside a unit of work or a call; what it opens as a run is part of that run."""

    def below(self, span_id: int) -> Descent:
        """Hang it below another span."""
        return replace(self, span_id=span_id)

    def spelled(self) -> str:
        """Spell it for the environment: JSON with a W3C `traceparent` in it (Trace Context, section 3.2)."""
        fields: dict[str, Json] = {
            "traceparent": f"00-{self.trace_id:032x}-{self.span_id:016x}-01",
            "lane": self.lane,
            "name": self.name,
            "identity": dict(self.identity),
            "within": self.within,
        }
        return compact(fields)


def read(text: str) -> Descent | None:
    """Read what `Descent.spelled` wrote; anything else is None."""
    fields = parsed_or_none(text)
    if not isinstance(fields, dict):
        return None
    parts = str(fields.get("traceparent")).split("-")
    identity = fields.get("identity")
    try:
        return Descent(
            trace_id=int(parts[1], 16),
            span_id=int(parts[2], 16),
            lane=str(fields["lane"]),
            name=str(fields.get("name") or "python"),
            identity={key: str(value) for key, value in identity.items()} if isinstance(identity, dict) else {},
            within=fields.get("within") is True,
        )
    except (IndexError, KeyError, ValueError):
        return None


class Host(Protocol):
    """Who records or replays this process."""

    def descent(self, name: str, lane: str | None = None) -> Descent | None:
        """Say where a child hangs that the code now running is about to start, on a lane of its own or on `lane`."""
        ...

    def environment(self, variables: Mapping[str, str], descent: Descent) -> dict[str, str] | None:
        """Give `variables` with what a child program needs to record itself there; None where it would not join."""
        ...

    def take_in(self, descent: Descent, *, eager: bool) -> None:
        """Make this process, which was just started, the child that `descent` describes; write it down if `eager`."""
        ...

    def job(self, descent: Descent) -> AbstractContextManager[Any]:
        """Surround a job that another process handed to this one."""
        ...

    def forked(self) -> None:
        """Hear that this process is a copy of the one that the host was in: what it held open is not its own."""
        ...

    def signals(self, descent: Descent, number: int) -> None:
        """Hear that this process is about to send a signal to a child."""
        ...

    def left(self, descent: Descent, exit_code: int, *, sent: bool) -> None:
        """Hear how a child ended: negative for the signal that killed it, which this process `sent` or somebody did."""
        ...

    def died_of(self, error: BaseException) -> None:
        """Hear what ends this process."""
        ...

    def close(self, status: int) -> None:
        """Hear that this process is about to end with that exit code, without any of Python's clean-up."""
        ...

    def refuse(self, what: str) -> None:
        """Raise where a child would go past the replay."""
        ...


class _State(threading.local):
    """What is going on on one thread."""

    starting = False
    """A child is being started by a way of its own, which takes it in; a fork underneath is not one by hand."""
    forking: Descent | None = None
    apart = False
    """A server starts a worker, which hangs below nobody."""


_hosts: list[Host] = []
_state = _State()
_watched: list[bool] = []
_forks: list[bool] = []


def host() -> Host | None:
    """Give who is in charge of this process."""
    return _hosts[-1] if _hosts and not _state.apart else None


def install(process_host: Host) -> None:
    """Put a host in charge. The hooks around `os.fork` stay for good and do nothing without one."""
    _hosts.append(process_host)
    if not _watched:
        _watched.append(True)
        os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)


def remove(process_host: Host) -> None:
    """Take a host out of charge."""
    if process_host in _hosts:
        _hosts.remove(process_host)


class apart:  # noqa: N801 - reads as a function does
    """Surround the start of a server's worker: what comes in there is a run of its own, and part of nobody's."""

    def __enter__(self) -> None:
        self._before, _state.apart = _state.apart, True

    def __exit__(self, *_: object) -> None:
        _state.apart = self._before


serving: Final[ContextVar[bool]] = ContextVar("reenact_starts_server", default=False)
"""Whether a program that is started here serves the agent, and is no part of the run (`boundary.servers`)."""


class starting:  # noqa: N801 - reads as a function does
    """Surround the start of a child that is taken in by the way it is started."""

    def __enter__(self) -> None:
        self._before, _state.starting = _state.starting, True

    def __exit__(self, *_: object) -> None:
        _state.starting = self._before


def is_starting() -> bool:
    """Tell whether a child is being started on this thread by a way of its own."""
    return _state.starting


def stop(owner: object) -> None:
    """Hear that the recording of `owner`, a doorman, ends: what it has open of other programs is told now."""
    for each in _stopping:
        each(owner)


def when_stopped(hear: Callable[[object], None]) -> None:
    """Have `hear` called when a recording ends, with its doorman."""
    if hear not in _stopping:
        _stopping.append(hear)


_stopping: list[Callable[[object], None]] = []
_hear_reads: list[Callable[[], None]] = []


def when_reads_matter(hear: Callable[[], None]) -> None:
    """Have `hear` called when the first pipe is read of which only `os.read` tells."""
    _hear_reads[:] = [hear]


def hear_reads() -> None:
    """Have `os.read` tell what it gives, from here on."""
    if _hear_reads:
        _hear_reads.pop()()


def _before() -> None:
    process_host = host()
    _state.forking = None
    if process_host is not None and not _state.starting:
        try:
            _state.forking = process_host.descent("fork")
        except Exception:  # the host program forks, whatever becomes of us
            alarms.pass_on()
            _state.forking = None


def _after() -> None:
    _state.forking = None


def in_fork() -> bool:
    """Tell whether this process is a copy of the one in which a host was first put in charge."""
    return bool(_forks)


def is_worker() -> bool:
    """Tell whether `multiprocessing` started this process; of one that it ended by a signal nothing was recorded."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None


def is_only_child() -> bool:
    """Tell whether the process that started this one has no other child: a server with one worker (proc(5)).

    What `multiprocessing` starts to look after its resources is none. False where nobody can tell.
    """
    parent = os.getppid()
    try:
        lists = [path.read_text().split() for path in Path(f"/proc/{parent}/task").glob("*/children")]
        others = {each for words in lists for each in words} - {str(os.getpid())}
        return (
            bool(lists)
            and parent > 1
            and all(_TRACKER in Path(f"/proc/{each}/cmdline").read_bytes() for each in others)
        )
    except OSError:
        return False


def _in_child() -> None:
    _forks[:] = [True]
    descent, _state.forking = _state.forking, None
    starts, _state.starting = _state.starting or _state.apart, False
    _state.apart = False
    for each in tuple(_hosts):
        try:
            each.forked()
            if descent is not None and each is _hosts[-1] and not starts:
                each.take_in(descent, eager=False)
        except Exception:
            alarms.pass_on()
            continue


class Job:
    """A job on its way to another process: what is to be called, and where it hangs. Picklable as its function is."""

    __slots__ = ("descent", "function")

    def __init__(self, function: Callable[..., Any], descent: Descent) -> None:
        self.function, self.descent = function, descent

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function where the job was submitted."""
        process_host = host()
        if process_host is None:
            return self.function(*args, **kwargs)
        with process_host.job(self.descent):
            return self.function(*args, **kwargs)

    @property
    def lane(self) -> Lane:
        """The lane of the job as the submitting process sees it: its end is a fact of the run that it hangs in."""
        lane = Lane(self.descent.lane)
        lane.used, lane.root = True, self.descent.root
        return lane


def lane_for(name: str) -> str:
    """Name the lane of a child that the code now running starts."""
    return lanes.current().spawn(f"{MARK}{name.replace('/', '_').replace('#', '_')}").path
