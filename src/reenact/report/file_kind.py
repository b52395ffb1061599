"""What a file is, as a line and as a document."""

from __future__ import annotations

from reenact.values.file_kind import FileKind
from reenact.values.json import Json


def file_kind_lines(kind: FileKind) -> list[str]:
    """Say in one line which format reads a file, and what it holds, and its notes below."""
    dialects = ", ".join(f"{name} ({count})" for name, count in kind.dialects.items())
    counts = f"{_many(kind.runs, 'run')}, {_many(kind.calls, 'call')}"
    headline = f"{kind.path}: {', '.join(kind.formats)}; {counts}" + (f"; read as {dialects}" if dialects else "")
    return [headline, *(f"note: {note}" for note in kind.notes)]


def file_kind_document(kind: FileKind) -> dict[str, Json]:
    """Make the document of `reenact what`."""
    return {
        "path": kind.path,
        "format": kind.formats[0] if len(kind.formats) == 1 else None,
        "formats": [*kind.formats],
        "runs": kind.runs,
        "calls": kind.calls,
        "dialects": dict(kind.dialects),
        "notes": [*kind.notes],
        "problem": kind.problem or None,
        "nearest": {"format": kind.nearest, "lacks": [*kind.lacks]} if kind.nearest else None,
    }


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
