"""What came of the files that a program wrote, in lines for a person and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reenact.values.file_writes import Written, WrittenFile, written
from reenact.values.json import Json
from reenact.values.judgement import ReplayResult
from reenact.values.lenient import as_count, as_text
from reenact.values.run import Run

_MOST = 5
"""Names in one line."""


def lines(result: ReplayResult) -> Iterator[str]:
    """Say what was written as recorded, what was passed over, what is not known, and what nobody witnessed."""
    told = result.writes
    if told.as_recorded:
        yield f"wrote as recorded: {_listed(told.as_recorded)}"
    for each in told.passed_over[:_MOST]:
        yield f"passed over: {each.get('count')} {as_text(each.get('kind'))} in {as_text(each.get('path'))}"
    if (more := len(told.passed_over) - _MOST) > 0:
        count = sum(as_count(each.get("count")) or 0 for each in told.passed_over[_MOST:])
        yield f"passed over: {count} more in {more} places"
    if told.bytes_differ:
        yield f"differ in their bytes alone, from run to run: {_listed(told.bytes_differ)}"
    yield from told.notes
    if told.why:
        yield f"what it wrote was not compared: {told.why}"
    if result.unwitnessed:
        yield f"unwitnessed write, by native code or a child, to the copy: {_listed(result.unwitnessed)}"
    for tool, paths in result.by_tools.items():
        if paths:
            yield f"written by {tool}, which ran by --tool-live, to the copy: {_listed(paths)}"
    if told.kept:
        yield f"kept: {_listed(told.kept)}"


def _listed(names: Iterable[str]) -> str:
    given = [*names]
    return f"{', '.join(given[:_MOST])}{f' and {len(given) - _MOST} more' if len(given) > _MOST else ''}"


def document(result: ReplayResult) -> dict[str, Json]:
    """Describe it as `reenact replay --json` does."""
    told = result.writes
    return {
        "compared": told.compared,
        "why": told.why,
        "as_recorded": [*told.as_recorded],
        "passed_over": [*told.passed_over],
        "bytes_differ": [*told.bytes_differ],
        "notes": [*told.notes],
        "kept": [*told.kept],
    }


def of_run(run: Run) -> list[Json] | None:
    """Describe what a run wrote as `reenact show --json` does; None where its recorder did not note it."""
    told = written(run)
    if told is None:
        return None
    return [_file(file, told) for file in told.files.values() if file.changed and not file.part_of]


def _file(file: WrittenFile, told: Written) -> Json:
    after = file.after or {}
    state = "removed" if file.after is None else as_text(after.get("kind")) or "file"
    return {
        "path": told.named(file.path),
        "state": state,
        "new": file.before is None,
        "size": after.get("size"),
        "where": file.at,
    }


def in_short(run: Run) -> Iterator[str]:
    """Say in a line each what a run wrote and removed."""
    told = written(run)
    files = [file for file in told.files.values() if file.changed and not file.part_of] if told is not None else []
    if told is not None:
        wrote = [told.named(file.path) for file in files if file.after is not None]
        removed = [told.named(file.path) for file in files if file.after is None]
        yield from (f"{verb} {_listed(names)}" for verb, names in (("wrote", wrote), ("removed", removed)) if names)
