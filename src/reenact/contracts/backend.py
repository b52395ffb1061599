"""What a backend promises: traces found and fetched over the network, never a scan for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from reenact.values.finding import Filters
from reenact.values.log import LogRecord, Record


class BackendContent(Protocol):
    """What a backend holds in one place: a project, a table. Each method raises `InputError` naming the place."""

    @property
    def name(self) -> str:
        """The place's URL as it may be shown: without a password, query or fragment."""
        ...

    def newest(self, filters: Filters) -> Iterator[str]:
        """Give the ids of traces, newest first: all that fit, and others where the backend cannot tell."""
        ...

    def resolve(self, prefix: str) -> list[str]:
        """Give the ids of traces that begin so, a few at most."""
        ...

    def recorded_with(self, recording: str) -> list[str]:
        """Give the ids of the traces whose resource has this `reenact.recording.id`; none where it is not kept."""
        ...

    def records(self, trace_id: str) -> Iterator[Record]:
        """Give the spans, and log events, of one trace; none where it is not there."""
        ...

    def strays(self, first_ns: int, last_ns: int) -> Iterator[LogRecord]:
        """Give the log events of a time, in nanoseconds since the epoch, that name no trace; some at most."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A kind of backend. Each module of `reenact.backends` declares one as `BACKEND`."""

    name: str
    schemes: tuple[str, ...]
    """The schemes of URLs that name its places, such as `phoenix+http`."""
    usage: str
    """How such a URL is spelled, for help texts."""
    open: Callable[[str], BackendContent]
    """Reach a place, given its URL without the fragment; asks nothing yet. Raises `UsageError` if it names none."""
