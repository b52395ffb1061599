from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

import reenact
from held import Held
from reenact.demo.provider import StandIn
from reenact.errors import InputError, UsageError
from reenact.find import listing
from reenact.find.listing import listed
from reenact.find.sources import RunSource, find, runs_in
from reenact.formats import otlp_json
from reenact.stores.directory import DirectoryStore
from reenact.values.finding import Filters


@reenact.tool
def order(item: str, count: int = 1) -> str:
    if item == "unicorn":
        raise LookupError(f"no {item}")
    return f"{count} {item}"


@reenact.tool
def cancel(item: str) -> None:
    del item


PROPERTIES: dict[str, object] = {"target": {"type": "string"}, "account_ids": {"type": "array"}}
TOOLS: Any = [
    {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": PROPERTIES}},
    }
    for name in ("list_inactive_accounts", "delete_accounts")
]


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@pytest.fixture
def store(held: Held) -> DirectoryStore:
    """Three runs of one recording and a run of another."""

    def first() -> None:
        with reenact.run("breakfast", user="ann", session="s-1"):
            order("tea", 2)
            order("milk")
        with reenact.run("lunch", user="bob", session="s-1"):
            order("tea", 3)
            cancel("tea")
        with reenact.run("dinner", user="ann", session="s-2", tenant="acme"):
            order("unicorn")

    held.record(first)
    time.sleep(0.002)
    held.record(lambda: order("a late tea"))
    return DirectoryStore(held.store)


def names(store: DirectoryStore, limit: int = 0, **filters: Any) -> list[str]:
    given = {"replays": False, **filters}
    return [str(said["name"]) for said in listed(store, None, Filters(**given), limit)]


# listing


def test_runs_are_listed_newest_first(store: DirectoryStore) -> None:
    assert names(store)[1:] == ["dinner", "lunch", "breakfast"]
    assert names(store, limit=2)[1:] == ["dinner"]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"user": "ann"}, ["dinner", "breakfast"]),
        ({"session": "s-1"}, ["lunch", "breakfast"]),
        ({"tenant": "acme"}, ["dinner"]),
        ({"user": "ann", "session": "s-1"}, ["breakfast"]),
        ({"tool": "cancel"}, ["lunch"]),
        ({"status": "error"}, ["dinner"]),
        ({"text": "UNICORN"}, ["dinner"]),
        ({"text": "2 tea"}, ["breakfast"]),
        ({"arguments": (("item", "tea"),)}, ["lunch", "breakfast"]),
        ({"arguments": (("item", "tea"), ("count", "3"))}, ["lunch"]),
        ({"arguments": (("item", "milk"), ("count", "2"))}, []),
        ({"tool": "cancel", "arguments": (("item", "tea"),)}, ["lunch"]),
        ({"tool": "order", "arguments": (("item", "unicorn"),)}, ["dinner"]),
        ({"model": "gpt"}, []),
        ({"user": "nobody"}, []),
        ({"window": (0, 1)}, []),
    ],
    ids=str,
)
def test_runs_are_found_by_what_people_know_of_them_in_a_store_and_in_a_file(
    store: DirectoryStore, tmp_path: Path, filters: dict[str, Any], expected: list[str]
) -> None:
    assert names(store, **filters) == expected
    file = tmp_path / "all.jsonl"
    file.write_bytes(otlp_json.FORMAT.encode([span for each in store.trace_ids() for span in store.spans(each)]))
    assert [said["name"] for said in listed(store, str(file), Filters(**filters), 0)] == expected


def test_the_time_at_which_a_run_was_under_way(store: DirectoryStore) -> None:
    lunch = next(entry for entry in store.find() if entry.name == "lunch")
    inside = lunch.started + (lunch.ended - lunch.started) // 2
    assert names(store, window=(inside, inside)) == ["lunch"]
    assert names(store, window=(lunch.ended + 10**15, lunch.ended + 10**16)) == []


def test_replays_are_listed_where_they_are_asked_for(held: Held, store: DirectoryStore) -> None:
    found = find("last", store)
    with reenact.replay(found, store=held.store):
        order("a late tea")
    assert len(names(store)) == 4
    assert len(names(store, replays=True)) == 5


def test_what_is_listed_says_where_it_is_and_keeps_arguments_to_itself(store: DirectoryStore) -> None:
    said = listed(store, None, Filters(user="bob"), 0)[0]
    assert said["source"] == str(store.folder)
    assert said["calls"]["tool"] == 2  # type: ignore[call-overload, index]
    assert "arguments" not in said


def test_the_index_is_made_again_when_asked(store: DirectoryStore) -> None:
    before = names(store)
    steps: list[tuple[int, int]] = []
    again = listed(store, None, Filters(), 0, reindex=True, progress=lambda done, of: steps.append((done, of)))
    assert [said["name"] for said in again] == before
    assert steps == [(4, 4)]


def test_a_damaged_index_is_made_again_and_said(store: DirectoryStore, capsys: pytest.CaptureFixture[str]) -> None:
    before = names(store)
    (store.folder / "index-3.sqlite").write_bytes(b"this is no database, " * 100)
    assert names(store) == before
    said = capsys.readouterr()
    assert said.out == ""
    assert "index-3.sqlite: the index is damaged: file is not a database; it is made again" in said.err
    assert names(store) == before
    assert capsys.readouterr().err == "", "said once"


def test_damage_that_a_first_look_does_not_see_is_mended_where_it_is_met(
    store: DirectoryStore, capsys: pytest.CaptureFixture[str]
) -> None:
    before = names(store, arguments=(("item", "tea"),))
    path = store.folder / "index-3.sqlite"
    with closing(sqlite3.connect(path)) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'facts'").fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    data = bytearray(path.read_bytes())
    data[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(data)
    assert names(store, arguments=(("item", "tea"),)) == before
    assert "malformed; it is made again" in capsys.readouterr().err


def test_the_index_of_an_earlier_version_is_replaced_by_itself(store: DirectoryStore) -> None:
    before = names(store)
    store.forget_index()
    for name in ("index.sqlite", "index-2.sqlite"):
        with closing(sqlite3.connect(store.folder / name)) as database:
            database.execute("CREATE TABLE runs (id TEXT)")
    assert names(store) == before
    assert [path.name.partition(".")[0] for path in store.folder.glob("index*")] == ["index-3"]


def test_one_damaged_trace_does_not_keep_the_others_out_of_the_index(store: DirectoryStore) -> None:
    damaged = store.folder / "traces" / store.find()[1].id[:2] / f"{store.find()[1].id}.jsonl"
    damaged.write_bytes(b"{ broken\n" + damaged.read_bytes())
    with pytest.raises(InputError, match=damaged.name):
        listed(store, None, Filters(), 0, reindex=True)
    assert names(store)[1:] == ["lunch", "breakfast"]


def test_runs_of_a_process_that_was_killed_are_listed(held: Held) -> None:
    child = os.fork()
    if child == 0:
        held.start()
        with reenact.run("killed"):
            order("tea")
            os._exit(9)
    os.waitpid(child, 0)
    (said,) = listed(DirectoryStore(held.store), None, Filters(), 0)
    assert (said["name"], said["status"]) == ("killed", "interrupted")
    assert listing.listed(DirectoryStore(held.store), None, Filters(status="ok"), 0) == []


@pytest.mark.slow
def test_a_tool_that_only_the_model_spoke_of_is_found_where_no_call_of_it_was_recorded(
    held: Held, tmp_path: Path
) -> None:
    with StandIn(slip=1.0, max_delay_ms=0) as provider:

        def work() -> None:
            with OpenAI(base_url=provider.base_url, api_key="x") as client:
                client.chat.completions.create(
                    model="stand-in-cleanup", messages=[{"role": "user", "content": "Clean up staging."}], tools=TOOLS
                )

        held.record(work)
    store = DirectoryStore(held.store)
    (run,) = listed(store, None, Filters(model="cleanup"), 0)
    assert run["tools"] == []
    wanted = Filters(tool="list_inactive_accounts", arguments=(("target", "staging"),))
    assert [said["id"] for said in listed(store, None, wanted, 0)] == [run["id"]]
    file = tmp_path / "run.jsonl"
    file.write_bytes(otlp_json.FORMAT.encode(store.spans(str(run["id"]))))
    assert [said["id"] for said in listed(store, str(file), wanted, 0)] == [run["id"]]
    assert listed(store, str(file), Filters(tool="list_inactive_accounts", arguments=(("target", "moon"),)), 0) == []


# naming one


def test_last_is_the_newest_recording_and_never_a_replay(held: Held, store: DirectoryStore) -> None:
    last = find("last", store)
    assert last.run.nodes[1].call.request.arguments == {"item": "a late tea", "count": 1}  # type: ignore[union-attr]
    with reenact.replay(last, store=held.store):
        order("a late tea")
    assert find("last", store).run.id == last.run.id


def test_a_prefix_names_a_run_with_its_siblings(store: DirectoryStore) -> None:
    ids = {entry.name: entry.id for entry in store.find()}
    found = find(ids["lunch"][:10].upper(), store)
    assert found.run.name == "lunch"
    assert sorted(run.name for run in found.siblings) == ["breakfast", "dinner"]
    assert found.source == str(store.folder)


def test_what_fits_several_or_nothing_is_told(store: DirectoryStore) -> None:
    with pytest.raises(InputError, match="holds no run 'zz'"):
        find("zz", store)
    several = {entry.id[0] for entry in store.find()}
    if len(several) < 4:
        shared = next(each for each in several if sum(entry.id[0] == each for entry in store.find()) > 1)
        with pytest.raises(UsageError, match=f"{shared!r} fits"):
            find(shared, store)


def test_an_empty_store_says_how_to_record(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no run") as error:
        find("last", DirectoryStore(tmp_path))
    assert "reenact run" in str(error.value)


def test_a_file_called_last_is_not_the_last_run(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store.folder)
    (store.folder / "last").write_text("a file of the user's")
    assert find("last", store).run.nodes
    with pytest.raises(InputError, match="not a trace file"):
        find("./last", store)


@pytest.fixture
def file(store: DirectoryStore, tmp_path: Path) -> Callable[..., Path]:
    """Write runs of the store to a file."""

    def write(*chosen: str) -> Path:
        path = tmp_path / "runs.jsonl"
        ids = {entry.name: entry.id for entry in store.find()}
        path.write_bytes(otlp_json.FORMAT.encode([span for name in chosen for span in store.spans(ids[name])]))
        return path

    return write


def test_a_file_of_one_run_names_it(store: DirectoryStore, file: Callable[..., Path]) -> None:
    found = find(str(file("lunch")), store)
    assert (found.run.name, found.siblings) == ("lunch", ())


def test_a_file_of_several_runs_wants_one_named(store: DirectoryStore, file: Callable[..., Path]) -> None:
    path = file("lunch", "breakfast")
    with pytest.raises(UsageError, match="holds 2 runs, name one") as error:
        find(str(path), store)
    ids = {run.name: run.id for run in runs_in(path)}
    assert f"{path}#{ids['lunch'][:12]}" in str(error.value)
    found = find(f"{path}#{ids['lunch'][:8]}", store)
    assert (found.run.name, [run.name for run in found.siblings]) == ("lunch", ["breakfast"])
    with pytest.raises(InputError, match="holds no run 'zz'"):
        find(f"{path}#zz", store)


def test_a_file_of_a_run_and_its_replay_means_the_run(
    held: Held, store: DirectoryStore, file: Callable[..., Path]
) -> None:
    last = find("last", store)
    with reenact.replay(last, store=held.store):
        order("a late tea")
    path = file("lunch")
    replay = next(entry for entry in store.find() if entry.replay_of)
    with path.open("ab") as stream:
        stream.write(otlp_json.FORMAT.encode(store.spans(replay.id)))
    assert find(str(path), store).run.name == "lunch"


def test_found_is_what_load_gives(held: Held, store: DirectoryStore) -> None:
    assert isinstance(reenact.load("last", store=held.store), RunSource)
    assert reenact.load("last", store=held.store).run.id == find("last", store).run.id
