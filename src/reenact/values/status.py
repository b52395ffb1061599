"""How a store stands: what is recorded at the moment, what was left behind, and what backends are still to have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalsStatus:
    """What recording processes write, and what those that are gone left."""

    in_use: int = 0
    """Files that a living process writes to."""
    left_over: int = 0
    """Files of processes that are gone, which the next command carries into the store."""
    damaged: int = 0
    """Files that were set aside, since a part of them could not be read."""
    size: int = 0
    """Bytes of all."""
    open_spans: int = 0
    """Spans of living processes that have not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendStatus:
    """How things stand with one backend. `created` is `exported`, `waiting` and all of `dropped` together."""

    name: str
    configured: bool
    """The environment names it, so that this process could send to it."""
    sending: bool
    """Some process is sending to it at the moment."""
    created: int
    """Spans that it was to have, ever: those of recordings that were made while it was configured."""
    exported: int
    """Spans that it accepted."""
    referred: int
    """Of these, how many went with a reference in place of a large value."""
    waiting: int
    """Spans that it is still to have."""
    in_journals: int
    """Of these, how many are not in the store yet."""
    dropped: Mapping[str, int]
    """Spans that are not sent again, by reason; the store has them."""
    oldest_ns: int | None
    """When the span that waits longest was taken into the store, in nanoseconds since the epoch."""
    delivered_ns: int | None
    error: str | None
    failed_ns: int | None
    tries: int
    """How often in a row it failed."""
    next_try_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """How one store stands."""

    folder: str
    traces: int
    size: int
    """Bytes of the traces."""
    blobs: int
    blob_size: int
    """Bytes of the blobs."""
    blob_place: str
    journals: JournalsStatus
    backends: tuple[BackendStatus, ...] = field(default=())
