"""What a format promises: bytes on disk or wire to spans, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from reenact.values.json import Json
from reenact.values.log import Record
from reenact.values.skeleton import holds
from reenact.values.span import SpanRecord
from reenact.values.unread_parts import Unread

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadMarks:
    """What a format goes by: a file that shows none of these in its first bytes is none of its.

    Each mark is a list of signs that have to be there together.
    """

    keys: tuple[tuple[str, ...], ...] = ()
    """Paths of keys of JSON, as `values.skeleton.holds` takes them."""
    texts: tuple[tuple[str, ...], ...] = ()
    """Texts, wherever they stand."""
    plain: tuple[tuple[str, ...], ...] = ()
    """Texts in lower case, in a file that does not begin like JSON; the letter case of the file does not matter."""

    @classmethod
    def read(cls, document: dict[str, Any]) -> HeadMarks:
        """Read what `asdict` gave and JSON carried."""
        return cls(**{name: tuple(tuple(signs) for signs in each) for name, each in document.items()})

    def on(self, head: bytes) -> bool:
        """Tell whether the first bytes of a file show one of the marks."""
        if any(all(sign.encode() in head for sign in signs) for signs in self.texts):
            return True
        if any(holds(head, *signs) for signs in self.keys):
            return True
        if not self.plain or head.removeprefix(_BOM).lstrip()[:1] in (b"{", b"["):
            return False
        lower = head.lower()
        return any(all(sign.encode() in lower for sign in signs) for signs in self.plain)


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
    marks: HeadMarks | None = None
    """What every file that it recognises shows; None where that cannot be told."""
    most: float = 1.0
    """How sure it ever is."""

    def outline(self) -> dict[str, Json]:
        """Give what is known of the format before it is loaded, for the index of families (`discover`)."""
        mark_fields: dict[str, Any] = asdict(self.marks) if self.marks is not None else {}
        marks: Json = (
            {name: [[*signs] for signs in each] for name, each in mark_fields.items() if each}
            if self.marks is not None
            else None
        )
        return {"name": self.name, "most": self.most, "marks": marks}
