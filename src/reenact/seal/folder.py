"""A copy of the folder that a program works in, made at once, where nothing can be laid over it.

Files share their blocks with the original where the disk can do that (FICLONE, ioctl_ficlone(2)), else they are copied.
What a program only reads there, and is large, is a link to the original: virtual environments, installed packages of
other languages, caches of tools. The objects of a git repository are found in the original one (`info/alternates`,
gitrepository-layout(5)). Around the copy lie links to what lies around the original, so that `../data` leads there.
"""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

_FICLONE: Final = 0x40049409
_PIECE: Final = 1 << 30
_TOO_LARGE: Final = 27
CACHE: Final = "__pycache__"
_LINKED: Final = frozenset({"node_modules", CACHE, ".tox", ".nox", ".mypy_cache", ".ruff_cache", ".reenact"})
_ENVIRONMENT: Final = "pyvenv.cfg"
_ALTERNATES: Final = "info/alternates"
MOST_FILES: Final = 20_000
MOST_MEGABYTES: Final = 1_024
_MOST_AROUND: Final = 200


class Folder:
    """A folder and its copy, which must not exist before. All are absolute paths without links."""

    def __init__(self, original: str, copy: str, skipped: Iterable[str], most: tuple[int, int]) -> None:
        self.original, self.copy = original, copy
        self.laid: list[str] = []
        """The paths in the copy, relative to it, of whatever is no folder."""
        self.linked: list[str] = []
        """Folders of the original that the copy links to."""
        self._skipped = frozenset(skipped)
        self._files_left, self._bytes_left = most
        self._most = most
        self._can_clone = True
        self._is_root = os.geteuid() == 0

    def make(self) -> None:
        """Copy it. Raises `OSError`, with `EFBIG` where it holds more than it may."""
        self._fill(self.original, self.copy, os.stat(self.original))

    def _fill(self, original: str, copy: str, status: os.stat_result) -> None:
        os.mkdir(copy, 0o700)
        repository = _is_repository(original)
        with os.scandir(original) as entries:
            for entry in entries:
                path, target = f"{original}/{entry.name}", f"{copy}/{entry.name}"
                if path in self._skipped:
                    continue
                self._count()
                if entry.is_dir(follow_symlinks=False):
                    if repository and entry.name == "objects":
                        self._make_objects(path, target)
                    elif entry.name in _LINKED or os.path.lexists(f"{path}/{_ENVIRONMENT}"):
                        os.symlink(path, target)
                        self._note(target)
                        self.linked.append(path)
                    else:
                        self._fill(path, target, entry.stat(follow_symlinks=False))
                else:
                    self._add(path, target, entry.stat(follow_symlinks=False))
        self._keep_facts(copy, status)

    def _count(self) -> None:
        self._files_left -= 1
        if self._files_left < 0:
            raise OSError(_TOO_LARGE, f"it holds more than {self._most[0]:,} files to copy", self.original)

    def _add(self, path: str, target: str, status: os.stat_result) -> None:
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFLNK:
            self._link(os.readlink(path), target)
        elif kind == stat.S_IFREG:
            self._copy_file(path, target, status)
        elif kind == stat.S_IFIFO:
            os.mkfifo(target)
            self._keep_facts(target, status)
        else:  # a socket would lead to its server, and a device to the machine
            return
        self._note(target)

    def _note(self, target: str) -> None:
        self.laid.append(target[len(self.copy) + 1 :])

    def _link(self, destination: str, target: str) -> None:
        """Make a link as it is; one that names a place in the original by its whole path leads to the copy of that."""
        if destination == self.original or destination.startswith(f"{self.original}/"):
            destination = self.copy + destination[len(self.original) :]
        os.symlink(destination, target)

    def _copy_file(self, path: str, target: str, status: os.stat_result) -> None:
        try:
            source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:  # who cannot read it finds it there, and cannot read it
            source = -1
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if source >= 0 and status.st_size and not self._clone(source, handle):
                self._copy_bytes(source, handle)
            self._keep_facts(handle, status)
        finally:
            os.close(handle)
            if source >= 0:
                os.close(source)

    def _clone(self, source: int, handle: int) -> bool:
        if self._can_clone:
            try:
                fcntl.ioctl(handle, _FICLONE, source)
            except OSError:  # another disk, or one that cannot
                self._can_clone = False
        return self._can_clone

    def _copy_bytes(self, source: int, handle: int) -> None:
        while copied := os.copy_file_range(source, handle, _PIECE):
            self._bytes_left -= copied
            if self._bytes_left < 0:
                what = f"it holds more than {self._most[1] >> 20:,} MiB to copy"
                raise OSError(_TOO_LARGE, what, self.original)

    def _keep_facts(self, target: int | str, status: os.stat_result) -> None:
        if self._is_root:
            with suppress(OSError):
                os.chown(target, status.st_uid, status.st_gid)
        os.chmod(target, stat.S_IMODE(status.st_mode))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _make_objects(self, original: str, copy: str) -> None:
        """Have git look for objects in the original repository, and put new ones into the copy."""
        for name in ("info", "pack"):
            os.makedirs(f"{copy}/{name}")
        before = b""
        with suppress(FileNotFoundError), open(f"{original}/{_ALTERNATES}", "rb") as stream:
            before = stream.read()
        with open(f"{copy}/{_ALTERNATES}", "wb") as stream:
            stream.write(os.fsencode(original) + b"\n" + before)
        self._note(f"{copy}/{_ALTERNATES}")


def _is_repository(folder: str) -> bool:
    return all(os.path.lexists(f"{folder}/{name}") for name in ("HEAD", "objects", "refs"))


def link_around(original: str, top: str) -> str:
    """Make a folder `top` with links to what lies beside the original; give where in it the copy goes.

    So `../data` leads to the data, for native code as well. Where too much lies there, or it cannot be listed, nothing
    is linked: Python code is led there all the same.
    """
    os.mkdir(top)
    above, _, own = original.rpartition("/")
    with suppress(OSError), os.scandir(above or "/") as entries:
        names = [entry.name for entry in entries if entry.name != own]
        if len(names) <= _MOST_AROUND:
            for name in names:
                os.symlink(f"{above}/{name}", f"{top}/{name}")
    return f"{top}/{own}"
