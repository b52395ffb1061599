"""What a format promises: bytes on disk or wire to spans, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from reenact.values.log import Record
from reenact.values.span import SpanRecord
from reenact.values.unread import Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A spelling of spans in bytes. Each module of `reenact.formats` declares one as `FORMAT`."""

    name: str
    """What the command line calls it, such as `otlp-json`."""
    suffix: str
    """The file ending that `export` gives it."""
    recognises: Callable[[bytes], float]
    """How sure this format is, 0 to 1, given the first 64 KiB of a file."""
    decode: Callable[[BinaryIO, Path], Iterator[Record]]
    """Read spans, and log events where the format has them, one at a time.

    The path names the place in errors (`errors.InputError`), the only ones raised.
    """
    tolerant: Callable[[BinaryIO, Path, Unread], Iterator[Record]] | None = None
    """Do the same, but pass over spans and links whose ids are none, and tell of each.

    For archives that a collector wrote of whatever it was sent, where one bad span must not cost the others. None where
    `decode` is all there is.
    """
    encode: Callable[[Iterable[SpanRecord]], bytes] | None = None
    """Spell spans toward the disk. None for a format that is only read."""
