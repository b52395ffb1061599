"""What a file is, told by its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """A file, the formats that read it, and what it holds; or why none does."""

    path: str
    formats: tuple[str, ...] = ()
    """Those that read it: one, of a folder or a zip file perhaps several, none where nothing does."""
    runs: int = 0
    calls: int = 0
    dialects: Mapping[str, int] = field(default_factory=dict[str, int])
    """Spans by the dialect that reads them."""
    notes: tuple[str, ...] = ()
    place: str = ""
    """Where it cannot be read: its path, with line or byte."""
    problem: str = ""
    """Why it is not read; empty where it is."""
    nearest: str = ""
    """The format that it is nearest to, where none reads it."""
    lacks: tuple[str, ...] = ()
    """What it lacks of that format."""
