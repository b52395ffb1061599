"""What an application answers to a request that is delivered to it, and when its client is to go away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from reenact.pipeline import recording
from reenact.values.content_encoding import unpacked
from reenact.values.run import Run
from reenact.values.unit import WebRequest

_PATIENCE_S = 5.0


@dataclass(slots=True)
class Answer:
    """The answer so far."""

    status: int | None = None
    encoding: str = ""
    """How its body is packed, as its header says."""
    pieces: list[bytes] = field(default_factory=list[bytes])
    delivered: Callable[[], None] = lambda: None
    """To be called when the request is over; the application's shutdown, which follows, is not judged."""

    def begun(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Hear of the status and the headers."""
        self.status = status
        self.encoding = next((value for name, value in headers if name.lower() == "content-encoding"), "")

    @property
    def body(self) -> bytes:
        """Everything that was sent, unpacked."""
        return unpacked(b"".join(self.pieces), self.encoding)

    @property
    def size(self) -> int:
        """How many bytes were sent."""
        return sum(map(len, self.pieces))


def calls_before(run: Run, request: WebRequest) -> Callable[[], bool]:
    """Make what tells that the application has asked for all it had asked for when its client went away.

    A call that is not made any more is waited for no longer than a few seconds.
    """
    left_at = request.left_at or 0
    owed = {node.id for node in run.nodes if node is not run.root and node.span.start_ns < left_at}
    doorman = getattr(recording.current(), "doorman", None)
    answered_ids: set[str] = getattr(getattr(doorman, "stubs", None), "taken", owed)
    until = time.monotonic() + _PATIENCE_S
    return lambda: owed <= answered_ids or time.monotonic() > until
