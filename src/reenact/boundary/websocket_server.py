"""The other end of a websocket in a replay: a server (RFC 6455) that says what was recorded, and nothing else.

Theory of operation. A client library is left as it is: it is given one end of a pair of sockets in place of a
connection, and shakes hands, sends, pings and closes over it. A thread of ours reads the other end: it answers the
handshake as the recorded server did, and a ping and a closing frame as any server does. The messages of the client are
held against the recording where the program sends them, so what the thread reads of them it throws away. A recorded
message is written into the pair when the program asks for one and its turn has come. No extension is agreed on: it
would only spell the same messages in another way.
"""

from __future__ import annotations

import _thread
import base64
import hashlib
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final

from reenact.values import locks

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What the key of a handshake is hashed with (RFC 6455, 1.3)."""
_TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x1, 0x2, 0x8, 0x9, 0xA
_FINAL, _MASKED = 0x80, 0x80
_TWO_BYTES, _EIGHT_BYTES = 126, 127
"""Lengths that say how many bytes the true length has (RFC 6455, 5.2)."""
SWITCHED: Final = 101
_LARGEST_HEAD: Final = 1 << 20
_OWN: Final = frozenset({"sec-websocket-accept", "sec-websocket-extensions", "connection", "upgrade"})
"""Headers of the handshake that the server makes itself, or does without."""
_FRAMING: Final = frozenset({"content-length", "transfer-encoding", "content-encoding", ":reason"})


class _End(socket.socket):
    """The client's end: options of TCP do nothing to it."""

    def setsockopt(self, *args: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - all its forms
        """Set an option that this socket has."""
        with suppress(OSError):
            super().setsockopt(*args)  # pyright: ignore[reportArgumentType, reportCallIssue] - as it came


class Server:
    """A server for one connection. `client` is what the client library is given in place of a socket of its own."""

    def __init__(self, status: int, headers: Sequence[tuple[str, str]], body: bytes = b"") -> None:
        self._status, self._headers, self._body = status, headers, body
        end, self._socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.client = _End(fileno=end.detach())
        self._lock = locks.lock()
        self._is_closing = False
        _thread.start_new_thread(self._serve, ())  # none of `threading`'s, which would be a lane

    def say(self, data: str | bytes) -> None:
        """Send a message."""
        self._send(_TEXT if isinstance(data, str) else _BINARY, data.encode() if isinstance(data, str) else data)

    def close(self, code: int, reason: str) -> None:
        """Close the connection, as the recorded server did; without a closing frame where it had lost it."""
        with self._lock:
            self._is_closing = True
        if code:
            self._send(_CLOSE, struct.pack("!H", code) + reason.encode())
        else:
            self._shut()

    def _send(self, opcode: int, payload: bytes) -> None:
        size = len(payload)
        if size < _TWO_BYTES:
            head = struct.pack("!BB", _FINAL | opcode, size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", _FINAL | opcode, _TWO_BYTES, size)
        else:
            head = struct.pack("!BBQ", _FINAL | opcode, _EIGHT_BYTES, size)
        with self._lock, suppress(OSError):  # the program may have closed it
            self._socket.sendall(head + payload)

    def _serve(self) -> None:
        with suppress(OSError, ValueError, EOFError), self._socket.makefile("rb") as stream:
            key = _key_in(stream)
            self._shake_hands(key)
            while self._status == SWITCHED:
                opcode, payload = _frame(stream)
                if opcode == _PING:
                    self._send(_PONG, payload)
                elif opcode == _CLOSE:
                    if not self._is_closing:
                        self._send(_CLOSE, payload[:2])
                    break
        self._shut()

    def _shake_hands(self, key: bytes) -> None:
        left_out = _OWN if self._status == SWITCHED else _OWN | _FRAMING
        lines = [f"HTTP/1.1 {self._status} -"]
        lines += [f"{name}: {value}" for name, value in self._headers if name.lower() not in left_out | {":reason"}]
        if self._status == SWITCHED:
            accepted = base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest()).decode()
            lines += ["Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {accepted}"]
        else:
            lines += [f"Content-Length: {len(self._body)}"]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode("utf-8", "replace") + self._body)

    def _shut(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._socket.close()


def _key_in(stream: IO[bytes]) -> bytes:
    """Read a handshake to its end, and give its key. Raises `EOFError`."""
    key, size = b"", 0
    while True:
        line: bytes = stream.readline()
        size += len(line)
        if not line or size > _LARGEST_HEAD:
            raise EOFError
        if line in {b"\r\n", b"\n"}:
            return key
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"sec-websocket-key":
            key = value.strip()


def _frame(stream: IO[bytes]) -> tuple[int, bytes]:
    """Read a frame (RFC 6455, 5.2). Raises `EOFError`."""
    first, second = _exactly(stream, 2)
    size = second & ~_MASKED
    if size == _TWO_BYTES:
        (size,) = struct.unpack("!H", _exactly(stream, 2))
    elif size == _EIGHT_BYTES:
        (size,) = struct.unpack("!Q", _exactly(stream, 8))
    mask = _exactly(stream, 4) if second & _MASKED else b""
    opcode = first & 0xF
    if opcode not in {_PING, _CLOSE}:
        while size:
            size -= len(_exactly(stream, min(size, 1 << 16)))
        return opcode, b""
    payload = _exactly(stream, size)
    return opcode, bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload)) if mask else payload


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data: bytes = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
