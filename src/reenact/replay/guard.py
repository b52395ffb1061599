"""The guard: in a replay no socket is connected and no foreign child process is started.

An audit hook (PEP 578) names the line that tried; it sees Python's own sockets and processes, not those of C
extensions. Where the platform can enforce it (Linux), the replaying process also enters a network namespace without
interfaces before the agent starts; the ledger says `enforced` or `not enforced`.
"""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from reenact.errors import SideEffectRefused
from reenact.replay.ledger import Ledger

_SOCKETS = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"}
_PROCESSES = {"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec"}
_HARMLESS_PROGRAMS = {"uname", "lsb_release", "ldconfig"}
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000

_allowed: ContextVar[bool] = ContextVar("reenact_network_allowed", default=False)
_state: dict[str, Any] = {"ledger": None, "hooked": False}
_LIBRARIES = tuple({str(Path(path)) for path in sysconfig.get_paths().values()} | {str(Path(__file__).parents[1])})


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
    try:
        yield
    finally:
        _state["ledger"] = before


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event not in _SOCKETS and event not in _PROCESSES:
        return
    ledger: Ledger | None = _state["ledger"]
    if ledger is None or _allowed.get():
        return
    what = _described(event, args)
    if what is None:
        return
    place = where()
    hint = "declare the function around it with @reenact.tool, so that its recorded result stands for it"
    ledger.note("refused", what=what, where=place, event=event, hint=hint)
    raise SideEffectRefused(f"{what} at {place} was refused in the replay; {hint}")


def _described(event: str, args: tuple[Any, ...]) -> str | None:
    """Say what was tried, or None where it is harmless or joins the replay."""
    if event in _SOCKETS:
        target = args[-1] if event in {"socket.connect", "socket.sendto", "socket.sendmsg"} else next(iter(args), "")
        return f"{event.removeprefix('socket.')} to {target!r}"
    if event == "subprocess.Popen":
        program, _words, _cwd, environment = args
        name = Path(str(program)).name
        joins = name.startswith("python") and (environment is None or "REENACT_REPLAY" in environment)
        return None if name in _HARMLESS_PROGRAMS or joins else f"child process {program!r}"
    return f"{event} {next(iter(args), None)!r}"


def where() -> str:
    """Name the innermost line that is neither a library's nor ours."""
    frame = inspect.currentframe()
    last = "?"
    while frame is not None:
        name = frame.f_code.co_filename
        last = f"{name}:{frame.f_lineno}"
        if not name.startswith((*_LIBRARIES, "<")):
            return last
        frame = frame.f_back
    return last


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
