"""Log events that were kept without trace and span, read with the run that they are about.

A collector keeps them under a trace of their session or program, a backend under none, while the spans that they are
about are in traces of their own. All are read as one file would be that holds them all: a call's events go to the span
that has its response id, else to the only span about that time that agrees in all that both say; what is left stays
where it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from reenact.contracts.backend import BackendContent
from reenact.errors import InputError
from reenact.graph.logs import strays_of, trace_of
from reenact.graph.loose_logs import is_loose, placed, proves
from reenact.stores.directory import DirectoryStore
from reenact.values.finding import Filters
from reenact.values.log import LogRecord, Record
from reenact.values.span import SpanRecord

_NEAR_NS: Final = 60 * 10**9
"""So far from a call its events may be written."""
_MOST_TRACES: Final = 500
"""So many traces of a store about the time of some events are looked into, for a span that agrees as well."""
_MOST_REMOTE: Final = 20
"""The same of a backend, where each is a query."""


def records(store: DirectoryStore, trace_id: str) -> Iterable[Record]:
    """Read a trace with the stray log events that are about it, and without those that are about another.

    Raises `InputError` for a damaged trace.
    """
    if not store.further():
        return store.records(trace_id)
    whole = list(store.records(trace_id))
    if loose := _loose(whole):
        left = [log for log in _placed_in(store, loose) if is_loose(log)]
        return [*(record for record in whole if not (isinstance(record, LogRecord) and is_loose(record))), *left]
    return [*whole, *_about(store, trace_id, _spans(whole))]


def concerned(store: DirectoryStore, trace_id: str) -> list[str]:
    """Give the other traces whose runs are read otherwise once a trace has grown.

    Of spans those are the traces that hold stray log events of their program or session; of such events the traces
    that they are about.
    """
    if not store.further():
        return []
    with suppress(InputError):  # told where the trace is read
        whole = list(store.records(trace_id))
        loose = _loose(whole)
        about = {log.trace_id for log in _placed_in(store, loose)} if loose else set[str]()
        return sorted({*_kept_apart(store, trace_id, _spans(whole)), *about} - {"", trace_id})
    return []


def of_backend(backend: BackendContent, trace_id: str) -> list[Record]:
    """Read a trace of a backend with the log events that name no trace and are about it. Raises `InputError`."""
    whole = list(backend.records(trace_id))
    spans = [span for span in _spans(whole) if proves(span)]
    if not spans:
        return whole
    window = _window(spans)
    own = {each for span in spans for each in strays_of(span)}
    loose = [log for log in backend.strays(*window) if is_loose(log) and trace_of(log) in own]
    if not loose:
        return whole
    near = list(islice(backend.newest(Filters(window=window, replays=True)), _MOST_REMOTE + 1))
    complete = len(near) <= _MOST_REMOTE
    others = [
        span for each in near if complete and each != trace_id for span in _spans(backend.records(each)) if proves(span)
    ]
    about = placed(loose, [*spans, *others], ids_only=not complete)
    return [*whole, *(log for log in about if log.trace_id == trace_id)]


def _loose(records: Iterable[Record]) -> list[LogRecord]:
    return [record for record in records if isinstance(record, LogRecord) and is_loose(record)]


def _spans(records: Iterable[Record]) -> list[SpanRecord]:
    return [record for record in records if isinstance(record, SpanRecord)]


def _window(spans: Sequence[SpanRecord]) -> tuple[int, int]:
    ends = [max(span.start_ns, span.end_ns) for span in spans]
    return min(span.start_ns for span in spans) - _NEAR_NS, max(ends) + _NEAR_NS


def _kept_apart(store: DirectoryStore, trace_id: str, spans: Iterable[SpanRecord]) -> list[str]:
    """Give the traces of a store under which stray log events of the programs and sessions of a trace are kept."""
    ids = {each for span in spans if proves(span) for each in strays_of(span)} - {trace_id}
    return [each for each in sorted(ids) if any(each in further.resolve(each) for further in store.further())]


def _about(store: DirectoryStore, trace_id: str, spans: Sequence[SpanRecord]) -> Iterator[LogRecord]:
    """Give the stray log events that are about spans of a trace, with the ids of these."""
    for stray in _kept_apart(store, trace_id, spans):
        first, last = _window(spans)
        loose = [log for log in _loose(store.records(stray)) if first <= log.at_ns <= last]
        if loose:
            yield from (log for log in _placed_in(store, loose, trace_id, spans) if log.trace_id == trace_id)


def _placed_in(
    store: DirectoryStore, loose: Sequence[LogRecord], own: str = "", spans: Sequence[SpanRecord] = ()
) -> list[LogRecord]:
    """Place log events among the spans about their time, of whatever trace of a store; those of one are known."""
    times = [log.at_ns for log in loose]
    window = (min(times) - _NEAR_NS, max(times) + _NEAR_NS)
    ids = [entry.id for entry in store.search(Filters(window=window, replays=True), newest=_MOST_TRACES)]
    for further in store.further():
        ids += further.unnoted(_MOST_TRACES)
    near = {*ids} - {own, *(trace_of(log) for log in loose)}
    candidates = [*spans, *_read(store.records, sorted(near))]
    return placed(loose, [span for span in candidates if proves(span)], ids_only=len(ids) >= _MOST_TRACES)


def _read(read: Callable[[str], Iterator[Record]], trace_ids: Iterable[str]) -> Iterator[SpanRecord]:
    for trace_id in trace_ids:
        with suppress(InputError):  # told where that trace is read
            yield from _spans(read(trace_id))
