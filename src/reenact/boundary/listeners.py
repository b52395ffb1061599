"""Whose a socket is that this program connects to, or that connects to it: of its own processes, or of anybody else.

The kernel lists the sockets of this process's network namespace with their addresses and inodes (proc(5)); whoever has
one has its inode among its descriptors. A program that talks to itself does nothing outside: what listens runs again in
a replay as it ran before. Of a program that was started and is no Python of ours, a stand-in would stand there: it is
told that it was talked to (`program_starts.serves`). Where the system does not tell, nothing is the program's own.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, Final, cast

from reenact.boundary import path_copies, pythons

_RECORDING: Final = "REENACT_RECORDING"
_LISTENS, _UNCONNECTED = "0A", "07"
_ACCEPTS: Final = 0x10000
"""The flag of a unix socket that accepts connections (`__SO_ACCEPTCON`)."""
_STREAMS: Final = frozenset({socket.AF_INET, socket.AF_INET6, socket.AF_UNIX})
_DEEPEST: Final = 50
_NAMES: Final = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback", ""})

_LOOPBACK: Final = IPv4Address("127.0.0.1")
_BYTES_OF_4: Final = 4
_COLUMNS: Final = 8
"""Of /proc/net/unix, where a socket has a name."""

_strangers: Final = set[int]()
"""Inodes of sockets that are somebody else's. The kernel gives a number once."""


def is_this_machine(host: Any) -> bool:
    """Tell whether a name or address is one by which a machine calls itself: nobody is asked for it."""
    if host is None:
        return True
    if not isinstance(host, str | bytes):
        return False
    name = os.fsdecode(host).lower().rstrip(".")
    return name in _NAMES or name == os.uname().nodename.lower() or _is_looped(_number(name))


def is_own(sock: Any, target: Any) -> bool:
    """Tell whether a socket that is about to be connected to `target`, or to send there, speaks to this program."""
    if not sys.platform.startswith("linux"):
        return False
    streams = cast("int", sock.type) != socket.SOCK_DGRAM
    if sock.family == socket.AF_UNIX:
        return _is_nowhere(target) or any(_is_owned(inode, 0, asks) for inode, asks in _unix(target, streams=streams))
    if sock.family not in {socket.AF_INET, socket.AF_INET6} or not isinstance(target, tuple):
        return False
    host, port = cast("tuple[Any, ...]", target)[:2]
    return isinstance(port, int) and _serves(host, port, streams=streams)


def is_own_server(host: str, port: int) -> bool:
    """Tell whether a server of this program's own listens at an address."""
    return sys.platform.startswith("linux") and _serves(host, port, streams=True)


def _serves(host: Any, port: int, *, streams: bool) -> bool:
    number = _number(host)
    if (number is None and is_this_machine(host)) or (number is not None and number.is_unspecified):
        number = _LOOPBACK
    inodes = _inet(number, port, streams=streams) if number is not None else []
    return bool(inodes) and all(_is_owned(inode, port) for inode in inodes)


def _number(host: Any) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(os.fsdecode(host).partition("%")[0])
    except (TypeError, ValueError):
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _is_looped(number: IPv4Address | IPv6Address | None) -> bool:
    return number is not None and (number.is_loopback or number.is_unspecified)


# who connected


def is_visited() -> bool:
    """Tell whether anybody who is no process of this program is connected to a server of this process."""
    if not sys.platform.startswith("linux"):
        return False
    listening, accepted, own = set[Any](), list[tuple[Any, Any, int]](), set[int]()
    for stream_socket in _stream_sockets():
        own.add(os.fstat(stream_socket.fileno()).st_ino)
        at: Any = stream_socket.getsockname()
        where: Any = cast("tuple[Any, ...]", at)[1] if isinstance(at, tuple) else at
        if stream_socket.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            listening.add(where)
        elif where:
            with suppress(OSError):  # it is not connected, or no more
                accepted.append((where, stream_socket.getpeername(), _asker(stream_socket)))
    return any(where in listening and not _is_within(peer, pid, own) for where, peer, pid in accepted)


def _stream_sockets() -> Iterator[socket.socket]:
    """Give the sockets of streams that this process has, each for as long as it is looked at."""
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # it is closed by now
            if str(each.readlink()).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(each.name))) as stream_socket:
                    if stream_socket.type == socket.SOCK_STREAM and stream_socket.family in _STREAMS:
                        yield stream_socket


def _asker(stream_socket: socket.socket) -> int:
    """Give the process at the other end of a unix socket; 0 of another."""
    if stream_socket.family != socket.AF_UNIX:
        return 0
    return int(struct.unpack("3i", stream_socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def _is_within(peer: Any, pid: int, own: set[int]) -> bool:
    """Tell whether the other end of a connection is of this program; of one that is closed there it may be."""
    if pid:
        return pid in family()
    inodes = _connected(*peer[:2])
    if inodes is None or not own.isdisjoint(inodes):
        return inodes is not None
    if not any(inodes):  # it is listed under the inode 0 until both ends are done with it
        return True
    return any(f"socket:[{inode}]" in _descriptors(each) for each in family() for inode in inodes)


def _connected(host: str, port: int) -> list[int] | None:
    """Give the inodes of the sockets of this machine that speak from an address; None where none does."""
    number = _number(host)
    rows = (words for name in ("tcp", "tcp6") for words in _rows(f"/proc/net/{name}"))
    speakers = [words for words in rows if int(words[1].rpartition(":")[2], 16) == port and words[3] != _LISTENS]
    return [int(words[9]) for words in speakers if _spelled(words[1].partition(":")[0]) == number] or None


# what listens


def _inet(number: IPv4Address | IPv6Address, port: int, *, streams: bool) -> list[int]:
    """Give the inodes of sockets that hear at an address: those bound to it, else those bound to all."""
    exact, wild = list[int](), list[int]()
    for name in ("tcp", "tcp6") if streams else ("udp", "udp6"):
        for words in _rows(f"/proc/net/{name}"):
            spelled, _, port_digits = words[1].partition(":")
            if int(port_digits, 16) != port or words[3] != (_LISTENS if streams else _UNCONNECTED):
                continue
            bound = _spelled(spelled)
            if bound == number:
                exact.append(int(words[9]))
            elif bound.is_unspecified and _is_looped(number):
                wild.append(int(words[9]))
    return exact or wild


def _spelled(text: str) -> IPv4Address | IPv6Address:
    """Read an address as the kernel spells it: words of 32 bits in the byte order of the machine."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    data = b"".join(struct.pack("=I", word) for word in words)
    if len(data) == _BYTES_OF_4:
        return IPv4Address(data)
    address = IPv6Address(data)
    return address.ipv4_mapped or address


def _unix(target: Any, *, streams: bool) -> Iterator[tuple[int, Callable[[int], bool] | None]]:
    """Give the inodes of unix sockets that may be meant, each with what remains to be asked about their owner."""
    if not isinstance(target, str | bytes) or not target:
        return
    name = os.fsdecode(target)
    abstract, path = name.startswith("\0"), _whole(name) if not name.startswith("\0") else ""
    for words in _rows("/proc/net/unix", parts=7):
        if len(words) < _COLUMNS or (streams and not int(words[3], 16) & _ACCEPTS):
            continue
        bound, inode = words[7], int(words[6])
        if abstract:
            if bound == name.replace("\0", "@"):
                yield inode, None
        elif bound.startswith("/"):
            if _whole(bound) == path:
                yield inode, None
        elif Path(bound).name == Path(path).name:
            yield inode, partial(_is_there, bound, path)


def _is_nowhere(target: Any) -> bool:
    """Tell a temporary path where nothing is: a server of the program's own was there, as `multiprocessing` has them.

    Elsewhere a sealed world may not show what is there.
    """
    if not isinstance(target, str | bytes) or target[:1] in ("\0", b"\0"):
        return False
    path = Path(_whole(os.fsdecode(target)))
    return path.is_relative_to(Path(tempfile.gettempdir()).resolve()) and not os.path.lexists(path)


def _whole(path: str) -> str:
    led, here = path_copies.of_this_process(), Path(path).absolute()
    return str(here.resolve() if led is None else Path(led.led(str(here))).resolve())


def _is_there(bound: str, path: str, pid: int) -> bool:
    """Tell whether a name that a process bound, seen from its folder, is a path."""
    return _whole(f"/proc/{pid}/cwd/{bound}") == path


def _rows(path: str, parts: int = -1) -> list[list[str]]:
    try:
        table = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return [line.split(None, parts) for line in table.splitlines()[1:]]


# who has it


def _is_owned(inode: int, port: int, asks: Callable[[int], bool] | None = None) -> bool:
    """Tell whether a process of this program has a socket, of which `asks` says yes."""
    if inode in _strangers:
        return False
    me = os.getpid()
    for pid in family(me):
        if f"socket:[{inode}]" in _descriptors(pid):
            if asks is not None and not asks(pid):
                return False
            return pid == me or _is_python_of_ours(pid) or _is_child_that_is_told(pid, port)
    _strangers.add(inode)
    return False


def _descriptors(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # it is closed by now
                yield str(each.readlink())


def family(me: int = 0) -> Iterator[int]:
    """Give the processes of this program: this one first, then all of its recording, and what descends from them."""
    me = me or os.getpid()
    yield me
    recording = os.environ.get(_RECORDING)
    mark = f"\0{_RECORDING}={recording}\0".encode() if recording else b""
    membership = {me: True}
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and int(each.name) != me and _belongs(int(each.name), mark, membership):
            yield int(each.name)


def _belongs(pid: int, mark: bytes, membership: dict[int, bool]) -> bool:
    above = list[int]()
    is_member = False
    while pid > 1 and len(above) < _DEEPEST:
        if pid in membership:
            is_member = membership[pid]
            break
        above.append(pid)
        if mark and mark in b"\0" + read(f"/proc/{pid}/environ"):
            is_member = True
            break
        pid = _parent(pid)
    membership.update(dict.fromkeys(above, is_member))
    return is_member


def _parent(pid: int) -> int:
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def read(path: str) -> bytes:
    """Read a file of `/proc`; nothing where it is gone."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _is_python_of_ours(pid: int) -> bool:
    """Tell a Python that runs our start-up hook, or a fork of one: it is there in a replay."""
    words = [os.fsdecode(word) for word in read(f"/proc/{pid}/cmdline").split(b"\0")[:-1]]
    return bool(words) and pythons.is_python(words[0]) and not pythons.isolates(words[1:])


def _is_child_that_is_told(pid: int, port: int) -> bool:
    """Tell a program that runs and is recorded, which is noted to be talked to."""
    starts: Any = sys.modules.get("reenact.boundary.program_starts")
    while starts is not None and pid > 1:
        if starts.serves(pid, port):
            return True
        pid = _parent(pid)
    return False
