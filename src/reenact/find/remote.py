"""Runs that a backend holds, read from there: `phoenix+http://HOST:PORT/PROJECT#RUN`, RUN an id or its prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from reenact.contracts.backend import Backend, BackendContent
from reenact.discover import members
from reenact.errors import InputError, UsageError
from reenact.foreign.http_exchange import printable_url
from reenact.graph.build import build
from reenact.keep import stray_log_events
from reenact.keep.catalog import fits, fork_of, replay_of, summary
from reenact.values.finding import Filters
from reenact.values.json import Json
from reenact.values.run import Run

_FEW = 5


def opened(url: str) -> BackendContent:
    """Reach the place of a URL, its fragment left out. Raises `UsageError` for a scheme that nobody speaks."""
    scheme, place = url.partition("://")[0].lower(), url.partition("#")[0]
    backends = members("backends", Backend)
    for backend in backends:
        if scheme in backend.schemes:
            return backend.open(place)
    spelled = "; ".join(backend.usage for backend in backends)
    raise UsageError(f"{printable_url(place)}: no backend is known by {scheme}://. Those that are: {spelled}")


def remote_run(url: str) -> tuple[Run, tuple[Run, ...], str]:
    """Give one run, the others of its recording, and the place's name.

    Without a fragment, the newest run that is no replay or fork. Raises `InputError` where there is none, `UsageError`
    where several fit.
    """
    place, wanted = opened(url), url.partition("#")[2].lower()
    run = _run_by_id(place, wanted) if wanted and wanted != "last" else _newest(place)
    return run, _beside(place, run), place.name


def _run_by_id(place: BackendContent, wanted: str) -> Run:
    ids = place.resolve(wanted)
    if not ids:
        raise InputError(place.name, f"holds no run {wanted!r}", hint=f"`reenact ls {place.name}` lists what is there")
    if len(ids) > 1:
        shortened = ", ".join(each[:12] for each in ids[:_FEW])
        raise UsageError(f"{wanted!r} fits {len(ids)} runs of {place.name} or more: {shortened}")
    return read(place, ids[0])


def _newest(place: BackendContent) -> Run:
    for trace_id in place.newest(Filters()):
        run = read(place, trace_id)
        if replay_of(run) is None and fork_of(run) is None:
            return run
    raise InputError(place.name, "holds no run", hint="send one: `reenact export RUN --to URL`, or REENACT_EXPORT=URL")


def read(place: BackendContent, trace_id: str) -> Run:
    """Read one trace. Raises `InputError` where it holds no span, such as one deleted since it was listed."""
    runs = build(stray_log_events.of_backend(place, trace_id), source=place.name)
    if not runs:
        raise InputError(place.name, f"holds no span of {trace_id}")
    return runs[0]


def _beside(place: BackendContent, run: Run) -> tuple[Run, ...]:
    """Give the other runs of a recording: those of the program's processes."""
    if not run.recording or replay_of(run) is not None:
        return ()
    return tuple(read(place, each) for each in place.recorded_with(run.recording) if each != run.id)


def listed(url: str, filters: Filters, limit: int, skip: int, says: Callable[[Run], bool]) -> list[dict[str, Json]]:
    """Give the summaries of the runs that fit, newest first: at most `limit` (0: all), after the first `skip`."""
    place = opened(url)
    runs = (run for run in _all(place, filters) if fits(run, filters) and says(run))
    return [{**summary(run), "source": place.name} for run in islice(runs, skip, skip + limit if limit else None)]


def _all(place: BackendContent, filters: Filters) -> Iterator[Run]:
    for trace_id in place.newest(filters):
        runs = build(stray_log_events.of_backend(place, trace_id), source=place.name)
        yield from (replace(run, source=place.name) for run in runs)  # none, where it has been deleted meanwhile
