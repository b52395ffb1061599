"""Programs that try to get out of a replay: what a replay says of the world is held against what is seen from outside."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from escapes import servers
from escapes.ground import Ground
from escapes.matrix import MATRIX
from escapes.model import model
from escapes.trial import Probe, Row, try_out

ALL = [(kind, name) for kind, probes in MATRIX.items() for name in probes]
NATIVE = [(kind, name) for kind, name in ALL if MATRIX[kind][name].client]


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    with ground_with_servers() as made:
        yield made


@contextmanager
def ground_with_servers() -> Iterator[Ground]:
    """Start every server that can be had, and make the ground around them."""
    # Not pytest's own folder: a unix socket's path has room for 107 bytes.
    with ExitStack() as stack:
        top = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="oz-", ignore_cleanup_errors=True)))
        top.chmod(0o755)
        tag = f"oz{os.getpid()}z"
        places: dict[str, object] = {"model": stack.enter_context(model())}
        for start in (servers.postgres, servers.redis):
            places |= stack.enter_context(start(top / start.__name__))
        looks = {name: place for name, place in places.items() if callable(place)}
        made = Ground(top / "outside", tag, counters=looks)
        made.more = {name: place for name, place in places.items() if not callable(place)}
        if os.getuid() == 0:
            made.more |= beside_the_copies(made, stack)
        yield stack.enter_context(made)


def beside_the_copies(ground: Ground, stack: ExitStack) -> dict[str, object]:
    """Serve in folders that are not copied: the root folder, /run."""
    names = {"root_socket": f"/{ground.tag}.sock.keep", "run_socket": f"/run/{ground.tag}.sock.keep"}
    if not Path("/dev/log").exists():
        names["log_socket"] = "/dev/log"
    for name, path in names.items():
        kind = socket.SOCK_DGRAM if name == "log_socket" else socket.SOCK_STREAM
        server = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
        server.bind(path)
        stack.callback(os.unlink, path)

        def hear(server: socket.socket = server, name: str = name, kind: int = kind) -> None:
            with suppress(OSError):
                while True:
                    server.accept()[0].close() if kind == socket.SOCK_STREAM else server.recv(999)
                    ground.heard.append(name)

        if kind == socket.SOCK_STREAM:
            server.listen()
            stack.callback(server.shutdown, socket.SHUT_RDWR)
        threading.Thread(target=hear, daemon=True).start()
    pipe = f"/{ground.tag}.pipe.keep"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    stack.callback(os.unlink, pipe)

    def read() -> None:
        with suppress(OSError):
            while os.read(reader, 99):
                ground.heard.append("root pipe")

    threading.Thread(target=read, daemon=True).start()
    late, go, gone = f"/{ground.tag}.late.keep", Path(f"/tmp/{ground.tag}.go"), threading.Event()
    stack.callback(gone.set)

    def serve_late() -> None:
        """Make a socket when a program has started and asks for it, not before."""
        while not gone.wait(0.02):
            if not Path("/proc").exists() or not _asked(go):
                continue
            with suppress(OSError), socket.socket(socket.AF_UNIX) as server:
                server.bind(late)
                server.listen()
                server.settimeout(5)
                with suppress(OSError):
                    server.accept()[0].close()
                    ground.heard.append("late")
            Path(late).unlink(missing_ok=True)
            time.sleep(1)

    threading.Thread(target=serve_late, daemon=True).start()
    return {**names, "root_pipe": pipe, "late_socket": late}


def _asked(go: Path) -> bool:
    return go.exists() or any(Path(f"/proc/{pid}/root{go}").exists() for pid in _programs())


def _programs() -> list[str]:
    found: list[str] = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                if b"program.py" in Path(entry.path, "cmdline").read_bytes():
                    found.append(entry.name)
    return found


def missing(probe: Probe, ground: Ground) -> str:
    """Name what a program needs and is not here."""
    for need in probe.needs:
        if need.startswith("/"):
            if not Path(need).exists():
                return need
        elif need not in ground.more and (need.rpartition("_")[0] and not _module(need) or not _module(need)):
            return need
    return ""


def _module(name: str) -> bool:
    with suppress(ModuleNotFoundError, ValueError):
        return find_spec(name) is not None
    return False


Told = Callable[[str, object], None]


def held(ground: Ground, kind: str, name: str, place: str, told: Told) -> None:
    probe = MATRIX[kind][name]
    if absent := missing(probe, ground):
        pytest.skip(f"{absent} is not here")
    rows = try_out(ground, kind, name, probe, place=place)
    for row in rows:
        told("row", row.spelled())
        if at_once := os.environ.get("ESCAPES_TABLE"):
            with Path(at_once).open("a") as table:
                table.write(f"{row.spelled()}\n")
    assert not [row for row in rows if row.faults], "\n".join(f"{row.spelled()}\n{row.said[-1500:]}" for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), ALL)
def test_what_a_replay_says_of_the_world_is_what_is_seen(
    ground: Ground, kind: str, name: str, record_property: Told
) -> None:
    held(ground, kind, name, "own", record_property)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), NATIVE)
def test_so_it_is_where_a_found_tool_does_it(
    ground: Ground, kind: str, name: str, record_property: Told
) -> None:
    held(ground, kind, name, "found", record_property)
