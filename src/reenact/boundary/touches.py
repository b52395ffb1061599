"""What an audit event (PEP 578) does to the world outside the process, told from its name and arguments alone.

Python raises these events for its own sockets, files and processes; what C extensions do past Python raises none, but
for those known clients that an integration of ours cuts (`integrations.native_clients`), which raises one of ours; so
does one for what Python does to other processes without an event, and for pipes and devices that it makes
(`integrations.process_controls`), and for machine code that is called by its address
(`integrations.native_addresses`). What every program does anyway and changes nothing is no touch: devices, `/proc`,
open file descriptors, nameless temporary files, bytecode caches, the code and data of libraries, databases in memory.
"""

from __future__ import annotations

import inspect
import os
import stat
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from reenact.boundary.installed import CODE, OURS, PACKAGES
from reenact.values import alarms
from reenact.values.run import NATIVE_CODE

Kind: TypeAlias = Literal["network", "child", "write", "read", "database", "native", "pipe", "socket", "cache"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """One act on the world outside the process."""

    kind: Kind
    what: str
    """The act in a few words: `connect to 10.0.0.7:443`, `write notes.txt`."""
    path: str = ""
    """The file it is about, as the program named it; empty where it is about none."""
    source: str = ""
    """The file that it takes away, or gives another name by which it can be changed; empty where there is none."""
    is_log: bool = False
    """`logging` does it."""
    handler: object = None
    """The handler of `logging` that does it, where that can be told."""


_DEVICES: Final = ("/dev/", "/proc/", "/sys/")
_STREAMS: Final = {f"/dev/{name}": f"/dev/fd/{at}" for at, name in enumerate(("stdin", "stdout", "stderr"))}
_AWAY: Final = frozenset({"cwd", "root"})
"""Names in the folder of a process that lead to files elsewhere."""
_OWN_PROCESS: Final = ("/proc/self/", "/proc/thread-self/")
_SHARED_MEMORY: Final = "/dev/shm/"  # noqa: S108 - told apart, not written to
_FURNITURE: Final = (
    "/usr/share/",
    "/usr/lib/",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/ssl/",
    "/etc/timezone",
    "/etc/apache2/mime.types",
)
"""What libraries read of a system by themselves: time zones, media types, certificates."""
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
HARMLESS_PROGRAMS: Final = frozenset({"uname", "lsb_release", "ldconfig"})
"""What `platform` and `ctypes.util` ask."""
_opening = threading.local()
_IMPORTS: Final = "<frozen importlib."
_RAW_FAMILIES: Final = {16: "netlink", 17: "packet", 40: "vsock"}
_NETWORK_FAMILIES: Final = frozenset({2, 10})
_SOCK_RAW: Final = 3
_CORE_SIZE: Final = 4
"""RLIMIT_CORE of setrlimit(2)."""
PROCESS: Final = "reenact.process"
"""The audit event of an act on another process: the act in a few words, and the process."""
NATIVE: Final = "reenact.native"
"""The audit event of a client in native code: its library, what it reaches, and whether that is a file."""

MEMORY: Final = "reenact.memory"
"""The audit event of shared memory that gets a name or loses it: the name, and the flags that it is opened with."""
CHILD: Final = "reenact.child"
"""The audit event of a program that native code starts: whose code, and the program."""

ADDRESS: Final = "reenact.address"
"""The audit event of machine code that is called by its address: the address."""
ABSENT: Final = "reenact.absent"
"""The audit event of the agent's having found that a file is not there; its argument is the path."""
NODE: Final = "reenact.node"
"""The audit event of a named pipe or a device that is made: its path, and the open folder that this begins in."""
ATTACHED: Final = "reenact.attached"
"""The audit event of a database that a connection to SQLite opens beside its own: its name."""
DATABASES: Final = frozenset({"sqlite3.connect", ATTACHED})
SOCKET: Final = "socket.__new__"
"""The audit event of Python's own of a socket that is made."""
_SET_OWNER: Final = 8
"""F_SETOWN of fcntl(2)."""
_TYPES_INPUT: Final = frozenset({0x5412, 0x541C, 0x541D})
"""TIOCSTI, TIOCLINUX, TIOCCONS of ioctl_tty(2): they put words into a terminal, or take them."""


def described(event: str, args: tuple[Any, ...]) -> Touch | None:
    """Say what an audit event does to the world outside; None where that is nothing. Never raises an `Exception`."""
    reader = _EVENTS.get(event)
    if reader is None:
        return None
    try:
        return reader(args)
    except Exception:  # a later Python spells the arguments otherwise: better told in general than missed
        alarms.pass_on()
        return Touch(kind=_KINDS[event], what=event)


def _path(value: Any) -> str | None:
    """Give a path as text; None for an open file descriptor, which was looked at when it was opened."""
    if value is None or isinstance(value, int):
        return None
    return _told["path"](os.fsdecode(value))


_told: Final[dict[str, Callable[[str], str]]] = {"path": str}
"""Tells a path as the program knows it."""


def program_path(path: str) -> str:
    """Tell a path as the program knows it."""
    return _told["path"](path)


def tell_paths(by: Callable[[str], str]) -> None:
    """Have paths be told by a function from here on: where a program works in a copy, as those of the original."""
    _told["path"] = by


def is_code(path: str) -> bool:
    """Tell whether a file belongs to Python, to an installed library or to us, or caches bytecode."""
    return path.startswith(CODE) or path.endswith((".pyc", ".pyo")) or f"{os.sep}__pycache__" in path


def _is_bytecode(path: str) -> bool:
    """Tell whether a path that is written to is one of bytecode, and Python or a library writes it, not the program."""
    if "__pycache__" not in path and ".pyc" not in path:
        return False
    if is_importing():
        return True
    frame = inspect.currentframe()
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(OURS) and (name.startswith(PACKAGES) or not name.startswith((*CODE, "<frozen "))):
            return name.startswith(PACKAGES)
        frame = frame.f_back
    return True


def _is_device(path: str) -> bool:
    """Tell whether a path that is written to is a device, or belongs to this process."""
    return (path.startswith("/dev/") and not path.startswith(_SHARED_MEMORY)) or _is_own_process(path)


def _leads_out(path: str) -> bool:
    """Tell whether a path that begins among the devices or the processes ends among the files."""
    plain = os.path.normpath(path)
    parts = plain.split("/")
    linked = len(parts) > 3 and parts[1] == "proc" and not _AWAY.isdisjoint(parts[2:-1])
    linked = linked or (len(parts) > 4 and parts[1] in {"proc", "dev"} and "fd" in parts[2:-2])
    return linked or not plain.startswith(_DEVICES)


def _is_own_process(path: str) -> bool:
    return path.startswith((*_OWN_PROCESS, f"/proc/{os.getpid()}/"))


def behind(handle: Any) -> Any:
    """Give the file that a descriptor which only reads stands for, be it named by its number or by a path.

    Whatever is none is given back as it is.
    """
    if isinstance(handle, int):
        return _only_read(handle) or handle
    path = os.fsdecode(handle)
    return _behind(path) if path.startswith(_DEVICES) else handle


def _behind(path: str) -> str:
    if _leads_out(path):
        above, _, name = path.rpartition("/")
        return f"{os.path.realpath(above)}/{name}"
    plain = os.path.normpath(path)
    above, _, name = _STREAMS.get(plain, plain).rpartition("/")
    if not name.isdigit() or os.path.basename(above) != "fd":  # noqa: PTH119 - in an audit hook
        return path
    own = above == "/dev/fd" or _is_own_process(f"{above}/")
    return (_only_read(int(name)) if own else "") or path


def _only_read(handle: int) -> str:
    """Name the file that an open descriptor of this process reads and cannot write; empty where it is none.

    What it can write to was looked at when it was opened.
    """
    import fcntl  # Windows has none

    try:
        flags, mode = fcntl.fcntl(handle, fcntl.F_GETFL), os.fstat(handle).st_mode
        path = os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 - in an audit hook
    except OSError:
        return ""
    reads = flags & os.O_ACCMODE == os.O_RDONLY
    return path if reads and _may_be_changed(mode) and os.path.lexists(path) else ""


def _may_be_changed(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _write_touch(what: str, path: str) -> Touch | None:
    """Give the touch of a path that is changed; what lies in /proc and /sys is no file, but another's setting."""
    if path.startswith(_DEVICES):
        path = _behind(path)
    if _is_device(path) or _is_bytecode(path):
        return None
    return Touch(kind="child" if path.startswith(("/proc/", "/sys/")) else "write", what=what, path=path)


@contextmanager
def opened_in(folder: int) -> Generator[None]:
    """Say where a path begins that this thread opens in the block: at an open folder, of which no event tells."""
    before, _opening.folder = getattr(_opening, "folder", None), folder
    try:
        yield
    finally:
        _opening.folder = before


@contextmanager
def aside() -> Generator[None]:
    """Surround what we do ourselves while a tool is at work."""
    before, _opening.aside = is_aside(), True
    try:
        yield
    finally:
        _opening.aside = before


def is_aside() -> bool:
    """Tell whether it is we who act on this thread."""
    return getattr(_opening, "aside", False)


def opened_path(value: Any) -> Any:
    """Give the path that an `open` event is about, by its whole name where it begins at an open folder."""
    folder: int | None = getattr(_opening, "folder", None)
    if folder is None or isinstance(value, int):
        return value
    try:
        return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), os.fsdecode(value))  # noqa: PTH115, PTH118 - in a hook
    except OSError:
        return value


def opens_to_read(args: tuple[Any, ...]) -> bool:
    """Tell from the arguments of an `open` event that nothing will be written."""
    return not (args[2] & _WRITES or (args[1] and any(letter in args[1] for letter in "wax+")))


def _opened(args: tuple[Any, ...]) -> Touch | None:
    path = _path(target := opened_path(args[0]))
    if path is None:
        return None
    if not opens_to_read(args):
        mode = _mode(target)
        if stat.S_ISDIR(mode):  # opened for writing it can only be O_TMPFILE, a file without a name
            return None
        if stat.S_ISFIFO(mode) and not path.startswith(_DEVICES):
            return Touch(kind="pipe", what=f"speak into the pipe {path}", path=path)
        return _write_touch(f"write {path}", path)
    return _read(f"read {path}", path)


def _mode(path: Any) -> int:
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - in a hook: no object for each file
    except (OSError, ValueError):
        return 0


def _read(what: str, path: str) -> Touch | None:
    if is_code(path) or path.startswith((*_FURNITURE, *_DEVICES)) or is_importing():
        return None
    return Touch(kind="read", what=what, path=path)


def is_importing() -> bool:
    """Tell whether Python's own import is at work on this thread, which reads and lists the program's folders."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTS):
            return True
        frame = frame.f_back
    return False


def _listed(args: tuple[Any, ...]) -> Touch | None:
    path = "." if args[0] is None else _path(args[0])
    return None if path is None else _read(f"list {path}", path)


def _changed(verb: str) -> Callable[[tuple[Any, ...]], Touch | None]:
    def read(args: tuple[Any, ...]) -> Touch | None:
        path = _path(behind(args[0]))
        return None if path is None else _write_touch(f"{verb} {path}", path)

    return read


def _moved(verb: str) -> Callable[[tuple[Any, ...]], Touch | None]:
    def read(args: tuple[Any, ...]) -> Touch | None:
        source, target = _path(args[0]) or "?", _path(args[1]) or "?"
        if _is_bytecode(target) and _is_bytecode(source):
            return None
        return Touch(kind="write", what=f"{verb} {source} to {target}", path=target, source=source)

    return read


def _copied(verb: str) -> Callable[[tuple[Any, ...]], Touch | None]:
    def read(args: tuple[Any, ...]) -> Touch | None:
        source, target = _path(args[0]) or "?", _path(args[1]) or "?"
        if _is_bytecode(target):
            return None
        return Touch(kind="write", what=f"{verb} {source} to {target}", path=target)

    return read


def _address(value: Any) -> str:
    if isinstance(value, tuple):
        host, *rest = cast("tuple[Any, ...]", value)
        host_text = _text(host)
        if not rest:
            return host_text
        return f"[{host_text}]:{rest[0]}" if ":" in host_text else f"{host_text}:{rest[0]}"
    return _text(value)


def _text(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, bytes | str) else repr(value)


def _connected(args: tuple[Any, ...]) -> Touch | None:
    return Touch(kind="network", what=f"connect to {_address(args[-1])}")


def _send_touch(args: tuple[Any, ...]) -> Touch | None:
    if args[-1] is None:  # over a connection, and connecting was told
        return None
    return Touch(kind="network", what=f"send to {_address(args[-1])}")


def _looked_up(args: tuple[Any, ...]) -> Touch | None:
    host, port = args[0], (args[1] if len(args) > 1 else None)
    return Touch(kind="network", what=f"look up {_address((host,) if port in (None, 0, '') else (host, port))}")


def _looked_up_address(args: tuple[Any, ...]) -> Touch | None:
    return Touch(kind="network", what=f"look up {_address(args[0])}")


def _started(args: tuple[Any, ...]) -> Touch | None:
    return Touch(kind="child", what=f"child process {_text(args[0])!r}")


def _executed(args: tuple[Any, ...]) -> Touch | None:
    return None if Path(_text(args[0])).name in HARMLESS_PROGRAMS else _started(args)


def _popen(args: tuple[Any, ...]) -> Touch | None:
    program = os.fsdecode(args[0] if args[0] is not None else next(iter(args[1]), ""))
    if Path(program).name in HARMLESS_PROGRAMS:
        return None
    return Touch(kind="child", what=f"child process {program!r}")


def _forked(_: tuple[Any, ...]) -> Touch | None:
    return Touch(kind="child", what="fork")


def _killed(args: tuple[Any, ...]) -> Touch | None:
    process, signal = args[0], args[1]
    if signal == 0 or process == os.getpid():
        return None
    return Touch(kind="child", what=f"signal {signal} to process {process}")


def _controlled(args: tuple[Any, ...]) -> Touch:
    return Touch(kind="child", what=args[0])


def _native_function(args: tuple[Any, ...]) -> Touch:
    library, name = args
    library_name = getattr(library, "_name", None)
    of = f" of {library_name}" if isinstance(library_name, str) else ""
    return Touch(kind="native", what=f"{NATIVE_CODE}{name}{of} by ctypes")


def _address_called(_: tuple[Any, ...]) -> Touch:
    return Touch(kind="native", what=f"{NATIVE_CODE}a function at an address by ctypes")


def _started_by_native_code(args: tuple[Any, ...]) -> Touch:
    library, program = args
    return Touch(kind="native", what=f"{NATIVE_CODE}child process {program!r} by {library}")


def _device_told(args: tuple[Any, ...]) -> Touch | None:
    return Touch(kind="child", what="type into a terminal") if args[1] & 0xFFFFFFFF in _TYPES_INPUT else None


def _descriptor_told(args: tuple[Any, ...]) -> Touch | None:
    """Tell of a descriptor whose news are signals to another process, or to a group."""
    _, order, whom = args
    if order != _SET_OWNER or not isinstance(whom, int) or whom in {0, os.getpid()}:
        return None
    return Touch(kind="child", what=f"have signals be sent to process {whom}")


def _bound(args: tuple[Any, ...]) -> Touch | None:
    """Tell of the file that a unix socket makes where it gets a name. It leads to this program alone."""
    path = _path(args[1]) if isinstance(args[1], str | bytes) else None
    return Touch(kind="socket", what=f"the file of a socket, {path}", path=path) if path and path[0] != "\0" else None


def _shared(args: tuple[Any, ...]) -> Touch | None:
    name, flags = args
    return (
        Touch(kind="socket", what=f"the shared memory {name}") if flags & os.O_ACCMODE or flags & os.O_CREAT else None
    )


def _logged(_: tuple[Any, ...]) -> Touch:
    """Tell of a message to the system's log, which C code sends by a socket of its own."""
    return Touch(kind="socket", what="a message to the system's log")


def _limited(args: tuple[Any, ...]) -> Touch | None:
    """Tell of a limit that lets a process leave a core file where it dies (core(5))."""
    number, limits = args
    if number != _CORE_SIZE or not limits[0]:
        return None
    return Touch(kind="socket", what="a core file of each process that dies of a signal")


def _limited_of(args: tuple[Any, ...]) -> Touch | None:
    """Tell it of prlimit(2) about this process; about others it is an act on them."""
    return _limited(args[1:]) if args[0] in {0, os.getpid()} and args[2] else None


def _raw_socket(args: tuple[Any, ...]) -> Touch | None:
    """Tell of sockets that speak to the kernel, or past TCP and UDP: sending by them raises no event that says whom."""
    _, family, kind, _protocol = args
    name = _RAW_FAMILIES.get(int(family)) or ("raw" if int(kind) & 0xF == _SOCK_RAW else None)
    return Touch(kind="child", what=f"open a {name} socket") if name else None


def has_network_family(args: tuple[Any, ...]) -> bool:
    """Tell from the arguments of a `SOCKET` event that it makes a socket of the network."""
    return int(args[1]) in _NETWORK_FAMILIES


def _database(args: tuple[Any, ...]) -> Touch | None:
    path = _path(args[0]) or ""
    plain = path.removeprefix("file:")
    if not plain or plain.startswith(":memory:") or "mode=memory" in plain:
        return None
    name, _, options = plain.partition("?")
    if path.startswith("file:") and ("mode=ro" in options or "immutable=1" in options):
        return Touch(kind="read", what=f"read database {name}", path=name)
    return Touch(kind="database", what=f"open database {path}", path=name)


def _native(args: tuple[Any, ...]) -> Touch:
    library, target, is_file = args
    if is_file:
        return Touch(kind="database", what=f"open database {target}", path=target)
    reached = f" to {target}" if target else ""
    return Touch(kind="network", what=f"connect{reached} by {library}")


_Reader: TypeAlias = Callable[[tuple[Any, ...]], Touch | None]
_KINDS: Final[dict[str, Kind]] = {}
_EVENTS: Final[dict[str, _Reader]] = {}


def _declare(kind: Kind, readers: Mapping[str, _Reader]) -> None:
    for event, reader in readers.items():
        _KINDS[event], _EVENTS[event] = kind, reader


_declare(
    "network",
    {
        "socket.connect": _connected,
        "socket.sendto": _send_touch,
        "socket.sendmsg": _send_touch,
        "socket.getaddrinfo": _looked_up,
        "socket.gethostbyname": _looked_up,
        "socket.gethostbyaddr": _looked_up,
        "socket.getnameinfo": _looked_up_address,
        NATIVE: _native,
    },
)
_declare(
    "child",
    {
        "subprocess.Popen": _popen,
        "os.system": _started,
        "os.posix_spawn": _started,
        "os.spawn": lambda args: _started(args[1:]),
        "os.startfile": _started,
        "os.exec": _executed,
        "os.fork": _forked,
        "os.forkpty": _forked,
        "os.kill": _killed,
        "os.killpg": _killed,
        PROCESS: _controlled,
        "fcntl.ioctl": _device_told,
        "fcntl.fcntl": _descriptor_told,
    },
)
_declare(
    "write",
    {
        "open": _opened,
        "os.remove": _changed("remove"),
        "os.rmdir": _changed("remove folder"),
        "os.mkdir": _changed("make folder"),
        NODE: _changed("make a pipe or device"),
        "os.truncate": _changed("truncate"),
        "os.chmod": _changed("change mode of"),
        "os.chown": _changed("change owner of"),
        "os.chflags": _changed("change flags of"),
        "os.utime": _changed("change times of"),
        "os.setxattr": _changed("change attributes of"),
        "os.removexattr": _changed("change attributes of"),
        "os.rename": _moved("move"),
        "os.link": _moved("link"),
        "os.symlink": _copied("link"),
        "shutil.rmtree": _changed("remove folder"),
        "shutil.move": _moved("move"),
        "shutil.copyfile": _copied("copy"),
        "shutil.copytree": _copied("copy folder"),
        "shutil.make_archive": _changed("write archive"),
        "shutil.unpack_archive": _changed("unpack"),
    },
)
_declare(
    "native",
    {
        "ctypes.dlsym": _native_function,
        "ctypes.dlsym/handle": _native_function,
        ADDRESS: _address_called,
        CHILD: _started_by_native_code,
    },
)
_declare("child", {SOCKET: _raw_socket})
_declare(
    "socket",
    {
        "socket.bind": _bound,
        MEMORY: _shared,
        "syslog.syslog": _logged,
        "resource.setrlimit": _limited,
        "resource.prlimit": _limited_of,
    },
)
_declare("read", {"os.listdir": _listed, "os.scandir": _listed})
_declare("database", dict.fromkeys(DATABASES, _database))

EVENTS: Final = frozenset(_EVENTS)
"""The names of the audit events that are looked at; a hook may turn away all others before anything else."""
