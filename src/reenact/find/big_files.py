"""Runs out of a file too big to be read whole: found by its index (`read.file_index`), built one at a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path

from reenact.errors import InputError, UsageError
from reenact.graph.build import build
from reenact.keep.bundles import whole
from reenact.keep.catalog import fits, summary
from reenact.read.file_index import FileIndex, Listed, NotLinesError, indexed, may_be_indexed, naming
from reenact.read.open import logs_beside, open_spans
from reenact.report.times import instant
from reenact.values.finding import Filters
from reenact.values.json import Json, compact
from reenact.values.log import Record
from reenact.values.run import Run
from reenact.values.terminal import clean

_MOST_JUDGED = 1000
"""So many runs of a listing are built and judged; a longer one says what a glance tells."""
_EVERY_S = 0.2


def opened(path: Path, closing: ExitStack) -> FileIndex | None:
    """Open the index of a big file of OTLP/JSON lines, made now where it must be; None for any other file.

    Progress is shown on a terminal. Raises `InputError` where a line is broken.
    """
    if not may_be_indexed(path):
        return None
    try:
        return closing.enter_context(indexed(path, _Progress(path) if sys.stderr.isatty() else None))
    except NotLinesError:
        return None


class _Progress:
    """One line on a terminal, gone when all is read."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._last_update = 0.0

    def __call__(self, bytes_read: int, of: int) -> None:
        now = time.monotonic()
        if bytes_read >= of:
            sys.stderr.write("\r\x1b[K")
        elif now - self._last_update >= _EVERY_S:
            self._last_update = now
            sys.stderr.write(f"\rreenact: reading {clean(self._name)}: {bytes_read >> 20:,} of {of >> 20:,} MiB\x1b[K")
        sys.stderr.flush()


def run_of(index: FileIndex, trace_id: str) -> Run:
    """Build one run. Raises `InputError`."""
    runs = build(_records(index, trace_id), source=str(index.path))
    if not runs:
        raise InputError(str(index.path), f"holds no span of trace {trace_id}")
    return replace(runs[0], notes=(*runs[0].notes, *index.notes))


def _records(index: FileIndex, trace_id: str) -> Iterator[Record]:
    yield from whole(index.records(trace_id), index.path)
    beside = logs_beside(index.path)
    if beside is not None:
        yield from (record for record in open_spans(beside) if record.trace_id == trace_id)


def chosen(index: FileIndex, wanted: str) -> tuple[Run, list[Run]]:
    """Find the run whose id begins with `wanted` (the only one, for nothing), and the others of its recording.

    Raises `InputError` where there is none, `UsageError` where several fit.
    """
    prefix = wanted.lower()
    is_hexadecimal = len(prefix) <= 32 and not set(prefix) - set("0123456789abcdef")
    ids = index.beginning_with(prefix) if is_hexadecimal else []
    if not ids:
        raise InputError(str(index.path), f"holds no run {wanted!r}", hint=_names(index, _newest(index)))
    if len(ids) > 1:
        problem = f"{index.path} holds {f'{index.count():,}' if not prefix else 'several'} runs"
        raise UsageError(f"{problem}, name one", hint=_names(index, ids if prefix else _newest(index)))
    run = run_of(index, ids[0])
    if not run.recording:
        return run, []
    others = index.newest([("recording = ?", run.recording), ("id != ?", bytes.fromhex(run.id))])
    return run, [run_of(index, other.id) for other in list(others)]


def _newest(index: FileIndex) -> list[str]:
    return [row.id for row in islice(index.newest(), 8)]


def _names(index: FileIndex, ids: list[str]) -> str:
    return "one of: " + "  ".join(f"{index.path}#{each[:12]}" for each in ids[:8])


def listed(
    index: FileIndex, filters: Filters, limit: int, skip: int, says: Callable[[Run, str], bool]
) -> list[dict[str, Json]]:
    """Give the summaries of the runs that fit, newest first; `says` tells whether a text occurs in a run.

    The runs of a page are built and judged. Where more than a thousand are asked for, and by nothing but facts that
    the index has, they are told by a glance: `verdict` is null, and `judged` says false.
    """
    rows = index.newest(_conditions(filters))
    plain = not filters.arguments and (filters.text, filters.tool, filters.entry, filters.commit) == (None,) * 4
    if plain and (not limit or limit > _MOST_JUDGED):
        return [_glanced(index, row) for row in islice(rows, skip, skip + limit if limit else None)]
    if filters == Filters(window=filters.window):  # nothing that only building a run tells: pages are passed over
        rows, skip = islice(rows, skip, None), 0
    summaries: list[dict[str, Json]] = []
    for row in rows:
        if not plain and not _may_say(index, row, filters):
            continue
        run = run_of(index, row.id)
        if not fits(run, filters) or (filters.text is not None and not says(run, filters.text)):
            continue
        if skip:
            skip -= 1
            continue
        summaries.append(summary(run))
        if limit and len(summaries) >= limit:
            break
    return summaries


def _conditions(filters: Filters) -> list[tuple[str, object]]:
    """Spell what the index knows as SQL; where it knows nothing of a run, the run itself is asked."""
    conditions: list[tuple[str, object]] = []
    if filters.window is not None:
        first, last = filters.window
        conditions += [("started <= ?", min(last, (1 << 63) - 1)), ("ended >= ?", max(first, 0))]
    for name, value in (("user", filters.user), ("session", filters.session), ("tenant", filters.tenant)):
        if value is not None:
            conditions.append(naming(name, value))
    if filters.model is not None:
        conditions.append(("(models = '' OR instr(models, ?) > 0)", filters.model))
    return conditions


def _may_say(index: FileIndex, row: Listed, filters: Filters) -> bool:
    """Look for what is sought in the bytes of a run, before any of it is parsed."""
    sought = [text for text in (filters.text, filters.tool) if text is not None]
    needles = [compact(text)[1:-1].lower().encode() for text in sought if text.isascii() and '"' not in text]
    if not needles:
        return True
    stretches = [stretch.lower() for stretch in index.lines(row.id)]
    return all(any(needle in stretch for stretch in stretches) for needle in needles)


def _glanced(index: FileIndex, row: Listed) -> dict[str, Json]:
    return {
        "id": row.id,
        "name": row.name,
        "started": instant(row.started_ns),
        "duration_ms": round((row.ended_ns - row.started_ns) / 1e6, 3),
        "status": row.status,
        "calls": dict(row.calls),
        "verdict": None,
        "judged": False,
        "session": row.session,
        "user": row.user,
        "tenant": row.tenant,
        "models": [*row.models],
        "tools": [],
        "source": str(index.path),
        "replay_of": None,
        "fork_of": None,
    }
