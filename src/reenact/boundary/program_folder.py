"""Which files change while another program runs: in its folder, and among its words that name any.

A look lists names, sizes and times of change, a bounded number, and follows no link. A large folder is looked at in
part, which is said. What the agent itself has open for writing is the agent's change.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from reenact.boundary.program import Temporary
from reenact.values.json import Json

_MOST: Final = 400
"""Files that are looked at."""
_DEEPEST: Final = 3
_NAMED: Final = 50
"""Changed files that are listed."""
_PASSED: Final = frozenset({".reenact", "__pycache__", "node_modules", "objects", "logs", "proc", "sys", "dev"})
"""Folders that are not looked into: our store, caches, and what git keeps beside its references."""
_ALWAYS: Final = frozenset({"FETCH_HEAD", "ORIG_HEAD", "gc.pid"})
"""Files in `.git` that asking alone may renew."""
_INDEX: Final = "index"
"""A file in `.git` that asking alone renews, and that adding a file changes."""
_MOST_OF_AN_INDEX: Final = 4 << 20
_now_ns: Final = time.time_ns
"""The clock itself, and not that which the agent's code reads."""
_STAMPED_NS: Final = 10_000_000
"""So far a file's time may lie behind the clock: the system stamps by its ticks."""
_PATH: Final = re.compile(r"[^\s;&|<>()'\"=]+")
State = tuple[int, int, int]
"""Device, size and time of change of a file; a folder has neither size nor time, since what is in it has."""


class Look:
    """What was there before a program started."""

    def __init__(self, cwd: Any, words: Sequence[str]) -> None:
        folder = os.getcwd() if cwd is None else os.fsdecode(cwd)  # noqa: PTH109 - on the way of every start
        self._folder = os.path.abspath(folder)  # noqa: PTH100 - as above
        named = [os.path.join(self._folder, word) for text in words for word in _PATH.findall(text)]  # noqa: PTH118 - as above
        self._argument_paths = [os.path.normpath(path) for path in named]
        self._store = os.path.abspath(os.environ.get("REENACT_STORE") or ".reenact")  # noqa: PTH100 - as above
        self._began_ns = _now_ns() - _STAMPED_NS
        self._before, self.whole = self._looked()
        self._indexes = {path: _bytes(path) for path in self._before if _is_of_git(path, _INDEX)}

    def _looked(self) -> tuple[dict[str, State], bool]:
        states: dict[str, State] = {}
        left: list[tuple[str, int]] = [(self._folder, 0)]
        whole = True
        for path in self._argument_paths:
            state = _state(path)
            if state is not None:
                states[path] = state
                if state[1] < 0 and path not in {self._folder, os.sep}:
                    left.append((path, _DEEPEST))
        while left:
            folder, depth = left.pop(0)
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if len(states) >= _MOST:
                        return states, False
                    state = _state(entry.path)
                    if state is None or entry.path == self._store or _is_passed_over(entry.path, entry.name):
                        continue
                    states[entry.path] = state
                    if state[1] < 0 and entry.name not in _PASSED:
                        if depth < _DEEPEST:
                            left.append((entry.path, depth + 1))
                        else:
                            whole = False
        return states, whole

    def changed(self, spared: Iterable[tuple[int, int]], names: Temporary) -> list[Json]:
        """List what is another now, less files that are the agent's own, by device and number."""
        after, is_whole = self._looked()
        paths = [path for path in {**self._before, **after} if self._before.get(path) != after.get(path)]
        paths = [path for path in paths if not (path in self._indexes and self._only_asked(path))]
        if not paths:
            return []
        own = {*spared, *_open_to_write()}
        changes: list[Json] = []
        new_paths: list[str] = []
        for path in sorted(paths):
            how = "removed" if path not in after else "changed" if path in self._before else "made"
            if how == "removed" and not is_whole and _state(path) is not None:
                continue  # only a part was seen, and it was in the other one
            if (how == "made" and not self.whole and not self._is_new(path)) or _number(path) in own:
                continue
            if not any(path.startswith(f"{each}{os.sep}") for each in new_paths):
                changes.append({"path": names.number(path), "how": how})
                new_paths += [path] if how == "made" else []
        return changes[:_NAMED]

    def _is_new(self, path: str) -> bool:
        """Tell whether a path was made, or changed, since: where only a part was seen, it may have been there."""
        try:
            return path in self._argument_paths or os.lstat(path).st_ctime_ns > self._began_ns
        except OSError:
            return False

    def _only_asked(self, path: str) -> bool:
        """Tell whether an index of git holds what it held, but for what git knows of the files' times."""
        before, after = self._indexes[path], _bytes(path)
        return before == after or (bool(before and after) and _entries(before) == _entries(after))


def _is_passed_over(path: str, name: str) -> bool:
    return name in _ALWAYS and _is_of_git(path, name)


def _is_of_git(path: str, name: str) -> bool:
    return path.endswith(f"/.git/{name}")


def _bytes(path: str) -> bytes:
    """Read a file; nothing where it cannot be read, or is too large."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123 - on the way of every start
            content = stream.read(_MOST_OF_AN_INDEX + 1)
    except OSError:
        return b""
    return content if len(content) <= _MOST_OF_AN_INDEX else b""


def _entries(index: bytes) -> list[bytes]:
    """List what an index of git says of each file but times, numbers and sizes (gitformat-index(5)).

    One of another form, as of version 4, where names are shortened, is given whole.
    """
    version, count, at = int.from_bytes(index[4:8]), int.from_bytes(index[8:12]), 12
    entries: list[bytes] = []
    try:
        for _ in range(count):
            fixed = at + (64 if index[at + 60] & 0x40 else 62)
            end = index.index(b"\0", fixed)
            entries.append(index[at + 24 : at + 28] + index[at + 40 : end])
            at += (end - at) // 8 * 8 + 8
    except (IndexError, ValueError):
        return [index]
    return entries if version in {2, 3} else [index]


def _state(path: str) -> State | None:
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return status.st_dev, -1, 0
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        return None
    return status.st_dev, status.st_size, status.st_mtime_ns


def _number(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _open_to_write() -> set[tuple[int, int]]:
    """List the files that this process has open for writing."""
    import fcntl

    file_ids = set[tuple[int, int]]()
    with suppress(OSError):
        for name in os.listdir("/proc/self/fd")[:1000]:  # noqa: PTH208 - as above
            with suppress(OSError, ValueError):
                if fcntl.fcntl(int(name), fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY:
                    status = os.fstat(int(name))
                    file_ids.add((status.st_dev, status.st_ino))
    return file_ids
