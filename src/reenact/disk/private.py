"""Files and folders that are the user's alone, and files of settings that nobody else has put there.

What is made here has the modes 0600 and 0700 whatever the umask says. What is read from a place that others can write
to may be theirs: a store in `/tmp` that another account planted, a policy behind another account's link. Such a place
is refused by its owner. Root is trusted, since it can do anything as it is; so are the users that
REENACT_TRUSTED_OWNERS names by their numbers, as a container has to whose project is mounted, and, where root works for
somebody (`SUDO_UID`), that somebody.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from reenact.errors import InputError

TRUSTED: Final = "REENACT_TRUSTED_OWNERS"
_FILE, _FOLDER = 0o600, 0o700
_OTHERS: Final = 0o077
_HIGH: Final = 960
"""Descriptors from here on: a program that closes and opens files of its own by number hardly comes there."""
_MOST_LINKS: Final = 40
"""As Linux has it (path_resolution(7))."""
LARGEST: Final = 16 << 20
"""More bytes no file of settings has."""
_SETTINGS: Final = f"copy it to a file of your own, or name its owner's number in {TRUSTED}"


class NotOursError(InputError):
    """A store, a policy or a file of settings belongs to another user, or another user's link leads to it."""


def folder(path: Path, top: Path) -> None:
    """Make a folder, and those above it. `top` and all below it are the user's alone. Raises `OSError`."""
    try:
        path.mkdir(_FOLDER if path.is_relative_to(top) else 0o777)
    except FileNotFoundError:
        folder(path.parent, top)
        folder(path, top)
        return
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    if path.is_relative_to(top) and stat.S_IMODE(path.stat().st_mode) != _FOLDER:
        path.chmod(_FOLDER)


def closed(path: Path) -> None:
    """Take from everybody else what they may do in a folder of this user's. Where that fails, it stays as it is."""
    with suppress(OSError):
        status = path.stat()
        if status.st_uid == os.geteuid() and status.st_mode & _OTHERS:
            path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)


def opened(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file, made for the user alone where `flags` make one, and give its descriptor. Raises `OSError`."""
    fd = os.open(path, flags | os.O_CLOEXEC, _FILE)
    status = os.fstat(fd)
    if flags & os.O_CREAT and status.st_mode & 0o777 != _FILE and status.st_nlink == 1:  # else it is somewhere else too
        with suppress(OSError):  # another user's, which we may write to
            os.fchmod(fd, _FILE)
    return fd


def high_descriptor(fd: int) -> int:
    """Move a descriptor up, where that can be done, and give its new number; the old one is closed."""
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except OSError:  # fewer are allowed
        return fd
    os.close(fd)
    return high


def touched(path: Path) -> Path:
    """Have a file there, empty and the user's alone where it is new: for who would make it with the umask's mode.

    SQLite gives its `-wal`, `-shm` and `-journal` the mode of the database. Where it cannot be made, whoever opens it
    next says why.
    """
    with suppress(OSError):
        os.close(opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    return path


def write_text(path: Path, text: str) -> None:
    """Write a file that is the user's alone. Raises `OSError`."""
    with os.fdopen(opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as stream:
        stream.write(text)


def check_ours(path: Path, what: str, *, hint: str) -> None:
    """Refuse a place that is not there for this user: another user's, or behind another user's link.

    `what` names it in the error, `the store`; a place that does not exist is nobody's. Raises `NotOursError`.
    """
    for place in _links(path):
        owner = place.lstat().st_uid
        if not _trusted(owner):
            problem = f"{what} is reached through the link {place}, which belongs to {user(owner)}, not to {_self()}"
            raise NotOursError(str(path), problem, hint=hint)
    for place in (path, Path(os.path.normpath(path))):  # `a/below/..` is `a`, whether or not there is a `below` yet
        with suppress(OSError):
            owner = place.stat().st_uid
            if not _trusted(owner):
                raise NotOursError(str(path), f"{what} belongs to {user(owner)}, not to {_self()}", hint=hint)


def read_settings(path: Path, what: str, *, most: int = LARGEST) -> bytes:
    """Read a file of settings that this user or root has put there: a policy, a key. Otherwise as `read_regular`.

    Raises `NotOursError` where it is another user's; `what` names it, `the redaction policy`.
    """
    check_settings(path, what)
    data, owner = _read(path, most)
    if not _trusted(owner):  # it was put there since
        raise NotOursError(str(path), f"{what} belongs to {user(owner)}, not to {_self()}", hint=_SETTINGS)
    return data


def check_settings(path: Path, what: str) -> None:
    """Refuse a file of settings that another user owns, or that another user's link leads to."""
    check_ours(path, what, hint=_SETTINGS)


def read_regular(path: Path, *, most: int = LARGEST) -> bytes:
    """Read a file whole. A pipe, a socket or a device is refused, and never waited for.

    Raises `OSError`, also for one of more than `most` bytes (EFBIG).
    """
    return _read(path, most)[0]


def is_descriptor(path: Path) -> bool:
    """Tell a pipe that the shell has put there, as `<(zcat traces.gz)` does, from one that lies in a folder."""
    return path.parent in _DESCRIPTORS or str(path) == "/dev/stdin"


_DESCRIPTORS: Final = frozenset(map(Path, ("/dev/fd", "/proc/self/fd")))


def _read(path: Path, most: int) -> tuple[bytes, int]:
    piped = is_descriptor(path)
    if not piped and not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    waits = 0 if piped else os.O_NONBLOCK
    with os.fdopen(os.open(path, os.O_RDONLY | waits | os.O_CLOEXEC | os.O_NOCTTY), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not piped and not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        data = stream.read(most + 1) or b""
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is longer than {most} bytes")
    return data, status.st_uid


def _links(path: Path) -> Iterator[Path]:
    """Give every symbolic link on the way to a path, in the order in which the kernel follows them."""
    waiting = [*reversed(path.absolute().parts)]
    at, followed = Path("/"), 0
    while waiting:
        name = waiting.pop()
        if name == "..":
            at = at.parent
            continue
        at /= name
        try:
            target = at.readlink()
        except OSError:  # no link, or not there
            continue
        yield at
        followed += 1
        if followed > _MOST_LINKS:
            return
        waiting += [*reversed(target.parts)]
        at = at.parent


def _trusted(owner: int) -> bool:
    own = os.geteuid()
    if owner in {own, 0}:
        return True
    if own == 0 and os.environ.get("SUDO_UID", "") == str(owner):
        return True
    if str(owner) in os.environ.get(TRUSTED, "").replace(",", " ").split():
        return True
    return owner == _nobody() and not _sees_all_users()


def _nobody() -> int:
    try:
        return int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        return 65534


def _sees_all_users() -> bool:
    """Tell whether every user has a number here; in a user namespace root's files look like nobody's."""
    try:
        rows = [row.split() for row in Path("/proc/self/uid_map").read_text().splitlines()]
        return any(int(row[1]) == 0 and int(row[2]) > 1 for row in rows)
    except (OSError, ValueError, IndexError):
        return True


def user(number: int) -> str:
    """Name a user for a person: the account's name, else its number."""
    try:
        import pwd

        return f"{pwd.getpwuid(number).pw_name} (uid {number})"
    except (ImportError, KeyError):
        return f"uid {number}"


def _self() -> str:
    return user(os.geteuid())
