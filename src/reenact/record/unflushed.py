"""What a program wrote to files that it has open, and that Python holds back.

At the end of the program that is written out. While it runs it stays where it is, since others may look: it is only
told how much there is. A text file keeps what it has not encoded yet as an object of its own, which only the garbage
collector shows; what its buffer holds is by how much that is ahead of the file.
"""

from __future__ import annotations

import gc
import io
import weakref
from collections.abc import Callable, Collection, Container, Iterator
from typing import Any, Final, cast

from reenact.values import alarms

_TEXT: Final = io.TextIOWrapper
_BINARY: Final = io.BufferedWriter | io.BufferedRandom
_NEWLINES: Final = frozenset({"", "\n", "\r", "\r\n", b""})
"""What may be the `newline` that a file was opened with."""


def write_out(paths: Container[str], path_of: Callable[[int], str]) -> None:
    """Flush every open file that is written to one of these paths; `path_of` gives that of a descriptor."""
    for each in gc.get_objects():
        if issubclass(type(each), _TEXT | _BINARY):
            _flush(each, paths, path_of)


def _flush(file: Any, paths: Container[str], path_of: Callable[[int], str]) -> None:
    try:
        if not file.closed and file.writable() and path_of(file.fileno()) in paths:
            file.flush()
    except Exception:  # the program closes it itself
        alarms.pass_on()


class HeldBack:
    """Tells how much of what was written to open files is held back. It looks for their objects as rarely as it can."""

    __slots__ = ("_files", "_handles", "_path_of")

    def __init__(self, path_of: Callable[[int], str]) -> None:
        """`path_of` gives the path of a descriptor."""
        self._path_of = path_of
        self._files: list[weakref.ref[Any]] = []
        self._handles: Collection[int] = ()

    def amounts(self, paths: Collection[str], handles: Collection[int]) -> dict[str, tuple[int, int]]:
        """Give, of each path, how many bytes and characters Python holds back, and how much was written in all.

        `handles` are the descriptors that are open on them.
        """
        if not handles:
            return {}
        if handles != self._handles or any((file := each()) is None or file.closed for each in self._files):
            self._look(handles)
        amounts: dict[str, tuple[int, int]] = {}
        for each in self._files:
            file = each()
            if file is not None and not file.closed and (path := self._path_of(file.fileno())) in paths:
                back, total = _amount(file)
                before = amounts.get(path, (0, 0))
                amounts[path] = before[0] + back, before[1] + total
        return amounts

    def _look(self, handles: Collection[int]) -> None:
        self._handles = handles
        texts = [each for each in _objects(_TEXT) if _is_on(each, handles)]
        buffers = {id(each.buffer) for each in texts}
        binaries = [each for each in _objects(_BINARY) if id(each) not in buffers and _is_on(each, handles)]
        self._files = [weakref.ref(each) for each in (*texts, *binaries)]


def _objects(kind: Any) -> Iterator[Any]:
    return (each for each in gc.get_objects() if issubclass(type(each), kind))


def _is_on(file: Any, handles: Collection[int]) -> bool:
    try:
        return not file.closed and file.writable() and file.fileno() in handles
    except Exception:  # a class of the program's, or one that is detached
        alarms.pass_on()
        return False


def _amount(file: Any) -> tuple[int, int]:
    is_text = issubclass(type(file), _TEXT)
    waiting = sum(_waiting(file)) if is_text else 0
    buffer = file.buffer if is_text else file
    at = int(buffer.tell())
    return at - int(buffer.raw.tell()) + waiting, at + waiting


def _waiting(file: Any) -> Iterator[int]:
    """Count what a text file has not handed to its buffer: a text, bytes, or a list of them."""
    names = {id(file.encoding), id(file.errors)}
    for part in gc.get_referents(file):
        if isinstance(part, list):
            yield sum(map(len, cast("list[str | bytes]", part)))
        elif isinstance(part, str | bytes) and id(part) not in names and part not in _NEWLINES:
            yield len(part)
