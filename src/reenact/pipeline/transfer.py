"""Recordings out to files and backends, and files in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reenact.contracts.format import Format
from reenact.discover import members
from reenact.errors import InputError, UsageError
from reenact.export.backends import backends_from_environment
from reenact.export.fanout import FanOut
from reenact.pipeline.catalog import index, summary
from reenact.pipeline.drain import flattened
from reenact.read.open import open_spans
from reenact.stores.directory import DirectoryStore
from reenact.values.json import Json
from reenact.values.run import Run
from reenact.values.span import SpanRecord


def format_named(name: str) -> Format:
    """Find a format by its name. Raises `UsageError`."""
    found = {each.name: each for each in members("formats", Format)}
    if name not in found:
        raise UsageError(f"there is no format {name!r}", hint=f"one of: {', '.join(found)}")
    return found[name]


def exported(runs: Iterable[Run], *, flat: bool) -> list[SpanRecord]:
    """Give the spans of runs as they leave: with the flattened view for other vendors' screens, unless told not to."""
    spans = [node.span for run in runs for node in run.nodes]
    return [flattened(span) for span in spans] if flat else spans


def write(spans: Sequence[SpanRecord], target: Path, name: str) -> None:
    """Write spans to a file, whole or not at all; `-` is stdout."""
    data = format_named(name).encode(spans)
    if str(target) == "-":
        sys.stdout.buffer.write(data)
        return
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InputError(str(target), f"cannot be written: {error.strerror}") from error


def send(spans: Sequence[SpanRecord], urls: Sequence[str]) -> list[str]:
    """Send spans to OTLP endpoints and say what became of them. Raises `InputError` where any was not delivered."""
    backends = backends_from_environment({**_ours(os.environ), "REENACT_EXPORT": ",".join(urls)})
    lines: list[str] = []
    for report in FanOut(backends).deliver(spans):
        if report.rejected or report.left:
            problem = f"{report.sent} of {len(spans)} spans delivered: {'; '.join(report.reasons)}"
            raise InputError(report.backend, problem)
        lines.append(f"reenact: {report.sent} spans delivered to {report.backend}")
    return lines


def _ours(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name == "REENACT_EXPORT_HEADERS"}


def taken_in(files: Iterable[Path], store: DirectoryStore) -> list[dict[str, Json]]:
    """Store the spans of files and give the summaries of their runs. Raises `InputError` before anything is stored."""
    read = [list(open_spans(path)) for path in files]
    store.prepare()
    said: dict[str, dict[str, Json]] = {}
    for spans in read:
        for run in index(store, store.append(spans)):
            said[run.id] = summary(run, source=str(store.folder))
    return list(said.values())
