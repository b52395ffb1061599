"""What a keeper of blobs promises: content under its own digest, for ever the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Blobs(Protocol):
    """A place of blobs. Safe to use from several processes at once."""

    @property
    def place(self) -> str:
        """Where it is: a folder or a URL."""
        ...

    @property
    def threshold(self) -> int:
        """Values of more bytes than this are put here."""
        ...

    def put(self, digest: str, pieces: Iterator[bytes], *, forced: bool = False) -> None:
        """Keep a blob, wholly or not at all; one that is there already is left alone. Raises `InputError`.

        With `forced` it is on the disk itself afterwards, where it is on one of this machine's.
        """
        ...

    def get(self, digest: str) -> bytes:
        """Give a blob, checked against its digest. Raises `disk.blob.BlobLostError`."""
        ...

    def sizes(self) -> Mapping[str, int]:
        """Give digest and bytes of every blob there is."""
        ...

    def old(self, seconds: float) -> Mapping[str, int]:
        """Give digest and bytes of every blob that nobody put for so long; none where that cannot be known."""
        ...

    def delete(self, digest: str) -> None:
        """Delete a blob; none there is no error."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobKeeping:
    """A way to keep blobs. A module of `reenact.stores` declares one."""

    open: Callable[[Path], Blobs]
    """Open the blobs that belong to a folder: of a store, or of a bundle."""
