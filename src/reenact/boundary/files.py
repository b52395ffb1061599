"""Which paths an audit event (PEP 578) is about to change, and how.

The events come before the act, so that what stands at a path can still be read. A path is absolute, and names what is
changed: where a file is opened the file that links lead to, else the link itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from reenact.boundary import touches

_MOST_OF_A_FOLDER: Final = 1000
"""So many paths of a folder that is moved are named."""
_BESIDE: Final = ("-wal", "-journal", "-shm")
"""What SQLite keeps beside a database (https://sqlite.org/tempfiles.html)."""


@dataclass(frozen=True, slots=True)
class PathChange:
    """One path that is about to be changed."""

    path: str
    keeps: bool = False
    """What is there stays as it is, and more comes behind it."""
    reads: bool = False
    """What is there goes on into what comes."""
    part_of: str = ""
    """The database that it belongs to."""


_Reader: TypeAlias = Callable[[tuple[Any, ...]], Iterator[PathChange]]


def path_changes(event: str, args: tuple[Any, ...]) -> Iterator[PathChange]:
    """Name the paths that an event changes; none where it changes no path that can be named."""
    reader = _EVENTS.get(event)
    for change in reader(args) if reader is not None else ():
        yield PathChange(
            touches.program_path(change.path),
            keeps=change.keeps,
            reads=change.reads,
            part_of=touches.program_path(change.part_of) if change.part_of else "",
        )


def spelled(value: Any, folder: Any = -1) -> str:
    """Give the absolute path of what a call names, links in it followed but for the last; empty for a descriptor."""
    if value is None or isinstance(value, int):
        return ""
    path = os.fsdecode(value)
    if isinstance(folder, int) and folder >= 0 and not os.path.isabs(path):  # noqa: PTH117 - in a hook
        path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)  # noqa: PTH115, PTH118 - in a hook
    whole = os.path.abspath(path)  # noqa: PTH100 - in an audit hook, where pathlib costs too much
    above, name = os.path.split(whole)
    return os.path.join(os.path.realpath(above), name)  # noqa: PTH118 - as above


def _opened(args: tuple[Any, ...]) -> Iterator[PathChange]:
    path = spelled(touches.opened_path(args[0]))
    if path:
        flags = args[2] if isinstance(args[2], int) else 0
        stays = not flags & os.O_TRUNC
        keeps = bool(flags & os.O_APPEND) and stays
        yield PathChange(os.path.realpath(path), keeps=keeps, reads=stays and bool(flags & os.O_RDWR))


def opened_path(args: tuple[Any, ...]) -> str:
    """Name the file that an `open` event opens, links in its path not followed; empty for what no program reads."""
    path = touches.opened_path(args[0])
    if not isinstance(path, str | bytes | os.PathLike):
        return ""
    name = os.fsdecode(path)  # type: ignore[arg-type]  # what a PathLike gives is a path
    return "" if name.endswith((".py", ".pyc")) else os.path.abspath(name)  # noqa: PTH100 - as above


def _path_reader(folder: int) -> _Reader:
    def read(args: tuple[Any, ...]) -> Iterator[PathChange]:
        path = spelled(touches.behind(args[0]), args[folder] if len(args) > folder else -1)
        if path:
            yield PathChange(path)

    return read


def _truncated(args: tuple[Any, ...]) -> Iterator[PathChange]:
    path = spelled(args[0])
    if path:
        yield PathChange(os.path.realpath(path), reads=True)


def _moved(args: tuple[Any, ...]) -> Iterator[PathChange]:
    source, target = spelled(args[0], args[2]), spelled(args[1], args[3])
    if not source or not target:
        return
    yield PathChange(source, reads=True)
    yield PathChange(target)
    if os.path.isdir(source) and not os.path.islink(source):  # noqa: PTH112, PTH114 - as above
        for inner in _below(source):
            yield PathChange(os.path.join(source, inner), reads=True)  # noqa: PTH118 - as above
            yield PathChange(os.path.join(target, inner))  # noqa: PTH118 - as above


def _below(folder: str) -> Iterator[str]:
    left = _MOST_OF_A_FOLDER
    for above, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if left == 0:
                return
            left -= 1
            yield os.path.relpath(os.path.join(above, name), folder)  # noqa: PTH118 - as above


def _linked(args: tuple[Any, ...]) -> Iterator[PathChange]:
    path = spelled(args[1], args[-1])
    if path:
        yield PathChange(path)


def _bound(args: tuple[Any, ...]) -> Iterator[PathChange]:
    """Name the file that a unix socket makes at its name."""
    path = spelled(args[1]) if isinstance(args[1], str | bytes) else ""
    if path and "\0" not in path:
        yield PathChange(path)


def _database(args: tuple[Any, ...]) -> Iterator[PathChange]:
    path = os.fsdecode(args[0])
    if path.startswith("file:"):  # https://sqlite.org/uri.html
        path = unquote(path.removeprefix("file:").partition("#")[0].partition("?")[0])
    if path:
        whole = os.path.realpath(path)
        yield PathChange(whole, reads=True)
        for name in _BESIDE:
            yield PathChange(f"{whole}{name}", reads=True, part_of=whole)


_EVENTS: Final[dict[str, _Reader]] = {
    "open": _opened,
    "os.remove": _path_reader(1),
    "os.rmdir": _path_reader(1),
    "os.mkdir": _path_reader(2),
    touches.NODE: _path_reader(1),
    "os.truncate": _truncated,
    "os.chmod": _path_reader(2),
    "os.chown": _path_reader(3),
    "os.utime": _path_reader(3),
    "os.chflags": _path_reader(9),
    "os.setxattr": _path_reader(9),
    "os.removexattr": _path_reader(9),
    "os.rename": _moved,
    "os.link": _linked,
    "os.symlink": _linked,
    "socket.bind": _bound,
    "sqlite3.connect": _database,
    touches.ATTACHED: _database,
}
"""What `shutil` does raises these as well."""
