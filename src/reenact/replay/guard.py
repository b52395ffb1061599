"""The guard: in a replay no socket is connected, no foreign child process is started, nothing is written by policy.

An audit hook (PEP 578) names the line that tried; it sees Python's own sockets, processes and files, not those of C
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
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from reenact.boundary import lanes, telemetry, touches
from reenact.errors import SideEffectRefused
from reenact.replay import writes
from reenact.replay.ledger import Ledger
from reenact.replay.policy import Writes

_EVENTS = (touches.EVENTS | writes.EVENTS) - {
    "os.listdir",  # reading changes nothing
    "os.scandir",
    "socket.gethostbyaddr",  # a machine asks for its own name
    "socket.getnameinfo",
    "os.fork",  # a copy of this process, guard and all
    "os.forkpty",
}
_DECLARE = "declare the function around it with @reenact.tool, so that its recorded result stands for it"
_OR_ALLOW = f"{_DECLARE}; or let it be written with --writes allow"
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000

_allowed: ContextVar[bool] = ContextVar("reenact_network_allowed", default=False)
_state: dict[str, Any] = {"ledger": None, "hooked": False, "writes": Writes.REFUSE}
_CODE = ("stdlib", "platstdlib", "purelib", "platlib")
_LIBRARIES = tuple({str(Path(sysconfig.get_path(name))) + os.sep for name in _CODE} | {f"{Path(__file__).parents[1]}/"})
_DEEPEST = 50
"""So many generations of processes are looked at."""
_PYTHON = re.compile(r"python[0-9.]*")
_ISOLATING = re.compile(r"-[a-zA-Z]*[IES]")
"""Flags under which Python does not look at PYTHONPATH or runs no start-up hook."""


@contextmanager
def allowed() -> Generator[None]:
    """Let everything through while a call that the policy lets go live runs."""
    before = _allowed.get()
    _allowed.set(True)
    try:
        yield
    finally:
        _allowed.set(before)


def is_allowed() -> bool:
    """Tell whether the code now running is inside a call that the policy lets go live."""
    return _allowed.get()


@contextmanager
def shut(ledger: Ledger, policy: Writes = Writes.REFUSE) -> Generator[None]:
    """Keep the guard up. An audit hook cannot be taken away again; outside this block it does nothing."""
    if not _state["hooked"]:
        sys.addaudithook(_hook)
        _state["hooked"] = True
    before = _state["ledger"], _state["writes"]
    _state["ledger"], _state["writes"] = ledger, policy
    stop = lanes.carry(_allowed)  # names are looked up on a pool's thread
    for name in telemetry.OPENTELEMETRY:
        logging.getLogger(name).addFilter(_is_worth_telling)
    try:
        with writes.logs_to_nowhere() if policy is Writes.REFUSE else nullcontext():
            yield
    finally:
        for name in telemetry.OPENTELEMETRY:
            logging.getLogger(name).removeFilter(_is_worth_telling)
        stop()
        _state["ledger"], _state["writes"] = before


class TelemetryHeld(Exception):
    """Ends an export of the application's telemetry: no side effect of the agent's, and nothing to try again."""


def _is_worth_telling(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], TelemetryHeld))


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event not in _EVENTS:
        return
    ledger: Ledger | None = _state["ledger"]
    if ledger is None or _allowed.get():
        return
    if event in writes.EVENTS:
        writes.made(event, args)
        return
    if event == "open" and touches.opens_to_read(args):
        return
    touch = touches.described(event, args)
    if touch is None or touch.kind == "read":
        return
    if touch.kind in {"write", "database"}:
        if _state["writes"] is Writes.REFUSE and not writes.is_spared(event, touch):
            refuse(ledger, touch.what, event, _OR_ALLOW)
    elif not _stays_within(event, args):
        if touch.kind == "network" and telemetry.is_sending():
            raise TelemetryHeld(f"{touch.what}: a replay exports nothing")
        refuse(ledger, touch.what, event)


def refuse(ledger: Ledger, what: str, event: str, hint: str = _DECLARE) -> None:
    """Note a side effect and refuse it. Raises `SideEffectRefused`."""
    place = where()
    ledger.note("refused", what=what, where=place, event=event, hint=hint)
    raise SideEffectRefused(f"{what} at {place} was refused in the replay; {hint}")


def _stays_within(event: str, args: tuple[Any, ...]) -> bool:
    """Tell whether what was tried stays among the processes of this replay."""
    match event:
        case "socket.connect":
            return _within_the_family(args[-1])
        case "subprocess.Popen":
            program, words, _cwd, environment = args
            return _joins(program, words, environment)
        case "os.posix_spawn":
            return _joins(args[0], args[1], args[2])
        case "os.kill":
            return _is_child(args[0])
        case "os.killpg":
            return args[0] == os.getpgrp() or _is_child(args[0])
        case _:
            return False


def _is_child(process: int) -> bool:
    """Tell whether a process was started by this one, or by one of those, as a forkserver's are.

    Where the system does not say so any may be.
    """
    for _ in range(_DEEPEST):
        try:
            told = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return True  # there is none such, or no /proc
        process = int(told.rpartition(")")[2].split()[1])
        if process <= 1:
            return False
        if process == os.getpid():
            return True
    return False


def _within_the_family(target: Any) -> bool:
    """Tell whether a socket is one by which `multiprocessing` speaks with processes of this program."""
    process = sys.modules.get("multiprocessing.process")
    if process is None or not isinstance(target, str | bytes):
        return False
    name = os.fsdecode(target)
    folder = process.current_process()._config.get("tempdir")  # noqa: SLF001 - named at random, handed down to children
    return name.startswith("\0listener-") or bool(folder and name.startswith(f"{folder}{os.sep}listener-"))


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
