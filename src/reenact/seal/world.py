"""A world of its own for one program and its children, made without root (namespaces(7), overlayfs).

Theory of operation. A process of one thread leaves every namespace but that of the host's name. Each folder of the file
tree becomes an overlay: its lower layer is what was there, its upper layer a folder of ours on disk, where every write
of whoever lives in this world ends. The inode of a socket below an overlay is another one, so no server of the host can
be reached by it. Everything else is read only; `/run` and `/dev/shm` are empty, `/dev` holds the harmless devices. Then
it forks: the copy is process 1 of the new process namespace, mounts its `/proc`, gives up its capabilities and forks
again; that copy is the program. Process 1 waits for it and tells how it ended; when it goes, the kernel ends the rest.

What is opened beforehand is used by its descriptor (`/proc/self/fd/N`): a path may be covered by then, and need not
be quoted in the options of a mount.
"""

from __future__ import annotations

import os
import resource
import signal
import stat
from contextlib import suppress

from reenact.seal import kernel
from reenact.seal.holders import Holders
from reenact.seal.mounts import Layout, mount_points

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Final, NoReturn

_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS: Final = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
_OF_ROOT: Final = frozenset({0, 1, 3, 4, 5, 6, 7, 10, 18})
"""What root keeps (capabilities(7)): CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE,
SYS_CHROOT.

Each acts on the copy, and on processes of this world.
"""
_FIRST: Final = 1
"""The number of a world's first process."""
_READ_ONLY: Final = ("/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi")
_COVERED: Final = ("/proc/sysrq-trigger", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/latency_stats")
_EMPTY: Final = ("/run", "/var/run")
_MADE_ANEW: Final = ("/run/", "/var/run/", "/dev/shm/")  # noqa: S108 - none of ours
"""What lies in there is nobody's in this world."""
_FOLLOWED: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that are sent on to the program."""
_OF_A_TERMINAL: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH)
"""Signals that are sent on to the program's whole group: it is in no session of the terminal's."""


class _Places:
    """Places that are used by their descriptors."""

    def __init__(self) -> None:
        self._handles: list[int] = []

    def open(self, path: str, flags: int = 0) -> int:
        """Open a place, to be named and no more (`O_PATH`)."""
        self._handles.append(os.open(path, os.O_PATH | os.O_CLOEXEC | flags))
        return self._handles[-1]

    def link(self, path: str, flags: int = 0) -> str:
        """Give a path to a place that holds whatever is mounted above it."""
        return f"/proc/self/fd/{self.open(path, flags)}"

    def links(self, paths: Iterable[str]) -> dict[str, str]:
        """Give such paths to places, less those that others took away meanwhile."""
        links: dict[str, str] = {}
        for path in paths:
            with suppress(FileNotFoundError):
                links[path] = self.link(path)
        return links

    def close(self) -> None:
        """Let all of them go: no program may have them."""
        while self._handles:
            os.close(self._handles.pop())


def enter(
    upper: str,
    doors: Sequence[str] = (),
    instead: Mapping[str, str] | None = None,
    hidden: Sequence[str] = (),
    sockets: Sequence[str] = (),
    used: Sequence[str] = (),
    working: str = "",
) -> list[str]:
    """Make the world around this process, but for `/proc`; give the folders that are copies. All are paths.

    `upper` is a folder on disk for what is written: `0/upper`, `1/upper`, … in the order of what is given back. `doors`
    are the real folders, to be written to; each of `instead` has another real one in its place; those of `hidden` are
    empty; `sockets` of the host's are let through. The folders `used` can be written to by a user who is not root. The
    folder `working` is a copy wherever it lies, in `/run` and `/dev/shm` too. Raises `OSError`.
    """
    points = mount_points(_text("/proc/self/mountinfo"))
    layout, runs = Layout(points), _run_folders()
    working_copies = [os.path.realpath(working)] if os.path.realpath(working).startswith(_MADE_ANEW) else []
    copied = [*layout.copied, *working_copies]
    _make_layers(upper, copied, used, bare := _bare(copied))
    holders = Holders(layout.divided, upper, len(copied))
    _leave_namespaces()
    kernel.mount("", "/", flags=kernel.REC | kernel.PRIVATE)
    kernel.raise_loopback()
    places = _Places()
    try:
        opened = {**{path: path for path in doors}, **(instead or {})}
        real = {path: places.link(other, os.O_DIRECTORY) for path, other in opened.items()}
        devices = {name: places.link(f"/dev/{name}") for name in _DEVICES if os.path.exists(f"/dev/{name}")}
        lowers = places.links(copied)
        through = {os.path.realpath(path): places.link(path) for path in sockets if os.path.exists(path)}
        layers = places.link(upper, os.O_DIRECTORY)
        holders.stand(layers, copied, places.links)
        shut = [(path, places.open(path)) for path in holders.read_only(points, copied) if os.path.lexists(path)]
        _copy(copied, lowers, layers, bare)
        again = {path: places.link(path, os.O_DIRECTORY) for path in working_copies}
        _bind(real)
        for path, handle in shut:
            kernel.make_read_only(handle, path)
        _make_devices(devices, layout.leading_out)
        _make_run(runs)
        _let_through(through)
        _put_again(again)
        _check(real)
        holders.leave()
    finally:
        places.close()
    _empty(hidden, read_only=True)
    return [*copied, *holders.laid]


def _let_through(sockets: Mapping[str, str]) -> None:
    """Put sockets of the host's where they are found outside."""
    for path, link in sockets.items():
        if not os.path.lexists(path):  # its folder was made anew
            os.makedirs(os.path.dirname(path), exist_ok=True)
            _write(path, "")
        _show(link, path)


def _bind(links: Mapping[str, str]) -> None:
    for path, link in links.items():
        kernel.mount(link, path, flags=kernel.BIND)


def _put_again(copies: Mapping[str, str]) -> None:
    """Put copies, with all that is mounted in them, where they were before what is around them was made anew."""
    for path, link in copies.items():
        os.makedirs(path, exist_ok=True)
        kernel.mount(link, path, flags=kernel.BIND | kernel.REC)


def _check(doors: Mapping[str, str]) -> None:
    """Raise `OSError` where a folder that is to be open lies in one that was made anew, as in `/dev/shm`."""
    for path, link in doors.items():
        if not os.path.samestat(os.stat(path), os.stat(link)):
            raise OSError(2, os.strerror(2), path)


def _bare(copied: Sequence[str]) -> frozenset[str]:
    """Name the folders that hold nothing and are this user's: of these an empty folder is a copy, and an overlay dear.

    Another user's stays an overlay, which keeps what may be made in it.
    """
    folders = set[str]()
    for path in copied:
        with suppress(OSError):
            if os.stat(path).st_uid == os.geteuid() and not os.listdir(path):
                folders.add(path)
    return frozenset(folders)


def _make_layers(upper: str, copied: Sequence[str], used: Sequence[str], bare: Collection[str]) -> None:
    for number, path in enumerate(copied):
        for name in ("upper",) if path in bare else ("upper", "work"):
            os.makedirs(f"{upper}/{number}/{name}")
        with suppress(FileNotFoundError):  # somebody took it away meanwhile
            os.chmod(f"{upper}/{number}/upper", stat.S_IMODE(os.stat(path).st_mode))
    if os.geteuid() != 0:
        _make_ways_to(used, upper, copied)


def _make_ways_to(used: Sequence[str], upper: str, copied: Sequence[str]) -> None:
    """Make the folders of others that lead to folders of this user's, in the upper layers.

    An overlay would make them when something below is written, and cannot: their owners have no id in the new user
    namespace (`EOVERFLOW`). One that is there already is merged with the one below it.
    """
    own = os.geteuid(), os.getegid()
    for path in map(os.path.realpath, used):
        number, top = max(
            ((number, top) for number, top in enumerate(copied) if f"{path}/".startswith(f"{top.rstrip('/')}/")),
            key=lambda pair: len(pair[1]),
            default=(-1, ""),
        )
        below, layer = top, f"{upper}/{number}/upper"
        for name in path[len(top) :].strip("/").split("/") if number >= 0 and path != top else ():
            below, layer = f"{below.rstrip('/')}/{name}", f"{layer}/{name}"
            status = os.stat(below)
            if (status.st_uid, status.st_gid) == own:
                break
            with suppress(FileExistsError):
                os.mkdir(layer)
                os.chmod(layer, stat.S_IMODE(status.st_mode))


def _copy(copied: Sequence[str], lowers: Mapping[str, str], upper: str, bare: Collection[str]) -> None:
    for number, path in enumerate(copied):
        if path not in lowers or not os.path.isdir(path):  # somebody took it away meanwhile
            continue
        if path in bare:
            kernel.mount(f"{upper}/{number}/upper", path, flags=kernel.BIND)
            continue
        layers = f"lowerdir={lowers[path]},upperdir={upper}/{number}/upper,workdir={upper}/{number}/work"
        # It is thrown away: nothing of it is forced to the disk.
        kernel.mount("overlay", path, "overlay", options=f"{layers},userxattr,volatile")


def _empty(paths: Iterable[str], *, read_only: bool = False) -> None:
    for path in paths:
        if os.path.isdir(path):
            flags = kernel.NOSUID | kernel.NODEV | (kernel.RDONLY if read_only else 0)
            kernel.mount("tmpfs", path, "tmpfs", flags, "mode=700,size=4k" if read_only else "mode=755")


def _run_folders() -> list[tuple[str, os.stat_result]]:
    """List the folders of `/run` that the user can write to, and the user's own one: programs expect them there."""
    folders = list[str]()
    for top in _EMPTY:
        if os.path.isdir(top) and not os.path.islink(top):
            folders += [f"{top}/{name}" for name in os.listdir(top)] + [f"{top}/user/{os.geteuid()}"]
    real = [each for each in folders if os.path.isdir(each) and not os.path.islink(each)]
    return [(each, os.stat(each)) for each in real if os.access(each, os.W_OK)]


def _make_run(folders: Iterable[tuple[str, os.stat_result]]) -> None:
    _empty(path for path in _EMPTY if not os.path.islink(path))
    for path, status in folders:
        os.makedirs(path, exist_ok=True)
        os.chmod(path, stat.S_IMODE(status.st_mode))
        if os.geteuid() == 0:
            os.chown(path, status.st_uid, status.st_gid)


def _leave_namespaces() -> None:
    """Leave the namespaces; the ids of users stay what they are: all of them for root, else this user's."""
    uid, gid, me = os.geteuid(), os.getegid(), os.getpid()
    flags = kernel.NEWUSER | kernel.NEWNS | kernel.NEWPID | kernel.NEWNET | kernel.NEWIPC
    if uid != 0:
        kernel.unshare(flags)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
        return
    ready, go = os.pipe()
    helper = os.fork()
    if helper == 0:  # only a process outside may map the ids of others
        code = 1
        with suppress(OSError):
            os.close(go)
            if os.read(ready, 1):
                for name in ("uid_map", "gid_map"):
                    _write(f"/proc/{me}/{name}", _all_ids(_text(f"/proc/self/{name}")))
                code = 0
        os._exit(code)
    os.close(ready)
    try:
        kernel.unshare(flags)
        os.write(go, b".")
    finally:
        os.close(go)
        status = os.waitpid(helper, 0)[1]
    if status != 0:
        raise OSError(1, os.strerror(1), "uid_map")


def _all_ids(mapped: str) -> str:
    """Map every id that exists here to itself (user_namespaces(7): `inside outside count`)."""
    rows = (line.split() for line in mapped.splitlines())
    return "".join(f"{inside} {inside} {count}\n" for inside, _, count in rows)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read()


def _write(path: str, text: str) -> None:
    """Write a whole text at once, as the kernel's own files want it; a plain file is made."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def _make_devices(devices: Mapping[str, str], covered: Iterable[str]) -> None:
    """Make `/dev`, and have the null device stand where something else leads out."""
    kernel.mount("tmpfs", "/dev", "tmpfs", kernel.NOSUID, "mode=755")
    for name, link in devices.items():
        _write(f"/dev/{name}", "")
        _show(link, f"/dev/{name}")
    for name, target in _LINKS.items():
        os.symlink(target, f"/dev/{name}")
    safe = kernel.NOSUID | kernel.NOEXEC
    for name, kind, flags, options in (
        ("shm", "tmpfs", safe | kernel.NODEV, "mode=1777"),
        ("pts", "devpts", safe, "newinstance,ptmxmode=0666,mode=620"),
        ("mqueue", "mqueue", safe | kernel.NODEV, ""),
    ):
        os.mkdir(f"/dev/{name}")
        kernel.mount(kind, f"/dev/{name}", kind, flags, options)
    for path in covered:
        kernel.mount("/dev/null", path, flags=kernel.BIND)


def _show(source: str, path: str) -> None:
    """Mount what is outside at a path; what it holds can be written, and its mode, owner and times stay what they are.

    A device can be written to and a socket be connected to whatever their mount allows.
    """
    kernel.mount(source, path, flags=kernel.BIND)
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        kernel.make_read_only(handle, path)
    finally:
        os.close(handle)


def live(program: Callable[[], NoReturn], begun: Callable[[int], None] | None = None, pid: int = 0) -> int:
    """Have `program` live in the world that `enter` made; give its status, as `waitpid` does. Raises `OSError`.

    `begun` hears which process is the world's first: the world ends with it. The program's process has the number `pid`
    where it is free and the kernel gives it.
    """
    reading, writing = os.pipe()
    first = os.fork()
    if first == 0:
        with suppress(BaseException):
            os.close(reading)
            _be_first(program, writing, pid)
        os._exit(70)
    os.close(writing)
    if begun is not None:
        begun(first)
    _follow(first)
    with os.fdopen(reading, "rb") as stream:
        report = stream.read()
    os.waitpid(first, 0)
    if not report:  # it was killed, and with it all others
        return signal.SIGKILL
    if not report.isdigit():
        raise OSError(5, report.decode(errors="replace"), "process 1")
    return int(report)


def _follow(child: int, *, leads: bool = False) -> None:
    """Send signals on to a child; to its group what a terminal sends, where it `leads` one."""
    for number in (*_FOLLOWED, *_OF_A_TERMINAL):
        send = os.killpg if leads and number in _OF_A_TERMINAL else os.kill
        signal.signal(number, lambda got, _, send=send: _send_signal(send, child, got))


def _send_signal(send: Callable[[int, int], None], child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        send(child, number)


def _be_first(program: Callable[[], NoReturn], pipe: int, pid: int) -> None:
    """Be process 1: make `/proc`, start the program, take in orphans, and tell how the program ended."""
    kernel.end_with_parent(signal.SIGKILL)
    os.setsid()  # a process namespace holds no group apart: a signal to 0 would reach all of the one we came from
    handlers = {number: signal.getsignal(number) for number in (*_FOLLOWED, *_OF_A_TERMINAL)}
    try:
        _mount_proc(pid)
        kernel.keep_capabilities(_OF_ROOT if os.geteuid() == 0 else frozenset())
        kernel.leave_keyring()
        kernel.refuse_what_is_not_apart()
        kernel.allow_tracing(allow=False)
    except OSError as error:
        os.write(pipe, f"{error.filename}: {error.strerror}".encode())
        return
    child = os.fork()
    if child == 0:
        os.close(pipe)
        os.setpgid(0, 0)
        kernel.allow_tracing(allow=True)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        try:
            program()
        finally:
            os._exit(127)
    _follow(child, leads=True)
    os.chdir("/")
    while True:
        process, status = os.wait()
        if process == child:
            os.write(pipe, str(status).encode())
            return


def _mount_proc(pid: int) -> None:
    """Mount the new `/proc`, and keep what is in it of the whole machine as it is: each file of that has one mode.

    The next process is to have the number `pid`. A program that computes with its number comes to the same then.
    """
    kernel.mount("proc", "/proc", "proc", kernel.NOSUID | kernel.NODEV | kernel.NOEXEC)
    if pid > _FIRST:
        with suppress(OSError):  # it is more than this kernel counts to, or the kernel is built without
            _write("/proc/sys/kernel/ns_last_pid", str(pid - 1))
    for path in _of_the_machine():
        if path not in _COVERED:
            _show(path, path)
    for path in _COVERED:
        if os.path.exists(path):
            kernel.mount("/dev/null", path, flags=kernel.BIND)


def _of_the_machine() -> list[str]:
    """List what lies in `/proc` and is no process's; of it, who is not root can change only what has a right mode."""
    if os.geteuid() != 0:
        return [path for path in _READ_ONLY if os.path.isdir(path)]
    with os.scandir("/proc") as entries:
        return [entry.path for entry in entries if not entry.name.isdigit() and not entry.is_symlink()]


def end_as(status: int) -> NoReturn:
    """End this process as another ended, by the same signal or with the same code."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it has written its own
        with suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
