"""Replayed programs forked from a warm interpreter: what importing an SDK costs is paid once, not in every test.

Used where it is the same as a new process: Python programs of the tests' own interpreter, on systems that fork.
Anything else, and `--reenact-cold`, starts a new process.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

from reenact.errors import CannotJudge
from reenact.pipeline.replaying import Start
from reenact.pipeline.warm_python import Order, WarmPython
from reenact.seal import launch
from reenact.testing.program_start import new_process

_MOST = 3
"""So many are kept at a time: each settles what an interpreter settles when it starts."""
_SETTLED = ("PYTHON", "LANG", "LC_")
_FLAGS = frozenset({"-m", "-c"})
_SDKS = frozenset(
    {"openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2", "h11", "anyio", "sniffio", "certifi", "idna"}
    | {
        "pydantic",
        "pydantic_core",
        "annotated_types",
        "typing_inspection",
        "jiter",
        "distro",
        "tqdm",
        "docstring_parser",
    }
)
"""Packages that are the same whoever imports them. What programs load of them late is loaded before the next fork."""


class _Nursery:
    """One warm interpreter, and what it has loaded so far."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._python: WarmPython | None = WarmPython(sys.executable, environ)
        self._modules = set[str]()
        self._learn(())

    @property
    def is_alive(self) -> bool:
        """It runs programs; or it cannot, and never will."""
        return self._python is None or self._python.is_alive

    def run(self, order: Order, libraries: Iterable[str]) -> int | None:
        """Run a program and give its exit code; None where it cannot be. Raises `CannotJudge` where it got lost."""
        self._load(libraries)
        if self._python is None:
            return None
        try:
            ending = self._python.run(order)
        except ConnectionError:
            hint = "try again with --reenact-cold"
            raise CannotJudge("the warm interpreter ended while a program ran in it", hint=hint) from None
        self._load(name for name in ending.modules if name.partition(".")[0] in _SDKS)
        return ending.code

    def _load(self, modules: Iterable[str]) -> None:
        """Have modules be loaded; a library that starts a thread makes the interpreter unfit for good."""
        new = [name for name in modules if name not in self._modules]
        self._modules.update(new)
        if new:
            self._learn(new)

    def _learn(self, modules: Sequence[str]) -> None:
        if self._python is not None:
            try:
                self._python.learn(modules)
            except ConnectionError:
                self._python = None

    def close(self) -> None:
        """End it."""
        if self._python is not None:
            self._python.close()


_nurseries: dict[tuple[tuple[str, str], ...], _Nursery] = {}


def forked(stdout: IO[bytes], stderr: IO[bytes], libraries: Iterable[str] = ()) -> Start:
    """Make what runs a program in a fork; `libraries` are loaded before, where they are installed."""
    cold, packages = new_process(stdout, stderr), sorted(set(libraries))

    def start(argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> int:
        world = launch.ordered_by(argv)
        words: Sequence[str] = argv if world is None else world["argv"]
        nursery = _nursery(environ) if _can(words) else None
        if nursery is None:
            return cold(argv, cwd, environ)
        code = nursery.run(Order(words, cwd, environ, (stdout.fileno(), stderr.fileno()), world), packages)
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
        if nursery.is_alive:
            return nursery
        del _nurseries[settled]
    if len(_nurseries) >= _MOST:
        return None
    if not _nurseries:
        atexit.register(close)
    _nurseries[settled] = _Nursery(environ)
    return _nurseries[settled]


def close() -> None:
    """Let every warm interpreter go."""
    while _nurseries:
        _nurseries.popitem()[1].close()
