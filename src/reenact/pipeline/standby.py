"""A launcher of sealed programs that is started ahead, while this process still loads what it needs to order one.

In: the command that carries out an order (`seal.launch`), with its folder, environment and streams. Out: the process
that carries it out. It never knows what is replayed. `seal.standby` is the other side.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from reenact.seal import launch, standby

_NEEDED: Final = ("LANG", "LC_", "LD_")
"""How the names of variables begin by which an interpreter starts and spells paths."""


class Launcher:
    """One launcher, which can be ordered once."""

    def __init__(self) -> None:
        """Start it. Raises `OSError`."""
        self._owner = os.getpid()
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    *launch.flags(standby.BOOT),
                    launch.SOURCE,
                    str(theirs.fileno()),
                    str(os.getpid()),
                ],
                env={name: value for name, value in os.environ.items() if name.startswith(_NEEDED)},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    @property
    def is_ours(self) -> bool:
        """This process started it, and is no fork of the one that did."""
        return self._owner == os.getpid()

    def launch(self, message: bytes, streams: Sequence[int]) -> subprocess.Popen[bytes] | None:
        """Have it carry out an order with three streams, and give its process; None where it has ended."""
        try:
            sent = socket.send_fds(self._connection, [message], streams)
            if rest := message[sent:]:  # it acts on a whole order alone, and may be at that already
                self._connection.sendall(rest)
        except OSError:
            self.close()
            return None
        self._connection.close()
        return self._process

    def close(self) -> None:
        """End it, where it has no order."""
        self._connection.close()
        self._process.kill()
        self._process.wait()


_waiting: list[Launcher] = []


def begin() -> None:
    """Start a launcher for the first program that this process launches, where programs are sealed."""
    is_sealed = os.environ.get(launch.ENFORCE, "") not in launch.UNSEALED and launch.GUARDED not in os.environ
    if is_sealed and sys.platform.startswith("linux") and _mine() is None:
        with suppress(OSError):  # it is started when it is needed, which tells why it cannot be
            _waiting.append(Launcher())
            atexit.register(_end)


def _mine() -> Launcher | None:
    return next((each for each in _waiting if each.is_ours), None)


def _end() -> None:
    if (launcher := _mine()) is not None:
        _waiting.remove(launcher)
        launcher.close()


def launched(
    argv: Sequence[str], cwd: str, environ: Mapping[str, str], streams: Sequence[int]
) -> subprocess.Popen[bytes] | None:
    """Have the launcher that stands by carry out a command; None where none does, or the command is another one."""
    if not launch.is_command(argv) or not Path(cwd).is_dir() or (launcher := _mine()) is None:
        return None
    _waiting.remove(launcher)
    variables = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    return launcher.launch(standby.spelled(argv[-1], cwd, variables), streams)
