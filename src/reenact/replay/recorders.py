"""What a replay needs of the recorder by which it is a run itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from reenact.boundary.place import Place
from reenact.values.call import Call, Outcome, StreamEnd
from reenact.values.json import Json


class Recording(Protocol):
    """What the replayer needs of the recorder's passage."""

    place: Place

    def crossing(self) -> Any:
        """Stand inside the call."""

    def annotate(self, attributes: Mapping[str, Any]) -> None:
        """Add facts to its span."""

    def number_end(self) -> None:
        """Take the number of its end."""

    def head(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        """Note that a stream opened."""

    def chunk(self, data: bytes | None = None, value: Json = None) -> None:
        """Write a piece down."""

    def closed(self, outcome: Outcome) -> None:
        """Write down a whole outcome."""

    def raised(self, error: BaseException) -> None:
        """Write down a failure."""

    def ended(self, end: StreamEnd, error: BaseException | None = None, result: Json = None) -> None:
        """Write down how a stream ended."""


class Recorder(Protocol):
    """What the replayer needs of the recorder: a replay is a run, with spans like any other."""

    def open(self, call: Call) -> Any:
        """Let a call in, its request written down."""
