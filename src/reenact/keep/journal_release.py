"""What is noted when files of a journal are removed that were carried while their process lives.

Theory of operation. A span may begin in one file of a journal and end in the next. Where the process is killed, a later
reader goes on with the files that are left: of such a span it sees the beginning alone, or the end alone. The
note says which spans were still open when files were removed, and how many ends in the file that was read then belong
to beginnings that are gone. It is written before the files are removed, and says of each file what its absence means,
so that a process that is killed between the two leaves nothing wrong.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import orjson

from reenact.disk import private
from reenact.disk.durable import force, force_entry
from reenact.formats.journal import Release

SUFFIX: Final = ".removed"


def write(path: Path, release: Release, *, forced: bool) -> None:
    """Write the note, whole or not at all, and with `forced` on the disk itself. Raises `OSError`."""
    crossings = {str(number): spans for number, spans in release.crossings.items()}
    text = orjson.dumps({"file": release.file, "open": sorted(release.open_spans), "crossings": crossings}).decode()
    draft = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    private.write_text(draft, text)
    if forced:
        force(draft)
    draft.replace(path)
    if forced:
        force_entry(path, path.parent)


def read(path: Path) -> Release | None:
    """Read the note; None where there is none, or none that can be read."""
    try:
        note = orjson.loads(path.read_bytes())
        return Release(
            file=int(note["file"]),
            open_spans=frozenset(map(str, note["open"])),
            crossings={int(number): int(spans) for number, spans in note["crossings"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
