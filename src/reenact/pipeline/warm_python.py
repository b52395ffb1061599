"""A Python that is ready: it has imported what a program imports from libraries, and forks for each run of it.

This is the side that orders; `testing.warm_interpreter` is what the process runs. A copy behaves as a program that was
started from nothing, but for what an interpreter settles at its start: whoever orders takes another one for that.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_START_S = 60.0
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Order:
    """A run of a program."""

    argv: Sequence[str]
    cwd: Path
    environ: Mapping[str, str]
    streams: tuple[int, int]
    """Where its output and its errors go: open descriptors."""
    world: Mapping[str, Any] | None = None
    """The order of a sealed world to run it in (`seal.launch`)."""
    leads_session: bool = False
    """It leads a session of its own, so that it can be ended with all that it started."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended."""

    code: int
    """Its exit code; a signal's number below zero."""
    modules: Sequence[str]
    """The library modules that it imported and that were not ready, in their order."""
    is_over_time: bool = False
    """It was ended, since its time was over."""


class WarmPython:
    """A process that forks for each run. One run at a time."""

    def __init__(self, python: str, environ: Mapping[str, str]) -> None:
        """Start it. Raises `OSError` where it cannot be started."""
        variables = {name: value for name, value in environ.items() if not name.startswith("REENACT_")}
        self._connection, theirs = socket.socketpair()
        self._rest = b""
        """What was received behind the last answer."""
        self._group = 0
        """The process group of the program that runs, where it leads one."""
        nowhere = subprocess.DEVNULL
        command = [python, "-m", "reenact.testing.warm_interpreter", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command, env=variables, pass_fds=[theirs.fileno()], stdin=nowhere, stdout=nowhere, stderr=nowhere
            )

    @property
    def is_alive(self) -> bool:
        """It has not ended."""
        return self._process.poll() is None

    def learn(self, modules: Iterable[str]) -> None:
        """Have it import these. Raises `ConnectionError`, and ends it, where it can be forked no longer."""
        try:
            self._say({"modules": [*modules]})
            answer = self._hear(_START_S)
        except ConnectionError:
            self.close()
            raise
        if (answer or {}).get("ready") is not True:
            self.close()
            raise ConnectionError("it did not get ready")

    def run(self, order: Order, limit_s: float | None = None) -> Ending:
        """Run a program to its end, or for so many seconds. Raises `ConnectionError` where the process is gone.

        Where something else is raised meanwhile, as by a key, the program ends with the process.
        """
        request = {
            "argv": [*order.argv],
            "cwd": str(order.cwd),
            "environ": {**order.environ},
            "world": order.world,
            "session": order.leads_session,
        }
        try:
            self._say(request, order.streams)
            pid = int(self._hear_by_all_means()["pid"])
            self._group = pid if order.leads_session else 0
            return self._ending(pid, limit_s)
        except BaseException:
            self._process.kill()
            raise
        finally:
            self._group = 0

    def _ending(self, pid: int, limit_s: float | None) -> Ending:
        answer, is_over_time = self._hear(limit_s), False
        if answer is None:
            is_over_time = True
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL) if self._group else os.kill(pid, signal.SIGKILL)
            answer = self._hear_by_all_means()
        return Ending(int(answer["code"]), answer["modules"], is_over_time)

    def end(self) -> None:
        """End the program that runs, from another thread, and this process: then `run` raises `ConnectionError`."""
        if self._group:
            with suppress(ProcessLookupError):
                os.killpg(self._group, signal.SIGKILL)
        self._process.kill()

    def close(self) -> None:
        """End it."""
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _say(self, order: Mapping[str, Any], files: Sequence[int] = ()) -> None:
        data = json.dumps(order).encode() + b"\n"
        count = socket.send_fds(self._connection, [data], [*files])
        self._connection.sendall(data[count:])

    def _hear_by_all_means(self) -> dict[str, Any]:
        answer = self._hear(_START_S)
        if answer is None:
            raise ConnectionError("it does not answer")
        return answer

    def _hear(self, limit_s: float | None) -> dict[str, Any] | None:
        """Receive one answer; None where none comes in time. Raises `ConnectionError` where none can come any more."""
        deadline = None if limit_s is None else time.monotonic() + limit_s
        while b"\n" not in self._rest:
            left_s = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            if not select.select([self._connection], [], [], left_s)[0]:
                return None
            piece = self._connection.recv(_PIECE)
            if not piece:
                raise ConnectionError("it has ended")
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer
