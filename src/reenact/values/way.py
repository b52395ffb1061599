"""A way out of the world of a replay: a host and port, or a socket of the host's.

It is spelled `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`, as a URL, or `unix:/path`. A host without a port means 443 and 80.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from reenact.errors import UsageError

_UNIX: Final = "unix:"
_PORTS: Final = {"http": 80, "ws": 80, "https": 443, "wss": 443}
_BOTH: Final = (443, 80)
_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_LONGEST: Final = 253
_V6: Final = re.compile(r"[0-9a-f:.]*:[0-9a-f:.]+")
_ANYWHERE: Final = "0.0.0.0"  # noqa: S104 - what a client that connects to it means is this machine


@dataclass(frozen=True, slots=True, order=True)
class Way:
    """One of them."""

    host: str = ""
    """A name in lower case, or an address without brackets."""
    port: int = 0
    path: str = ""
    """The absolute path of a Unix socket, where it is one."""

    def __str__(self) -> str:
        """Spell it."""
        if self.path:
            return f"{_UNIX}{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def way_named(text: str) -> tuple[Way, ...]:
    """Read what somebody named. Raises `UsageError` where it is none."""
    if text.startswith(_UNIX):
        path = text.removeprefix(_UNIX)
        if path.startswith("/") and "\0" not in path:
            return (Way(path=path),)
        raise UsageError(f"{text!r} names no socket", hint="name it by its absolute path: unix:/run/db/socket")
    if "://" in text:
        way = of_url(text)
        if way is not None:
            return (way,)
        raise _is_none(text)
    host, port = _parted(text)
    named_host = _host(host)
    if named_host is None or not (port == "" or (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        raise _is_none(text)
    return tuple(Way(named_host, each) for each in ([int(port)] if port else _BOTH))


def _is_none(text: str) -> UsageError:
    return UsageError(f"{text!r} names no host", hint="name it as HOST, HOST:PORT or unix:/path")


def _parted(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":")
    if text.count(":") > 1:  # an IPv6 address by itself
        return text, ""
    host, _, port = text.partition(":")
    return host, port


def of_url(url: str) -> Way | None:
    """Give the way to what answers a URL; None where it names no host that could be asked."""
    try:
        parts = urlsplit(url)
        host, port = _host(parts.hostname or ""), parts.port or _PORTS.get(parts.scheme.lower())
    except ValueError:
        return None
    return Way(host, port) if host is not None and port else None


def _host(text: str) -> str | None:
    """Give a host as it is compared: no text from a trace may be anything but a name or an address."""
    host = text.strip().lower().rstrip(".")
    if host == _ANYWHERE:
        return "127.0.0.1"
    if _V6.fullmatch(host):
        return host
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    return host if len(host) <= _LONGEST and _NAME.fullmatch(host) else None


def read(texts: Iterable[str]) -> tuple[Way, ...]:
    """Read several, each place once. Raises `UsageError`."""
    return tuple(dict.fromkeys(way for text in texts for way in way_named(text)))
