"""Libraries whose native code may write files, or start and reach others, where no audit event tells of it.

Where a world is sealed that goes to the copy or is refused. Elsewhere nobody sees it, so a result names each library
whose native code the program loads, but for those of a closed list, which only compute. A library is named when it is
loaded: a program may end without a word.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, Final

from reenact.boundary import audit
from reenact.boundary.installed import PACKAGES, PYTHON

_KNOWN_AS: Final = {"_cffi_backend": "cffi", "_duckdb": "duckdb"}
"""Module to the name by which it is known."""
_BY_NAME: Final = frozenset({"netCDF4", "polars", "tables", "vtk", "zarr"})
"""Packages that are named themselves: their native code bears other names."""
_NAMES: Final = """
    _brotli _yaml ahocorasick_rs aiohttp asyncpg brotli cbor2 charset_normalizer coverage cryptography frozenlist
    google._upb google_crc32c greenlet grpc httptools jiter Levenshtein markupsafe msgpack multidict numpy orjson
    pandas propcache psutil psycopg_binary psycopg_c psycopg2 pydantic pydantic_core rapidfuzz regex rpds simplejson
    sqlalchemy tiktoken tomli ujson websockets wrapt xxhash yaml yarl zstandard
"""
_COMPUTES: Final = frozenset(_NAMES.split())
"""Whose native code opens no file and no socket by itself, or is cut where it reaches others (`integrations`)."""
_MYPYC: Final = "__mypyc"
"""Ends the name of Python code that was compiled: it raises the events of Python's own."""
_IMPORT: Final = "import"
"""The audit event of a module that is imported, with its file where that is native code."""


def hear(tell: Callable[[str], None]) -> None:
    """Call `tell` with the name of each library that this process has loaded, and loads from here on, once."""
    reported_names = set[str]()

    def loads(module: str, file: str | None) -> None:
        name = _name(module, file)
        if name and name not in reported_names:
            reported_names.add(name)
            tell(name)

    def on_import(_: str, args: tuple[Any, ...]) -> None:
        loads(str(args[0]), args[1] if isinstance(args[1], str) else None)

    audit.hear(frozenset({_IMPORT}), on_import)
    for module, file in _loaded():
        loads(module, file)


def are_loaded() -> bool:
    """Tell whether this process has loaded native code that may write files by itself."""
    return any(_name(module, file) for module, file in _loaded())


def _loaded() -> Iterable[tuple[str, str | None]]:
    for module, each in list(sys.modules.items()):
        file = getattr(each, "__file__", None)
        yield module, file if isinstance(file, str) and file.endswith(tuple(EXTENSION_SUFFIXES)) else None


def _name(module: str, file: str | None) -> str:
    """Give the name by which a library is told; empty where none of its native code is loaded, or it only computes."""
    top = module.partition(".")[0]
    if file is None:
        return top if top in _BY_NAME else ""
    is_standard = file.startswith(PYTHON) and not file.startswith(PACKAGES)
    if is_standard or module.endswith(_MYPYC) or not _COMPUTES.isdisjoint({top, ".".join(module.split(".")[:2])}):
        return ""
    return _KNOWN_AS.get(top, top)


_RING: Final = "anon_inode:[io_uring]"
"""What a descriptor leads to, by which the kernel takes orders that no filter of system calls sees (io_uring(7))."""


def rings() -> bool:
    """Tell whether this process has a ring of io_uring open or mapped."""
    with suppress(OSError):
        for each in Path("/proc/self/fd").iterdir():
            with suppress(OSError):  # the one by which they are listed
                if str(each.readlink()) == _RING:
                    return True
        return _RING in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    return False
