"""Folders that hold mounts, made anew: the root of all files, `/mnt`, a project with a volume in it (pivot_root(2)).

Theory of operation. No overlay can be laid over a folder that holds a mount (`mounts`), so each folder in it becomes a
copy by itself, and nothing could be written beside them. A folder of ours on disk stands in its place where the user
can write to it: with the same links, with small files copied, with an empty folder for each folder and an empty file
for each large one, over which what was there is mounted, or its copy. A list beside it says what was laid there.
Nothing can be mounted over the root of all files: it becomes another one (`pivot_root`). The old one stays at hand
until all copies are mounted, and is let go then.
"""

from __future__ import annotations

import os
import stat

from reenact.seal import inventory, kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Final

_COPIED: Final = 1 << 20
"""A larger file, in bytes, is not copied; it stays read only."""
_COPIED_IN_ALL: Final = 64 << 20
"""Where the small files of one folder hold more bytes, the rest of them stay read only too."""
_OLD: Final = ".reenact-outside"


class Holders:
    """What stands for folders that hold mounts.

    Of `folders`, each before what lies in it, it is those that the user can write to; `start` is how many layers below
    `upper` are others'.
    """

    def __init__(self, folders: Iterable[str], upper: str, start: int) -> None:
        self.laid = [each for each in folders if os.access(each, os.W_OK)]
        self.folders = [*self.laid]
        self._first_layer = start
        self._parts: list[str] = []
        self._links: dict[str, str] = {}
        for number, folder in enumerate(self.laid, start):
            over, beside = _lay(folder, f"{upper}/{number}/upper")
            self._parts += over
            with open(f"{upper}/{number}/{inventory.NAME}", "xb") as stream:
                stream.write(inventory.encode(f"{upper}/{number}/upper", beside))

    def stand(self, upper: str, copied: Sequence[str], links: Callable[[Iterable[str]], dict[str, str]]) -> None:
        """Put them where the real ones are. Raises `OSError`.

        `links` gives paths that lead to places whatever covers them, and `upper` is such a path. What is `copied` is
        mounted by others.
        """
        mount_points = {*copied, *self.laid}
        self._links = links(path for path in self._parts if path not in mount_points)
        for number, folder in enumerate(self.laid, self._first_layer):
            layer = f"{upper}/{number}/upper"
            if folder != "/":
                kernel.mount(layer, folder, flags=kernel.BIND)
            elif not self._is_root(layer):
                self.folders.remove(folder)
                continue
            for path in self._again([folder]):  # at once: another of ours may lie deeper in it
                if path != "/proc" and not kernel.mount_if_there(
                    self._links[path], path, flags=kernel.BIND | kernel.REC
                ):
                    del self._links[path]  # an empty one of ours stays in its place

    def _is_root(self, layer: str) -> bool:
        """Make a folder the root of all files; tell whether the kernel does it: not where the root is its first one."""
        kernel.mount(layer, layer, flags=kernel.BIND)
        kernel.mount(self._links["/proc"], f"{layer}/proc", flags=kernel.BIND | kernel.REC)
        os.mkdir(f"{layer}/{_OLD}", 0o700)
        try:
            kernel.pivot_root(layer, f"{layer}/{_OLD}")
        except OSError:
            kernel.unmount(layer)
            return False
        os.chdir("/")
        return True

    def read_only(self, points: Iterable[str], copied: Sequence[str]) -> Iterator[str]:
        """Give the mount points that nobody may write through: those of the host's that are still to be seen.

        A folder of ours is none, nor is an empty one in it that waits for its copy.
        """
        for point in dict.fromkeys((*points, *self._again(self.folders))):
            waits = point in copied and any(point.startswith(f"{each.rstrip('/')}/") for each in self.folders)
            if not waits and point not in self.folders:
                yield point

    def _again(self, folders: Sequence[str]) -> list[str]:
        """List what is mounted again in folders of ours."""
        return [path for path in self._links if os.path.dirname(path) in folders]

    def leave(self) -> None:
        """Let the old root of all files go."""
        if "/" in self.folders:
            kernel.unmount(f"/{_OLD}")
            os.rmdir(f"/{_OLD}")


def _lay(folder: str, layer: str) -> tuple[list[str], list[str]]:
    """Make on disk what stands for a folder.

    Give the paths in it that something is to be mounted over, and the names of what is no folder.
    """
    os.makedirs(layer)
    over, beside, left = list[str](), list[str](), _COPIED_IN_ALL
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                path, status = f"{layer}/{entry.name}", entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # somebody took it away meanwhile
                continue
            if stat.S_ISDIR(status.st_mode):
                os.mkdir(path)
                over.append(entry.path)
            else:
                beside.append(entry.name)
            if stat.S_ISLNK(status.st_mode):
                os.symlink(os.readlink(entry.path), path)
                continue
            if stat.S_ISREG(status.st_mode):
                small = status.st_size <= min(_COPIED, left)
                left -= status.st_size if small else 0
                if not (small and _copied(entry.path, path)):
                    over.append(entry.path)
            if not os.path.lexists(path):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC))
            _own(path, status)
    _own(layer, os.stat(folder))
    return over, beside


def _copied(source: str, target: str) -> bool:
    """Copy a small file, with the time of its last change; tell whether it could be read."""
    try:
        with open(source, "rb") as stream:
            content, status = stream.read(), os.fstat(stream.fileno())
    except OSError:
        return False
    with open(target, "wb") as stream:
        stream.write(content)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    return True


def _own(path: str, status: os.stat_result) -> None:
    """Give a path the owner and the mode of another one."""
    if os.geteuid() == 0:
        os.chown(path, status.st_uid, status.st_gid)
    os.chmod(path, stat.S_IMODE(status.st_mode))
