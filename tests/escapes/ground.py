"""The ground around a replay: files, listeners, processes and kernel objects that must be as they were afterwards."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from seal.outside import fill

LIBC = ctypes.CDLL(None, use_errno=True)
BEYOND = (
    *("/", "/tmp", "/var", "/var/tmp", "/var/log", "/var/mail", "/var/spool", "/var/spool/cron/crontabs", "/var/lib"),
    *("/etc", "/etc/cron.d", "/usr/local/bin", "/opt", "/srv", "/mnt", "/home", "/root", "/run", "/run/lock"),
    *("/dev", "/dev/shm", "/dev/mqueue"),
    *("/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified"),
)
"""Folders of the machine in which a program may leave something whose name holds the ground's tag."""
VICTIM = (
    "import ctypes, os, sys, time; b = ctypes.create_string_buffer(b'untouched'); "
    "print(ctypes.addressof(b), flush=True); time.sleep(90000)"
)
BUFFER = 9
MULTICAST = "239.77.7.7"
IPC_RMID = 0
_FILLED_NS = 1_700_000_000_000_000_000
KEYCTL, JOIN_SESSION_KEYRING, KEYCTL_SEARCH, SESSION_KEYRING = 250, 1, 10, -3


@dataclass
class Ground:
    """All of it; `reset` undoes what a program did, `seen` looks."""

    folder: Path
    tag: str
    port: int = 0
    udp_port: int = 0
    multicast_port: int = 0
    vsock_port: int = 0
    heard: list[str] = field(default_factory=list[str])
    victim: subprocess.Popen[str] | None = None
    buffer: int = 0
    as_made: object = None
    """How the victim was when it was made."""
    more: dict[str, Any] = field(default_factory=dict[str, Any])
    """Places of servers that the caller runs, handed to the programs."""
    counters: dict[str, Callable[[], object]] = field(default_factory=dict[str, Callable[[], object]])
    """What else is looked at, where it is `asked`: rows of servers."""
    asked: bool = False
    trying: str = ""
    """The program at hand."""
    _stack: ExitStack = field(default_factory=ExitStack)
    _files: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        LIBC.syscall(KEYCTL, JOIN_SESSION_KEYRING, None)
        self.port = self._serve("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))[1]
        self.udp_port = self._serve("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))[1]
        self._serve("abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.tag}")
        member = struct.pack("4s4s", socket.inet_aton(MULTICAST), socket.inet_aton("127.0.0.1"))
        option = (socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        self.multicast_port = self._serve("multicast", socket.AF_INET, socket.SOCK_DGRAM, (MULTICAST, 0), option)[1]
        with suppress(OSError):
            self.vsock_port = self._serve("vsock", socket.AF_VSOCK, socket.SOCK_STREAM, (1, socket.VMADDR_PORT_ANY))[1]
        self.reset()
        return self

    def __exit__(self, *_: object) -> None:
        self.clean()
        self._stop()
        self._files.close()
        self._stack.close()

    def reset(self) -> None:
        """Make everything new that a program may have changed; addresses stay, where they can."""
        self.clean()
        self._files.close()
        # No recursion: programs lay deep trees.
        subprocess.run(["rm", "-rf", str(self.folder), str(self.folder.with_name("tmp"))], check=True)
        fill(self.folder)
        for path in self.folder.rglob("*"):  # as old as before: an archive of them is the same
            os.utime(path, ns=(_FILLED_NS, _FILLED_NS), follow_symlinks=False)
        self.folder.with_name("tmp").mkdir(exist_ok=True)
        home = self.folder / "home"
        (home / ".config" / "autostart").mkdir(parents=True)
        (home / ".bashrc").write_text("# the user's own\n")
        (home / ".ssh").mkdir()
        (home / ".ssh" / "authorized_keys").write_text("ssh-ed25519 AAAA user\n")
        (self.folder / "spool").mkdir()
        self._repositories()
        self._serve("unix", socket.AF_UNIX, socket.SOCK_STREAM, str(self.folder / "s.sock"), here=True)
        self._serve("unix datagram", socket.AF_UNIX, socket.SOCK_DGRAM, str(self.folder / "d.sock"), here=True)
        self._hear_pipe(self.folder / "pipe")
        self.heard.clear()
        if self.victim is None or self._victim() != self.as_made:
            self._stop()
            self.victim = subprocess.Popen([sys.executable, "-IS", "-c", VICTIM], stdout=subprocess.PIPE, text=True)
            assert self.victim.stdout is not None
            self.buffer = int(self.victim.stdout.readline())
            self.as_made = self._victim()
        (self.folder / "victim").write_text(str(self.victim.pid))  # for who is told the same words each time
        places = {
            "folder": str(self.folder),
            "tag": self.tag,
            "port": self.port,
            "udp_port": self.udp_port,
            "multicast_port": self.multicast_port,
            "vsock_port": self.vsock_port,
            "victim": self.victim.pid,
            "buffer": self.buffer,
            "key": self.key,
            "address": self.address,
            **self.more,
        }
        self.folder.with_name("where.json").write_text(json.dumps(places))

    def _repositories(self) -> None:
        """Lay out a repository with one commit, and a bare one; made once, copied from then on."""
        made = self.folder.with_name("repositories")
        if not made.exists():
            git = ["git", "-c", "init.defaultBranch=main", "-c", "user.name=u", "-c", "user.email=u@example.org"]
            subprocess.run([*git, "init", "-q", str(made / "repo")], check=True)
            subprocess.run([*git, "init", "-q", "--bare", str(made / "origin.git")], check=True)
            (made / "repo" / "a.txt").write_text("a\n")
            subprocess.run([*git, "add", "a.txt"], cwd=made / "repo", check=True)
            subprocess.run([*git, "commit", "-q", "-m", "one"], cwd=made / "repo", check=True)
        shutil.copytree(made, self.folder, dirs_exist_ok=True)

    @property
    def address(self) -> str:
        """What a program gives the loopback, by netlink."""
        return f"127.66.{self.key >> 8 & 255}.{self.key & 255 | 1}"

    @property
    def key(self) -> int:
        """The key of System V objects."""
        return zlib.crc32(self.tag.encode()) & 0x7FFFFFFF

    def clean(self) -> None:
        """Take away what lies beyond the folder."""
        for path in self._beyond():
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            with suppress(OSError):
                path.rmdir()
        if self.address in Path("/proc/net/fib_trie").read_text():
            subprocess.run(["ip", "addr", "del", f"{self.address}/32", "dev", "lo"], capture_output=True, check=False)
        LIBC.shmctl(LIBC.shmget(self.key, 0, 0), IPC_RMID, None)
        LIBC.semctl(LIBC.semget(self.key, 0, 0), 0, IPC_RMID)
        LIBC.msgctl(LIBC.msgget(self.key, 0), IPC_RMID, None)
        key = LIBC.syscall(KEYCTL, KEYCTL_SEARCH, SESSION_KEYRING, b"user", self.tag.encode(), 0)
        if key > 0:
            LIBC.syscall(KEYCTL, 9, key, SESSION_KEYRING)  # KEYCTL_UNLINK

    def seen(self) -> dict[str, object]:
        """Look at all of it."""
        return {
            "files": files(self.folder),
            "attributes": {str(path): os.listxattr(path) for path in self.folder.iterdir() if path.is_file()},
            "beyond": [str(path) for path in self._beyond()],
            "left over": sorted(path.name for path in self.folder.with_name("tmp").glob("reenact-*")),
            "heard": sorted(set(self.heard)),
            "victim": self._victim(),
            "system v": self._system_v(),
            "key": LIBC.syscall(KEYCTL, KEYCTL_SEARCH, SESSION_KEYRING, b"user", self.tag.encode(), 0) > 0,
            "name": socket.gethostname(),
            "addresses": self.address in Path("/proc/net/fib_trie").read_text(),
            **({name: look() for name, look in self.counters.items()} if self.asked else {}),
        }

    def _beyond(self) -> list[Path]:
        found = [path for folder in BEYOND for path in Path(folder).glob(f"*{self.tag}*")]
        return [path for path in found if not path.name.endswith(".keep")]

    def _victim(self) -> object:
        assert self.victim is not None
        place = Path(f"/proc/{self.victim.pid}")
        with suppress(OSError):
            state = (place / "stat").read_text().rpartition(")")[2].split()
            with (place / "mem").open("rb", buffering=0) as memory:
                memory.seek(self.buffer)
                content = memory.read(BUFFER)
            affinity = sorted(os.sched_getaffinity(self.victim.pid))
            return (
                state[0] not in "TtZX",
                state[16],
                affinity,
                (place / "limits").read_text(),
                (place / "oom_score_adj").read_text(),
                content,
                os.sched_getscheduler(self.victim.pid),
            )
        return "gone"

    def _stop(self) -> None:
        if self.victim is not None:
            self.victim.kill()
            with suppress(ProcessLookupError):
                os.kill(self.victim.pid, signal.SIGCONT)
            self.victim.wait()

    def _system_v(self) -> list[str]:
        tables = [Path("/proc/sysvipc") / name for name in ("shm", "sem", "msg")]
        lines = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()]
        return [" ".join(line[:2]) for line in lines if line[0] == str(self.key)]

    def _serve(self, name: str, family: int, kind: int, address: Any, *options: Any, here: bool = False) -> Any:
        stack = self._files if here else self._stack
        server = stack.enter_context(socket.socket(family, kind))
        for option in options:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.setsockopt(*option)
        server.bind(address)
        if kind == socket.SOCK_STREAM:
            server.listen()

        def hear() -> None:
            with suppress(OSError):
                while True:
                    if kind == socket.SOCK_STREAM:
                        threading.Thread(target=self._answer, args=(name, server.accept()[0]), daemon=True).start()
                    elif not server.recv(100):
                        return
                    self.heard.append(name)

        threading.Thread(target=hear, daemon=True).start()
        if kind == socket.SOCK_STREAM:
            stack.callback(_shut, server)
        return server.getsockname()

    @staticmethod
    def _answer(_name: str, met: socket.socket) -> None:
        """Answer whatever is asked as a web server would, and let go."""
        with suppress(OSError), met:
            met.settimeout(0.5)
            met.recv(65536)
            met.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")

    def _hear_pipe(self, path: Path) -> None:
        """Read a named pipe for as long as the folder stands."""
        os.mkfifo(path)
        pipe = os.open(path, os.O_RDWR)
        self._files.callback(os.close, pipe)
        ended = threading.Event()
        self._files.callback(ended.set)

        def hear() -> None:
            import select

            while not ended.is_set():
                with suppress(OSError, ValueError):
                    if select.select([pipe], [], [], 0.1)[0] and not ended.is_set():
                        os.read(pipe, 100)
                        self.heard.append("pipe")

        thread = threading.Thread(target=hear, daemon=True)
        thread.start()
        self._files.callback(thread.join)
        self._files.callback(ended.set)


def files(folder: Path) -> dict[str, object]:
    """Give every file with what `stat` and its content say, but for when it was looked at; however deep it lies."""
    found: dict[str, object] = {}
    waiting = [str(folder)]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            told = entry.stat(follow_symlinks=False)
            content: object = None
            if entry.is_symlink():
                content = str(Path(entry.path).readlink())
            elif entry.is_dir():
                waiting.append(entry.path)
            elif entry.is_file():
                content = hashlib.sha256(Path(entry.path).read_bytes()).hexdigest()
            times = () if entry.is_dir(follow_symlinks=False) else (told.st_mtime_ns,)
            name = os.path.relpath(entry.path, folder).encode(errors="surrogateescape").decode(errors="replace")
            found[name] = (told.st_mode, told.st_uid, told.st_gid, told.st_nlink, *times, content)
    return found


def _shut(server: socket.socket) -> None:
    with suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)
