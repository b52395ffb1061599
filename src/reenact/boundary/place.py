"""Where in the run the code now running stands: the innermost open call of ours.

Kept in a context variable of our own, beside OpenTelemetry's: the application's current span may be dropped by its
sampler or belong to a backend that never sees ours. Set and restored by hand, never by token, since generators and
cancelled tasks may be resumed or closed in another context ("Failed to detach context").
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """An open call: the parent of whatever is called next."""

    trace_id: int
    span_id: int
    recorded: object = None
    """In a replay, the recorded call that this one was matched with."""
    root: int = 0
    """The root span of the run."""
    whole: bool = False
    """Inside a call whose outcome stands for all the I/O that is done there."""
    streams: dict[Any, Any] | None = field(default=None, compare=False, repr=False)
    """The random streams of the sites that draw in this call, by lane and site; made at first need."""


_PLACE: ContextVar[Place | None] = ContextVar("reenact_place", default=None)


current: Callable[[], Place | None] = _PLACE.get
"""Give the innermost open call, or None outside every run; the variable's own method, since every call asks."""


class at:  # noqa: N801 - reads as a function does; a generator would cost a call three times as much
    """Stand at `place`: a context manager."""

    __slots__ = ("_before", "_place")

    def __init__(self, place: Place) -> None:
        self._place = place

    def __enter__(self) -> None:
        self._before = _PLACE.get()
        _PLACE.set(self._place)

    def __exit__(self, *_: object) -> None:
        if _PLACE.get() is self._place:  # else it is closed in another context, which is none of its business
            _PLACE.set(self._before)


hangers: list[Callable[[Any, Place], Place]] = []
"""Who says where the span of a call hangs that a recorder writes; nobody, where no framework is at work."""


def move(place: Place | None) -> Place | None:
    """Stand at `place` and give back the place before."""
    before = _PLACE.get()
    _PLACE.set(place)
    return before
