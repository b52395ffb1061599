"""What the standard library does without an audit event: to other processes, named pipes, shared memory, histories.

Each function says so by an audit event of ours, where it is about a process that is not this one (priority,
scheduling, limits, signals) or makes a file. Whoever listens to Python's own events hears it as one of them. `os.open`
raises one that does not tell where a path begins, and `readline` none for the file that it writes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

from reenact.boundary.touches import MEMORY, NODE, PROCESS, opened_in
from reenact.contracts.integration import Integration, PatchSet

_BY_PROCESS: Final = {
    "os": (
        ("sched_setaffinity", "set the affinity of"),
        ("sched_setscheduler", "set the scheduling of"),
        ("sched_setparam", "set the scheduling of"),
        ("setpgid", "set the group of"),
    ),
    "resource": (("prlimit", "set the limits of"),),
}
"""Module to functions whose first argument is a process (0 is the one that calls), and what they do to it."""
_OF_PSUTIL: Final = (
    ("nice", "set the priority of"),
    ("ionice", "set the priority of"),
    ("cpu_affinity", "set the affinity of"),
)
"""Methods of its `Process` that set what they are given, and what they do to it: native code does it."""
_PROCESS, _GROUP, _USER = getattr(os, "PRIO_PROCESS", 0), getattr(os, "PRIO_PGRP", 1), getattr(os, "PRIO_USER", 2)
_READS_LIMITS: Final = 2


def _by_process(what: str) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        @wraps(original)
        def control(process: int, *args: Any, **kwargs: Any) -> Any:
            only_reads = original.__name__ == "prlimit" and 1 + len(args) + len(kwargs) <= _READS_LIMITS
            if process not in {0, os.getpid()} and not only_reads:
                sys.audit(PROCESS, f"{what} process {process}", process)
            return original(process, *args, **kwargs)

        return control

    return make


def _of_another(what: str) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        @wraps(original)
        def control(self: Any, *args: Any, **kwargs: Any) -> Any:
            if (args or kwargs) and self.pid != os.getpid():
                sys.audit(PROCESS, f"{what} process {self.pid}", self.pid)
            return original(self, *args, **kwargs)

        return control

    return make


def _cut_psutil(patches: PatchSet, module: Any) -> None:
    for name, what in _OF_PSUTIL:
        if hasattr(module.Process, name):
            patches.replace(module.Process, name, _of_another(what))


def _priority(original: Any) -> Any:
    @wraps(original)
    def setpriority(which: int, who: int, priority: int) -> Any:
        own = {_PROCESS: os.getpid(), _GROUP: None, _USER: None}.get(which)
        if which != _PROCESS or who not in {0, own}:
            whom = {_PROCESS: "process", _GROUP: "process group", _USER: "user"}.get(which, "process")
            sys.audit(PROCESS, f"set the priority of {whom} {who}", who if which == _PROCESS else 0)
        return original(which, who, priority)

    return setpriority


def _signal(original: Any) -> Any:
    @wraps(original)
    def pidfd_send_signal(pidfd: int, signalnum: int, *args: Any) -> Any:
        if signalnum and (process := _of_handle(pidfd)) != os.getpid():
            sys.audit(PROCESS, f"signal {int(signalnum)} to process {process}", process)
        return original(pidfd, signalnum, *args)

    return pidfd_send_signal


def _of_handle(pidfd: int) -> int:
    """Read which process a descriptor stands for (pidfd_open(2)); -1 where that cannot be told."""
    try:
        lines = Path(f"/proc/self/fdinfo/{pidfd}").read_text(encoding="ascii").splitlines()
    except OSError:
        return -1
    return next((int(line.split()[1]) for line in lines if line.startswith("Pid:")), -1)


def _making(original: Any) -> Any:
    @wraps(original)
    def make(path: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any) -> Any:
        sys.audit(NODE, path, -1 if dir_fd is None else dir_fd)
        return original(path, *args, dir_fd=dir_fd, **kwargs)

    return make


def _opening(original: Any) -> Any:
    @wraps(original)
    def opened(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> Any:
        if dir_fd is None:
            return original(path, flags, mode)
        with opened_in(dir_fd):
            return original(path, flags, mode, dir_fd=dir_fd)

    if original in os.supports_dir_fd:
        os.supports_dir_fd.add(opened)
    return opened


def _writing_history(flags: int, *, behind: int) -> Callable[[Any], Any]:
    """Make what tells of a history that is written; its name stands at a place of the arguments."""

    def make(original: Any) -> Any:
        @wraps(original)
        def write(*args: Any) -> Any:
            path = args[behind] if len(args) > behind and args[behind] is not None else Path.home() / ".history"
            sys.audit("open", os.fspath(path), None, os.O_WRONLY | os.O_CREAT | flags)
            return original(*args)

        return write

    return make


def _cut_histories(patches: PatchSet, module: Any) -> None:
    patches.replace(module, "write_history_file", _writing_history(os.O_TRUNC, behind=0))
    if hasattr(module, "append_history_file"):
        patches.replace(module, "append_history_file", _writing_history(os.O_APPEND, behind=1))


def _sharing(original: Any) -> Any:
    @wraps(original)
    def shm_open(path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
        sys.audit(MEMORY, path, flags)
        return original(path, flags, *args, **kwargs)

    return shm_open


def _install(patches: PatchSet) -> None:
    def cut(module: Any) -> None:
        for name, what in _BY_PROCESS.get(module.__name__, ()):
            if hasattr(module, name):
                patches.replace(module, name, _by_process(what))

    def cut_signals(module: Any) -> None:
        if hasattr(module, "pidfd_send_signal"):
            patches.replace(module, "pidfd_send_signal", _signal)

    cut(os)
    if hasattr(os, "setpriority"):
        patches.replace(os, "setpriority", _priority)
    patches.replace(os, "open", _opening)
    for name in ("mkfifo", "mknod"):
        if hasattr(os, name):
            patches.replace(os, name, _making)
    patches.when_imported("resource", cut)
    patches.when_imported("signal", cut_signals)
    patches.when_imported("psutil", lambda module: _cut_psutil(patches, module))
    patches.when_imported("readline", lambda module: _cut_histories(patches, module))
    patches.when_imported("_posixshmem", lambda module: patches.replace(module, "shm_open", _sharing))


INTEGRATION = Integration(
    name="process_controls",
    libraries=("os", "resource", "signal", "psutil", "readline", "_posixshmem"),
    install=_install,
)
