"""Hosts that a replayed test may talk to: none, unless it is told which."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from reenact.boundary import door
from reenact.boundary.question import PLAIN_HTTP
from reenact.contracts.doorman import Doorman, Passage
from reenact.pipeline.recording import Recording
from reenact.replay import guard
from reenact.testing.passages import Through
from reenact.values.call import Call, HttpRequest

ANY = "*"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Hosts:
    """Names and addresses as they stand in a URL; `*` for all. `localhost` stands for loopback by any name."""

    names: frozenset[str] = frozenset()

    @staticmethod
    def of(names: Iterable[str]) -> Hosts:
        """Read a list of hosts."""
        host_names = {name.strip().lower().strip("[]") for name in names if name.strip()}
        return Hosts(frozenset(host_names | (_LOOPBACK if host_names & _LOOPBACK else frozenset())))

    def allow(self, host: str) -> bool:
        """Tell whether a host may be talked to."""
        plain = host.lower().strip("[]")
        return ANY in self.names or plain in self.names or (plain.startswith("127.") and "127.0.0.1" in self.names)

    def stand_before(self, recording: Recording) -> None:
        """Keep plain HTTP calls to these hosts from the doorman of a replay, who has no answer for them."""
        if self.names:
            recording.doorman = _Selective(recording.doorman, self)
            door.install(recording.doorman, strict=recording.strict)


@contextmanager
def let_through(hosts: Hosts) -> Generator[None]:
    """Let the guard of a replay pass connections to these hosts while the block runs."""
    with guard.open_to(hosts.allow) if hosts.names else nullcontext():
        yield


class _Selective:
    """Answers as the doorman behind it, but for plain HTTP calls to hosts that may be talked to."""

    def __init__(self, doorman: Doorman, hosts: Hosts) -> None:
        self._doorman, self._hosts = doorman, hosts

    def open(self, call: Call) -> Passage:
        """Let a call in."""
        request = call.request
        if isinstance(request, HttpRequest) and request.shape == PLAIN_HTTP:
            host = urlsplit(request.url).hostname or ""
            if self._hosts.allow(host):
                return Through()
        return self._doorman.open(call)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._doorman, name)
