"""System calls of Linux that Python has no function for: unshare(2), mount(2), mount_setattr(2), prctl(2), capset(2).

Each raises `OSError` with the path it was about. They are called in a process of one thread that is about to become
another program, never in one that runs user code.

This room is imported before every replay, and nothing else of that process is: `typing`, `dataclasses`, `pathlib` and
`socket` would cost more than the seal.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

NEWNS: Final = 0x00020000
NEWIPC: Final = 0x08000000
NEWUSER: Final = 0x10000000
NEWPID: Final = 0x20000000
NEWNET: Final = 0x40000000

RDONLY: Final = 0x1
NOSUID: Final = 0x2
NODEV: Final = 0x4
NOEXEC: Final = 0x8
BIND: Final = 0x1000
REC: Final = 0x4000
PRIVATE: Final = 0x40000

_MOUNT_SETATTR: Final = 442  # the same on every architecture (Linux 5.12)
_ATTR_RDONLY: Final = 0x1
_AT_EMPTY_PATH: Final = 0x1000
_MNT_DETACH: Final = 0x2
_SIOCGIFFLAGS: Final = 0x8913
_SIOCSIFFLAGS: Final = 0x8914
_SIOCSIFADDR: Final = 0x8916
_IFF_UP: Final = 0x1
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_SECCOMP: Final = 22
_PR_CAPBSET_DROP: Final = 24
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_CAP_AMBIENT: Final = 47
_CLEAR_ALL: Final = 4
_SECCOMP_MODE_FILTER: Final = 2
_CAPABILITY_VERSION: Final = 0x20080522
_LAST_CAPABILITY: Final = 63

_ARCHITECTURES: Final = {
    "x86_64": (0xC000003E, 41, (248, 249, 250, 425)),
    "aarch64": (0xC00000B7, 198, (217, 218, 219, 425)),
}
"""The number of an architecture for audit(7), that of socket(2) on it, and those of add_key(2), request_key(2),
keyctl(2) and io_uring_setup(2): keyrings are held apart by no namespace, and no filter sees what io_uring does."""
_X32: Final = 0x40000000
"""The bit of the numbers of another ABI of x86_64, under which every call has a second number."""
_FAMILIES: Final = (1, 2, 10, 16, 17)
"""What a network namespace holds apart: UNIX, INET, INET6, NETLINK, PACKET. Others, as VSOCK, reach past it."""
_AF_UNIX: Final = 1
_JOIN_SESSION_KEYRING: Final = 1
_AF_INET: Final = 2
_AF_INET6: Final = 10
_SOCK_DGRAM: Final = 2
_LOOPBACK: Final = 1
"""The number of the loopback interface of every network namespace."""


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, about: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), about)


def call(number: int, *arguments: int | bytes, about: str) -> int:
    """Make a system call by its number (syscall(2)); give its result. Raises `OSError`, which names `about`."""
    operands = (each if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments)
    result = int(_call()(ctypes.c_long(number), *operands))
    if result < 0:
        _checked(result, about)
    return result


@cache
def _call() -> Any:
    function = _libc().syscall
    function.restype = ctypes.c_long
    return function


def unshare(flags: int) -> None:
    """Enter new namespaces."""
    _checked(_libc().unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount something at a path."""
    operands = [each.encode() if each else None for each in (source, target, kind)]
    _checked(_libc().mount(*operands, ctypes.c_ulong(flags), options.encode() if options else None), target)


def mount_if_there(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> bool:
    """Mount something at a path, unless others took the source, an open descriptor, away; tell whether it was there.

    What is no longer in any folder cannot be mounted (`ENOENT`).
    """
    try:
        mount(source, target, kind, flags, options)
    except FileNotFoundError:
        if os.path.lexists(target) and os.stat(source).st_nlink:
            raise
        return False
    return True


def make_read_only(handle: int, about: str) -> None:
    """Make the mount at an open descriptor read only, and leave what else it is."""
    attributes = struct.pack("QQQQ", _ATTR_RDONLY, 0, 0, 0)
    arguments = (handle, b"", ctypes.c_uint(_AT_EMPTY_PATH), attributes, ctypes.c_size_t(len(attributes)))
    _checked(_libc().syscall(ctypes.c_long(_MOUNT_SETATTR), *arguments), about)


def unmount(path: str) -> None:
    """Let go what is mounted at a path, with all that is mounted in it (umount2(2), MNT_DETACH)."""
    _checked(_libc().umount2(path.encode(), _MNT_DETACH), path)


def pivot_root(new: str, old: str) -> None:
    """Make a mount the root of all files of this namespace; the one before is at `old` then, which lies in it."""
    number = {"x86_64": 155, "aarch64": 41}.get(os.uname().machine)
    if number is None:
        raise OSError(38, os.strerror(38), "pivot_root")
    call(number, new.encode() + b"\0", old.encode() + b"\0", about="pivot_root")


def raise_loopback() -> None:
    """Bring up the loopback interface of this network namespace (netdevice(7): a socket of any family will do)."""
    talk = _talk(_AF_UNIX)
    try:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(talk, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(talk, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))
    finally:
        os.close(talk)


def add_address(number: int, address: bytes) -> None:
    """Give the loopback interface a further address, of 4 or 16 bytes (netdevice(7), ipv6(7)); `number` names it."""
    talk = _talk(_AF_INET if len(address) == 4 else _AF_INET6)
    try:
        if len(address) == 4:
            request = struct.pack("16sHH4s16x", b"lo:%d" % number, _AF_INET, 0, address)
        else:
            request = struct.pack("16sIi", address, 128, _LOOPBACK)
        fcntl.ioctl(talk, _SIOCSIFADDR, request)
    finally:
        os.close(talk)


def _talk(family: int) -> int:
    handle = int(_libc().socket(family, _SOCK_DGRAM, 0))
    _checked(min(handle, 0), "socket")
    return handle


def _prctl(number: int, *arguments: Any) -> int:
    padded = [*arguments, 0, 0, 0, 0][:4]
    return int(_libc().prctl(number, *(each if isinstance(each, bytes) else ctypes.c_ulong(each) for each in padded)))


def end_with_parent(number: int) -> None:
    """Have the kernel send this process a signal when its parent dies."""
    _checked(_prctl(_PR_SET_PDEATHSIG, number), "prctl")


def allow_tracing(*, allow: bool) -> None:
    """Let other processes of this user trace this one, or not."""
    _checked(_prctl(_PR_SET_DUMPABLE, int(allow)), "prctl")


def adopt_orphans() -> None:
    """Have every process that descends from this one become its child when its own parent is gone."""
    _checked(_prctl(_PR_SET_CHILD_SUBREAPER, 1), "prctl")


def keep_capabilities(capabilities: frozenset[int]) -> None:
    """Give up every capability but these, for this process and whatever it will become."""
    for number in range(_LAST_CAPABILITY + 1):
        if number not in capabilities:
            _prctl(_PR_CAPBSET_DROP, number)  # EINVAL past the last one that this kernel knows
    _prctl(_PR_CAP_AMBIENT, _CLEAR_ALL)
    mask = sum(1 << number for number in capabilities)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    _checked(_libc().capset(header, struct.pack("6I", low, low, 0, high, high, 0)), "capset")
    _checked(_prctl(_PR_SET_NO_NEW_PRIVS, 1), "prctl")


def leave_keyring() -> None:
    """Leave the session keyring, which a process inherits, for an empty one (keyctl(2)). A kernel may have none."""
    number = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine)
    if number is not None:
        _libc().syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None)


def refuse_what_is_not_apart() -> None:
    """Refuse what no namespace holds apart: other families of sockets, keyrings, io_uring (seccomp(2))."""
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        raise OSError(38, os.strerror(38), f"seccomp on {machine}")
    architecture, socket, others = _ARCHITECTURES[machine]
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    allow, error = 0x7FFF0000, 0x00050000
    absent, unsupported = error | 38, error | 97  # ENOSYS, EAFNOSUPPORT
    count = len(_FAMILIES)
    steps = [
        (load, 0, 0, 4),  # the architecture
        (equal, 1, 0, architecture),
        (answer, 0, 0, absent),  # another one's numbers mean other calls
        (load, 0, 0, 0),  # the number of the call
        (at_least, len(others) + 2, 0, _X32),
        *((equal, len(others) + 1 - place, 0, number) for place, number in enumerate(others)),
        (equal, 2, 0, socket),
        (answer, 0, 0, allow),
        (answer, 0, 0, absent),
        (load, 0, 0, 16),  # its first argument
        *((equal, count - place, 0, family) for place, family in enumerate(_FAMILIES)),
        (answer, 0, 0, unsupported),
        (answer, 0, 0, allow),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    described = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
    _checked(_prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, described), "seccomp")
