from __future__ import annotations

import functools
import itertools
import json
import multiprocessing
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from desk import Desk
from reenact.disk.run_index import Entry
from reenact.errors import InputError
from reenact.keep.catalog import index_anew
from reenact.stores.directory import DirectoryStore, locate
from reenact.values.finding import Filters, ToolUse, argument_pairs
from reenact.values.json import Json
from reenact.values.span import SpanRecord

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = SpanRecord(trace_id=TRACE, span_id="00000000000000aa", parent_id=None, name="run", start_ns=1, end_ns=2)


def span(number: int, trace_id: str = TRACE) -> SpanRecord:
    return replace(SPAN, trace_id=trace_id, span_id=f"{number:016x}", name=f"span {number}", attributes={"n": number})


def entry(number: int, **facts: object) -> Entry:
    given = {"id": f"{number:032x}", "name": "run", "started": number, "ended": number + 1, "status": "ok", **facts}
    return Entry(**given)  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    made = DirectoryStore(tmp_path / "store")
    made.prepare()
    return made


def file_of(store: DirectoryStore, trace_id: str = TRACE) -> Path:
    return store.folder / "traces" / trace_id[:2] / f"{trace_id}.jsonl"


# where it lies


def test_where_a_store_is(tmp_path: Path) -> None:
    below = tmp_path / "project" / "src" / "deep"
    below.mkdir(parents=True)
    assert locate(below, {}) == below / ".reenact"
    (tmp_path / "project" / ".reenact").mkdir()
    assert locate(below, {}) == tmp_path / "project" / ".reenact"
    assert locate(below, {"REENACT_STORE": "/elsewhere"}) == Path("/elsewhere")
    (tmp_path / "project").chmod(0o1777)
    assert locate(below, {}) == below / ".reenact", "from below none is found where anybody may make one"
    assert locate(tmp_path / "project", {}) == tmp_path / "project" / ".reenact"


def test_a_store_that_is_made_is_ignored_by_git_and_made_once(store: DirectoryStore) -> None:
    ignore = store.folder / ".gitignore"
    assert ignore.read_text() == "*\n"
    ignore.write_text("changed")
    store.prepare()
    assert ignore.read_text() == "changed"
    assert store.journals.is_dir()


def test_a_store_that_cannot_be_made_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be made") as error:
        DirectoryStore(tmp_path / "file").prepare()
    assert "REENACT_STORE" in str(error.value)


# spans


def test_what_is_appended_is_read_again(store: DirectoryStore) -> None:
    other = "f" * 32
    assert store.append([span(1), span(2, other), span(3)]) == [TRACE, other]
    assert store.append([span(4)]) == [TRACE]
    assert list(store.spans(TRACE)) == [span(1), span(3), span(4)]
    assert list(store.spans(other)) == [span(2, other)]
    assert sorted(store.trace_ids()) == [TRACE, other]
    assert stat.S_IMODE(file_of(store).stat().st_mode) == 0o600


def test_an_unknown_trace(store: DirectoryStore) -> None:
    with pytest.raises(InputError, match="holds no trace"):
        list(store.spans("a" * 32))


@pytest.mark.parametrize(
    "hostile",
    ["../../etc/passwd", "..", "", "a" * 31, "A" * 32, "a" * 33, "a" * 31 + "/", "a" * 32 + "\n", "\uff41" * 32],
)
def test_a_hostile_trace_id_reaches_no_file(store: DirectoryStore, hostile: str) -> None:
    before = sorted(store.folder.rglob("*"))
    with pytest.raises(InputError, match="is not a trace id"):
        store.append([span(1, hostile)])
    with pytest.raises(InputError, match="is not a trace id"):
        list(store.spans(hostile))
    assert store.resolve(hostile) == []
    assert sorted(store.folder.rglob("*")) == before


def append_many(folder: Path, first: int, count: int) -> None:
    store = DirectoryStore(folder)
    for number in range(first, first + count):
        store.append([replace(span(number), attributes={"text": "x" * (number % 9) * 3000})])


def test_processes_and_threads_append_at_once_and_readers_see_whole_lines(store: DirectoryStore) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=append_many, args=(store.folder, 1000 * each, 40)) for each in range(2)]
    threads = [threading.Thread(target=append_many, args=(store.folder, 1000 * each, 40)) for each in (2, 3)]
    for each in (*processes, *threads):
        each.start()
    seen = 0
    while any(each.is_alive() for each in (*processes, *threads)):
        if store.trace_ids():
            count = len(list(store.spans(TRACE)))
            assert count >= seen
            seen = count
    for each in (*processes, *threads):
        each.join()
    assert all(process.exitcode == 0 for process in processes)
    assert len({each.span_id for each in store.spans(TRACE)}) == 160


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_line_that_a_crash_cut_short_is_left_out_and_mended(store: DirectoryStore, cut: int) -> None:
    store.append([span(1)])
    store.append([span(2)])
    whole = file_of(store).read_bytes()
    file_of(store).write_bytes(whole[:-cut])
    assert list(store.spans(TRACE)) == [span(1)]
    store.append([span(3)])
    assert list(store.spans(TRACE)) == [span(1), span(3)]


def test_a_first_line_that_was_cut_short(store: DirectoryStore) -> None:
    store.append([span(1)])
    file_of(store).write_bytes(file_of(store).read_bytes()[:20])
    assert list(store.spans(TRACE)) == []
    store.append([span(2)])
    assert list(store.spans(TRACE)) == [span(2)]


def test_a_line_that_is_longer_than_a_look_back(store: DirectoryStore) -> None:
    store.append([span(1)])
    with file_of(store).open("ab") as file:
        file.write(b"{" + b"x" * 3_000_000)
    assert list(store.spans(TRACE)) == [span(1)]
    store.append([span(2)])
    assert list(store.spans(TRACE)) == [span(1), span(2)]


def test_damage_inside_a_file_is_named_with_its_line(store: DirectoryStore) -> None:
    store.append([span(1)])
    store.append([span(2)])
    file_of(store).write_bytes(b"{ broken\n" + file_of(store).read_bytes())
    with pytest.raises(InputError, match=r"jsonl:1: "):
        list(store.spans(TRACE))


def test_a_store_that_cannot_be_written_is_named(store: DirectoryStore) -> None:
    file_of(store).parent.mkdir(parents=True)
    file_of(store).mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        store.append([span(1)])
    with pytest.raises(InputError, match="cannot be read"):
        list(store.spans(TRACE))


def test_a_prefix_is_enough(store: DirectoryStore) -> None:
    ids = ["0a" + "1" * 30, "0a" + "2" * 30, "0b" + "1" * 30]
    for trace_id in ids:
        store.append([span(1, trace_id)])
    assert store.resolve("0") == ids
    assert store.resolve("0a") == ids[:2]
    assert store.resolve("0a2") == [ids[1]]
    assert store.resolve(ids[2]) == [ids[2]]
    for nothing in ("", "c", "0A", "*", "0a*", "../", "0" * 33):
        assert store.resolve(nothing) == []


# the index


def test_runs_are_found_by_their_facts_newest_first(store: DirectoryStore) -> None:
    assert store.find() == []
    entries = [entry(1, user="a"), entry(3, user="b"), entry(2, user="a", replay_of="x")]
    store.index(entries)
    assert store.find() == [entries[1], entries[2], entries[0]]
    assert store.find(newest=1) == [entries[1]]
    assert store.find(replays=False) == [entries[1], entries[0]]
    assert store.find([("user = ?", "a"), ("started >= ?", 2)]) == [entries[2]]


def test_a_run_is_noted_again_in_place(store: DirectoryStore) -> None:
    store.index([entry(1, name="first")])
    store.index([entry(1, name="second")])
    assert [each.name for each in store.find()] == ["second"]


def test_what_foreign_traces_hold_is_noted_as_far_as_sqlite_can(store: DirectoryStore) -> None:
    store.index([entry(1, name="caf\udce9", started=2**64 - 1, ended=-(2**80), user="'; DROP TABLE runs; --")])
    (found,) = store.find([("user = ?", "'; DROP TABLE runs; --")])
    assert (found.name, found.started, found.ended) == ("caf?", 2**63 - 1, -(2**63))
    assert store.find([("user = ?", "caf\udce9")]) == []


def test_a_damaged_index_says_how_to_make_it_again(store: DirectoryStore) -> None:
    store.index([entry(1)])
    (store.folder / "index-3.sqlite").write_bytes(b"this is no database, " * 100)
    with pytest.raises(InputError, match="the index is damaged") as error:
        store.find()
    assert "reenact ls --reindex" in str(error.value)
    store.forget_index()
    assert (store.indexed, store.find()) == (False, [])
    store.index([entry(1)])
    assert len(store.find()) == 1


def test_what_a_crash_left_of_the_old_index_does_not_reach_the_new_one(store: DirectoryStore) -> None:
    store.index([entry(1)])
    (store.folder / "index-3.sqlite-journal").write_bytes(b"\xd9\xd5\x05\xf9 stale")
    store.forget_index()
    assert sorted(path.name for path in store.folder.glob("index*")) == []


def test_an_index_that_is_locked_is_not_called_damaged(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, timeout, **rest: connect(path, timeout=min(timeout, 0.05), **rest)
    )
    store.index([entry(1)])
    holder = connect(store.folder / "index-3.sqlite")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(InputError, match="cannot be used now: database is locked"):
        store.index([entry(2)])
    holder.rollback()
    holder.close()
    store.index([entry(2)])


def test_an_index_that_may_only_be_read_is_read(store: DirectoryStore) -> None:
    store.index([entry(1)])
    (store.folder / "index-3.sqlite").chmod(0o400)
    assert len(store.find()) == 1


def use(number: int, tool: str, **arguments: Json) -> ToolUse:
    return ToolUse(id=f"{number:016x}", tool=tool, arguments=argument_pairs(arguments))


def found(store: DirectoryStore, newest: int | None = None, skip: int = 0, **filters: Any) -> list[int]:
    return [int(each.id, 16) for each in store.search(Filters(**filters), newest=newest, skip=skip)]


def test_runs_are_searched_by_everything_that_is_known_of_them(store: DirectoryStore) -> None:
    tea = use(1, "order", item="tea", options={"milk": True})
    store.index(
        [
            entry(1, user="ann", models=("gpt-5",), uses=(tea,)),
            entry(
                2, user="bob", models=("claude",), uses=(tea, use(2, "cancel", item="tea"), use(3, "order", item="ham"))
            ),
            entry(3, user="ann", status="error", tenant="acme", session="s", uses=(use(1, "cancel", item="ham"),)),
            entry(4, user="ann", replay_of="x", uses=(tea,)),
        ]
    )
    assert found(store) == [3, 2, 1]
    assert found(store, replays=True) == [4, 3, 2, 1]
    assert found(store, user="ann") == [3, 1]
    assert found(store, user="ann", status="ok") == [1]
    assert (found(store, tenant="acme"), found(store, session="s")) == ([3], [3])
    assert found(store, tool="order") == [2, 1]
    assert found(store, tool="order", replays=True) == [4, 2, 1]
    assert found(store, tool="cancel", arguments=(("item", "ham"),)) == [3], "the tool and the argument of one call"
    assert found(store, arguments=(("item", "ham"),)) == [3, 2]
    assert found(store, arguments=(("options.milk", "true"), ("item", "tea"))) == [2, 1]
    assert found(store, arguments=(("options.milk", "true"), ("item", "ham"))) == []
    assert found(store, model="g") == [1]
    assert found(store, model="") == [2, 1]
    assert found(store, model="gpt-5", tool="order", user="ann", window=(1, 1)) == [1]
    assert found(store, window=(3, 3)) == [3, 2]
    assert found(store, newest=1) == [3]
    assert found(store, newest=2, skip=1) == [2, 1]
    assert found(store, user="nobody") == []


def test_a_run_that_was_under_way_for_long_is_found_in_its_middle(store: DirectoryStore) -> None:
    store.index([entry(10, ended=1000), *(entry(number) for number in range(20, 40)), entry(50, ended=49)])
    assert found(store, window=(500, 600)) == [10]
    assert found(store, window=(25, 25)) == [25, 24, 10]
    assert found(store, window=(-(2**80), 2**80))[0] == 50


def test_a_run_that_grew_is_found_by_what_came_and_once(store: DirectoryStore) -> None:
    store.index([entry(5, uses=(use(1, "order", item="tea"),))])
    store.index([entry(5, user="ann", uses=(use(1, "order", item="tea"), use(2, "cancel", item="tea")))])
    assert (found(store, tool="order"), found(store, tool="cancel"), found(store, user="ann")) == ([5], [5], [5])
    earlier = replace(entry(5, started=2, uses=(use(1, "order", item="tea"),)), user="ann")
    store.index([earlier])
    assert found(store, tool="order") == [5]
    assert found(store, tool="order", window=(5, 5)) == [5]
    assert len(store.find()) == 1


def test_what_strangers_call_their_tools_is_noted_and_found(store: DirectoryStore) -> None:
    hostile = "'); DROP TABLE runs; --\0\udce9"
    store.index(
        [entry(1, models=(hostile,), uses=(ToolUse(id="a", tool=hostile, arguments=argument_pairs({hostile: 1})),))]
    )
    assert found(store, tool=hostile, arguments=((hostile, "1"),), model="DROP TABLE") == [1]


SEARCHES: dict[str, dict[str, Any]] = {
    "user, at, tool, argument": {
        "user": "u-7",
        "window": (600_000, 700_000),
        "tool": "delete_accounts",
        "arguments": (("target", "production"),),
    },
    "tool, argument": {"tool": "delete_accounts", "arguments": (("target", "production"),)},
    "a rare argument": {"arguments": (("account", "a-77"),)},
    "an argument nobody gave": {"arguments": (("target", "nowhere"),)},
    "tool": {"tool": "look_up"},
    "user": {"user": "u-7"},
    "session": {"session": "s-7"},
    "at": {"window": (500_000, 500_100)},
    "model": {"model": "mini"},
    "status": {"status": "error"},
    "common facts that never meet": {"tool": "look_up", "arguments": (("target", "production"),)},
    "everything": {},
}


def crowd(count: int) -> Iterator[Entry]:
    """Runs of a busy service: four tools, two targets, a thousand users."""
    for number in range(count):
        uses = [
            use(1, "look_up", account=f"a-{number % 9973}", target="staging"),
            use(2, "delete_accounts", account=f"a-{number % 9973}", target=("staging", "production")[number % 2]),
        ]
        facts = {
            "user": f"u-{number % 1000}",
            "session": f"s-{number // 3}",
            "status": ("ok", "error")[number % 50 == 0],
        }
        yield entry(
            number * 10, ended=number * 10 + 50, uses=tuple(uses), models=(("big", "mini")[number % 3 == 0],), **facts
        )


@pytest.mark.parametrize("filters", SEARCHES.values(), ids=SEARCHES)
def test_no_search_reads_the_whole_table(tmp_path_factory: pytest.TempPathFactory, filters: dict[str, Any]) -> None:
    store = _crowded(tmp_path_factory.getbasetemp() / "crowd", 2000)
    steps = store.explained(Filters(**filters))
    assert steps
    assert [step for step in steps if step.startswith("SCAN") and "INDEX" not in step] == []
    assert [step for step in steps if "TEMP B-TREE" in step] == [], "the order comes from the index as well"


@functools.cache
def _crowded(folder: Path, count: int) -> DirectoryStore:
    store = DirectoryStore(folder)
    store.prepare()
    entries = crowd(count)
    while batch := list(itertools.islice(entries, 1000)):
        store.index(batch)
    return store


def test_a_search_gives_what_looking_at_every_run_gives(tmp_path_factory: pytest.TempPathFactory) -> None:
    store = _crowded(tmp_path_factory.getbasetemp() / "crowd", 2000)
    everything = sorted(crowd(2000), key=lambda each: -each.started)
    for name, given in SEARCHES.items():
        filters = Filters(**given)
        first, last = filters.window or (-1, 2**62)
        expected = [
            each.id
            for each in everything
            if all(getattr(filters, key) in (None, getattr(each, key)) for key in ("user", "session", "status"))
            and each.started <= last
            and each.ended >= first
            and (filters.model is None or any(filters.model in model for model in each.models))
            and (not (filters.tool or filters.arguments) or any(one.fits(filters) for one in each.uses))
        ]
        assert [each.id for each in store.search(filters)] == expected, name
        assert bool(expected) == (name not in {"an argument nobody gave", "common facts that never meet"}) or name in {
            "user, at, tool, argument",
            "at",
            "a rare argument",
        }


@pytest.mark.slow
def test_a_hundred_thousand_runs(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    began = time.perf_counter()
    store = _crowded(tmp_path / "crowd", 100_000)
    took = time.perf_counter() - began
    record_property("figure", f"an index of 100,000 runs: {took:.1f} s to write, {_megabytes(store):.0f} MB")
    for name, given in SEARCHES.items():
        times: list[float] = []
        for _ in range(5):
            began = time.perf_counter()
            count = len(store.search(Filters(**given), newest=20))
            times.append((time.perf_counter() - began) * 1000)
        figure = f"ls at 100,000 runs, by {name}: {times[0]:.1f} ms first, {min(times):.1f} ms at best, {count} runs"
        record_property("figure", figure)
        assert not [
            step for step in store.explained(Filters(**given)) if step.startswith("SCAN") and "INDEX" not in step
        ]
    desk = Desk(tmp_path, {"REENACT_STORE": str(store.folder)})
    program = desk.write("clean_up.py", CLEAN_UP)
    minute = f"{datetime.now(UTC):%Y-%m-%dT%H:%M}Z"
    assert desk.reenact("run", "--user", "u-17", "--", "python", program).returncode == 0
    words = ("--user", "u-17", "--at", minute, "--tool", "delete_accounts", "--arg", "target=production")
    began = time.perf_counter()
    done = desk.reenact("ls", *words, "--json")
    whole = (time.perf_counter() - began) * 1000
    assert [run["name"] for run in json.loads(done.stdout)["runs"]] == ["clean_up.py"], "the one real run of 100,001"
    command = f"reenact ls {' '.join(words)}"
    record_property("figure", f"{command}: the whole command with the interpreter's start {whole:.0f} ms")


CLEAN_UP = """
import reenact

@reenact.tool
def delete_accounts(target):
    return target

delete_accounts("production")
"""


def _megabytes(store: DirectoryStore) -> float:
    return sum(path.stat().st_size for path in store.folder.glob("index*")) / 1e6


def index_many(folder: Path, first: int, count: int) -> None:
    store = DirectoryStore(folder)
    for number in range(first, first + count):
        store.append([replace(span(number), trace_id=f"{number:032x}")])
        store.index([entry(number, uses=(use(1, "order", account=number),))])


def test_processes_note_runs_at_once_while_another_makes_the_index_again(store: DirectoryStore) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=index_many, args=(store.folder, 1000 * each, 40)) for each in range(1, 4)]
    for each in processes:
        each.start()
    while not store.indexed and any(each.is_alive() for each in processes):
        time.sleep(0.01)
    rebuilt = 0
    while any(each.is_alive() for each in processes):
        index_anew(store)
        rebuilt += 1
    for each in processes:
        each.join()
    assert all(process.exitcode == 0 for process in processes)
    assert rebuilt > 0
    assert len(store.search(Filters())) == 120, f"nothing is lost over {rebuilt} rebuilds"
    assert len(list(store.folder.glob("index*"))) == 1


def test_an_index_that_could_not_be_made_again_leaves_the_one_before(store: DirectoryStore) -> None:
    store.index([entry(1)])

    def fails() -> None:
        with store.index_anew() as note:
            note([entry(2)])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert found(store) == [1]
    assert [path.name for path in store.folder.glob("index*")] == ["index-3.sqlite"]


@pytest.mark.parametrize(
    ("text", "held"), [("WAS THERE", True), ("not there", False), ("caf\u00e9", True), ("there.", True)]
)
def test_a_text_is_looked_for_in_bytes_first(store: DirectoryStore, text: str, *, held: bool) -> None:
    store.append([replace(SPAN, attributes={"said": 'it "was there"'})])
    assert store.may_hold(TRACE, text) is held
    store.append([replace(SPAN, attributes={"said": "\u212a"})])
    assert store.may_hold(TRACE, "k") is True, "the Kelvin sign in lower case"
