"""A launcher that stands by: it is started before anybody knows what it is to launch, so that its start takes no time.

In: the number of a Unix socket and that of the process that started it. One order comes over the socket, a JSON line:
`order`, the path of one of `launch`'s, with the program's `environ` (bytes, spelled in Latin-1) and the folder `cwd`;
with it come three open files, for standard input, output and error. Out: it becomes the launcher that `launch.command`
would have started. It ends when the other end is closed. `pipeline.standby` is that end.

Process 1 of a sealed world is a copy of it, so it is started with no variable of the environment but those that its
own interpreter needs.
"""

from __future__ import annotations

import json
import os
import signal
import socket

from reenact.seal import kernel, launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, NoReturn

BOOT: Final = launch.BOOT.replace("launch", "standby")
_CODES: Final = "latin-1"
_MOST: Final = 1 << 20


def main(number: str, parent: str) -> NoReturn:
    """Wait for an order, and carry it out. What that needs is imported meanwhile."""
    kernel.end_with_parent(signal.SIGKILL)
    if os.getppid() != int(parent):
        os._exit(0)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a key of the terminal ends it without a word
    launch.load()
    with socket.socket(fileno=int(number)) as connection:
        line, streams = _received(connection)
    if not line:
        os._exit(0)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    order = json.loads(line)
    os.chdir(order["cwd"])
    launch.launch(
        order["order"], {name.encode(_CODES): value.encode(_CODES) for name, value in order["environ"].items()}
    )


def _received(connection: socket.socket) -> tuple[bytes, list[int]]:
    """Give the line of an order and the files that came with it; no line where the other end was closed."""
    line, streams, _, _ = socket.recv_fds(connection, _MOST, 3)
    while line and not line.endswith(b"\n"):
        more = connection.recv(_MOST)
        line = line + more if more else b""
    return line, streams


def spelled(order: str, cwd: str, environ: dict[bytes, bytes]) -> bytes:
    """Spell an order."""
    variables = {name.decode(_CODES): value.decode(_CODES) for name, value in environ.items()}
    return json.dumps({"order": order, "cwd": cwd, "environ": variables}).encode() + b"\n"
