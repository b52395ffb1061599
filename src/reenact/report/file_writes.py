"""What came of the files that a program wrote, in lines for a person and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reenact.values.file_writes import FileWrites, WrittenFile, writes_of
from reenact.values.json import Json
from reenact.values.judgement import ReplayResult
from reenact.values.lenient import as_count, as_text
from reenact.values.run import Run

_MOST = 5
"""Names in one line."""


def lines(result: ReplayResult) -> Iterator[str]:
    """Say what was written as recorded, what was passed over, what is not known, and what nobody witnessed."""
    comparison = result.writes
    if comparison.as_recorded:
        yield f"wrote as recorded: {_listed(comparison.as_recorded)}"
    for each in comparison.passed_over[:_MOST]:
        yield f"passed over: {each.get('count')} {as_text(each.get('kind'))} in {as_text(each.get('path'))}"
    if (more := len(comparison.passed_over) - _MOST) > 0:
        count = sum(as_count(each.get("count")) or 0 for each in comparison.passed_over[_MOST:])
        yield f"passed over: {count} more in {more} places"
    if comparison.bytes_differ:
        yield f"differ in their bytes alone, from run to run: {_listed(comparison.bytes_differ)}"
    yield from comparison.notes
    if comparison.why:
        yield f"what it wrote was not compared: {comparison.why}"
    if result.unwitnessed:
        yield f"unwitnessed write, by native code or a child, to the copy: {_listed(result.unwitnessed)}"
    for tool, paths in result.by_tools.items():
        if paths:
            yield f"written by {tool}, which ran by --tool-live, to the copy: {_listed(paths)}"
    if comparison.kept:
        yield f"kept: {_listed(comparison.kept)}"


def _listed(names: Iterable[str]) -> str:
    items = [*names]
    return f"{', '.join(items[:_MOST])}{f' and {len(items) - _MOST} more' if len(items) > _MOST else ''}"


def document(result: ReplayResult) -> dict[str, Json]:
    """Describe it as `reenact replay --json` does."""
    comparison = result.writes
    return {
        "compared": comparison.compared,
        "why": comparison.why,
        "as_recorded": [*comparison.as_recorded],
        "passed_over": [*comparison.passed_over],
        "bytes_differ": [*comparison.bytes_differ],
        "notes": [*comparison.notes],
        "kept": [*comparison.kept],
    }


def of_run(run: Run) -> list[Json] | None:
    """Describe what a run wrote as `reenact show --json` does; None where its recorder did not note it."""
    writes = writes_of(run)
    if writes is None:
        return None
    return [_file(file, writes) for file in writes.files.values() if file.changed and not file.part_of]


def _file(file: WrittenFile, writes: FileWrites) -> Json:
    after = file.after or {}
    state = "removed" if file.after is None else as_text(after.get("kind")) or "file"
    return {
        "path": writes.named(file.path),
        "state": state,
        "new": file.before is None,
        "size": after.get("size"),
        "where": file.at,
    }


def in_short(run: Run) -> Iterator[str]:
    """Say in a line each what a run wrote and removed."""
    writes = writes_of(run)
    files = [file for file in writes.files.values() if file.changed and not file.part_of] if writes is not None else []
    if writes is not None:
        wrote = [writes.named(file.path) for file in files if file.after is not None]
        removed = [writes.named(file.path) for file in files if file.after is None]
        yield from (f"{verb} {_listed(names)}" for verb, names in (("wrote", wrote), ("removed", removed)) if names)
