"""The guard: in a replay no socket is connected and no foreign child process is started.

An audit hook (PEP 578) names the line that tried; it sees Python's own sockets and processes, not those of C
extensions. Where the platform can enforce it (Linux), the replaying process also enters a network namespace without
interfaces before the agent starts; the ledger says `enforced` or `not enforced`. The application's own telemetry does
not leave either, but that is no act of the agent's and is not told.
"""

from __future__ import annotations

import inspect
import itertools
import logging
import os
import re
import sys
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from reenact.boundary import lanes
from reenact.errors import SideEffectRefused
from reenact.replay.ledger import Ledger

_SOCKETS = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"}
_PROCESSES = {"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec"}
_HARMLESS_PROGRAMS = {"uname", "lsb_release", "ldconfig"}
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000

_allowed: ContextVar[bool] = ContextVar("reenact_network_allowed", default=False)
_state: dict[str, Any] = {"ledger": None, "hooked": False}
_CODE = ("stdlib", "platstdlib", "purelib", "platlib")
_LIBRARIES = tuple({str(Path(sysconfig.get_path(name))) + os.sep for name in _CODE} | {f"{Path(__file__).parents[1]}/"})
_TELEMETRY = (
    "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.trace.export",
    "opentelemetry.sdk._logs._internal.export",
    "opentelemetry.sdk.metrics._internal.export",
)
_PYTHON = re.compile(r"python[0-9.]*")
_ISOLATING = re.compile(r"-[a-zA-Z]*[IES]")
"""Flags under which Python does not look at PYTHONPATH or runs no start-up hook."""


@contextmanager
def allowed() -> Generator[None]:
    """Let the network through while a call that the policy lets go live runs."""
    before = _allowed.get()
    _allowed.set(True)
    try:
        yield
    finally:
        _allowed.set(before)


@contextmanager
def shut(ledger: Ledger) -> Generator[None]:
    """Keep the guard up. An audit hook cannot be taken away again; outside this block it does nothing."""
    if not _state["hooked"]:
        sys.addaudithook(_hook)
        _state["hooked"] = True
    before, _state["ledger"] = _state["ledger"], ledger
    stop = lanes.carry(_allowed)  # names are looked up on a pool's thread
    for name in _TELEMETRY:
        logging.getLogger(name).addFilter(_is_worth_telling)
    try:
        yield
    finally:
        for name in _TELEMETRY:
            logging.getLogger(name).removeFilter(_is_worth_telling)
        stop()
        _state["ledger"] = before


class TelemetryHeld(Exception):
    """Ends an export of the application's telemetry: no side effect of the agent's, and nothing to try again."""


def _is_worth_telling(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], TelemetryHeld))


def _is_telemetry() -> bool:
    """Tell whether one of OpenTelemetry's processors is exporting on this thread."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") in _TELEMETRY:
            return True
        frame = frame.f_back
    return False


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event not in _SOCKETS and event not in _PROCESSES:
        return
    ledger: Ledger | None = _state["ledger"]
    if ledger is None or _allowed.get():
        return
    what = _described(event, args)
    if what is None:
        return
    if event in _SOCKETS and _is_telemetry():
        raise TelemetryHeld(f"{what}: a replay exports nothing")
    place = where()
    hint = "declare the function around it with @reenact.tool, so that its recorded result stands for it"
    ledger.note("refused", what=what, where=place, event=event, hint=hint)
    raise SideEffectRefused(f"{what} at {place} was refused in the replay; {hint}")


def _described(event: str, args: tuple[Any, ...]) -> str | None:
    """Say what was tried, or None where it is harmless or joins the replay."""
    if event in _SOCKETS:
        target = args[-1] if event in {"socket.connect", "socket.sendto", "socket.sendmsg"} else next(iter(args), "")
        if target is None and event == "socket.sendmsg":  # over a connection, and connecting was guarded
            return None
        return f"{event.removeprefix('socket.')} to {target!r}"
    if event == "subprocess.Popen":
        program, words, _cwd, environment = args
        harmless = Path(os.fsdecode(program)).name in _HARMLESS_PROGRAMS
        return None if harmless or _joins(program, words, environment) else f"child process {os.fsdecode(program)!r}"
    return f"{event} {next(iter(args), None)!r}"


def _joins(program: Any, words: Any, environment: Any) -> bool:
    """Tell whether a child process is a Python that will read our plan: it inherits it, and runs the start-up hook."""
    if not _PYTHON.fullmatch(Path(os.fsdecode(program)).name):
        return False
    given = {os.fsdecode(name) for name in (os.environ if environment is None else environment)}
    several = isinstance(words, list | tuple)
    flags = [os.fsdecode(word) for word in cast("list[Any]", words)[1:]] if several else []
    before_code = itertools.takewhile(lambda word: word.startswith("-") and word not in {"-c", "-m", "-"}, flags)
    return {"REENACT_REPLAY", "PYTHONPATH"} <= given and not any(map(_ISOLATING.match, before_code))


def where() -> str:
    """Name the innermost line that is neither a library's nor ours; code without a file where there is no other."""
    frame = inspect.currentframe()
    last, typed_in = "?", ""
    while frame is not None:
        name = frame.f_code.co_filename
        last = f"{name}:{frame.f_lineno}"
        if not name.startswith((*_LIBRARIES, "<")):
            return last
        if not typed_in and name in {"<string>", "<stdin>"}:
            typed_in = last
        frame = frame.f_back
    return typed_in or last


def enter_empty_network() -> str | None:
    """Leave every network interface behind, children included, and say how; None where that cannot be had.

    Linux only: unshare(2) with CLONE_NEWNET; without the privilege, inside a user namespace that maps only this user.
    Must be called while the process has one thread.
    """
    if not sys.platform.startswith("linux") or os.environ.get("REENACT_ENFORCE") == "off":
        return None
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) == 0:
        return "network namespace"
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return None
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    except OSError:
        pass  # the network is empty all the same; only names of users are missing
    return "network namespace of a user namespace"
