"""Which writes a replay refuses: those that change what was there before it, by policy, and what is spared always.

Spared are files made with `tempfile` in this process, caches (`XDG_CACHE_HOME`), our own journal and ledger, and what
would change nothing: a folder that is there, the removal of a file that is not. Log files opened with `logging` are
led to nowhere, since a program's log is not what a replay is for.
"""

from __future__ import annotations

import inspect
import logging
import os
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, cast

from reenact.boundary.touches import Touch

_MADE: Final = frozenset({"tempfile.mkstemp", "tempfile.mkdtemp"})
_OURS: Final = f"{Path(__file__).parents[1]}{os.sep}"
_INSTALLED: Final = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("purelib", "platlib")})
_PYTHON_S: Final = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib")})
_HOOK: Final = frozenset({__file__, str(Path(__file__).with_name("guard.py"))})

EVENTS: Final = _MADE
"""Audit events that are looked at besides those that touch the world."""

_TRIES_FOLDERS: Final = "_get_default_tempdir"
"""The function of `tempfile` that writes a file to see whether it can."""
_made = set[str]()


def made(event: str, args: tuple[Any, ...]) -> None:
    """Hear that a temporary file or folder is about to be made."""
    if event in _MADE and args:
        _made.add(os.path.abspath(os.fsdecode(args[0])))  # noqa: PTH100 - inside a hook: no object for each file


def is_spared(event: str, touch: Touch) -> bool:
    """Tell whether a write may happen in any replay."""
    path = os.path.abspath(touch.path)  # noqa: PTH100
    if _is_temporary(path) or f"{path}{os.sep}".startswith(_cache()) or _is_ours():
        return True
    if event == "os.mkdir":
        return os.path.isdir(path)  # noqa: PTH112
    return event in {"os.remove", "os.rmdir", "shutil.rmtree"} and not os.path.lexists(path)


def _is_temporary(path: str) -> bool:
    if path in _made:
        return True
    return any(path.startswith(f"{folder}{os.sep}") for folder in _made)


def _cache() -> str:
    named = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return os.path.join(named, "")  # noqa: PTH118


def _is_ours() -> bool:
    """Tell by the innermost frame that is not Python's whether our own code writes; or `tempfile`, to try a folder."""
    frame = inspect.currentframe()
    while frame is not None:
        name = frame.f_code.co_filename
        if name in _HOOK:
            pass
        elif frame.f_code.co_name == _TRIES_FOLDERS and frame.f_globals.get("__name__") == "tempfile":
            return True
        elif name.startswith(_INSTALLED) or not name.startswith((*_PYTHON_S, "<")):
            return name.startswith(_OURS)
        frame = frame.f_back
    return False


@contextmanager
def logs_to_nowhere() -> Generator[None]:
    """Lead log files that are opened meanwhile to nowhere."""
    original = logging.FileHandler._open  # noqa: SLF001 - the one place where a handler opens its file

    def _open(self: logging.FileHandler) -> TextIOWrapper:
        return cast("TextIOWrapper", Path(os.devnull).open(self.mode, encoding=self.encoding))

    logging.FileHandler._open = _open  # noqa: SLF001
    try:
        yield
    finally:
        if logging.FileHandler._open is _open:  # noqa: SLF001
            logging.FileHandler._open = original  # noqa: SLF001
