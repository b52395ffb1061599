"""What a sealed program must not change: a folder with files, servers on every kind of socket, another process."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Outside:
    """It and what was seen of it."""

    folder: Path
    port: int
    udp_port: int
    abstract: str
    victim: int
    heard: list[str] = field(default_factory=list[str])

    def environ(self) -> dict[str, str]:
        """Tell a probe where everything is."""
        places = {"PORT": self.port, "UDP_PORT": self.udp_port, "ABSTRACT": self.abstract, "VICTIM": self.victim}
        return {"FOLDER": str(self.folder), **{name: str(value) for name, value in places.items()}}

    def seen(self) -> dict[str, object]:
        """Look at all of it."""
        victim = f"/proc/{self.victim}"
        with suppress(OSError, ProcessLookupError):
            limits = Path(victim, "limits").read_text()
            state = Path(victim, "stat").read_text().rpartition(")")[2].split()
            affinity = sorted(os.sched_getaffinity(self.victim))
            return {
                "files": files(self.folder),
                "heard": [*self.heard],
                "victim": (state[0] in "SRD", state[16], limits, affinity),
                "shared memory": sorted(path.name for path in Path("/dev/shm").glob(f"reenact-{self.victim}")),
                "system v": self._segments(),
                "name": socket.gethostname(),
            }
        return {"victim": "gone"}

    def _segments(self) -> list[str]:
        """Give the shared memory of System V whose key is the victim's number, as the probes make it."""
        lines = Path("/proc/sysvipc/shm").read_text().splitlines() if Path("/proc/sysvipc/shm").exists() else []
        return [line for line in lines if line.split()[0] == str(self.victim)]


def files(folder: Path) -> dict[str, object]:
    """Give every file with its content and what `stat` says of it, but for when it was looked at."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        told = path.lstat()
        content: object = None
        if stat.S_ISREG(told.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(told.st_mode):
            content = path.readlink()
        kind = (told.st_mode, told.st_uid, told.st_gid, told.st_nlink)
        times = () if stat.S_ISDIR(told.st_mode) else (told.st_mtime_ns,)
        found[str(path.relative_to(folder))] = (*kind, *times, content)
    return found


def fill(folder: Path) -> None:
    """Make a folder as a user has it."""
    folder.mkdir()
    (folder / "kept.txt").write_text("the user's own line\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "inner.txt").write_text("inner\n")
    (folder / "app.log").write_text("yesterday\n" * 20)
    import sqlite3

    with sqlite3.connect(folder / "data.db") as database:
        database.execute("CREATE TABLE t (a)")
        database.execute("INSERT INTO t VALUES (1)")
    database.close()


@contextmanager
def outside(folder: Path) -> Iterator[Outside]:
    """Make it, and let it go."""
    fill(folder)
    heard: list[str] = []
    with ExitStack() as stack:

        def serve(name: str, family: int, kind: int, address: object) -> socket.socket:
            server = stack.enter_context(socket.socket(family, kind))
            server.bind(address)  # type: ignore[arg-type]
            if kind == socket.SOCK_STREAM:
                server.listen()

            def hear() -> None:
                with suppress(OSError):
                    while True:
                        if kind == socket.SOCK_STREAM:
                            server.accept()[0].close()
                        elif not server.recv(100):
                            return
                        heard.append(name)

            threading.Thread(target=hear, daemon=True).start()
            stack.callback(server.shutdown, socket.SHUT_RDWR) if kind == socket.SOCK_STREAM else None
            return server

        abstract = f"reenact-test-{os.getpid()}-{folder.name}"
        tcp = serve("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        udp = serve("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        serve("unix", socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "s.sock"))
        serve("unix datagram", socket.AF_UNIX, socket.SOCK_DGRAM, str(folder / "d.sock"))
        serve("abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}")
        victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        made = Outside(folder, tcp.getsockname()[1], udp.getsockname()[1], abstract, victim.pid, heard)
        yield made
