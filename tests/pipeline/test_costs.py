"""The end of a recording, and a look at one run, cost the same however many runs there are: work is counted."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import reenact
from held import Held
from reenact.disk.run_index import Entry, newest_of_process
from reenact.find import sources
from reenact.find.sources import find
from reenact.keep import catalog
from reenact.keep.drain import Drain
from reenact.pipeline import recording
from reenact.stores.directory import DirectoryStore

FEW, MANY = 10, 250


@reenact.tool
def look_up(item: str) -> str:
    return f"{item} is there"


def units(count: int) -> None:
    for number in range(count):
        with reenact.run(str(number)):
            look_up("tea")


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is done from here on: graphs that are built, traces that are read, runs that are noted."""
    done = Counter[str]()
    for module in (catalog, sources):
        build = module.build

        def counted(*arguments: Any, build: Any = build, **named: Any) -> Any:
            done["graphs"] += 1
            return build(*arguments, **named)

        monkeypatch.setattr(module, "build", counted)
    records, index = DirectoryStore.records, DirectoryStore.index

    def read(self: DirectoryStore, trace_id: str) -> Any:
        done["traces"] += 1
        return records(self, trace_id)

    def note(self: DirectoryStore, entries: Iterable[Entry]) -> None:
        kept = list(entries)
        done["noted"] += len(kept)
        index(self, kept)

    monkeypatch.setattr(DirectoryStore, "records", read)
    monkeypatch.setattr(DirectoryStore, "index", note)
    return done


def kept(folder: Path, count: int) -> DirectoryStore:
    """A store with so many runs of one recording."""
    held = Held(folder)
    held.record(lambda: units(count))
    return DirectoryStore(held.store)


@pytest.mark.parametrize("count", [FEW, MANY])
def test_the_end_of_a_process_whose_runs_were_carried_meanwhile(tmp_path: Path, count: int, work: Counter[str]) -> None:
    made = Held(tmp_path).start()
    drain = Drain(made.store, recording=made.id)
    units(count)
    drain.poll()
    work.clear()
    recording.stop(made)
    runs = drain.finish(latest=3)
    assert [run.name for run in runs] == [str(count - 3 + number) for number in range(3)]
    assert len(drain.done.runs) == count
    assert work == Counter(), "all was done while it lived"


def test_runs_that_are_kept_in_memory_are_few(tmp_path: Path) -> None:
    made = Held(tmp_path).start()
    drain = Drain(made.store, recording=made.id)
    units(MANY)
    drain.poll()
    assert len(drain._recent_runs) == 100
    recording.stop(made)
    drain.finish(latest=0)


@pytest.mark.slow
@pytest.mark.parametrize("selector", ["last", "an id"])
@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_look_at_one_run(tmp_path: Path, count: int, selector: str, work: Counter[str]) -> None:
    store = kept(tmp_path, count)
    wanted = "last" if selector == "last" else store.find(newest=3)[-1].id
    work.clear()
    found = find(wanted, store)
    assert work == {"graphs": 1, "traces": 1}
    assert found.run.name == str(count - (1 if selector == "last" else 3))
    assert len(found.siblings) == count - 1, "they are there where they are asked for"
    assert work["graphs"] == count


def test_the_newest_run_of_a_process_is_looked_up_and_not_searched_for(tmp_path: Path) -> None:
    """SQLite counts the steps that its virtual machine takes."""
    steps: list[int] = []
    for count in (FEW, MANY):
        store = kept(tmp_path / str(count), count)
        newest = store.find(newest=1)[0]
        process = find(newest.id, store).run.nodes[0].span.resource.attributes["process.pid"]
        with closing(sqlite3.connect(store._index)) as database:
            taken = Counter[str]()
            database.set_progress_handler(lambda taken=taken: taken.update(["step"]) or 0, 1)  # type: ignore[func-returns-value]
            assert newest_of_process(database, str(newest.recording), int(str(process))) == newest.id
            steps.append(taken["step"])
    assert steps[1] < 2 * steps[0]
