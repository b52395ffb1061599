"""Which system calls a program may make where Landlock seals it, as a filter of seccomp(2).

Three answers beside yes. *Refused*: the call reaches past what Landlock sees (sockets of the network, mounts, the
clock, keys, other processes, memory that is shared by name). *Asked*: whether it may depends on what an argument points
to, which no filter can read, or it changes what is known of a file and not its content, which Landlock does not see;
the process that waits for the program answers it (`warden`). *Unknown* (ENOSYS): calls that are younger than this
table, and those of another architecture, whose numbers mean something else.
"""

from __future__ import annotations

import ctypes
import os
import struct

from reenact.seal import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Final

    Step = tuple[int, int, int, int]

_SET_MODE_FILTER: Final = 1
_NEW_LISTENER: Final = 0x8
_WAIT_KILLABLE: Final = 0x20
"""A signal does not take back a call that is being answered (Linux 5.19)."""
_NEWEST: Final = 462
"""mseal: what came later was not looked at."""

_LOAD, _EQUAL, _ABOVE, _ANY_BIT, _AND, _END = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
_YES: Final = 0x7FFF0000
_ASK: Final = 0x7FC00000
_NO: Final = 0x00050000
_EPERM, _EACCES, _ENOTTY, _ENOSYS = 1, 13, 25, 38
_NUMBER, _ARCHITECTURE = 0, 4
_ABSENT: Final = -1

_MACHINES: Final = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The column of its numbers, and the architecture's own number (audit(7))."""

_NUMBERS: Final = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "open": (2, -1),
    "creat": (85, -1),
    "openat": (257, 56),
    "openat2": (437, 437),
    "link": (86, -1),
    "linkat": (265, 37),
    "unlink": (87, -1),
    "unlinkat": (263, 35),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, -1),
    "lchown": (94, -1),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "truncate": (76, 45),
    "mkdir": (83, -1),
    "mkdirat": (258, 34),
    "rmdir": (84, -1),
    "rename": (82, -1),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "symlink": (88, -1),
    "symlinkat": (266, 36),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "clone": (56, 220),
    "clone3": (435, 435),
    "unshare": (272, 97),
    "setns": (308, 268),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_getfd": (438, 438),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "mount_setattr": (442, 442),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "vhangup": (153, 58),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "nfsservctl": (180, 42),
    "syslog": (103, 116),
    "clock_settime": (227, 112),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "reboot": (169, 142),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "iopl": (172, -1),
    "ioperm": (173, -1),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "lookup_dcookie": (212, 18),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184),
    "mq_getsetattr": (245, 185),
    "seccomp": (317, 277),
}
"""The number of each call on x86-64, and on aarch64."""

_REFUSED: Final = (
    *("setns", "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd"),
    *("migrate_pages", "move_pages", "io_uring_setup", "io_uring_enter", "io_uring_register", "mount", "umount2"),
    *("pivot_root", "chroot", "move_mount", "open_tree", "mount_setattr", "fsopen", "fsconfig", "fsmount", "fspick"),
    *("swapon", "swapoff", "acct", "vhangup", "quotactl", "quotactl_fd", "nfsservctl", "syslog", "clock_settime"),
    *("settimeofday", "adjtimex", "clock_adjtime", "keyctl", "add_key", "request_key", "bpf", "perf_event_open"),
    *("userfaultfd", "reboot", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load"),
    *("iopl", "ioperm", "sethostname", "setdomainname", "lookup_dcookie", "open_by_handle_at", "fanotify_init"),
)
_REFUSED_AND_SAID: Final = (
    *("shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv"),
    *("msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr"),
)
"""Memory and queues that are shared by name: the warden refuses them, and says so."""
OF_FOLDERS: Final = {
    "mkdir": (0,),
    "mkdirat": (1,),
    "rmdir": (0,),
    "rename": (0, 1),
    "renameat": (1, 3),
    "renameat2": (1, 3),
    "symlink": (1,),
    "symlinkat": (2,),
    "mknod": (0,),
    "mknodat": (1,),
}
"""Calls that change folders, and which of their arguments name what they change. Landlock judges them."""
_ASKED: Final = (
    *("connect", "bind", "creat", "link", "linkat", "unlink", "unlinkat", "chmod", "fchmod", "fchmodat", "fchmodat2"),
    *("chown", "lchown", "fchown", "fchownat", "utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr"),
    *("fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "truncate"),
)
SIGNALS: Final = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")
"""They are asked about where Landlock does not keep signals apart."""
OF_ONESELF: Final = ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
"""With 0 for a process they are about the one that calls."""

_WRITING: Final = os.O_ACCMODE | os.O_CREAT | os.O_TRUNC
_UNIX: Final = 1
CONNECTING: Final = (1, 5)
"""Kinds of unix sockets: STREAM and SEQPACKET. Others can send to an address unconnected, and nobody is asked then."""
_NAMESPACES: Final = 0x7E020000
_NEW_TIME: Final = 0x80
_SET_LEASE, _NOTIFY, _SET_OWNER, _SET_OWNER_EX = 1024, 1026, 8, 15
_TYPES_INPUT: Final = (0x5412, 0x541C, 0x541D)
"""TIOCSTI, TIOCLINUX, TIOCCONS: they put words into a terminal, or take them."""
_OF_FILES: Final = {
    0x94: (0x40049409, 0x4020940D, 0xC0189436),  # FICLONE, FICLONERANGE, FIDEDUPERANGE; else btrfs's own
    0x66: (0x80086601, 0x80046601, 0xC020660B),  # FS_IOC_GETFLAGS and FS_IOC_FIEMAP; else flags, verity, encryption
    0x76: (0x80087601,),  # FS_IOC_GETVERSION
    0x58: (0x801C581F,),  # FS_IOC_FSGETXATTR; else xfs's own, and freezing
}
"""Of the calls ioctl(2) about a file, by their type, those that change nothing, or need it open for writing."""


def numbers() -> dict[int, str]:
    """Name the calls of this machine by their numbers. Raises `OSError` on a machine that is not known."""
    column, _ = _machine()
    return {columns[column]: name for name, columns in _NUMBERS.items() if columns[column] != _ABSENT}


def _machine() -> tuple[int, int]:
    machine = os.uname().machine
    if machine not in _MACHINES:
        raise OSError(_ENOSYS, os.strerror(_ENOSYS), f"seccomp on {machine}")
    return _MACHINES[machine]


def install(*, signals_asked: bool) -> int:
    """Filter the calls of this process and its children for good; give the descriptor at which they are asked about.

    Raises `OSError`. It is called with `NO_NEW_PRIVS`.
    """
    column, architecture = _machine()
    steps = [*_steps(column, architecture, signals_asked=signals_asked)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    described = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
    number = _NUMBERS["seccomp"][column]
    try:
        flags = _NEW_LISTENER | _WAIT_KILLABLE
        return kernel.call(number, _SET_MODE_FILTER, flags, described, about="seccomp")
    except OSError:
        return kernel.call(number, _SET_MODE_FILTER, _NEW_LISTENER, described, about="seccomp")


def _steps(column: int, architecture: int, *, signals_asked: bool) -> Iterator[Step]:
    yield (_LOAD, 0, 0, _ARCHITECTURE)
    yield (_EQUAL, 1, 0, architecture)
    yield _end(_NO | _ENOSYS)
    yield (_LOAD, 0, 0, _NUMBER)
    yield (_ABOVE, 0, 1, _NEWEST)  # the calls of x32 as well
    yield _end(_NO | _ENOSYS)
    for name, answers in _blocks(signals_asked=signals_asked):
        number = _NUMBERS[name][column]
        if number != _ABSENT:
            yield (_EQUAL, 0, len(answers), number)
            yield from answers
    yield _end(_YES)


def _blocks(*, signals_asked: bool) -> Iterator[tuple[str, Sequence[Step]]]:
    yield "openat", [_argument(2), (_ANY_BIT, 0, 1, _WRITING), _end(_ASK), _end(_YES)]
    yield "open", [_argument(1), (_ANY_BIT, 0, 1, _WRITING), _end(_ASK), _end(_YES)]
    yield "ioctl", _controls()
    leases = (_SET_LEASE, _NOTIFY, *((_SET_OWNER, _SET_OWNER_EX) if signals_asked else ()))
    yield "fcntl", [_argument(1), *_cases(leases, _NO | _EPERM), _end(_YES)]
    unix = [_argument(0), (_EQUAL, 1, 0, _UNIX), _end(_NO | _EACCES), _argument(1), (_AND, 0, 0, 0xF)]
    yield "socket", [_end(_ASK)]
    yield "socketpair", [*unix, *_cases(CONNECTING, _YES), _end(_NO | _EACCES)]
    yield "clone", [_argument(0), (_ANY_BIT, 0, 1, _NAMESPACES), _end(_NO | _EPERM), _end(_YES)]
    yield "unshare", [_argument(0), (_ANY_BIT, 0, 1, _NAMESPACES | _NEW_TIME), _end(_NO | _EPERM), _end(_YES)]
    for name in ("clone3", "openat2"):  # their flags lie in memory; every C library goes on with the older call
        yield name, [_end(_NO | _ENOSYS)]
    for name in OF_ONESELF:
        yield name, [_argument(0), (_EQUAL, 0, 1, 0), _end(_YES), _end(_ASK)]
    new_limit = [_argument(2), (_EQUAL, 0, 3, 0), _argument(2, high=True), *_cases((0,), _YES), _end(_ASK)]
    yield "prlimit64", [_argument(0), *_cases((0,), _YES), *new_limit]
    for name, process in (("setpriority", 0), ("ioprio_set", 1)):
        own = [_argument(0), (_EQUAL, 0, 3, process), _argument(1), *_cases((0,), _YES)]
        yield name, [*own, _end(_ASK)]
    for name in (*_ASKED, *OF_FOLDERS, *_REFUSED_AND_SAID, *(SIGNALS if signals_asked else ())):
        yield name, [_end(_ASK)]
    for name in _REFUSED:
        yield name, [_end(_NO | _EPERM)]


def _controls() -> Sequence[Step]:
    """Answer ioctl(2): what types into a terminal is refused, and what changes a file that is open for reading."""
    steps = [_argument(1), *_cases(_TYPES_INPUT, _NO | _EPERM)]
    for kind, harmless in _OF_FILES.items():
        inner = [_argument(1), *_cases(harmless, _YES), _end(_NO | _ENOTTY)]
        steps += [_argument(1), (_AND, 0, 0, 0xFF00), (_EQUAL, 0, len(inner), kind << 8), *inner]
    return [*steps, _end(_YES)]


def _end(answer: int) -> Step:
    return (_END, 0, 0, answer)


def _argument(place: int, *, high: bool = False) -> Step:
    """Load the lower half of an argument (little endian), or the higher."""
    return (_LOAD, 0, 0, 16 + 8 * place + (4 if high else 0))


def _cases(values: Sequence[int], answer: int) -> Iterator[Step]:
    for value in values:
        yield (_EQUAL, 0, 1, value)
        yield _end(answer)
