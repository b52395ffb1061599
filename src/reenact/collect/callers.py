"""Who asks: a program of this machine, or a page of the web that a browser here has open.

Any page may have a browser send to `127.0.0.1:4318`. It cannot forge two things. `Origin` says whose page it is (RFC
6454, section 7); a program that exports OTLP sends none. `Host` says which name it asked for: a page that has its own
name resolve to 127.0.0.1 once it is loaded (DNS rebinding) counts as the collector's own origin, but asks for its own
name. So an origin has to be among those of `--cors`, and where only this machine is listened to, the name has to be one
of this machine's, with the port that was asked, or one of `--allow-host`. Both are compared whole.
"""

from __future__ import annotations

import ipaddress
import re
from asyncio import StreamWriter
from collections.abc import Sequence
from typing import Any, Final, cast

from reenact.collect.refusals import DENIED, Refusal

_HOST: Final = re.compile(r"(?:\[(?P<six>[0-9a-f:.]{2,45})\]|(?P<name>[a-z0-9._-]{1,253}))(?::(?P<port>[0-9]{1,5}))?")
"""`uri-host [ ":" port ]` (RFC 9110, section 7.2), in lower case."""
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[^\s/?#@:\[\]]+)(?::[0-9]{1,5})?|null|\*")


def is_origin(text: str) -> bool:
    """Tell whether a text is an origin as browsers spell it, or `*`: no path, no slash at its end."""
    return _ORIGIN.fullmatch(text) is not None


def is_host(text: str) -> bool:
    """Tell whether a text is a host, with or without a port."""
    return _HOST.fullmatch(text.lower()) is not None


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine and nobody else can reach it."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Callers:
    """Tells whom a collector listens to."""

    def __init__(self, host: str, hosts: Sequence[str], origins: Sequence[str]) -> None:
        self._own = host.lower()
        self._hosts = frozenset(each.lower() for each in hosts)
        self._origins = frozenset(origins)
        self._checked = is_loopback(host) or bool(hosts)

    def check(self, hosts: Sequence[str], origins: Sequence[str], port: int) -> None:
        """Refuse what a page of somebody's has a browser send; `port` is the one that was asked. Raises `Refusal`."""
        if origins and "*" not in self._origins and (len(origins) > 1 or origins[0] not in self._origins):
            raise _denied(f"pages of {origins[0][:100]!r} may not send here; --cors ORIGIN lets them")
        if self._checked and hosts and (len(hosts) > 1 or not self._fits(hosts[0].strip().lower(), port)):
            raise _denied(f"{hosts[0][:100]!r} is no name of this collector; --allow-host NAME makes it one")

    def _fits(self, host: str, port: int) -> bool:
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match["six"] or match["name"]
        if host in self._hosts or name in self._hosts or f"[{name}]" in self._hosts:
            return True
        return (name == self._own or is_loopback(name)) and match["port"] in {None, str(port)}


def port_of(writer: StreamWriter) -> int:
    """Give the port that a connection came in by."""
    name = cast("tuple[Any, ...] | str | None", writer.get_extra_info("sockname"))
    return int(name[1]) if isinstance(name, tuple) else 0


def _denied(message: str) -> Refusal:
    return Refusal(DENIED, 403, message)
