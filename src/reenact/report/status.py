"""How a store stands, as text and as a document."""

from __future__ import annotations

from collections.abc import Iterator

from reenact.report.safe import one_line
from reenact.report.times import duration, instant
from reenact.values.json import Json
from reenact.values.limits import spelled
from reenact.values.status import BackendStatus, StoreStatus


def status_text(status: StoreStatus, now_ns: int) -> list[str]:
    """Lay a status out for people; `now_ns` is the moment from which ages are counted."""
    journals = status.journals
    lines = [
        f"store      {status.folder}",
        f"traces     {status.traces:,}, {spelled(status.size)}",
    ]
    if status.blobs:
        lines.append(f"blobs      {status.blobs:,}, {spelled(status.blob_size)} in {status.blob_place}")
    phrases = [f"{journals.in_use} in use", f"{journals.left_over} left over"]
    phrases += [f"{journals.damaged} set aside as damaged"] if journals.damaged else []
    phrases += [spelled(journals.size)] if journals.size else []
    phrases += [f"{journals.open_spans:,} spans under way"] if journals.open_spans else []
    lines.append(f"journals   {', '.join(phrases)}")
    if not status.backends:
        lines.append("backends   none: set OTEL_EXPORTER_OTLP_ENDPOINT or REENACT_EXPORT while recording")
    for backend in status.backends:
        lines += ["", *_backend(backend, now_ns)]
    return lines


def _backend(backend: BackendStatus, now_ns: int) -> Iterator[str]:
    yield f"backend    {one_line(backend.name)}" + ("" if backend.configured else "  (not configured here)")
    yield f"  created  {backend.created:>9,}"
    referred = f"  ({backend.referred:,} with references in place of large values)" if backend.referred else ""
    yield f"  exported {backend.exported:>9,}{referred}"
    notes = [f"{backend.in_journals:,} not in the store yet"] if backend.in_journals else []
    if backend.oldest_ns is not None:
        notes.append(f"the oldest for {_age(now_ns - backend.oldest_ns)}")
    notes += ["being sent"] if backend.sending else []
    yield f"  waiting  {backend.waiting:>9,}" + (f"  ({', '.join(notes)})" if notes else "")
    yield f"  dropped  {sum(backend.dropped.values()):>9,}"
    for reason, spans in backend.dropped.items():
        yield f"    {spans:>11,}  {one_line(reason)}"
    if backend.error:
        ago = f", {_age(now_ns - backend.failed_ns)} ago" if backend.failed_ns is not None else ""
        yield f"  failed   {one_line(backend.error)}{ago}"
    if backend.next_try_ns is not None and backend.waiting:
        yield f"  next try in {_age(backend.next_try_ns - now_ns)}, after {backend.tries} without success"


def _age(ns: int) -> str:
    return duration(max(0.0, ns / 1e6))


def status_document(status: StoreStatus) -> dict[str, Json]:
    """Give a status as JSON."""
    journals = status.journals
    return {
        "store": {
            "folder": status.folder,
            "traces": status.traces,
            "bytes": status.size,
            "blobs": {"place": status.blob_place, "count": status.blobs, "bytes": status.blob_size},
        },
        "journals": {
            "in_use": journals.in_use,
            "left_over": journals.left_over,
            "damaged": journals.damaged,
            "bytes": journals.size,
            "open_spans": journals.open_spans,
        },
        "backends": [_backend_document(backend) for backend in status.backends],
    }


def _backend_document(backend: BackendStatus) -> Json:
    return {
        "name": backend.name,
        "configured": backend.configured,
        "sending": backend.sending,
        "created": backend.created,
        "exported": backend.exported,
        "with_references": backend.referred,
        "waiting": backend.waiting,
        "in_journals": backend.in_journals,
        "dropped": dict(backend.dropped),
        "oldest_waiting": _moment(backend.oldest_ns),
        "last_delivery": _moment(backend.delivered_ns),
        "last_error": backend.error,
        "failed": _moment(backend.failed_ns),
        "tries": backend.tries,
        "next_try": _moment(backend.next_try_ns),
    }


def _moment(ns: int | None) -> str | None:
    return instant(ns) if ns is not None else None
