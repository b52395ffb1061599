"""What a way to a backend promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from reenact.export.outcome import Outcome


class Sender(Protocol):
    """One way to one backend, for spans or for log records. Safe to use from several threads, and in a forked child."""

    @property
    def name(self) -> str:
        """What reports call it: its URL without credentials, or its path."""
        ...

    def send(self, spans: Sequence[Any], within_s: float | None = None) -> Outcome:
        """Make one request and judge the answer, in at most `within_s` seconds and the sender's own time limit.

        Never raises on what the backend or the network does, never splits and never waits to try again.
        """
        ...

    def close(self) -> None:
        """Let go of connections. The sender opens new ones where it is used again."""
        ...
