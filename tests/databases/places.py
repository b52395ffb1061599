"""A Postgres, a MariaDB and a Redis of a test's own, and what they say was done to them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from escapes.servers import free_port, meets, redis_server

LIMIT_S = 30
MARIADB = ("mariadbd", "mariadb-install-db")


@dataclass
class Places:
    """Where the servers are, and how to stop them."""

    environ: dict[str, str] = field(default_factory=dict[str, str])
    running: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])
    log: Path | None = None
    mysql_log: Path | None = None
    redis_port: int = 0
    chroma_port: int = 0
    stand_ins: dict[str, int] = field(default_factory=dict[str, int])
    """The ports of servers that we wrote ourselves, which say how often they were asked."""

    def done(self) -> dict[str, int]:
        """Count what was done at the servers so far: sessions and statements, connections and commands."""
        found: dict[str, int] = {}
        if self.log is not None:
            text = self.log.read_text(errors="replace")
            found |= {"sessions": text.count("connection authorized"), "statements": text.count("statement:")}
            found["executed"] = text.count("execute ")
        if self.mysql_log is not None:
            lines = self.mysql_log.read_text(errors="replace").splitlines()
            found["mysql sessions"] = sum("Connect\t" in line for line in lines)
            found["mysql statements"] = sum("Query\t" in line for line in lines)
        if self.redis_port:
            with socket.create_connection(("127.0.0.1", self.redis_port)) as met:
                met.sendall(b"INFO stats\r\n")
                time.sleep(0.05)
                lines = met.recv(65536).decode().splitlines()
            named = dict(line.split(":", 1) for line in lines if ":" in line)
            found["commands"] = int(named["total_commands_processed"])
            found["connections"] = int(named["total_connections_received"])
        if self.chroma_port:
            above = "api/v2/tenants/default_tenant/databases/default_database"
            with urllib.request.urlopen(f"http://127.0.0.1:{self.chroma_port}/{above}/collections") as answer:
                listed = json.load(answer)  # a program makes its own anew, with another id
            found["collections"] = sum(int(uuid.UUID(each["id"])) for each in listed)
        for name, port in self.stand_ins.items():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_asked") as answer:
                found[name] = json.load(answer)["asked"]
        return found

    def stop(self) -> None:
        """End the servers."""
        for server in self.running:
            server.terminate()
        for server in self.running:
            server.wait(LIMIT_S)
        self.running.clear()


@contextmanager
def servers() -> Generator[Places]:
    """Start those that can be had, in a folder that everybody may enter; a unix socket's path has 107 bytes."""
    places = Places()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reenact-db-")))
        folder.chmod(0o755)
        stack.callback(places.stop)
        _postgres(folder / "pg", places)
        _mysql(folder / "mysql", places)
        _redis(folder / "redis", places)
        _mongo(folder / "mongo", places)
        _chroma(folder / "chroma", places)
        _stand_in("elastic", places)
        if find_spec("qdrant_client") is not None:  # its collections in memory stand behind the stand-in
            _stand_in("qdrant", places)
        yield places


def _postgres(folder: Path, places: Places) -> None:
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    found = str(programs[-1]) if programs else shutil.which("initdb")
    if found is None:
        return
    bin_ = Path(found).resolve().parent
    folder.mkdir(mode=0o755)
    root = os.getuid() == 0
    shutil.chown(folder, "nobody") if root else None
    drop = ["setpriv", "--reuid=nobody", "--clear-groups"] if root else []  # Postgres refuses to be root
    port, data = free_port(), folder / "data"
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C"}
    made = [*drop, str(bin_ / "initdb"), "-D", str(data), "-A", "trust", "-U", "u", "-N", "-E", "UTF8"]
    subprocess.run(made, check=True, capture_output=True, env=environ, cwd=folder)
    told = ["-c", "fsync=off", "-c", "log_connections=on", "-c", "log_statement=all"]
    command = [*drop, str(bin_ / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder), *told]
    places.log = folder.parent / "postgres.log"
    with places.log.open("wb") as log:
        places.running.append(subprocess.Popen(command, env=environ, stdout=log, stderr=log, cwd=folder))
    assert meets(("127.0.0.1", port))
    places.environ["PG_PORT"] = str(port)
    ends = time.monotonic() + LIMIT_S
    psql = ["psql", "-qAt", f"host=127.0.0.1 port={port} user=u dbname=postgres", "-c", "SELECT 1"]
    while subprocess.run(psql, capture_output=True, check=False).returncode:
        if time.monotonic() > ends:
            raise TimeoutError("Postgres has started and answers nothing")
        time.sleep(0.1)


def _mysql(folder: Path, places: Places) -> None:
    """Start MariaDB, which is what Debian has of MySQL (mariadb-server-core)."""
    found, making = (shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in MARIADB)
    if found is None or making is None:
        return
    folder.mkdir(mode=0o755)
    root = os.getuid() == 0
    shutil.chown(folder, "nobody") if root else None
    own = ["--no-defaults", f"--datadir={folder / 'data'}", *(["--user=nobody"] if root else [])]
    made = [making, *own, "--auth-root-authentication-method=normal", "--skip-test-db"]
    subprocess.run(made, check=True, capture_output=True, cwd=folder)
    users = folder / "users.sql"
    users.write_text("CREATE DATABASE shop;\nCREATE USER u@'%';\nGRANT ALL ON *.* TO u@'%';\n")
    port, places.mysql_log = free_port(), folder / "general.log"
    told = [f"--socket={folder / 'sock'}", f"--port={port}", "--bind-address=127.0.0.1", f"--pid-file={folder / 'pid'}"]
    told += ["--skip-name-resolve", f"--init-file={users}", "--general-log", f"--general-log-file={places.mysql_log}"]
    with (folder.parent / "mariadb.log").open("wb") as log:
        places.running.append(subprocess.Popen([found, *own, *told], stdout=log, stderr=log, cwd=folder))
    assert meets(("127.0.0.1", port))
    places.environ["MYSQL_PORT"] = str(port)


def _redis(folder: Path, places: Places) -> None:
    found = redis_server()
    if found is None:
        return
    folder.mkdir()
    port = free_port()
    command = [found, "--port", str(port), "--save", "", "--dir", str(folder)]
    places.running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    assert meets(("127.0.0.1", port))
    places.redis_port = port
    places.environ["REDIS_PORT"] = str(port)


def _mongo(folder: Path, places: Places) -> None:
    """Start what speaks MongoDB's protocol over SQLite: MongoDB itself is of no wheel and none of Debian's packages."""
    found = shutil.which("nx-27017", path=str(Path(sys.executable).parent))
    if found is None:
        return
    folder.mkdir()
    port = free_port()
    files = ["--log-file", str(folder / "log"), "--pid-file", str(folder / "pid")]
    command = [found, "--db", "memory", "-p", str(port), *files]
    places.running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder))
    assert meets(("127.0.0.1", port))
    places.environ["MONGO_PORT"] = str(port)


def _chroma(folder: Path, places: Places) -> None:
    """Start Chroma's server, which comes with its client."""
    if find_spec("chromadb") is None:
        return
    folder.mkdir()
    port = free_port()
    words = ["chroma", "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    code = f"import sys; sys.argv = {words}; from chromadb.cli.cli import app; app()"
    command = [sys.executable, "-c", code]
    places.running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder))
    assert meets(("127.0.0.1", port))
    places.chroma_port = port
    places.environ["CHROMA_PORT"] = str(port)


def _stand_in(name: str, places: Places) -> None:
    """Start what we wrote from the schema of a server's API, where the server is of no wheel and none of Debian's."""
    port = free_port()
    command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), str(port)]
    places.running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    assert meets(("127.0.0.1", port))
    places.stand_ins[name] = port
    places.environ[f"{name.upper()}_PORT"] = str(port)
