"""Runs that a backend holds, read from there: `phoenix+http://HOST:PORT/PROJECT#RUN`, RUN an id or its prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from reenact.contracts.backend import Backend, Held
from reenact.discover import members
from reenact.errors import InputError, UsageError
from reenact.foreign.http_exchange import shown
from reenact.graph.build import build
from reenact.keep import stray_log_events
from reenact.keep.catalog import fits, fork_of, replay_of, summary
from reenact.values.finding import Filters
from reenact.values.json import Json
from reenact.values.run import Run

_FEW = 5


def opened(url: str) -> Held:
    """Reach the place of a URL, its fragment left out. Raises `UsageError` for a scheme that nobody speaks."""
    scheme, place = url.partition("://")[0].lower(), url.partition("#")[0]
    known = members("backends", Backend)
    for backend in known:
        if scheme in backend.schemes:
            return backend.open(place)
    spelled = "; ".join(backend.usage for backend in known)
    raise UsageError(f"{shown(place)}: no backend is known by {scheme}://. Those that are: {spelled}")


def found(url: str) -> tuple[Run, tuple[Run, ...], str]:
    """Give one run, the others of its recording, and the place's name.

    Without a fragment, the newest run that is no replay or fork. Raises `InputError` where there is none, `UsageError`
    where several fit.
    """
    held, wanted = opened(url), url.partition("#")[2].lower()
    run = _named(held, wanted) if wanted and wanted != "last" else _newest(held)
    return run, _beside(held, run), held.name


def _named(held: Held, wanted: str) -> Run:
    ids = held.resolve(wanted)
    if not ids:
        raise InputError(held.name, f"holds no run {wanted!r}", hint=f"`reenact ls {held.name}` lists what is there")
    if len(ids) > 1:
        shortened = ", ".join(each[:12] for each in ids[:_FEW])
        raise UsageError(f"{wanted!r} fits {len(ids)} runs of {held.name} or more: {shortened}")
    return read(held, ids[0])


def _newest(held: Held) -> Run:
    for trace_id in held.newest(Filters()):
        run = read(held, trace_id)
        if replay_of(run) is None and fork_of(run) is None:
            return run
    raise InputError(held.name, "holds no run", hint="send one: `reenact export RUN --to URL`, or REENACT_EXPORT=URL")


def read(held: Held, trace_id: str) -> Run:
    """Read one trace. Raises `InputError` where it holds no span, such as one deleted since it was listed."""
    runs = build(stray_log_events.of_backend(held, trace_id), source=held.name)
    if not runs:
        raise InputError(held.name, f"holds no span of {trace_id}")
    return runs[0]


def _beside(held: Held, run: Run) -> tuple[Run, ...]:
    """Give the other runs of a recording: those of the program's processes."""
    if not run.recording or replay_of(run) is not None:
        return ()
    return tuple(read(held, each) for each in held.recorded_with(run.recording) if each != run.id)


def listed(url: str, filters: Filters, limit: int, skip: int, says: Callable[[Run], bool]) -> list[dict[str, Json]]:
    """Give the summaries of the runs that fit, newest first: at most `limit` (0: all), after the first `skip`."""
    held = opened(url)
    runs = (run for run in _all(held, filters) if fits(run, filters) and says(run))
    return [{**summary(run), "source": held.name} for run in islice(runs, skip, skip + limit if limit else None)]


def _all(held: Held, filters: Filters) -> Iterator[Run]:
    for trace_id in held.newest(filters):
        runs = build(stray_log_events.of_backend(held, trace_id), source=held.name)
        yield from (replace(run, source=held.name) for run in runs)  # none, where it has been deleted meanwhile
