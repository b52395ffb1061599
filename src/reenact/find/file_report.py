"""What a file is: the format that reads it and what it holds, or the known format that it is nearest to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from reenact.boundary.reading import frames
from reenact.errors import InputError
from reenact.graph.build import build
from reenact.read.likeness import nearest
from reenact.read.open import first_bytes, open_recording
from reenact.values.file_kind import FileKind
from reenact.values.run import OURS, Node, Run


def kind_of(path: Path) -> FileKind:
    """Tell what a file, a folder or a zip file is. Raises `InputError` for what cannot be opened at all."""
    head = first_bytes(path)
    try:
        opened = open_recording(path)
        runs = build(opened.records)
    except InputError as refusal:
        near = nearest(head) if head is not None else None
        return FileKind(
            path=str(path),
            place=refusal.place,
            problem=refusal.problem,
            nearest=near.format if near is not None else "",
            lacks=near.lacks if near is not None else (),
        )
    dialects = Counter(name for run in runs for node in run.nodes if (name := _dialect(node)))
    return FileKind(
        path=str(path),
        formats=tuple(opened.formats),
        runs=len(runs),
        calls=sum(_calls(run) for run in runs),
        dialects=dict(dialects.most_common()),
        notes=tuple(opened.notes),
    )


def _calls(run: Run) -> int:
    """Count what was asked of models, tools and servers; what only says where those hang is no call."""
    outer = frames(run.nodes)
    return sum(not node.call.is_structure and node.id not in outer for node in run.nodes)


def _dialect(node: Node) -> str:
    """Name the dialect that read a call; empty for what stands in no file, such as the root above a conversation."""
    name = node.call.attributes.get("reenact.dialect")
    return name if isinstance(name, str) else "reenact" if OURS in node.span.attributes else ""
