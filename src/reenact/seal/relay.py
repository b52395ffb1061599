"""The relay: it stands in the host's network and carries bytes between a sealed world and the hosts that it may reach.

Theory of operation. The starter of a world forks it before it leaves the host's network, and hands it listening sockets
that lie in the world (SCM_RIGHTS). For each connection that is accepted there it makes one to the real host, and passes
on what comes, both ways: as much as the other side takes, the end of either direction by itself, a reset as a reset.
What passes is not looked at; TLS goes from end to end. A proxy would reach every host: of the first request to one that
only the environment names, the relay reads the head, and lets it through where it asks for a tunnel to an allowed host.

A connection has a thread. SIGTERM says that the program is over: what it sent before is still delivered.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import threading
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final, NoReturn

    Way = Mapping[str, Any]

_PIECE: Final = 1 << 16
_HEAD: Final = 1 << 15
"""The longest head of a request to a proxy, and of its answer, in bytes."""
_HEAD_S: Final = 60.0
_CONNECT_S: Final = 60.0
_END_S: Final = 3.0
_MOST: Final = 64
"""Listening sockets in one message: SCM_MAX_FD of the kernel is 253."""
_RESET: Final = struct.pack("ii", 1, 0)


def serve(control: int, ways: Sequence[Way], ledger: str) -> NoReturn:
    """Carry connections until SIGTERM. `control` gives the listening sockets, in the order of their `ways`.

    A way is `host` and `port`; `only`, where it is a proxy: the `[host, port]` to which it may be asked for a tunnel.
    `ledger` is a file to which a line of JSON is added for every connection.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, _on_signal)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):  # from the terminal: they are the program's
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.stack_size(1 << 18)
    doors = _received(control, len(ways))
    relay = _Relay(ways, ledger)
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    for door in doors:
        poll.register(door, select.POLLIN)
    over = False
    while not over:
        ready = {number for number, _ in poll.poll()}
        over = reading in ready
        for door, way in zip(doors, ways, strict=True):
            if door.fileno() in ready or over:
                relay.take_in(door, way)
    relay.end()
    os._exit(0)


def _on_signal(_number: int, _frame: object) -> None:
    """Have the number written to the descriptor that is woken by."""


def _received(control: int, count: int) -> list[socket.socket]:
    doors: list[socket.socket] = []
    with socket.socket(fileno=control) as talk:
        while len(doors) < count:
            data, handles, _, _ = socket.recv_fds(talk, 1, _MOST)
            if not data:
                os._exit(0)  # the world could not be made
            doors += [socket.socket(fileno=handle) for handle in handles]
    for door in doors:
        door.setblocking(False)
    return doors


class _Relay:
    """The connections that are carried."""

    def __init__(self, ways: Sequence[Way], ledger: str) -> None:
        self._ledger, self._ways = ledger, ways
        self._ending, self._end = os.pipe()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def take_in(self, door: socket.socket, way: Way) -> None:
        """Carry every connection that waits at a door."""
        while True:
            try:
                inside, _ = door.accept()
            except OSError:  # none waits, or it is gone already
                return
            self._threads = [each for each in self._threads if each.is_alive()]
            thread = threading.Thread(target=self._carry, args=(inside, way), daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no further thread
                _reset(inside)
            else:
                self._threads.append(thread)

    def end(self) -> None:
        """Deliver what the program sent, for a few seconds at most."""
        os.close(self._end)
        until = time.monotonic() + _END_S
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _carry(self, inside: socket.socket, way: Way) -> None:
        try:
            inside.setblocking(True)
            first = b""
            if "only" in way:
                first, wanted = _asked(inside)
                if wanted not in [tuple(each) for each in way["only"]]:
                    self._tell("kept in", way, wanted=wanted and f"{wanted[0]}:{wanted[1]}")
                    inside.sendall(_REFUSED)
                    return
            outside = self._connected(way)
            if outside is None:
                _reset(inside)
                return
            with outside:
                if first and not _opens_a_tunnel(inside, outside, first):
                    return
                _pass_on(inside, outside, self._ending)
        except OSError:
            _reset(inside)
        finally:
            inside.close()

    def _connected(self, way: Way) -> socket.socket | None:
        try:
            outside = socket.create_connection((way["host"], way["port"]), _CONNECT_S)
        except OSError as error:
            self._tell("reached", way, error=error.strerror or str(error))
            return None
        self._tell("reached", way, address=outside.getpeername()[0])
        outside.setblocking(True)
        return outside

    def _tell(self, what: str, way: Way, **facts: Any) -> None:
        entry = {"t": what, "host": way["host"], "port": way["port"], **facts}
        with suppress(OSError), self._lock:
            handle = os.open(self._ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.write(handle, json.dumps(entry).encode() + b"\n")
            finally:
                os.close(handle)


def _reset(side: socket.socket) -> None:
    """Close a connection so that the other side learns that something is wrong."""
    with suppress(OSError):
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    side.close()


class _Stream:
    """One direction of a connection."""

    __slots__ = ("buffer", "over", "source", "target")

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source, self.target = source, target
        self.buffer = b""
        self.over = False
        """The source sends nothing more."""

    def move(self) -> None:
        """Take what there is, and hand on what the other side takes. Raises `OSError` where either was reset."""
        with suppress(BlockingIOError):
            if not self.buffer and not self.over:
                self.buffer = self.source.recv(_PIECE)
                self.over = not self.buffer
                if self.over:
                    with suppress(OSError):
                        self.target.shutdown(socket.SHUT_WR)
        with suppress(BlockingIOError):
            if self.buffer:
                self.buffer = self.buffer[self.target.send(self.buffer) :]


def _pass_on(inside: socket.socket, outside: socket.socket, ending: int) -> None:
    """Pass on both directions until both are over. Raises nothing: a reset goes on to the other side."""
    for side in (inside, outside):
        side.setblocking(False)
        with suppress(OSError):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    out, back = _Stream(inside, outside), _Stream(outside, inside)
    try:
        ended = False
        while not (out.over and (back.over or ended)):
            ended = _wait(out, back, -1 if ended else ending) or ended
            out.move()
            if not (ended and out.over):
                back.move()
    except OSError:
        _reset(inside)
        _reset(outside)


def _wait(out: _Stream, back: _Stream, ending: int) -> bool:
    """Wait until something can be done; True where the program is over meanwhile."""
    wanted: dict[int, int] = {}
    for stream in (out, back):
        if stream.buffer:
            wanted[stream.target.fileno()] = wanted.get(stream.target.fileno(), 0) | select.POLLOUT
        elif not stream.over:
            wanted[stream.source.fileno()] = wanted.get(stream.source.fileno(), 0) | select.POLLIN
    poll = select.poll()
    for number, events in wanted.items():
        poll.register(number, events)
    if ending >= 0:
        poll.register(ending, select.POLLIN)
    return any(number == ending for number, _ in poll.poll())


_WHY: Final = b"reenact: the replay may not reach this host through the proxy\n"
_REFUSED: Final = b"HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(_WHY), _WHY)


def _asked(inside: socket.socket) -> tuple[bytes, tuple[str, int] | None]:
    """Read the head of the first request to a proxy: give it, and to where it wants a tunnel (RFC 9110, 9.3.6)."""
    head = _head(inside)
    method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
    target = rest.partition(b" ")[0].decode("ascii", "replace")
    host, colon, port = target.rpartition(":")
    if method != b"CONNECT" or not colon or not port.isdigit():
        return head, None
    return head, (host.strip("[]").lower(), int(port))


def _opens_a_tunnel(inside: socket.socket, outside: socket.socket, first: bytes) -> bool:
    """Have a proxy open a tunnel. Where it refuses, its answer is passed on, and nothing more is asked of it."""
    outside.sendall(first)
    answer = _head(outside)
    inside.sendall(answer)
    if answer.split(b" ", 2)[1:2] == [b"200"]:
        return True
    with suppress(OSError):
        outside.shutdown(socket.SHUT_WR)
    outside.settimeout(_END_S)
    while piece := outside.recv(_PIECE):
        inside.sendall(piece)
    return False


def _head(side: socket.socket) -> bytes:
    """Read up to the empty line. Raises `OSError` where none comes."""
    head, until = b"", time.monotonic() + _HEAD_S
    while not head.endswith(b"\r\n\r\n"):
        side.settimeout(max(0.01, until - time.monotonic()))
        piece = side.recv(1)  # no byte behind the head is read: it belongs to the tunnel
        if not piece or len(head) > _HEAD:
            raise OSError(104, os.strerror(104))
        head += piece
    side.settimeout(None)
    return head
