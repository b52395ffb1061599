"""Whether what Python is about to talk to is one of the hosts that a policy lets out.

A client looks a name up and connects to an address: which address that was is found by looking the name up again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, cast

from reenact.boundary.touches import NATIVE
from reenact.values.way import Way

_GUARDED: Final = "REENACT_GUARDED"
_SEALED: Final = "sealed"
_LOOK_UPS: Final = frozenset({"socket.getaddrinfo", "socket.gethostbyname"})


class Ways:
    """Some ways out, as audit events (PEP 578) are held against them."""

    def __init__(self, ways: Sequence[Way]) -> None:
        self._ways = frozenset(ways)
        self._hosts = {each.host for each in ways if each.host}
        self._paths = {os.path.realpath(each.path) for each in ways if each.path}
        self._addresses = set[tuple[str, int]]()

    def lets(self, event: str, args: tuple[Any, ...]) -> bool:
        """Tell whether a network event is about one of them. Looks names up, which is an event of its own."""
        if event in _LOOK_UPS:
            host = args[0]
            return host is None or self._is_named(_text(host)) or self._is_address(_text(host), None)
        if event == NATIVE:
            return self._lets_native(str(args[1]))
        target: Any = args[-1]
        if (way_parts := _place(target)) is not None:
            return Way(*way_parts) in self._ways or self._is_address(*way_parts)
        if isinstance(target, str | bytes):
            return os.path.realpath(os.fsdecode(target)) in self._paths
        return target is None

    def _lets_native(self, target: str) -> bool:
        """Tell it of what a client in native code says that it reaches, which may be half of it or nothing.

        Then the kernel decides, where it keeps the world; where it does not, nothing is let out on half a word.
        """
        if not target:
            return bool(self._ways) and os.environ.get(_GUARDED) == _SEALED
        if target.startswith("/"):  # a socket, or the folder of one
            real = os.path.realpath(target)
            return any(path == real or path.startswith(f"{real}{os.sep}") for path in self._paths)
        host, port = target_of(target)
        if port is not None:
            return Way(host, port) in self._ways or self._is_address(host, port)
        return self._is_named(host) or self._is_address(host, None)

    def _is_named(self, host: str) -> bool:
        return host.lower().rstrip(".") in self._hosts

    def _is_address(self, host: str, port: int | None) -> bool:
        wanted = [each for each in self._ways if each.host and (port is None or each.port == port)]
        if any((host, each.port) in self._addresses for each in wanted):
            return True
        import socket  # whoever connects has it

        for each in wanted:
            with suppress(OSError, UnicodeError):
                address_infos = socket.getaddrinfo(each.host, each.port, type=socket.SOCK_STREAM)
                self._addresses |= {(str(address[0]), each.port) for *_, address in address_infos}
        return any((host, each.port) in self._addresses for each in wanted)


def target_of(target: str) -> tuple[str, int | None]:
    """Give the host and port of `host`, `host:port`, `tcp://host:port` or gRPC's `dns:///host:port`."""
    plain = target.rpartition("/")[2]
    host, colon, port = plain.rpartition(":")
    has_port = colon and port.isdigit() and not (":" in host and not host.startswith("["))
    return (host.strip("[]"), int(port)) if has_port else (plain, None)


def option_for(event: str, args: tuple[Any, ...]) -> str:
    """Name the option that lets out what a network event is about."""
    if event in _LOOK_UPS:
        host, port = _text(args[0]), args[1] if len(args) > 1 else None
        host_text = f"[{host}]" if ":" in host else host
        return f"--allow-host {host_text}:{port}" if port else f"--allow-host {host_text}"
    if event == NATIVE:
        native = str(args[1])
        native_target = f"unix:{native}" if native.startswith("/") else native.rpartition("/")[2] or "HOST:PORT"
        return f"--allow-host {native_target}"
    target: Any = args[-1]
    way_parts = _place(target)
    return f"--allow-host unix:{_text(target)}" if way_parts is None else f"--allow-host {Way(*way_parts)}"


def _place(target: Any) -> tuple[str, int] | None:
    """Give the host and port of an Internet address; None for any other."""
    if not isinstance(target, tuple):
        return None
    parts = cast("tuple[Any, ...]", target)
    return (_text(parts[0]), parts[1]) if len(parts) > 1 and isinstance(parts[1], int) else None


def _text(value: Any) -> str:
    return os.fsdecode(value) if isinstance(value, str | bytes) else str(value)
