"""Whether an audit event stays among the processes of one program, which are recorded and replayed together."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from reenact.boundary import touches
from reenact.boundary.pythons import is_python, isolates

_DEEPEST: Final = 50
"""So many generations of processes are looked at."""
_WHOLE: Final = frozenset({"REENACT_RECORD", "REENACT_REPLAY"})


def stays_within(event: str, args: tuple[Any, ...], mark: str) -> bool:  # noqa: PLR0911 - an event each
    """Tell whether what was tried stays among the processes of this program.

    A child is one of them where it is a Python that runs the start-up hook and inherits the variable `mark`.
    """
    match event:
        case "socket.connect":
            return _within_the_family(args[-1]) or _is_own(event, args)
        case "socket.sendto" | "socket.sendmsg" | "socket.getaddrinfo" | "socket.gethostbyname":
            return _is_own(event, args)
        case "subprocess.Popen":
            program, words, _cwd, environment = args
            return _joins(program, words, environment, mark)
        case "os.posix_spawn":
            return _joins(args[0], args[1], args[2], mark)
        case "os.kill":
            return _is_child(args[0]) if args[0] > 0 else args[0] != -1 and _is_own_group(-args[0])
        case "fcntl.fcntl":
            return _is_child(args[2]) if args[2] > 0 else _is_own_group(-args[2])
        case touches.PROCESS:
            return args[1] > 0 and _is_child(args[1])
        case "os.killpg":
            return _is_own_group(args[0])
        case _:
            return False


def _is_own_group(group: int) -> bool:
    """Tell whether a group of processes (0 for the one of this process) holds none but the program's.

    Who started the program may be in it: that is the one that records or replays it.
    """
    group = group or os.getpgrp()
    with suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - in an audit hook
            if not name.isdigit() or int(name) in {os.getpid(), os.getppid()}:
                continue
            with suppress(OSError):  # it has gone
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == group and not _is_child(int(name)):
                    return False
    return True


def _is_child(process: int) -> bool:
    """Tell whether a process was started by this one, or by one of those, as a forkserver's are.

    Where the system does not say so any may be.
    """
    for _ in range(_DEEPEST):
        try:
            stat_line = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return True  # there is none such, or no /proc
        process = int(stat_line.rpartition(")")[2].split()[1])
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


def is_own_pipe(path: str) -> bool:
    """Tell whether nobody but this program reads what is written into a named pipe."""
    if not is_whole():
        return False
    from reenact.boundary import pipes  # most programs have none

    return pipes.is_own(path)


def is_whole() -> bool:
    """Tell whether this program is recorded or replayed from its first line on: then all its servers are there, too.

    Where it is a part of a process alone, as in a test, what else listens there belongs to its outside.
    """
    return not _WHOLE.isdisjoint(os.environ)


def _is_own(event: str, args: tuple[Any, ...]) -> bool:
    """Tell whether a server of this program's own is spoken to, or nobody but this machine is asked for a name."""
    if not is_whole():
        return False
    from reenact.boundary import listeners  # most programs have none

    return listeners.is_this_machine(args[0]) if event.startswith("socket.get") else listeners.is_own(*args)


def _joins(program: Any, words: Any, environment: Any, mark: str) -> bool:
    if not is_python(os.fsdecode(program)):
        return False
    variable_names = {os.fsdecode(name) for name in (os.environ if environment is None else environment)}
    several = isinstance(words, list | tuple)
    flags = [os.fsdecode(word) for word in cast("list[Any]", words)[1:]] if several else []
    return {mark, "PYTHONPATH"} <= variable_names and not isolates(flags)
