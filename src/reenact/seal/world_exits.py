"""The ways out of a sealed world: which host is found at which address in there, and who carries it out.

Each host gets an address of the world's own loopback, and a line in its `/etc/hosts`, where every client looks, native
ones too. At that address and port a socket listens; who accepts there is the relay, in the host's network. A host that
is itself a loopback address, or any other number, is listened to at that very address. No IPv6 address is given for a
name. What is not listed is refused by the kernel: no interface leads out.
"""

from __future__ import annotations

import _socket  # what `socket` adds to it would cost more than the rest
import os
import signal
import struct
import time
from contextlib import suppress

from reenact.seal import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    Way = Mapping[str, Any]

HOSTS: Final = "/etc/hosts"
_NET: Final = "127.77"
_SEEN: Final = f"{_NET}.255.254"
"""An address for getaddrinfo(3) to see: with 127.0.0.1 alone, AI_ADDRCONFIG has it find none for any name."""
_LOCALHOST: Final = "localhost"
_PER_NET: Final = 254
_BACKLOG: Final = 1024
_MOST: Final = 60
_END_S: Final = 4.0


class WaysOut:
    """The ways out of one world. `begin` before it is entered, `open` in it, `end` when the program is over."""

    def __init__(self, ways: Sequence[Way], ledger: str) -> None:
        self._ways, self._ledger = ways, ledger
        self._control: Any = None
        self._relay = 0

    def begin(self) -> None:
        """Fork the relay, which stays in the host's network. It dies with this process. Raises `OSError`."""
        ours, theirs = _socket.socketpair()
        doors, parent = _doors(self._ways), os.getpid()
        self._relay = os.fork()
        if self._relay == 0:
            try:
                kernel.end_with_parent(signal.SIGKILL)
                if os.getppid() != parent:  # it is gone already
                    os._exit(70)
                control = theirs.detach()
                _keep_only(control)
                from reenact.seal import relay  # the world is made meanwhile

                relay.serve(control, [way for way, _, _ in doors], self._ledger)
            finally:
                os._exit(70)
        theirs.close()
        self._control = ours

    def open(self, folder: str) -> None:
        """Give every host its address, and the relay its listening sockets. `folder` takes a file. Raises `OSError`."""
        names: dict[str, str] = {}
        handles: list[int] = []
        kernel.add_address(1, _socket.inet_pton(_socket.AF_INET, _SEEN))
        for number, (way, family, address) in enumerate(_doors(self._ways), 2):
            if not address.startswith(("127.", "::1")):
                kernel.add_address(number, _socket.inet_pton(family, address))
            door = _socket.socket(family, _socket.SOCK_STREAM)
            door.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
            if family == _socket.AF_INET6:
                door.setsockopt(_socket.IPPROTO_IPV6, _socket.IPV6_V6ONLY, 1)
            door.bind((address, way["port"]))
            door.listen(_BACKLOG)
            handles.append(door.detach())
            if address.startswith(f"{_NET}."):
                names[way["host"]] = address
        for start in range(0, len(handles), _MOST):
            some = handles[start : start + _MOST]
            packed = struct.pack(f"{len(some)}i", *some)
            self._control.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])
        for handle in handles:
            os.close(handle)
        self.close()
        if names:
            _name(names, folder)

    def close(self) -> None:
        """Let go of what leads to the relay: nothing in the world may have it."""
        if self._control is not None:
            self._control.close()
            self._control = None

    def end(self) -> None:
        """Have the relay deliver what the program sent, and end it."""
        self.close()
        if not self._relay:
            return
        os.kill(self._relay, signal.SIGTERM)
        until, pause = time.monotonic() + _END_S, 0.0005
        while time.monotonic() < until:
            if os.waitpid(self._relay, os.WNOHANG)[0]:
                return
            time.sleep(pause)
            pause = min(0.02, pause * 2)
        os.kill(self._relay, signal.SIGKILL)
        os.waitpid(self._relay, 0)


def _doors(ways: Sequence[Way]) -> list[tuple[Way, int, str]]:
    """Give each way with the family and address at which it is found in the world; each place once."""
    doors: dict[tuple[str, int], tuple[Way, int, str]] = {}
    names: dict[str, str] = {}
    for way in ways:
        for family, address in _places(way["host"], names):
            doors.setdefault((address, way["port"]), (way, family, address))
    return [*doors.values()]


def _places(host: str, names: dict[str, str]) -> list[tuple[int, str]]:
    inet6 = [(_socket.AF_INET6, "::1")] if os.path.exists("/proc/net/if_inet6") else []
    if host == _LOCALHOST:
        return [(_socket.AF_INET, "127.0.0.1"), *inet6]
    for family in (_socket.AF_INET, _socket.AF_INET6):
        with suppress(OSError):
            _socket.inet_pton(family, host)
            return [(family, host)] if family == _socket.AF_INET or inet6 else []
    if host not in names:
        high, low = divmod(len(names), _PER_NET)
        names[host] = f"{_NET}.{high}.{low + 1}"
    return [(_socket.AF_INET, names[host])]


def _name(names: Mapping[str, str], folder: str) -> None:
    """Have names looked up here lead to their addresses, and to nothing else."""
    lines = [f"{address} {name}" for name, address in names.items()]
    with suppress(FileNotFoundError), open(HOSTS, encoding="utf-8", errors="surrogateescape") as stream:
        for line in stream:
            address, *others = line.partition("#")[0].split() or [""]
            if left := [name for name in others if name.lower().rstrip(".") not in names]:
                lines.append(f"{address} {' '.join(left)}")
    path = f"{folder}/hosts"
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as stream:
        stream.write("\n".join(lines) + "\n")
    os.chmod(path, 0o644)
    if not os.path.exists(HOSTS):
        with open(HOSTS, "w", encoding="utf-8"):
            pass
    kernel.mount(path, HOSTS, flags=kernel.BIND)


def _keep_only(handle: int) -> None:
    """Close what was inherited but for one descriptor: nobody waits for the relay to let go of a pipe."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.closerange(3, handle)
    os.closerange(handle + 1, os.sysconf("SC_OPEN_MAX"))
