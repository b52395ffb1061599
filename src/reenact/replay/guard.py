"""The guard: in a replay no socket is connected, no foreign child process is started, nothing is written by policy.

An audit hook (PEP 578) names the line that tried; it sees Python's own sockets, processes and files, not those of C
extensions. Whoever started the process may have sealed its world (`reenact.seal`), and says so in REENACT_GUARDED;
where it is not sealed and the platform can do it (Linux), the process enters a network namespace of its own before the
agent starts. The ledger says what each kind of effect got. The application's own telemetry does not leave
either, but that is no act of the agent's and is not told.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from reenact.boundary import (
    answered_files,
    audit,
    children,
    lanes,
    path_copies,
    place,
    side_effects,
    telemetry,
    touches,
)
from reenact.boundary.source_line import function_around, where
from reenact.boundary.touches import Touch
from reenact.errors import SideEffectRefused
from reenact.replay import writes
from reenact.replay.ledger import Ledger
from reenact.replay.policy import Policy, Writes
from reenact.values.effects import COPIED_IN, Seal, seals

if TYPE_CHECKING:  # most replays let nothing out
    from reenact.replay.allowed_hosts import Ways
    from reenact.values.way import Way

_DECLARE = "declare the function around it with @reenact.tool, so that its recorded result stands for it"
_OR_ALLOW = f"{_DECLARE}; or let it be written with --writes allow"
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000

_allowed: ContextVar[bool] = ContextVar("reenact_network_allowed", default=False)
_writes: ContextVar[str] = ContextVar("reenact_tool_writes", default="")
_state: dict[str, Any] = {
    "ledger": None,
    "hooked": False,
    "refuses": True,  # files are not written
    "allows": False,  # files are written, whatever they are
    "open to": None,
    "given": None,  # the hosts that anything may talk to
    "ways": None,  # the hosts that a live call may talk to; None for all
}
_looking = threading.local()


@contextmanager
def allowed() -> Generator[None]:
    """Let everything through while a call that the policy lets go live runs, but for hosts that it does not let out."""
    before = _allowed.get()
    _allowed.set(True)
    try:
        yield
    finally:
        _allowed.set(before)


@contextmanager
def open_to(hosts: Callable[[str], bool]) -> Generator[None]:
    """Let connections to the hosts through that `hosts` says yes to, by the name or address they are made to."""
    before, _state["open to"] = _state["open to"], hosts
    try:
        yield
    finally:
        _state["open to"] = before


@contextmanager
def into_the_copy(tool: str) -> Generator[None]:
    """Let a tool that is named to run write to the copy of a sealed world, and note what it writes."""
    before = _writes.get()
    _writes.set(tool)
    try:
        yield
    finally:
        _writes.set(before)


def is_allowed() -> bool:
    """Tell whether the code now running is inside a call that the policy lets go live."""
    return _allowed.get()


@contextmanager
def shut(
    ledger: Ledger,
    policy: Writes = Writes.REFUSE,
    hosts: Sequence[str] = (),
    ways: Sequence[Way] | None = None,
    *,
    sealed: bool = False,
) -> Generator[None]:
    """Keep the guard up. An audit hook cannot be taken away again; outside this block it does nothing.

    Anything may talk to the `hosts`, live calls to those of `ways`, or to all where that is None.
    `sealed` says that what is written goes to a copy.
    """
    if not _state["hooked"]:
        audit.hear(side_effects.EVENTS, _hook, when_finalizing=True)
        _state["hooked"] = True
    if not sealed or path_copies.of_this_process() is not None:
        from reenact.replay import attached_databases  # a world of namespaces needs none

        attached_databases.judge_attached(_refuses_attached)
    refuses = not (policy is Writes.ALLOW or (sealed and policy.copies))
    before = {name: _state[name] for name in ("ledger", "refuses", "allows", "given", "ways")}
    _state.update(ledger=ledger, refuses=refuses, allows=policy is Writes.ALLOW)
    _state["given"], _state["ways"] = _read(hosts, ways)
    answered_files.judge(partial(_may_be_left, ledger) if sealed and policy.copies else None)
    stop, stop_writes = lanes.carry(_allowed), lanes.carry(_writes)  # names are looked up on a pool's thread
    for name in telemetry.OPENTELEMETRY:
        logging.getLogger(name).addFilter(_is_worth_telling)
    try:
        with _writing(ledger, refuses=refuses, sealed=sealed):
            yield
    finally:
        for name in telemetry.OPENTELEMETRY:
            logging.getLogger(name).removeFilter(_is_worth_telling)
        stop()
        stop_writes()
        answered_files.judge(None)
        _state.update(before)


def _writing(ledger: Ledger, *, refuses: bool, sealed: bool) -> AbstractContextManager[None]:
    """Give what writes need meanwhile: logs are led to nowhere, or what the copy cannot move and link is copied."""
    if refuses:
        return writes.logs_to_nowhere()
    return writes.moved_by_copy(partial(_tell_link, ledger)) if sealed else nullcontext()


def _tell_link(ledger: Ledger, source: str, target: str) -> None:
    ledger.note("copied_link", what=f"link {source} to {target}", where=where())


def _read(hosts: Sequence[str], ways: Sequence[Way] | None) -> tuple[Ways | None, Ways | None]:
    if not hosts and ways is None:
        return None, None
    from reenact.replay.allowed_hosts import Ways
    from reenact.values import way

    return Ways(way.read(hosts)) if hosts else None, Ways(ways) if ways is not None else None


class TelemetryHeld(Exception):
    """Ends an export of the application's telemetry: no side effect of the agent's, and nothing to try again."""


def _is_worth_telling(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], TelemetryHeld))


def _hook(event: str, args: tuple[Any, ...]) -> None:
    ledger: Ledger | None = _state["ledger"]
    if ledger is None or (_allowed.get() and _state["ways"] is None) or getattr(_looking, "up", False):
        return
    spared = _is_spared(ledger, event, args)
    touch = None if spared else side_effects.side_effect(event, args, "REENACT_REPLAY", logs=not _state["refuses"])
    if touch is None:
        return
    if touch.kind in _UNREFUSED:  # a program may ask for much that does nothing outside, and have servers of its own
        if not is_sealed():
            ledger.note("unwatched", what=touch.what, where=where())
        elif (
            touch.kind == "socket"
            and touch.path
            and path_copies.of_this_process() is not None
            and not _is_in_a_copy(touch.path)
        ):
            refuse(ledger, f"make {touch.what}", event, "let it lie in the working folder")
    elif _allowed.get():
        if touch.kind == "network" and not (_lets("ways", event, args) or telemetry.is_sending()):
            refuse(ledger, touch.what, event, f"the policy does not let it out; {_option(event, args)} does")
    elif touch.kind in side_effects.WRITES:
        _keep_to_the_copy(ledger, touch, event, args)
    elif touch.kind != "network":
        refuse(ledger, touch.what, event)
    else:
        _keep_in(ledger, touch, event, args)


def _is_spared(ledger: Ledger, event: str, args: tuple[Any, ...]) -> bool:
    """Note what another world answers otherwise, and tell whether no more is to be said of an event."""
    if event == "os.kill" and is_sealed():
        _note_asked(ledger, *args)
    return event == touches.SOCKET and _is_prevented(ledger, args)


def _note_asked(ledger: Ledger, process: int, number: int) -> None:
    """Note that the program asks whether a process lives that is none of this world's (kill(2), signal 0)."""
    if number != 0 or process <= 0:
        return
    _looking.up = True
    try:
        os.kill(process, 0)
    except OSError:
        ledger.note("asked", what=f"signal 0 to process {process}", where=where())
    finally:
        _looking.up = False


def _keep_to_the_copy(ledger: Ledger, touch: Touch, event: str, args: tuple[Any, ...]) -> None:
    """Refuse a write that goes to no copy, and note one by a tool that is named to run."""
    if any(map(_refuses, filter(None, (touch.path, touch.source)))):
        refuse(ledger, touch.what, event, _OR_ALLOW, path=_recorder_path(event, touch.path))
    if tool := _writes.get():
        targets = args[:2] if event in _OF_TWO else (touch.path,)
        paths = [os.path.abspath(os.fsdecode(each)) for each in targets]  # noqa: PTH100 - in a hook
        ledger.note("tool_wrote", tool=tool, paths=paths)


def _refuses_attached(path: str) -> bool:
    """Tell whether a connection to SQLite may not attach a file, and note it; its path is empty where it is unknown."""
    ledger: Ledger | None = _state["ledger"]
    led = path_copies.of_this_process()
    kept_in = led is not None and path and (not path.startswith("/") or led.original(path) != path)
    if ledger is None or _state["allows"] or _allowed.get() or kept_in:
        return False
    what = f"attach the database {path or 'of a name that is a parameter'}"
    ledger.note("refused", what=what, where=where(), event="sqlite3.attach", hint=_OR_ALLOW)
    return True


def _recorder_path(event: str, path: str) -> str:
    """Give a path as the recorder notes it for an event: where it leads, or the name that is changed."""
    return os.path.realpath(path) if event in _FOLLOWING else os.path.abspath(path)  # noqa: PTH100 - in a hook


def _keep_in(ledger: Ledger, touch: Touch, event: str, args: tuple[Any, ...]) -> None:
    """Refuse what goes to the network, but for hosts that may be talked to."""
    if _is_open(event, args) or _lets("given", event, args):
        return
    if telemetry.is_sending():
        raise TelemetryHeld(f"{touch.what}: a replay exports nothing")
    refuse(ledger, touch.what, event, f"{_DECLARE}; or let it out with {_option(event, args)}")


def _refuses(path: str) -> bool:
    """Tell whether a path is not written: a tool that runs again has written nothing when it was recorded."""
    here = place.current()
    if _state["refuses"] or (here is not None and here.whole and not (_state["allows"] or _writes.get())):
        return True
    return path_copies.of_this_process() is not None and not _is_in_a_copy(path)


def _may_be_left(ledger: Ledger, path: str) -> bool:
    """Tell whether an answered tool may change a file, and note that it does."""
    if path_copies.of_this_process() is not None and not _is_in_a_copy(path):
        return False
    ledger.note("tool_left", path=path)
    return True


def _is_in_a_copy(path: str) -> bool:
    """Tell whether a path lies in a folder that the program works in a copy of: the kernel refuses all others."""
    led, whole = path_copies.of_this_process(), os.path.abspath(path)  # noqa: PTH100 - in a hook, and led
    return led is not None and (led.led(whole) != whole or led.original(whole) != whole)


def _option(event: str, args: tuple[Any, ...]) -> str:
    from reenact.replay.allowed_hosts import option_for

    return option_for(event, args)


def _lets(which: str, event: str, args: tuple[Any, ...]) -> bool:
    """Tell whether the hosts of a kind hold what a network event is about. Names are looked up past this hook."""
    allowed_ways: Ways | None = _state[which]
    if allowed_ways is None:
        return False
    _looking.up = True
    try:
        return allowed_ways.lets(event, args)
    finally:
        _looking.up = False


def refuse(ledger: Ledger, what: str, event: str, hint: str = _DECLARE, *, path: str = "") -> None:
    """Note a side effect and refuse it, of a write with its path. Raises `SideEffectRefused`."""
    place, facts = where(), dict[str, Any]()
    if hint.startswith(_DECLARE) and (function := function_around()):
        hint = f"{hint}; or say what it gave with --stub {function}=VALUE"
    if path:
        facts = {"path": path, "worker": True} if children.is_worker() else {"path": path}
    ledger.note("refused", what=what, where=place, event=event, hint=hint, **facts)
    raise SideEffectRefused(f"{what} at {place} was refused in the replay; {hint}")


def _host_of(target: str) -> str:
    """Give the host of `host`, `host:port` or gRPC's `dns:///host:port`."""
    host, sign, port = target.rpartition("/")[2].rpartition(":")
    return host if sign and port.isdigit() else target


def _is_open(event: str, args: tuple[Any, ...]) -> bool:
    """Tell whether a network event is about a host that may be talked to: looked up by name, or connected to."""
    is_open: Callable[[str], bool] | None = _state["open to"]
    if is_open is None:
        return False
    if event == touches.NATIVE:
        return is_open(_host_of(str(args[1])))
    target = args[0] if isinstance(args[0], str | bytes) else args[-1]
    host = cast("tuple[Any, ...]", target)[0] if isinstance(target, tuple) else target
    return isinstance(host, str | bytes) and is_open(os.fsdecode(host))


_OF_TWO: Final = frozenset({"os.rename", "os.link", "shutil.move", "shutil.copyfile", "shutil.copytree"})
"""Events of two paths."""
_UNREFUSED: Final = frozenset({"native", "socket", "cache"})
"""Kinds of touches that are told, where nothing keeps them in."""
_FOLLOWING: Final = frozenset({"open", "os.truncate", "sqlite3.connect"})
"""Events that are about what a link leads to."""
VARIABLE: Final = "REENACT_GUARDED"
"""Says how the kernel keeps the outside world of this process and its children shut."""
SEALED: Final = "sealed"
SEALED_IN: Final = "sealed-in:"
"""Stands before the folder that is a copy, where the kernel refuses all writes elsewhere."""
_NETWORK: Final = "network namespace"


def is_sealed() -> bool:
    """Tell whether the kernel keeps all that this process does to itself."""
    return os.environ.get(VARIABLE, "").startswith(SEALED)


def _is_prevented(ledger: Ledger, args: tuple[Any, ...]) -> bool:
    """Note a socket of the network where the kernel makes none for this process, not even one for loopback."""
    if not os.environ.get(VARIABLE, "").startswith(SEALED_IN) or not touches.has_network_family(args):
        return False
    if touches.is_importing():  # a library looks whether there is IPv6, and the kernel says so likewise
        ledger.note("excused", what="make a socket of the network", event=touches.SOCKET)
        return False
    ledger.note("prevented", what="make a socket of the network", where=where(), event=touches.SOCKET)
    return True


def world(policy: Policy, how: str = "", *, is_open: bool = False) -> dict[str, str]:
    """Say what each kind of effect gets under a policy; `how` is what VARIABLE says, `is_open` lets hosts through."""
    files = Seal.OPEN if policy.writes is Writes.ALLOW else Seal.WATCHED
    if how == SEALED:
        return seals(Seal.COPIED, Seal.ENFORCED, Seal.ENFORCED)
    if how.startswith(SEALED_IN):
        return {**seals(Seal.ENFORCED, Seal.ENFORCED, Seal.ENFORCED), COPIED_IN: how.removeprefix(SEALED_IN)}
    network = Seal.ENFORCED if how else Seal.WATCHED
    return seals(files, Seal.OPEN if is_open or not policy.closed else network, Seal.WATCHED)


def enter_empty_network() -> str:
    """Leave every network interface behind, children included, and say how; nothing where that cannot be had.

    Linux only: unshare(2) with CLONE_NEWNET; without the privilege, inside a user namespace that maps only this user.
    Must be called while the process has one thread.
    """
    if not sys.platform.startswith("linux") or os.environ.get("REENACT_ENFORCE") == "off":
        return ""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) == 0:
        return _NETWORK
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return ""
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    except OSError:
        pass  # the network is empty all the same; only names of users are missing
    return _NETWORK
