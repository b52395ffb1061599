"""The doorman at every boundary: decides whether the outside world is asked, and writes down what it said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from reenact.values.call import Call, Outcome, Rewritten, StreamEnd
from reenact.values.json import Json

if TYPE_CHECKING:
    from reenact.values.discovered_tools import Print


class Passage(Protocol):
    """One crossing, from the moment it was asked for until its outcome is known.

    An integration asks `answer`. If it is None the outside world is asked, `with passage.crossing()`, and what it
    says is told with `chunk` and one of `returned`, `raised`, `ended`. Otherwise the integration hands the answer to
    the agent piece by piece, each piece only after `wait` (or `wait_async`) for its step let it through, and tells
    the same things.
    """

    @property
    def answer(self) -> Outcome | Rewritten | None:
        """The recorded outcome that stands for the outside world, or None where that is to be asked.

        A request to a model may be given another body by a fork of a run: then the world is asked that.
        """
        ...

    def crossing(self) -> AbstractContextManager[None]:
        """Surround the real call; calls made inside hang below this one."""
        ...

    def ready(self) -> None:
        """Block until the body of a call that runs again in a replay may begin."""
        ...

    async def ready_async(self) -> None:
        """Do the same without blocking the event loop."""
        ...

    def wait(self, order: int | None) -> None:
        """Block until the release with this recorded order number may reach agent code."""
        ...

    async def wait_async(self, order: int | None) -> None:
        """Do the same without blocking the event loop."""
        ...

    def annotate(self, attributes: Mapping[str, Json]) -> None:
        """Add facts to the call's span."""
        ...

    def head(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        """Tell that a stream opened."""
        ...

    def chunk(self, data: bytes | None = None, value: Json = None) -> None:
        """Tell that a piece is about to reach agent code; it is on disk when this returns."""
        ...

    def replied(self, status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
        """Tell a whole reply over HTTP: what `closed` tells, without a value made of it on the way."""
        ...

    def closed(self, outcome: Outcome) -> None:
        """Tell the outcome of a call that did not stream."""
        ...

    def ended(self, end: StreamEnd, error: BaseException | None = None, result: Json = None) -> None:
        """Tell how a stream came to its end, and what a generator returned there."""
        ...

    def raised(self, error: BaseException) -> None:
        """Tell that the call failed with `error`."""
        ...

    @property
    def aftermath(self) -> Json:
        """In a replay, what the recorded call changed in memory, spelled by `boundary.aftermath`; None for nothing."""
        ...

    @property
    def printed(self) -> Sequence[Print]:
        """In a replay, what the recorded call printed."""
        ...

    def turn(self) -> AbstractContextManager[None]:
        """In a replay, surround what is done for the recorded call beside its answer: no other call is answered."""
        ...

    def unrestored(self, why: str) -> None:
        """Tell that what the recorded call changed in memory could not be put back."""
        ...

    def number_end(self) -> None:
        """Take the number of the call's end now; what came of it is told later."""
        ...

    def differs(self, field: str, recorded: Json, now: Json, /) -> BaseException | None:
        """Hold something that the call was given against what was recorded.

        In a replay, notes a difference in the ledger and gives what is to be raised; None where there is none.
        """
        ...

    def recorded(self, attribute: str, /) -> list[Json]:
        """In a replay, give a list that stands on the recorded call's span."""
        ...

    def miss(self, reason: str) -> BaseException:
        """Note in a replay's ledger that this call cannot be answered after all, and give what is to be raised."""
        ...

    @property
    def head_order(self) -> int | None:
        """In a replay, the recorded order number of the opening of the stream."""
        ...

    @property
    def end_order(self) -> int | None:
        """In a replay, the recorded order number of the end of the call."""

    @property
    def took_s(self) -> float | None:
        """In a replay, how long the recorded call took, in seconds."""
        ...


class Doorman(Protocol):
    """Who decides at a boundary. One is in charge of a process at a time (`boundary.door`)."""

    def open(self, call: Call) -> Passage:
        """Let a call in.

        Raises `errors.Miss` in a replay that does not know it; never raises while recording.
        """
        ...
