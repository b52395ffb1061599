from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import reenact
from held import Held
from receivers import http_receiver
from reenact.boundary.inbound import Inbound, inside
from reenact.disk.run_index import Entry
from reenact.errors import InputError
from reenact.export.backends import backends_from_environment
from reenact.formats.journal import FORMAT
from reenact.keep.drain import Drain
from reenact.keep.flattening import flattened
from reenact.keep.leftovers import leftovers
from reenact.pipeline import recording
from reenact.pipeline.recording import Recording
from reenact.stores import directory
from reenact.stores.directory import DirectoryStore
from reenact.values.run import Run
from reenact.values.semconv import as_recorded
from reenact.values.span import SpanRecord
from reenact.values.unit import INBOUND


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@reenact.tool
def look_up(item: str) -> str:
    return f"{item} is there"


def unit(name: str) -> None:
    with reenact.run(name):
        look_up(name)


def journals(held: Held) -> list[Path]:
    return sorted((held.store / "journal").iterdir())


def exit_code(run: Run) -> object:
    return run.root.span.attributes.get("process.exit.code") if run.root else None


def pid(made: Recording) -> int:
    return int(str(made.provider.resource.attributes["process.pid"]))


# a journal that grows


def test_runs_of_a_living_process_can_be_found_when_they_are_over(held: Held) -> None:
    made = held.start()
    drain = Drain(made.store, recording=made.id)
    unit("first")
    drain.poll()
    assert [entry.name for entry in made.store.find()] == ["first"]
    unit("second")
    drain.poll()
    drain.poll()
    assert [entry.name for entry in made.store.find()] == ["second", "first"]
    recording.stop(made)
    assert sorted(run.name for run in drain.finish()) == ["first", "second"]
    assert journals(held) == []
    assert drain.done.spans == 4


def test_a_span_is_stored_once_however_often_one_polls(held: Held) -> None:
    made = held.start()
    drain = Drain(made.store, recording=made.id)
    for number in range(5):
        unit(str(number))
        drain.poll()
    recording.stop(made)
    drain.finish()
    lines = b"".join(path.read_bytes() for path in (held.store / "traces").rglob("*.jsonl"))
    assert lines.count(b'"reenact.run.root"') == 5


def test_journals_of_living_processes_are_not_leftovers(held: Held) -> None:
    made = held.start()
    unit("first")
    assert leftovers(made.store) == []
    assert len(journals(held)) == 1
    recording.stop(made)
    assert [run.name for run in leftovers(made.store)] == ["first"]
    assert leftovers(made.store) == []


def test_only_the_journals_of_one_recording_are_carried_where_one_is_named(tmp_path: Path) -> None:
    held = Held(tmp_path)
    one, two = held.start(), held.start()
    unit("two")
    recording.stop(two)
    recording.stop(one)
    assert Drain(one.store, recording=one.id).finish() == []
    assert [run.name for run in Drain(two.store, recording=two.id).finish()] == ["two"]


# what goes wrong


def test_what_could_not_be_stored_is_carried_later(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    made = held.start()
    drain = Drain(made.store, recording=made.id)
    unit("first")
    append = DirectoryStore.append
    full = InputError("store", "cannot be written: No space left on device")

    def fail(*_: object, **__: object) -> list[str]:
        raise full

    monkeypatch.setattr(DirectoryStore, "append", fail)
    with pytest.raises(InputError):
        drain.poll()
    recording.stop(made)
    with pytest.raises(InputError):
        drain.finish()
    assert len(journals(held)) == 1
    monkeypatch.setattr(DirectoryStore, "append", append)
    (run,) = drain.finish()
    assert [node.call.name for node in run.nodes] == ["first", "look_up"]
    assert journals(held) == []


def test_a_damaged_place_costs_no_more_than_itself_and_the_journal_is_kept(held: Held) -> None:
    made = held.start()
    for number in range(4):
        unit(str(number))
    recording.stop(made)
    (journal,) = journals(held)
    data = bytearray(journal.read_bytes())
    data[data.index(b'"1 is there"') if b'"1 is there"' in data else data.index(b"1 is there")] ^= 1
    journal.write_bytes(data)
    told: list[str] = []
    drain = Drain(made.store, report=told.append)
    runs = drain.finish()
    assert sorted(run.name for run in runs) == ["0", "1", "2", "3"]
    assert drain.done.unfinished == 1
    assert [path.suffix for path in journals(held)] == [".damaged"]
    assert "1 places in a journal are damaged" in told[0]
    assert leftovers(made.store) == []


def test_what_is_no_journal_is_set_aside_and_told(held: Held) -> None:
    store = DirectoryStore(held.store)
    store.prepare()
    (store.journals / f"strange{FORMAT.suffix}").write_bytes(b"something else entirely")
    told: list[str] = []
    drain = Drain(store, report=told.append)
    assert drain.finish() == []
    assert [path.name for path in journals(held)] == ["strange.damaged"]
    assert told == [f"this is not a reenact journal of a version that can be read; kept as {drain.done.damaged[0]}"]


def test_an_empty_journal_is_nothing(held: Held) -> None:
    store = DirectoryStore(held.store)
    store.prepare()
    (store.journals / f"empty{FORMAT.suffix}").touch()
    assert Drain(store).finish() == []
    assert journals(held) == []


def test_two_that_carry_the_same_journal_do_not_disturb_each_other(held: Held) -> None:
    made = held.start()
    first = Drain(made.store, recording=made.id)
    with reenact.run("unit"):
        look_up("before")
        first.poll()
        look_up("after")
    recording.stop(made)
    (run,) = Drain(made.store).finish()
    assert len(run.nodes) == 3
    first.finish()
    (entry,) = made.store.find()
    assert entry.status == "ok"


def test_a_missing_index_is_made_again_from_the_traces(held: Held) -> None:
    held.record(lambda: unit("first"))
    store = DirectoryStore(held.store)
    store.forget_index()
    assert store.find() == []
    leftovers(store)
    assert [entry.name for entry in store.find()] == ["first"]


def test_an_index_that_is_damaged_does_not_stop_the_carrying(held: Held) -> None:
    made = held.start()
    told: list[str] = []
    drain = Drain(made.store, recording=made.id, report=told.append)
    made.store.prepare()
    (held.store / "index-3.sqlite").write_bytes(b"this is no database, " * 100)
    unit("first")
    drain.poll()
    drain.poll()
    assert drain.done.spans == 2
    assert [entry.name for entry in made.store.find()] == ["first"]
    assert len(told) == 1
    assert "the index is damaged" in told[0]
    assert "made again from the traces" in told[0]
    recording.stop(made)
    assert [run.name for run in drain.finish()] == ["first"]


def test_an_index_that_cannot_be_written_now_keeps_the_journal(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "_LOCKED_S", 0.05)
    held.record(lambda: unit("earlier"))
    made = held.start()
    drain = Drain(made.store, recording=made.id)
    unit("first")
    recording.stop(made)
    with closing(sqlite3.connect(held.store / "index-3.sqlite")) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="cannot be used now"):
            drain.finish()
        assert len(journals(held)) == 1, "what is not in the index is still in its journal"
    assert [run.name for run in leftovers(made.store)] == ["first"]
    assert journals(held) == []
    assert {entry.name for entry in made.store.find()} == {"earlier", "first"}
    assert drain.done.spans == 2


def test_a_trace_is_noted_once_and_again_only_when_it_grew(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[str] = []
    original = DirectoryStore.index

    def index(self: DirectoryStore, entries: Iterable[Entry]) -> None:
        kept = list(entries)
        noted.extend(entry.name for entry in kept)
        original(self, kept)

    monkeypatch.setattr(DirectoryStore, "index", index)
    made = held.start()
    drain = Drain(made.store, recording=made.id)
    for number in range(3):
        unit(str(number))
        drain.poll()
    recording.stop(made)
    assert [run.name for run in drain.finish({pid(made): 0})] == ["0", "1", "2"]
    assert noted == ["0", "1", "2", "2"], "the last one once more, with its exit code"


def test_runs_whose_spans_are_not_in_hand_any_more_are_read_again(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reenact.keep.drain._MOST_BUILT", 1)
    made = held.start()
    for number in range(3):
        unit(str(number))
    recording.stop(made)
    assert sorted(run.name for run in Drain(made.store, recording=made.id).finish()) == ["0", "1", "2"]


# exit codes


@pytest.mark.parametrize("early", [False, True], ids=["carried at the end", "carried before its process ended"])
def test_a_root_says_how_its_process_ended_whenever_it_was_carried(held: Held, *, early: bool) -> None:
    made = held.start()
    drain = Drain(made.store, recording=made.id)
    look_up("outside")
    recording.stop(made)
    if early:
        drain.poll()
    (run,) = drain.finish({pid(made): 3})
    assert exit_code(run) == 3
    assert made.store.find()[0].status == "error"


@pytest.mark.parametrize("polls", [False, True])
def test_only_the_last_run_answers_for_the_end_of_the_process(held: Held, *, polls: bool) -> None:
    made = held.start()
    drain = Drain(made.store, recording=made.id)
    for name in ("first", "second"):
        unit(name)
        if polls:
            drain.poll()
    recording.stop(made)
    runs = {run.name: run for run in drain.finish({pid(made): 1})}
    assert {name: exit_code(run) for name, run in runs.items()} == {"first": None, "second": 1}
    assert {entry.name: entry.status for entry in made.store.find()} == {"first": "ok", "second": "error"}


def test_the_exit_code_of_another_process_is_not_taken(held: Held) -> None:
    made = held.start()
    unit("first")
    recording.stop(made)
    (run,) = Drain(made.store, recording=made.id).finish({1: 9})
    assert exit_code(run) is None


# to backends


def test_spans_leave_for_backends_as_they_end_with_the_view_for_readers(held: Held) -> None:
    with http_receiver() as receiver:
        (backend,) = backends_from_environment({"REENACT_EXPORT": receiver.url})
        made = held.start()
        drain = Drain(made.store, recording=made.id, backends=[backend])
        unit("first")
        drain.poll()
        assert receiver.names == ["look_up", "first"]
        recording.stop(made)
        drain.finish()
        assert receiver.names == ["look_up", "first"]


def test_a_view_that_cannot_be_made_costs_neither_the_store_nor_the_backend(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(span: SpanRecord) -> SpanRecord:
        raise RuntimeError(span.name)

    monkeypatch.setattr("reenact.keep.flattening.flattened", fail)
    with http_receiver() as receiver:
        (backend,) = backends_from_environment({"REENACT_EXPORT": receiver.url})
        made = held.start()
        drain = Drain(made.store, recording=made.id, backends=[backend])
        unit("first")
        drain.poll()
        drain.poll()
        recording.stop(made)
        (run,) = drain.finish()
        assert len(run.nodes) == 2
        assert receiver.names == ["look_up", "first"]
    (standing,) = drain.reports
    assert (standing.exported, standing.waiting, dict(standing.dropped)) == (2, 0, {})


def test_a_backend_that_is_not_there_costs_the_store_nothing_and_is_owed_what_it_missed(held: Held) -> None:
    told: list[str] = []
    (backend,) = backends_from_environment({"REENACT_EXPORT": "http://127.0.0.1:9/v1/traces"})
    made = held.start()
    drain = Drain(made.store, recording=made.id, backends=[backend], report=told.append)
    unit("first")
    drain.poll()
    recording.stop(made)
    (run,) = drain.finish()
    assert len(run.nodes) == 2
    assert told == []
    (standing,) = drain.reports
    assert (standing.exported, standing.waiting, dict(standing.dropped)) == (0, 2, {})
    assert "Connection refused" in standing.reason


def test_only_spans_with_evidence_are_flattened(held: Held) -> None:
    did = held.record(lambda: unit("first"))
    root, call = did.runs[0].nodes
    shown = flattened(root.span)
    assert shown.attributes["agent.name"] == "first"
    assert as_recorded(shown) == root.span
    foreign = replace(call.span, attributes={"llm.model_name": "m"})
    assert flattened(foreign) is foreign
    again: dict[str, Any] = dict(flattened(call.span).attributes)
    assert {name: again[name] for name in call.span.attributes} == dict(call.span.attributes)


def test_a_journal_that_is_copied_while_it_is_written_is_readable(held: Held, tmp_path: Path) -> None:
    made = held.start()
    with reenact.run("unit"):
        look_up("tea")
        shutil.copytree(held.store, tmp_path / "copy")
    recording.stop(made)
    (run,) = leftovers(DirectoryStore(tmp_path / "copy"))
    assert [node.call.name for node in run.nodes] == ["unit", "look_up"]
    assert run.root is not None
    assert run.root.span.attributes["reenact.incomplete"] is True


def test_the_exit_code_of_a_server_is_no_matter_of_its_requests(held: Held) -> None:
    def serve() -> None:
        came_in = Inbound(lambda: "GET /", lambda: {INBOUND: "{}"})
        with inside(came_in):
            look_up("tea")
        came_in.end(dict)

    made = recording.start(recording.Setup(store=held.store))
    serve()
    recording.stop(made)
    (run,) = Drain(made.store, recording=made.id).finish({os.getpid(): -15})
    assert run.name == "GET /"
    assert exit_code(run) is None


def test_what_a_child_left_is_not_carried_away_from_a_recording_that_goes_on(held: Held) -> None:
    made = held.start()
    with made.unit("outer"):
        child = os.fork()
        if child == 0:
            look_up("tea")
            os._exit(0)
        os.waitpid(child, 0)
        look_up("milk")
        assert len(list(made.store.journals.glob(f"*{FORMAT.suffix}"))) == 2
        assert leftovers(made.store) == []
        assert len(list(made.store.journals.glob(f"*{FORMAT.suffix}"))) == 2
    (run,) = held.finish(made)
    assert run.root is not None
    assert run.name == "outer"
