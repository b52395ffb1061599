"""What is kept and what goes: by age, by size, by flag, by how it ended; and what is erased is in no file."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from reenact.disk import envelopes, frames
from reenact.keep.catalog import note_taken_in
from reenact.keep.retention import Flags, erase, prune, rules
from reenact.keep.trace_assembly import compacted
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore
from reenact.values.span import SpanRecord

DAY = 24 * 3600 * 10**9


def body(number: int, *, days: float = 0, user: str = "", failed: bool = False, tool: str = "") -> bytes:
    message = ExportTraceServiceRequest()
    under = message.resource_spans.add().scope_spans.add()
    at = time.time_ns() - int(days * DAY)
    root = under.spans.add(trace_id=bytes([number]) * 16, span_id=bytes([number]) * 8, name=f"run {number}")
    root.start_time_unix_nano, root.end_time_unix_nano = at - 1000, at
    said = {"openinference.span.kind": "AGENT", "user.id": user, "note": f"secret of {user} " * 40}
    for key, value in said.items():
        root.attributes.add(key=key).value.string_value = value
    if failed:
        root.status.code = 2
    if tool:
        span = under.spans.add(trace_id=root.trace_id, span_id=b"%08d" % number, parent_span_id=root.span_id, name=tool)
        span.start_time_unix_nano, span.end_time_unix_nano = at - 900, at - 100
        for key, value in {"openinference.span.kind": "TOOL", "tool.name": tool, "input.value": "{}"}.items():
            span.attributes.add(key=key).value.string_value = value
    return message.SerializeToString()


def filled(folder: Path, *bodies: bytes, together: bool = True) -> DirectoryStore:
    kept = FrameStore(folder)
    appender = kept.appender()
    for each in bodies:
        ids = [envelopes.trace_of(part[2]) for part in envelopes.parts(each)]
        made = frames.framed(frames.SPANS, each, list(dict.fromkeys(ids)), records=len(ids), time_ns=time.time_ns())
        appender.append([made])
    appender.close()
    store = DirectoryStore(folder)
    if together:
        compacted(store, 0)
    note_taken_in(store, 30)
    return store


def left(store: DirectoryStore) -> set[int]:
    return {int(trace_id[:2], 16) for trace_id in store.trace_ids()}


def plain(days: float | None = None, size: int | None = None, **given: object) -> object:
    return rules(days, size, **{"errors": True, "flag_if": (), "flag_unless": ()} | given)  # type: ignore[arg-type]


@pytest.mark.parametrize("together", [True, False], ids=["together", "as they came"])
def test_everything_for_some_days_what_ended_badly_and_what_is_flagged_for_ever(tmp_path: Path, together: bool) -> None:  # noqa: FBT001
    store = filled(
        tmp_path, body(1, days=40), body(2, days=5), body(3, days=40, failed=True), body(4, days=40), together=together
    )
    store.append([SpanRecord(trace_id="05" * 16, span_id="5" * 16, parent_id=None, name="own", start_ns=5, end_ns=6)])
    from reenact.keep.catalog import index

    index(store, ["05" * 16])
    Flags(store).add("04" * 16, "a wrong trade")
    tried = prune(store, plain(30), dry_run=True)  # type: ignore[arg-type]
    assert left(store) == {1, 2, 3, 4, 5}
    done = prune(store, plain(30))  # type: ignore[arg-type]
    assert tried.deleted == done.deleted
    assert left(store) == {2, 3, 4}
    assert done.kept == 2
    assert {entry.id[:2] for entry in store.find()} == {"02", "03", "04"}
    Flags(store).remove("04" * 16)
    assert prune(store, plain(30, errors=False)).kept == 0  # type: ignore[arg-type]
    assert left(store) == {2}


def test_runs_are_flagged_by_what_they_did(tmp_path: Path) -> None:
    store = filled(tmp_path, body(1, days=9, tool="delete_accounts"), body(2, days=9, tool="look"), body(3, days=9))
    given = plain(1, flag_if=["called look"], flag_unless=["never called delete_accounts"])
    done = prune(store, given)  # type: ignore[arg-type]
    assert left(store) == {1, 2}
    assert set(done.flagged) == {"01" * 16, "02" * 16}
    assert Flags(store).all()["02" * 16].startswith("called look")
    assert prune(store, plain(1)).kept == 2  # type: ignore[arg-type]


def test_the_oldest_go_first_where_there_is_too_much(tmp_path: Path) -> None:
    store = filled(tmp_path, *(body(number, days=20 - number, user=f"u{number}") for number in range(1, 11)))
    whole = prune(store, plain(None, 1 << 40)).size  # type: ignore[arg-type]
    done = prune(store, plain(None, whole // 2))  # type: ignore[arg-type]
    assert done.size <= whole // 2 + 500
    assert left(store)
    assert left(store) == set(range(11 - len(left(store)), 11)), "the newest stay"


@pytest.mark.parametrize("together", [True, False], ids=["together", "as they came"])
def test_what_is_erased_is_in_no_file(tmp_path: Path, together: bool) -> None:  # noqa: FBT001
    store = filled(
        tmp_path,
        body(1, user="mallory"),
        body(2, user="alice"),
        body(3, user="mallory", failed=True),
        together=together,
    )
    Flags(store).add("03" * 16, "kept")
    assert sorted(erase(store, "mallory").deleted) == ["01" * 16, "03" * 16]
    assert left(store) == {2}
    assert [span.attributes["user.id"] for span in store.spans("02" * 16)] == ["alice"]
    assert not (tmp_path / "flags" / ("03" * 16)).exists()
    for path in (tmp_path / "frames").glob("*.rnf"):
        with path.open("rb") as file:
            for _, _, frame in frames.scan(file, 0):
                assert b"mallory" not in frame.payload
    for path in (tmp_path / "frames").glob("index*"):
        path.unlink()
    again = FrameStore(tmp_path)
    again.catch_up()
    assert again.trace_ids() == ["02" * 16], "also where the index is made again"


def late(store: DirectoryStore, number: int, *, made_ns: int | None = None) -> None:
    """What a collector writes of one more span of a run, and does not note yet."""
    message = ExportTraceServiceRequest()
    span = message.resource_spans.add().scope_spans.add().spans.add(trace_id=bytes([number]) * 16, span_id=b"late-one")
    span.name = "late"
    made = made_ns if made_ns is not None else time.time_ns()
    frame = frames.framed(frames.SPANS, message.SerializeToString(), [span.trace_id], records=1, time_ns=made)
    appender = FrameStore(store.folder).appender()
    appender.append([frame])
    appender.close()


def names(store: DirectoryStore, number: int) -> set[str]:
    return {span.name for span in store.spans(f"{number:02x}" * 16)}


def test_a_run_that_grows_between_the_look_and_the_deed_stays_whole(tmp_path: Path) -> None:
    store = filled(tmp_path, body(1, days=9), body(2, days=9))
    seen: list[str] = []

    def over() -> bool:  # is asked before each is deleted
        if not seen:
            late(store, 1)
            late(store, 2)
            FrameStore(tmp_path).catch_up()  # of the one it is noted by then, and of the other too
            late(store, 2)
        seen.append("asked")
        return False

    done = prune(store, plain(1), over=over)  # type: ignore[arg-type]
    assert (len(seen), done.deleted) == (2, [])
    assert names(store, 1) == {"run 1", "late"}
    assert names(store, 2) == {"run 2", "late"}
    (tmp_path / "frames" / "index-1.sqlite").unlink()
    FrameStore(tmp_path).catch_up()
    assert names(DirectoryStore(tmp_path), 1) == {"run 1", "late"}


def test_what_was_under_way_when_a_run_was_deleted_is_there(tmp_path: Path) -> None:
    store = filled(tmp_path, body(1, days=9))
    time.sleep(0.3)
    before = time.time_ns()
    done = prune(store, replace(plain(1), settled_s=0.2))  # type: ignore[type-var, arg-type]
    assert done.deleted == ["01" * 16]
    late(store, 1, made_ns=before)  # it was made before the run was deleted, and is written after that
    for _ in range(2):
        FrameStore(tmp_path).catch_up()
        assert names(DirectoryStore(tmp_path), 1) == {"late"}
        (tmp_path / "frames" / "index-1.sqlite").unlink()


def test_beside_a_collector_a_run_is_left_alone_until_it_is_settled_and_judged(tmp_path: Path) -> None:
    store = filled(tmp_path, body(1, days=9), body(2, days=9), body(3, days=9))
    late(store, 1)
    late(store, 2)
    hour = replace(plain(1), settled_s=3600)  # type: ignore[type-var]
    assert prune(store, hour).deleted == [], "something came in of each within the hour"  # type: ignore[arg-type]
    beside = replace(plain(1), settled_s=0.01)  # type: ignore[type-var]
    time.sleep(0.02)
    assert prune(store, beside).deleted == ["03" * 16], "of the others nobody knows yet how they ended"  # type: ignore[arg-type]
    note_taken_in(store, 30)
    compacted(store, 0)
    time.sleep(0.02)
    assert sorted(prune(store, beside).deleted) == ["01" * 16, "02" * 16]  # type: ignore[arg-type]


def test_a_flag_that_is_set_meanwhile_counts(tmp_path: Path) -> None:
    store = filled(tmp_path, body(1, days=9), body(2, days=9))

    def over() -> bool:
        Flags(store).add("01" * 16, "a wrong trade")
        Flags(store).add("02" * 16, "a wrong trade")
        return False

    assert prune(store, plain(1), over=over).deleted == []  # type: ignore[arg-type]
    assert left(store) == {1, 2}


def test_what_is_only_in_segments_does_not_cost_what_is_put_together(tmp_path: Path) -> None:
    store = filled(tmp_path, body(1), body(2))
    whole = sum(each.packed_bytes() for each in store.further())
    for number in range(3, 60):
        appender = FrameStore(tmp_path).appender()
        each = body(number)
        made = frames.framed(frames.SPANS, each, [bytes([number]) * 16], records=1, time_ns=time.time_ns())
        appender.append([made])
        appender.close()
    note_taken_in(store, 30)
    assert prune(store, plain(None, whole)).deleted == []  # type: ignore[arg-type]
    assert prune(store, plain(None, whole - 1)).deleted == ["01" * 16]  # type: ignore[arg-type]


def test_a_run_that_cannot_be_read_stays_and_the_others_are_judged(tmp_path: Path) -> None:
    filled(tmp_path, body(1, days=9, tool="look"), body(2, days=9, tool="look"))
    place = FrameStore(tmp_path)._places(b"\1" * 16)[0]
    assert place is not None
    number, at, size = place
    with (tmp_path / "frames" / f"pack-{number:08}.rnf").open("r+b") as file:
        file.seek(at + size - 4)
        file.write(b"\0\0\0\0")
    done = prune(DirectoryStore(tmp_path), plain(1, flag_if=["called nothing_at_all"]))  # type: ignore[arg-type]
    assert (done.deleted, done.kept) == (["02" * 16], 1)
