"""What a store gives back for spans that it took in: where they lie, to read them again when they are sent."""

from __future__ import annotations

from dataclasses import dataclass

from reenact.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """Neighbouring spans of one trace, in the order in which they were taken in."""

    trace_id: str
    at: int
    """Byte at which they begin in the trace's file."""
    size: int
    """Bytes."""
    spans: int


class ParcelGoneError(InputError):
    """A parcel is not there any more: its trace was deleted or written anew."""
