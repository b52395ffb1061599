from __future__ import annotations

import multiprocessing
import sqlite3
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from reenact.errors import InputError
from reenact.stores.directory import DirectoryStore, Entry, locate
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
    (store.folder / "index.sqlite").write_bytes(b"this is no database, " * 100)
    with pytest.raises(InputError, match="the index is damaged") as error:
        store.find()
    assert "reenact ls --reindex" in str(error.value)
    store.forget_index()
    assert (store.indexed, store.find()) == (False, [])
    store.index([entry(1)])
    assert len(store.find()) == 1


def test_what_a_crash_left_of_the_old_index_does_not_reach_the_new_one(store: DirectoryStore) -> None:
    store.index([entry(1)])
    (store.folder / "index.sqlite-journal").write_bytes(b"\xd9\xd5\x05\xf9 stale")
    store.forget_index()
    assert sorted(path.name for path in store.folder.glob("index*")) == []


def test_an_index_that_is_locked_is_not_called_damaged(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, timeout: connect(path, timeout=min(timeout, 0.05)))
    store.index([entry(1)])
    holder = connect(store.folder / "index.sqlite")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(InputError, match="cannot be used now: database is locked"):
        store.index([entry(2)])
    holder.rollback()
    holder.close()
    store.index([entry(2)])


def test_an_index_that_may_only_be_read_is_read(store: DirectoryStore) -> None:
    store.index([entry(1)])
    (store.folder / "index.sqlite").chmod(0o400)
    assert len(store.find()) == 1
