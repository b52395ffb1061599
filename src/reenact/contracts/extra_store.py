"""What a second way of keeping traces in a store's folder promises, so that whoever reads the store need not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from reenact.errors import InputError
from reenact.values.json import Json
from reenact.values.log import Record
from reenact.values.span import SpanRecord

if TYPE_CHECKING:
    from reenact.contracts.parcel import Parcel


class GrewError(InputError):
    """Something came in of a trace since, so it was not deleted."""


class Further(Protocol):
    """More traces of a store. Safe to use from several processes at once."""

    def records(self, trace_id: str) -> Iterator[Record] | None:
        """Read the spans and log events of a trace; None where it is not among these. Raises `InputError`."""
        ...

    def resolve(self, prefix: str) -> list[str]:
        """Give the ids of the traces that begin with `prefix`, hexadecimal."""
        ...

    def trace_ids(self) -> list[str]:
        """List every trace, in no order."""
        ...

    def changed_since(self, ns: int) -> list[str]:
        """List the traces that something came in of at or after an instant, in nanoseconds since the epoch."""
        ...

    def unnoted(self, most: int, before_ns: int | None = None) -> list[str]:
        """List traces that grew since `noted` was told of them, those that waited longest first.

        With `before_ns` none of those that grew since that instant.
        """
        ...

    def noted(self, trace_ids: list[str], at_ns: int) -> None:
        """Take it that these are in the index of runs as they were at an instant."""
        ...

    def delete(self, trace_id: str) -> bool:
        """Delete a trace; False where it is not among these. Raises `InputError`."""
        ...

    def sparing(self, since_ns: int) -> AbstractContextManager[None]:
        """Within it, `delete` raises `GrewError` for a trace of which something came in at or after an instant.

        What comes in of a trace after that instant is there, whenever the trace was deleted.
        """
        ...

    def read_aside(self) -> bool:
        """From here on write to a temporary folder what a reader has to write. False where that is no help."""
        ...

    def parcel(self, parcel: Parcel) -> list[SpanRecord]:
        """Read a parcel again. Raises `ParcelGoneError`, or another `InputError`."""
        ...

    def raw(self, trace_id: str) -> bytes | None:
        """Give bytes that hold every text of a trace in UTF-8, as it is; None where it is not among these."""
        ...

    def weight(self, trace_id: str) -> int:
        """Give the bytes on disk that go with a trace, as far as they are its own; 0 where it is not among these."""
        ...

    def packed_bytes(self) -> int:
        """Give the bytes on disk of all traces that have a weight."""
        ...

    def sizes(self) -> tuple[int, int]:
        """Give how many traces there are, and their bytes on disk."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherKeeping:
    """A way to keep more traces. A module of `reenact.stores` declares one."""

    open: Callable[[Path], Further | None]
    """Open what belongs to a store's folder; None where there is nothing of the kind."""
    owns: Callable[[str], bool]
    """Tell whether a parcel's trace id is of this way."""
    folder: str = ""
    """The folder within the store's that everything of it lies in; where that is missing, `open` gives None."""

    def outline(self) -> dict[str, Json]:
        """Give what is known of it before it is loaded, for the index of families (`discover`)."""
        return {"folder": self.folder}
