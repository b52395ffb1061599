"""Replayed programs forked from a warm interpreter: what importing an SDK costs is paid once, not in every test.

Used where it is the same as a new process: Python programs of the tests' own interpreter, on systems that fork.
Anything else, and `--reenact-cold`, starts a new process.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from reenact.errors import CannotJudge
from reenact.pipeline.replaying import Start
from reenact.seal import launch
from reenact.testing.program_start import new_process

_MOST = 3
"""So many are kept at a time: each settles what an interpreter settles when it starts."""
_SETTLED = ("PYTHON", "LANG", "LC_")
_FLAGS = frozenset({"-m", "-c"})


@dataclass(slots=True)
class _Nursery:
    """One warm interpreter."""

    process: subprocess.Popen[bytes]
    connection: socket.socket

    def close(self) -> None:
        """Let it go: it ends when its connection does."""
        with suppress(OSError):
            self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)


_nurseries: dict[tuple[tuple[str, str], ...], _Nursery] = {}


def forked(stdout: IO[bytes], stderr: IO[bytes], libraries: Iterable[str] = ()) -> Start:
    """Make what runs a program in a fork; `libraries` are loaded before, where they are installed."""
    cold, wanted = new_process(stdout, stderr), sorted(set(libraries))

    def start(argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> int:
        order = launch.ordered_by(argv)
        words = argv if order is None else order["argv"]
        nursery = _nursery(environ) if _can(words) else None
        if nursery is None:
            return cold(argv, cwd, environ)
        request = {"argv": list(words), "cwd": str(cwd), "environ": dict(environ), "libraries": wanted, "order": order}
        try:
            code = _asked(nursery, request, (stdout.fileno(), stderr.fileno()))
        except BaseException:  # a time limit, or a key: the program ends with its interpreter
            nursery.process.kill()
            raise
        return cold(argv, cwd, environ) if code is None else code

    return start


def _can(argv: Sequence[str]) -> bool:
    """Tell whether a command is this interpreter's, with nothing that only a new process settles."""
    if not hasattr(os, "fork") or not hasattr(socket, "send_fds") or len(argv) < 2 or argv[0] != sys.executable:
        return False
    first = argv[1]
    return (first in _FLAGS and len(argv) > 2) or not first.startswith("-")


def _nursery(environ: Mapping[str, str]) -> _Nursery | None:
    """Give the warm interpreter for an environment; None where there are too many different ones to keep."""
    settled = tuple(sorted((name, value) for name, value in environ.items() if name.startswith(_SETTLED)))
    if (nursery := _nurseries.get(settled)) is not None:
        if nursery.process.poll() is None:
            return nursery
        del _nurseries[settled]
    if len(_nurseries) >= _MOST:
        return None
    if not _nurseries:
        atexit.register(close)
    ours, theirs = socket.socketpair()
    variables = {name: value for name, value in environ.items() if not name.startswith("REENACT_")}
    command = [sys.executable, "-m", "reenact.testing.warm_interpreter", str(theirs.fileno())]
    with theirs:
        process = subprocess.Popen(command, env=variables, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    _nurseries[settled] = _Nursery(process, ours)
    return _nurseries[settled]


def _asked(nursery: _Nursery, request: Mapping[str, Any], files: Sequence[int]) -> int | None:
    """Have a program run and give its exit code; None where it was not run. Raises `CannotJudge` where it got lost."""
    lost = CannotJudge("the warm interpreter ended while a program ran in it", hint="try again with --reenact-cold")
    try:
        data = json.dumps(request).encode() + b"\n"
        count = socket.send_fds(nursery.connection, [data], list(files))
        nursery.connection.sendall(data[count:])
        answer = b""
        while not answer.endswith(b"\n"):
            piece = nursery.connection.recv(1 << 16)
            if not piece:
                raise lost
            answer += piece
    except ConnectionError:
        raise lost from None
    code: int | None = json.loads(answer).get("exit_code")
    return code


def close() -> None:
    """Let every warm interpreter go."""
    while _nurseries:
        _nurseries.popitem()[1].close()
