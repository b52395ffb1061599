"""The times of files that changed during the run, as the agent's own code reads them.

Theory of operation. The kernel gives a file that a replay writes today's time, while the program's clock says the
recorded one. So what `os.stat`, `os.lstat` and `os.fstat` tell of such a file is taped, by the code that asks and the
path: its times of change, of the inode's change and of the last access, in nanoseconds. What `pathlib`, `shutil`,
`os.path.getmtime`, `zipfile` and `tarfile` ask is asked by their caller; who asks only whether a file is there gets the
real answer. A file that did not change during the run has its own times in a replay as well, and nothing is taped.

`os.DirEntry.stat` is native code, so the agent's own code gets entries that stand for those of `os.scandir`. No file is
given another time: outside of a sealed world it would be the user's.
"""

from __future__ import annotations

import os
import stat
import sysconfig
import time
from collections.abc import Callable
from functools import wraps
from sys import _getframe  # pyright: ignore[reportPrivateUsage] - what the running code is called costs least so
from types import CodeType, FrameType
from typing import Any, Final, Self, cast

from reenact.boundary import tape
from reenact.boundary.forgiving import forgive
from reenact.boundary.tape import Site, Sites, Source
from reenact.contracts.integration import Integration, PatchSet
from reenact.values.json import Json

_clock_ns = time.time_ns
_TICK_NS: Final = 20_000_000
"""The kernel's clock of file times goes by ticks: a file may be older by one than what was read before it was made."""
_FIELDS: Final = ("st_mtime_ns", "st_ctime_ns", "st_atime_ns")
_ORDERS: Final = "reenact.replay.folder_order"
"""Gives the names of a folder in their recorded order, for whoever asks."""
_MOST_SITES: Final = 20_000
_STDLIB: Final = tuple({f"{sysconfig.get_path(path)}/" for path in ("stdlib", "platstdlib")})
_GENERIC_PATH: Final = ("<frozen genericpath>", *(f"{path}genericpath.py" for path in _STDLIB))
_PATHLIB: Final = tuple(f"{path}pathlib" for path in _STDLIB)
_ARCHIVES: Final = tuple(f"{path}{name}" for path in _STDLIB for name in ("zipfile", "tarfile.py", "shutil.py"))
_ASKS_FOR_TIMES: Final = frozenset({"getmtime", "getctime", "getatime", "stat", "lstat", "from_file", "gettarinfo"})


def _read(value: Json) -> list[int]:
    if isinstance(value, list) and len(value) == len(_FIELDS) and all(isinstance(each, int) for each in value):
        return cast("list[int]", value)
    raise TypeError(f"{value!r} are no times of a file")


_SOURCE: Final = Source(name="file times", read=_read, runs_on=True)
_SITES: Final = Sites(_SOURCE)
_site_by_place: dict[tuple[str, str], Site] = {}
_began: list[int] = []
"""When the run began, in nanoseconds since the epoch."""


def _install(patches: PatchSet) -> None:
    _began[:] = [_clock_ns() - _TICK_NS]
    originals: dict[int, Any] = {}
    for name, make in (("stat", _telling), ("lstat", _telling), ("fstat", _telling), ("scandir", _listing)):
        original = getattr(os, name)
        patches.replace(os, name, make)
        wrapper = originals[id(original)] = getattr(os, name)
        for supported in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if original in supported:  # programs ask whether the function that they see is one of these
                supported.add(wrapper)
    tape.rebind(patches, originals)


def _telling(original: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
    """Wrap what tells the status of a file."""

    @wraps(original)
    def tell(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        status = original(path, *args, **kwargs)
        if status.st_mtime_ns < _began[0] or kwargs.get("dir_fd") is not None:
            return status
        frame = _getframe().f_back
        return _taped(status, lambda: _site_of(frame, path))

    return tell


def _taped(status: os.stat_result, find_site: Callable[[], Site | None]) -> os.stat_result:
    """Give the status of a file with its recorded times, where it changed during the run and the agent asks."""
    if status.st_mtime_ns < _began[0] or not tape.is_on() or not _is_of_disk(status):
        return status
    try:
        site = find_site()
    except Exception:  # the working folder may be gone
        forgive("file_times._taped")
        return status
    if site is None:
        return status
    times = tape.draw(site, lambda: _times(status), _at)
    return status if times == _times(status) else _with_times(status, times)


def _site_of(frame: FrameType | None, path: Any) -> Site | None:
    """Give the place that asks for the times of a file; None where it is nobody of the agent's."""
    asking = _asking(frame)
    place = None if asking is None else _SITES.of(asking)
    return None if place is None else _site(place, path)


def _is_of_disk(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)


def _times(status: os.stat_result) -> list[int]:
    return [getattr(status, name) for name in _FIELDS]


def _at(seconds: float) -> list[int]:
    return [int(seconds * 1e9)] * len(_FIELDS)


def _asking(frame: FrameType | None) -> FrameType | None:
    """Give the frame that asks for the times of a file; None where something asks for nothing but its kind or size."""
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith((*_GENERIC_PATH, *_PATHLIB, *_ARCHIVES)):
            return None if _is_of_python(code) else frame
        if not code.co_filename.startswith(_ARCHIVES) and code.co_name not in _ASKS_FOR_TIMES:
            return None
        frame = frame.f_back
    return None


def _is_of_python(code: CodeType) -> bool:
    return code.co_filename.startswith(("<frozen ", *_STDLIB)) and "site-packages" not in code.co_filename


def _site(place: Site, path: Any) -> Site:
    """Give the site at which the code of a place asks for a path's times."""
    name = "a descriptor" if isinstance(path, int) else _named(os.fsdecode(path))
    site = _site_by_place.get((place.key, name))
    if site is None:
        if len(_site_by_place) >= _MOST_SITES:
            _site_by_place.clear()
        site = _site_by_place[place.key, name] = Site(key=f"{place.key} {name}", source=_SOURCE)
    return site


def _named(path: str) -> str:
    """Give a path as it is told of: within the working folder from there, since a replay may have it elsewhere."""
    return os.path.abspath(path).removeprefix(os.path.abspath("") + os.sep)  # noqa: PTH100 - links stay as they are


def _with_times(status: os.stat_result, times: list[int]) -> os.stat_result:
    """Give a status with other times."""
    fields: dict[str, Any] = {name: getattr(status, name) for name in dir(status) if name.startswith("st_")}
    for name, nanoseconds in zip(_FIELDS, times, strict=True):
        seconds, rest = divmod(nanoseconds, 1_000_000_000)
        fields |= {name: nanoseconds, name.removesuffix("_ns"): seconds + 1e-9 * rest}  # as C makes the number
    whole = {stat.ST_MTIME: times[0], stat.ST_CTIME: times[1], stat.ST_ATIME: times[2]}
    sequence = [whole[at] // 1_000_000_000 if at in whole else value for at, value in enumerate(status)]
    return os.stat_result(sequence, fields)


# entries of folders


def _listing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap what gives the entries of a folder, for the agent's own code."""

    @wraps(original)
    def scandir(*args: Any, **kwargs: Any) -> Any:
        entries = original(*args, **kwargs)
        frame = _getframe().f_back if tape.is_on() else None
        while frame is not None and frame.f_globals.get("__name__") == _ORDERS:
            frame = frame.f_back
        place = None if frame is None else _SITES.of(frame)
        return entries if place is None else _Entries(entries, place)

    return scandir


class _Entries:
    """The entries of a folder (`os.scandir`) for the code at a place."""

    def __init__(self, entries: Any, place: Site) -> None:
        self._entries = entries
        self._place = place

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return _Entry(next(self._entries), self._place)

    def close(self) -> None:
        """Let the folder go."""
        self._entries.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class _Entry:
    """An entry of a folder (`os.DirEntry`) whose times are taped. The file itself is left as it is."""

    __slots__ = ("_entry", "_place")

    def __init__(self, entry: Any, place: Site) -> None:
        self._entry = entry
        self._place = place

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Give the status of the file, with its recorded times in a replay."""
        status = self._entry.stat(follow_symlinks=follow_symlinks)
        return _taped(status, lambda: _site(self._place, self._entry.path))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)

    def __fspath__(self) -> Any:
        return self._entry.__fspath__()

    def __repr__(self) -> str:
        return repr(self._entry)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - a program may ask whether it is one
        return os.DirEntry


INTEGRATION = Integration(name="file_times", libraries=("os",), install=_install)
