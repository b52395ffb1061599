"""Caches (`.pyc`) of our own modules that only a replaying process imports.

A replaying process that is not sealed runs under PYTHONDONTWRITEBYTECODE: a cache of the program's own module is told
from its source by seconds and size alone, and would outlive a checkout of `git bisect`. A sealed one writes its caches
to the copy, as the recorded one did to the folder, and they go with it. Either way our modules would be compiled in
every replay where the installer compiled nothing, which takes as long as everything else at its start. So the process
says at its end which caches it missed, and the parent, which is no part of the replay, writes them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, Final

UNCACHED: Final = "uncached"
"""What an entry of the ledger that gives them is called."""
_PACKAGE: Final = Path(__file__).parents[1]
_HEADER: Final = 16
"""Bytes before the code: magic number, flags, time and size of the source (PEP 552)."""


def is_in_package(path: str) -> bool:
    """Tell whether a path lies in the folder of our own modules."""
    return Path(path).is_relative_to(_PACKAGE) and ".." not in Path(path).parts


def missing_caches() -> list[str]:
    """Give the source files of our imported modules whose caches are not there, or are older than their sources."""
    return [source for source, cache in _imported() if not _is_newer(cache, source)]


def _imported() -> Iterator[tuple[str, str]]:
    """Give the source file and the cache of each of our modules that was imported."""
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None) if name.partition(".")[0] == _PACKAGE.name else None
        if spec is not None and spec.origin and spec.cached:
            yield spec.origin, spec.cached


def leave_uncached() -> list[str]:
    """Have no cache of ours be written in this process from now on; gives the list that fills with their sources.

    It begins with what was imported before: such a cache may stand in the copy alone, which the parent can tell.
    """
    sources = [source for source, _ in _imported()]
    loader: Any = SourceFileLoader
    original = loader._cache_bytecode  # noqa: SLF001 - importlib's door for it

    def _cache_bytecode(self: Any, source_path: str, bytecode_path: str, data: bytes) -> None:
        if is_in_package(source_path):
            sources.append(source_path)
        else:
            original(self, source_path, bytecode_path, data)

    loader._cache_bytecode = _cache_bytecode  # noqa: SLF001 - as above
    return sources


def _is_newer(cache: str, source: str) -> bool:
    try:
        return os.stat(cache).st_mtime >= os.stat(source).st_mtime  # noqa: PTH116 - 300 times at the end of a program
    except OSError:
        return False


def write_caches(sources: Iterable[str]) -> None:
    """Write the caches of source files as the import system would, for this interpreter.

    Files that are not of this package are passed over, as are caches that are valid or cannot be written. Nothing is
    written where this process may write no cache either.
    """
    if sys.dont_write_bytecode:
        return
    for source in sources:
        path = Path(source)
        if is_in_package(source) and path.suffix == ".py":
            with suppress(Exception):  # read only, a full disk, a source that is gone: the next start is slow again
                _write(path)


def _write(source: Path) -> None:
    import py_compile  # needed once for an installation

    cache = Path(cache_from_source(str(source)))
    status = source.stat()
    expected = b"\0\0\0\0" + int(status.st_mtime).to_bytes(8, "little")[:4] + status.st_size.to_bytes(8, "little")[:4]
    with suppress(OSError), cache.open("rb") as stream:
        header = stream.read(_HEADER)
        if header[4:8] != b"\0\0\0\0" or header[4:] == expected:  # by digest, which others wrote; or up to date
            return
    mode = py_compile.PycInvalidationMode.TIMESTAMP
    py_compile.compile(str(source), cfile=str(cache), doraise=True, invalidation_mode=mode)
