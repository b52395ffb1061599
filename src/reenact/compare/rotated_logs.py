"""Logs that are rotated: one text each, however many files it lies in.

Where a log is rotated goes by its size or by the clock, and a process id of fewer digits makes a line shorter: two runs
that log the same may part it at different lines. Read in its order it is the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reenact.values.file_writes import FileWrites, WrittenFile
from reenact.values.lenient import as_text

_FIRST: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedLog:
    """One log of two runs."""

    name: str
    file: WrittenFile
    texts: tuple[str, str]
    dropped: bool
    """Old parts may have been deleted on either side."""


def rotated_logs(a: FileWrites, b: FileWrites) -> Mapping[str, RotatedLog]:
    """Give the logs that both runs wrote, and that either rotated, by the path in the first and in the second."""
    logs: dict[str, RotatedLog] = {}
    others = {b.named(path): path for path in _bases(b)}
    for path in _bases(a):
        other = others.get(a.named(path))
        if other is None:
            continue
        left, right = _parts(a, path), _parts(b, other)
        if len(left) == len(right) == 1:
            continue
        texts = _text(left), _text(right)
        if texts[0] is None or texts[1] is None:
            continue
        backups = max(each.backups for each in (*left, *right))
        dropped = 0 < backups < max(len(left), len(right))
        log = RotatedLog(name=a.named(path), file=left[-1], texts=(texts[0], texts[1]), dropped=dropped)
        logs[path] = logs[other] = log
    return logs


def _bases(writes: FileWrites) -> dict[str, None]:
    return dict.fromkeys(file.log_of for file in writes.files.values() if file.log_of)


def _parts(writes: FileWrites, base: str) -> list[WrittenFile]:
    """List the files of a log, the oldest first."""
    return sorted((file for file in writes.files.values() if file.log_of == base), key=lambda file: _age(file, base))


def _age(file: WrittenFile, base: str) -> tuple[int, int, str]:
    suffix = file.path[len(base) :].lstrip(".")
    if not suffix:
        return 1, _FIRST, ""
    return (_FIRST, -int(suffix), "") if suffix.isdigit() and len(suffix) < 6 else (_FIRST, 0, suffix)


def _text(parts: list[WrittenFile]) -> str | None:
    """Join what the files hold; None where that is not known."""
    texts = ["" if file.after is None or file.after.get("same") is True else file.after.get("text") for file in parts]
    return None if any(text is None for text in texts) else "".join(as_text(text) for text in texts)
