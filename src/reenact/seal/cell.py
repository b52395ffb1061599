"""A sealed world without namespaces: Landlock for files, seccomp for calls, and a copy of the working folder.

Theory of operation. Where a process may not leave the host's namespaces, it can still give up rights. A process of one
thread copies the folder that the program works in, and gives up the right to change any file but those in the copy, in
a temporary folder, and in what is handed to it as real. Then it forks. The copy of it gives up its capabilities, TCP,
the abstract sockets and the processes of others, has its system calls filtered, and becomes the program. The process
that stays answers the calls that no filter can judge (`warden`), takes in orphans, and ends whoever is left when the
program is over.

Reading stays free, but for what is hidden: the right to read is taken away as well then, and given back for whatever
lies beside the path to a hidden folder. What is made there later, by others, cannot be read.

Paths stay what they are: no mount leads `/home/me/project` to the copy. The program's working folder is the copy, and
Python code is led there (`reenact.boundary.path_copies`); other programs reach it by relative paths.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from reenact.seal import calls, inventory, kernel, landlock
from reenact.seal.bounds import Bounds
from reenact.seal.folder import MOST_FILES, MOST_MEGABYTES, Folder, link_around

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Final, NoReturn

_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_OF_ROOT: Final = frozenset({0, 1, 3, 4, 5, 6, 7})
"""What root keeps (capabilities(7)): CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID.

Each acts on files that Landlock, and on processes that the warden, lets it reach.
"""
_STREAMS: Final = range(3)


def enter(
    upper: str,
    cwd: str,
    doors: Sequence[str] = (),
    instead: Mapping[str, str] | None = None,
    hidden: Sequence[str] = (),
    **limits: int,
) -> Bounds:
    """Copy the folder `cwd`, and give up the right to change other files; give what lies in the bounds. All are paths.

    `upper` is a folder on disk for the copy. `doors` are the real folders, to be written to; who names one of `instead`
    is led to another real one; those of `hidden` cannot be read. Limits: no more than `most_files` and `most_megabytes`
    is copied, and `newest` is the newest ABI of Landlock that is used. Raises `OSError`.
    """
    version = min(landlock.abi(), limits.get("newest", landlock.SCOPES))
    if version < landlock.MOVES:
        raise OSError(95, f"version {version} of it cannot move files", "Landlock")
    calls.numbers()
    upper, original = os.path.realpath(upper), os.path.realpath(cwd)
    if original == "/":
        raise OSError(27, "the root of all files is not copied", original)
    skipped = [os.path.realpath(path) for path in (upper, *doors)]
    most = limits.get("most_files", MOST_FILES), limits.get("most_megabytes", MOST_MEGABYTES) << 20
    folder = Folder(original, link_around(original, f"{upper}/r"), skipped, most)
    folder.make()
    with open(f"{upper}/{inventory.NAME}", "xb") as stream:
        stream.write(inventory.encode(folder.copy, folder.laid))
    real = {os.path.realpath(path): other for path, other in (instead or {}).items()}
    bounds = Bounds(upper, folder, doors, {**real, **(instead or {})}, version)
    bounds.leads.setdefault(cwd, folder.copy)  # a name of it with links
    for path in (bounds.temporary, bounds.memory):
        os.mkdir(path, 0o700)
    kernel.keep_capabilities(_OF_ROOT if os.geteuid() == 0 else frozenset())
    _limit_files(bounds, hidden)
    return bounds


def _limit_files(bounds: Bounds, hidden: Sequence[str]) -> None:
    real_paths = [os.path.realpath(path) for path in hidden if os.path.lexists(path)]
    readable = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in _beside(real_paths)} if real_paths else {}
    devices = [path for path in (f"/dev/{name}" for name in _DEVICES) if os.path.exists(path)]
    try:
        landlock.limit_files(bounds.abi, bounds.open, [*devices, *_terminals()], readable)
    finally:
        for handle in readable.values():
            os.close(handle)


def _terminals() -> Iterator[str]:
    """Give the terminals that the standard streams are: a program may open its own once more."""
    for stream in _STREAMS:
        with suppress(OSError):
            yield os.ttyname(stream)


def _beside(hidden: Sequence[str], top: str = "/") -> Iterator[str]:
    """Give what there is beside the paths that are hidden, as high up as can be."""
    with os.scandir(top) as entries:
        paths = [entry.path for entry in entries if not entry.is_symlink()]
    for path in paths:
        if path in hidden:
            continue
        if any(each.startswith(f"{path}/") for each in hidden):
            yield from _beside(hidden, path)
        elif os.path.lexists(path):
            yield path


def live(
    bounds: Bounds,
    program: Callable[[], NoReturn],
    spared: Sequence[int] = (),
    begun: Callable[[int], None] | None = None,
    ledger: str = "",
) -> int:
    """Have `program` live in the cell; give its status, as `waitpid` does. Raises `OSError`.

    The processes `spared` are children of this one, and not of the program's; all others end with it.
    `begun` hears which process is the program. What is denied to it is said in the `ledger`, a path.
    """
    from reenact.seal.warden import Warden

    kernel.adopt_orphans()
    line = _Line()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            _be_sealed(bounds, line, program)
        os._exit(127)
    listener = line.take()
    if isinstance(listener, str):
        os.waitpid(child, 0)
        raise OSError(5, listener, "seccomp")
    if begun is not None:
        begun(child)
    try:
        return Warden(bounds, listener, child, ledger).wait()
    finally:
        _end_the_rest(spared)


def _be_sealed(bounds: Bounds, line: _Line, program: Callable[[], NoReturn]) -> None:
    try:
        kernel.end_with_parent(signal.SIGKILL)
        landlock.limit_contacts(bounds.abi)
        listener = calls.install(signals_asked=bounds.abi < landlock.SCOPES)
    except OSError as error:
        line.say(f"{error.filename}: {error.strerror}")
        return
    line.hand_over(listener)
    os.close(listener)
    program()


class _Line:
    """A line by which the program's process hands over the descriptor of its filter, or says why it has none."""

    def __init__(self) -> None:
        from _socket import socketpair  # `socket` would cost more than the seal

        self._theirs, self._ours = socketpair()

    def say(self, why: str) -> None:
        """Say why there is none."""
        self._ours.send(why.encode())

    def hand_over(self, listener: int) -> None:
        """Hand it over (unix(7), SCM_RIGHTS)."""
        self._ours.sendmsg([b"."], [(1, 1, listener.to_bytes(4, "little"))])
        for end in (self._ours, self._theirs):
            end.close()

    def take(self) -> int | str:
        """Take the descriptor, or the reason."""
        self._ours.close()
        text, ancillary, _, _ = self._theirs.recvmsg(1000, 64, 0x40000000)  # MSG_CMSG_CLOEXEC
        self._theirs.close()
        if ancillary:
            return int.from_bytes(ancillary[0][2][:4], "little")
        return text.decode(errors="replace") or "the process ended"


def _end_the_rest(spared: Sequence[int]) -> None:
    """End every process that descends from this one: each is taken in when its parent has gone."""
    while children := [child for child in _children() if child not in spared]:
        for child in children:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        for child in children:
            with suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children() -> Iterable[int]:
    """Give the children of this process, as proc_pid_stat(5) names their parents."""
    me = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stream:
                if int(stream.read().rpartition(b")")[2].split()[1]) == me:
                    yield int(name)
