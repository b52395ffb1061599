"""Which runs a store or a file holds, by the facts that people know of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TypeVar

from reenact.disk.run_index import Entry
from reenact.keep.leftovers import leftovers, say
from reenact.stores.directory import DirectoryStore, IndexDamagedError
from reenact.values.finding import Filters
from reenact.values.json import Json, parse
from reenact.values.run import Run

T = TypeVar("T")
_FIRST_PAGE = 100


def listed(
    store: DirectoryStore,
    source: str | None,
    filters: Filters,
    limit: int,
    *,
    skip: int = 0,
    reindex: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Json]]:
    """Give the summaries of the runs that fit, newest first, at most `limit` (0: all), after the first `skip`.

    An index that turns out to be damaged is made again, and said on stderr. Raises `InputError`.
    """
    if source is not None:
        return _elsewhere(source, filters, limit, skip)
    leftovers(store)
    if reindex:
        from reenact.keep.catalog import index_anew

        index_anew(store, progress)
    try:
        entries = _entries(store, filters, limit, skip)
    except IndexDamagedError as error:
        from reenact.keep.catalog import mended

        mended(store, error, say)
        entries = _entries(store, filters, limit, skip)
    return [{**_with_history(_read_runs(entry), store), "source": str(store.folder)} for entry in entries]


def _with_history(run_summary: dict[str, Json], store: DirectoryStore) -> dict[str, Json]:
    """Give what is told of a run, less than exact where a unit on which it stands is kept no more."""
    earlier = run_summary.get("earlier")
    if run_summary.get("verdict") != "exact" or not isinstance(earlier, list):
        return run_summary
    return run_summary if all(store.recorded(str(each)) for each in earlier) else {**run_summary, "verdict": "partial"}


def _elsewhere(source: str, filters: Filters, limit: int, skip: int) -> list[dict[str, Json]]:
    """List the runs of a file or a backend, which have to be rebuilt to be described."""
    from reenact.find.sources import is_backend, runs_in
    from reenact.keep.catalog import fits, summary
    from reenact.read.open import is_big

    if is_backend(source):
        from reenact.find import remote

        return remote.listed(source, filters, limit, skip, lambda run: _says([run], filters.text))
    if is_big(Path(source)) and (summaries := _by_index(Path(source), filters, limit, skip)) is not None:
        return summaries
    everything = reversed(runs_in(Path(source), report=say))
    runs = (run for run in everything if fits(run, filters) and _says([run], filters.text))
    return [summary(run) for run in _page(runs, limit, skip)]


def _by_index(path: Path, filters: Filters, limit: int, skip: int) -> list[dict[str, Json]] | None:
    """List the runs of a big file by the file's index; None where the file can have none."""
    from reenact.find import big_files

    with ExitStack() as closing:
        big = big_files.opened(path, closing)
        if big is None:
            return None
        for note in big.notes:
            say(note)
        return big_files.listed(big, filters, limit, skip, lambda run, text: _says([run], text))


def _entries(store: DirectoryStore, filters: Filters, limit: int, skip: int) -> list[Entry]:
    if filters.text is None:
        return store.search(filters, newest=limit or None, skip=skip)
    return _page((entry for entry in _paged(store, filters) if _says_in(store, entry, filters.text)), limit, skip)


def _paged(store: DirectoryStore, filters: Filters) -> Iterator[Entry]:
    """Give the runs that fit, newest first, page by page: the index is not kept locked while traces are read."""
    seen_ids = set[str]()
    size = _FIRST_PAGE
    while True:
        entries = store.search(filters, newest=size, skip=len(seen_ids))
        yield from (entry for entry in entries if entry.id not in seen_ids)
        if len(entries) < size:
            return
        seen_ids |= {entry.id for entry in entries}
        size *= 2


def _page(items: Iterable[T], limit: int, skip: int) -> list[T]:
    return list(islice(items, skip, skip + limit if limit else None))


def _read_runs(entry: Entry) -> dict[str, Json]:
    fields = parse(entry.summary)
    return fields if isinstance(fields, dict) else {}


def _says_in(store: DirectoryStore, entry: Entry, text: str) -> bool:
    from reenact.graph.build import build
    from reenact.keep.catalog import records_of

    return store.may_hold(entry.id, text) and _says(build(records_of(store, entry.id)), text)


def _says(runs: Iterable[Run], text: str | None) -> bool:
    """Tell whether a text occurs in any attribute of any call, letter case aside."""
    if text is None:
        return True
    wanted = text.lower()
    values = (value for run in runs for node in run.nodes for value in node.span.attributes.values())
    return any(wanted in value.lower() for value in values if isinstance(value, str))
