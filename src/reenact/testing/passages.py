"""A crossing of which nothing is written down: the outside world is asked, or something made up answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from reenact.replay import guard
from reenact.values.call import Outcome, StreamEnd
from reenact.values.discovered_tools import Print
from reenact.values.json import Json


class Through:
    """A passage (`contracts.doorman.Passage`) that keeps no record. Without an `answer` the outside world is asked."""

    head_order: int | None = None
    end_order: int | None = None
    took_s: float | None = None
    aftermath: Json = None
    printed: Sequence[Print] = ()

    def __init__(self, answer: Outcome | None = None) -> None:
        self.answer = answer

    def crossing(self) -> AbstractContextManager[None]:
        """Let the real call through any guard."""
        return guard.allowed()

    def ready(self) -> None:
        """Wait for nothing."""

    async def ready_async(self) -> None:
        """Wait for nothing."""

    def wait(self, order: int | None) -> None:
        """Wait for nothing."""

    async def wait_async(self, order: int | None) -> None:
        """Wait for nothing."""

    def turn(self) -> AbstractContextManager[None]:
        """Surround nothing."""
        return nullcontext()

    def number_end(self) -> None:
        """Hear nothing."""

    def differs(self, field: str, recorded: Json, now: Json, /) -> BaseException | None:
        """Find nothing: there is no recording."""
        del field, recorded, now

    def recorded(self, attribute: str, /) -> list[Json]:
        """Give nothing: there is no recording."""
        del attribute
        return []

    def annotate(self, attributes: Mapping[str, Json]) -> None:
        """Keep nothing."""

    def head(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        """Keep nothing."""

    def chunk(self, data: bytes | None = None, value: Json = None) -> None:
        """Keep nothing."""

    def replied(self, status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
        """Keep nothing."""

    def unrestored(self, why: str) -> None:
        """Keep nothing."""

    def closed(self, outcome: Outcome) -> None:
        """Keep nothing."""

    def ended(self, end: StreamEnd, error: BaseException | None = None, result: Json = None) -> None:
        """Keep nothing."""

    def raised(self, error: BaseException) -> None:
        """Keep nothing."""

    def miss(self, reason: str) -> BaseException:
        """Say that the answer cannot be given out as it is."""
        return RuntimeError(f"reenact: {reason}")
