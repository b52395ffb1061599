"""Recordings out to files and backends, and files in."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from reenact.contracts.dialect import Around
from reenact.contracts.format import Format
from reenact.discover import members
from reenact.disk.blob import cut
from reenact.disk.whole_file import write_whole
from reenact.errors import InputError, UsageError
from reenact.export.backends import backends_from_environment
from reenact.export.fanout import FanOut
from reenact.graph.logs import joined
from reenact.keep.bundles import bundle, whole
from reenact.keep.catalog import index, summary
from reenact.keep.flattening import flattened, surroundings
from reenact.keep.leftovers import say
from reenact.read.open import open_spans
from reenact.stores.directory import DirectoryStore
from reenact.values.json import Json
from reenact.values.run import Run, spans_of
from reenact.values.semconv import Semconv, as_recorded
from reenact.values.span import SpanRecord
from reenact.values.terminal import escaped

_AT_ONCE = 100
"""Traces that are noted in one transaction."""


def format_named(name: str) -> Format:
    """Find a format by its name. Raises `UsageError`."""
    formats = {each.name: each for each in members("formats", Format)}
    if name not in formats:
        raise UsageError(f"there is no format {name!r}", hint=f"one of: {', '.join(formats)}")
    return formats[name]


def exported(runs: Iterable[Run], semconv: Semconv | None) -> list[SpanRecord]:
    """Give the spans of runs as they leave: with the view for other vendors' screens, in whose words they are read.

    None for no view.
    """
    if semconv is None:
        return spans_of(runs)
    spans: list[SpanRecord] = []
    for run in runs:
        around = surroundings(run)
        spans += [flattened(span, semconv, around.get(span.span_id, Around())) for span in spans_of([run])]
    return spans


def write_bundle(spans: Sequence[SpanRecord], target: Path, name: str, store: DirectoryStore) -> None:
    """Write spans to a folder or zip file, their large values beside them. Raises `InputError`."""
    trace = f"trace{format_named(name).suffix}"
    bundle(spans, target, trace, encoder(name), store.blobs.threshold)


def referring(spans: Iterable[SpanRecord], store: DirectoryStore) -> list[SpanRecord]:
    """Give spans with references in place of their large values, which are in the store's blobs."""
    return [cut(span, store.blobs.threshold, store.blobs.put) for span in spans]


def longest(spans: Iterable[SpanRecord]) -> int:
    """Give the characters of the longest value of all spans."""
    values = (value for span in spans for value in span.attributes.values() if isinstance(value, str | bytes))
    return max(map(len, values), default=0)


def encoder(name: str) -> Callable[[Iterable[SpanRecord]], bytes]:
    """Find how a format is written. Raises `UsageError`."""
    chosen = format_named(name)
    if chosen.encode is None:
        names = [each.name for each in members("formats", Format) if each.encode is not None]
        raise UsageError(f"{name} is only read, not written", hint=f"one of: {', '.join(names)}")
    return chosen.encode


def write(spans: Sequence[SpanRecord], target: Path, name: str) -> None:
    """Write spans to a file, whole or not at all; `-` is stdout, `.gz` and `.zst` are packed. Raises `InputError`."""
    data = _packed(encoder(name)(spans), target)
    if str(target) == "-":
        sys.stdout.buffer.write(_for_a_terminal(data, name) if sys.stdout.isatty() else data)
        return
    write_whole(target, data)


def _for_a_terminal(data: bytes, name: str) -> bytes:
    """Spell by JSON's escapes what a terminal would act on. Raises `UsageError` where the format is no text."""
    try:
        return escaped(data.decode("utf-8")).encode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is no text, and stdout is a terminal", hint="name a file: `-o FILE`") from None


def _packed(data: bytes, target: Path) -> bytes:
    """Pack as the name of the file asks for."""
    if target.suffix == ".gz":
        return gzip.compress(data, compresslevel=6, mtime=0)
    if target.suffix == ".zst":
        from zstandard import ZstdCompressor

        return ZstdCompressor().compress(data)
    return data


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


def taken_in(
    files: Iterable[Path],
    store: DirectoryStore,
    redact: Callable[[Sequence[SpanRecord]], Sequence[SpanRecord]] | None = None,
) -> list[dict[str, Json]]:
    """Store the spans of files and give the summaries of their runs. Raises `InputError` before anything is stored.

    `redact` is what each file's spans pass first. What of a file is not read is said on stderr.
    """
    read: list[Sequence[SpanRecord]] = [
        [as_recorded(span) for span in joined(whole(open_spans(path, say), path, keep_lost=True))] for path in files
    ]
    if redact is not None:
        read = [redact(spans) for spans in read]
    store.prepare()
    traces = [*dict.fromkeys(trace for spans in read for trace in store.append(spans))]  # a trace may fill many files
    batches = [traces[at : at + _AT_ONCE] for at in range(0, len(traces), _AT_ONCE)]
    return [summary(run, source=str(store.folder)) for batch in batches for run in index(store, batch)]
