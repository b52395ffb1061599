"""The clock of SQLite: what `datetime('now')`, `current_timestamp` and their like in `sqlite3` say comes again.

SQLite asks its operating system layer for the time, once for each statement: the function `xCurrentTimeInt64` of the
default `sqlite3_vfs` (sqlite.org/c3ref/vfs.html). `_sqlite3` is linked to a library whose structure can be reached, so
a function of ours stands there while something is recorded or replayed; what it gives is taped. Where Python was built
with a SQLite that shows no symbols, nothing is done (`integrations.sqlite_functions` does the least of it then). apsw
brings a SQLite of its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from reenact.boundary import tape
from reenact.boundary.forgiving import forgive
from reenact.boundary.tape import Site, Source

if TYPE_CHECKING:
    import ctypes

_NOW: Final = Site(
    key="sqlite:now",
    source=Source(name="sqlite now", moment=lambda milliseconds: milliseconds / 1000, runs_on=True),
)
"""Drawn in whole milliseconds since the epoch."""
_JULIAN_EPOCH_MS: Final = 210_866_760_000_000
"""The Unix epoch in milliseconds since noon of the 24th of November 4714 BC, by which SQLite counts."""
_SECOND_VERSION: Final = 2
"""Of the structure: the first one with a clock in milliseconds."""


def _now() -> int:
    return tape.draw(_NOW, lambda: int(time.time() * 1000), lambda moment: int(moment * 1000))


def replace_clock(sqlite3: Any) -> Callable[[], None] | None:
    """Put our clock in the place of SQLite's; gives what puts it back, or None where it cannot be reached."""
    try:
        structure, kind = _default_vfs(sqlite3)
    except (ImportError, OSError, AttributeError, ValueError):  # no ctypes, no library, no symbol
        return None
    if structure.version < _SECOND_VERSION or not structure.current_time_ms:
        return None
    original = structure.current_time_ms

    @kind
    def current_time_ms(_vfs: int, into: Any) -> int:
        try:
            into[0] = _now() + _JULIAN_EPOCH_MS
        except Exception:
            forgive("sqlite_clock.now")
            into[0] = int(time.time() * 1000) + _JULIAN_EPOCH_MS
        return 0

    structure.current_time_ms = current_time_ms
    _callbacks.append(current_time_ms)

    def put_back() -> None:
        structure.current_time_ms = original

    return put_back


_callbacks: list[Any] = []
"""What SQLite may still call: it lives as long as the process."""


def _default_vfs(sqlite3: Any) -> tuple[Any, Any]:
    """Give the structure of the default layer, and the type of the function in it that tells the time."""
    import ctypes

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))

    class Vfs(ctypes.Structure):
        _fields_ = (
            ("version", ctypes.c_int),
            ("file_size", ctypes.c_int),
            ("longest_path", ctypes.c_int),
            ("next", ctypes.c_void_p),
            ("name", ctypes.c_char_p),
            ("data", ctypes.c_void_p),
            ("functions", ctypes.c_void_p * 12),
            ("current_time_ms", kind),
        )

    library = _library(ctypes, sqlite3)
    find = library.sqlite3_vfs_find
    find.restype, find.argtypes = ctypes.POINTER(Vfs), [ctypes.c_char_p]
    return find(None).contents, kind


def _library(ctypes_module: Any, sqlite3: Any) -> ctypes.CDLL:
    """Load what `_sqlite3` is linked to, which is loaded already: its symbols are found through its own."""
    inner = sys.modules["_sqlite3"]
    library = ctypes_module.CDLL(inner.__file__)
    version = library.sqlite3_libversion
    version.restype = ctypes_module.c_char_p
    if version().decode() != sqlite3.sqlite_version:
        raise ValueError("another SQLite")
    return library
