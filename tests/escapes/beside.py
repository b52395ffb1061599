"""Sockets and pipes in folders that are no copies: the root folder, /run; and one that comes late."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from escapes.ground import Ground


def beside_the_copies(ground: Ground, stack: ExitStack) -> dict[str, object]:
    """Serve there; gives the places, as programs find them."""
    names = {"root_socket": f"/{ground.tag}.sock.keep", "run_socket": f"/run/{ground.tag}.sock.keep"}
    for name, path in names.items():
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        _serve(server, path, lambda name=name: ground.heard.append(name))
        stack.callback(os.unlink, path)
        stack.callback(server.shutdown, socket.SHUT_RDWR)
    if not Path("/dev/log").exists():
        names["log_socket"] = "/dev/log"
        server = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        server.bind("/dev/log")
        stack.callback(os.unlink, "/dev/log")
        _start(lambda: _until_gone(lambda: _logged(server, ground.tag), lambda: ground.heard.append("log")))
    names["root_pipe"] = f"/{ground.tag}.pipe.keep"
    os.mkfifo(names["root_pipe"])
    reader = os.open(names["root_pipe"], os.O_RDWR)
    stack.callback(os.unlink, names["root_pipe"])
    _start(lambda: _until_gone(lambda: bool(os.read(reader, 99)), lambda: ground.heard.append("root pipe")))
    names["late_socket"] = f"/{ground.tag}.late.keep"
    ended = threading.Event()
    stack.callback(ended.set)
    _start(lambda: _serve_late(ground, names["late_socket"], ended))
    return {**names}


def _start(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


def _serve(server: socket.socket, path: str, heard: Callable[[], None]) -> None:
    server.bind(path)
    server.listen()

    def meet() -> bool:
        server.accept()[0].close()
        return True

    _start(lambda: _until_gone(meet, heard))


def _logged(server: socket.socket, tag: str) -> bool:
    """Wait for a message of this ground's own: another worker of the suite logs there too, and so may the machine."""
    while tag.encode() not in server.recv(999):
        pass
    return True


def _until_gone(meet: Callable[[], bool], heard: Callable[[], None]) -> None:
    with suppress(OSError):
        while meet():
            heard()


def _serve_late(ground: Ground, path: str, ended: threading.Event) -> None:
    """Make a socket when a program has started and asks for it, not before."""
    asks = f"/tmp/{ground.tag}.go"
    while not ended.wait(0.1):
        if "late" not in ground.trying or not _seen_by_a_program(asks):
            continue
        with suppress(OSError), socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()
            server.settimeout(5)
            with suppress(OSError):
                server.accept()[0].close()
                ground.heard.append("late")
        Path(path).unlink(missing_ok=True)


def _seen_by_a_program(path: str) -> bool:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                if (
                    b"program.py" in Path(entry.path, "cmdline").read_bytes()
                    and Path(f"{entry.path}/root{path}").exists()
                ):
                    return True
    return False
