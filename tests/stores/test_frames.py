"""The frames of a store: what is written is found, once, before and after it is put together, whatever was lost."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from reenact.disk import envelopes, frames
from reenact.disk.appender import packing
from reenact.disk.frame_index import Placed
from reenact.errors import InputError
from reenact.stores.directory import DirectoryStore
from reenact.stores.frames import FrameStore
from reenact.values.log import LogRecord
from reenact.values.span import SpanRecord

TRACES = [bytes([number]) * 16 for number in range(1, 5)]


def request(rng: random.Random, count: int = 12, traces: Iterable[bytes] = TRACES) -> bytes:
    message = ExportTraceServiceRequest()
    for service in ("one", "two"):
        group = message.resource_spans.add()
        group.resource.attributes.add(key="service.name").value.string_value = service
        for scope in ("a", "b"):
            under = group.scope_spans.add()
            under.scope.name = scope
            for number in range(count // 4):
                span = under.spans.add(trace_id=rng.choice(list(traces)), span_id=rng.randbytes(8), name=f"s{number}")
                span.attributes.add(key="text").value.string_value = "words and words " * rng.randrange(40)
    return message.SerializeToString()


def frame_of(body: bytes) -> bytes:
    ids = [envelopes.trace_of(part[2]) for part in envelopes.parts(body)]
    return frames.framed(frames.SPANS, body, list(dict.fromkeys(ids)), records=len(ids), time_ns=time.time_ns())


def written(store: FrameStore, bodies: Iterable[bytes], *, noted: bool = True) -> None:
    appender = store.appender()
    for body in bodies:
        frame = frame_of(body)
        (at,) = appender.append([frame])
        if noted:
            store.note([Placed(segment=appender.number, at=at, size=len(frame), frame=frames.head(frame))])
    appender.close()


def told(store: FrameStore) -> dict[str, list[str]]:
    return {trace: sorted(repr(record) for record in store.records(trace) or ()) for trace in store.trace_ids()}


def put_together(store: FrameStore) -> None:
    with packing(store.folder):
        store.catch_up()
        store.compact(store.idle(2**62, 1000))


def expected(bodies: Iterable[bytes]) -> dict[str, list[str]]:
    from reenact.formats.otlp_proto import spans_of

    found: dict[str, list[str]] = {}
    for body in bodies:
        for span in spans_of(body, ""):
            found.setdefault(span.trace_id, []).append(repr(span))
    return {trace: sorted(set(spans)) for trace, spans in found.items()}


BODIES = [request(random.Random(number)) for number in range(9)]


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not noted"])
def test_what_is_written_is_read_before_and_after_it_is_put_together(tmp_path: Path, *, noted: bool) -> None:
    store = FrameStore(tmp_path)
    written(store, BODIES, noted=noted)
    assert told(FrameStore(tmp_path)) == expected(BODIES)
    put_together(store)
    assert told(FrameStore(tmp_path)) == expected(BODIES)
    assert store.idle(2**62, 10) == []


def test_what_comes_twice_is_there_once(tmp_path: Path) -> None:
    store = FrameStore(tmp_path)
    written(store, [*BODIES, *BODIES[:5]])
    assert told(store) == expected(BODIES)
    put_together(store)
    written(store, BODIES[2:4])
    put_together(store)
    assert told(store) == expected(BODIES)


def test_what_comes_late_joins_its_trace(tmp_path: Path) -> None:
    store = FrameStore(tmp_path)
    for body in BODIES:
        written(store, [body])
        put_together(store)
    assert told(store) == expected(BODIES)


def test_segments_go_when_nothing_of_them_is_needed(tmp_path: Path) -> None:
    store = FrameStore(tmp_path)
    for body in BODIES[:4]:
        written(store, [body])
    assert len(store.segments()) == 4
    store.need_from(3)
    put_together(store)
    assert [number for number, _ in store.segments()] == [3, 4]
    store.need_from(9)
    put_together(store)
    written(store, BODIES[:1])
    put_together(store)
    assert [number for number, _ in store.segments()] == [5]


def lose_index(folder: Path) -> None:
    for path in (folder / "frames").glob("index-*"):
        path.unlink()


def test_the_index_is_made_again(tmp_path: Path) -> None:
    store = FrameStore(tmp_path)
    written(store, BODIES[:5])
    put_together(store)
    written(store, BODIES[5:])
    store.close()
    lose_index(tmp_path)
    again = FrameStore(tmp_path)
    assert told(again) == expected(BODIES)
    put_together(again)
    assert told(again) == expected(BODIES)


def test_an_index_of_noise_is_told(tmp_path: Path) -> None:
    store = FrameStore(tmp_path)
    written(store, BODIES[:1])
    store.close()
    lose_index(tmp_path)
    (tmp_path / "frames" / "index-1.sqlite").write_bytes(b"no database at all, " * 300)
    with pytest.raises(InputError, match="made again from the frames"):
        FrameStore(tmp_path).trace_ids()


@pytest.mark.parametrize("cut", [1, 7, 40, 200])
def test_a_torn_end_is_passed_over_and_cut(tmp_path: Path, cut: int) -> None:
    store = FrameStore(tmp_path)
    written(store, BODIES[:3])
    ((_, path),) = store.segments()
    whole = path.stat().st_size
    with path.open("ab") as file:
        file.write(frame_of(BODIES[3])[:-cut])
    assert told(FrameStore(tmp_path)) == expected(BODIES[:3])
    written(FrameStore(tmp_path), BODIES[4:5])
    assert path.stat().st_size == whole
    assert told(FrameStore(tmp_path)) == expected([*BODIES[:3], BODIES[4]])


def test_every_cut_of_a_segment_leaves_whole_frames(tmp_path: Path) -> None:
    frame = frame_of(BODIES[0])
    path = tmp_path / "seg"
    for cut in range(0, len(frame), 61):
        path.write_bytes(frames.MAGIC + frame + frame[:cut])
        with path.open("rb") as file:
            assert [at for at, _, _ in frames.scan(file, 0)] == [8]


def test_a_frame_with_any_bit_changed_is_none() -> None:
    frame = frame_of(BODIES[0])
    for at in range(0, len(frame), 97):
        damaged = bytearray(frame)
        damaged[at] ^= 4
        with pytest.raises(frames.FrameDamagedError):
            frames.read(bytes(damaged))


@pytest.mark.parametrize("together", [False, True])
def test_a_deleted_trace_stays_deleted(tmp_path: Path, *, together: bool) -> None:
    store = FrameStore(tmp_path)
    written(store, BODIES)
    if together:
        put_together(store)
    gone = TRACES[0].hex()
    assert store.delete(gone)
    assert not store.delete(gone)
    assert store.records(gone) is None
    store.close()
    lose_index(tmp_path)
    again = FrameStore(tmp_path)
    again.catch_up()
    assert again.records(gone) is None, "also where the index is made again"
    late = request(random.Random(77), traces=TRACES[:1])
    written(again, [late])
    assert told(again)[gone] == expected([late])[gone], "what comes in later is there"


def test_what_says_that_traces_were_deleted_goes_with_the_last_of_them(tmp_path: Path) -> None:
    store = FrameStore(tmp_path)
    written(store, BODIES)
    put_together(store)
    hour = time.time_ns() + 3600 * 10**9
    for trace in TRACES[:3]:
        with store.sparing(hour):  # an hour later, as far as anybody can tell
            assert store.delete(trace.hex())
    kept = told(store)
    assert set(kept) == {TRACES[3].hex()}

    def marks() -> set[bytes]:
        return {trace for path in tmp_path.glob("frames/pack-*") for trace in frames.deletions(path)}

    with packing(store.folder):
        store.rewrite(0.3)
    assert marks() == set(TRACES[:3]), "what was deleted lies in a segment yet"
    store.appender().close()
    store.tidy(newest=True)
    assert not store.segments()
    store.delete(TRACES[3].hex())
    with packing(store.folder):
        store.rewrite(0.3)
    assert marks() == set(), "no file holds anything of them"
    assert store.rewrite(0.0) == 0, "and there is nothing to be done over"
    lose_index(tmp_path)
    assert FrameStore(tmp_path).trace_ids() == []
    again = FrameStore(tmp_path)
    written(again, BODIES[:1])
    put_together(again)
    assert told(again) == expected(BODIES[:1]), "what comes in of them later is there"


def test_only_one_appends(tmp_path: Path) -> None:
    store = FrameStore(tmp_path)
    appender = store.appender()
    with pytest.raises(InputError, match="another collector"):
        FrameStore(tmp_path).appender()
    appender.close()
    FrameStore(tmp_path).appender().close()


def failing(monkeypatch: pytest.MonkeyPatch, name: str) -> Callable[[], None]:
    real = getattr(os, name)
    broken = [True]

    def fails(*args: Any) -> Any:
        if broken[0]:
            if name == "writev":
                real(args[0], [bytes(args[1][0])[:100]])
            raise OSError(28, "No space left on device")
        return real(*args)

    monkeypatch.setattr(os, name, fails)
    return lambda: broken.__setitem__(0, False)


@pytest.mark.parametrize("call", ["writev", "fdatasync"])
def test_what_could_not_be_written_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    store = FrameStore(tmp_path)
    appender = store.appender()
    appender.append([frame_of(BODIES[0])])
    mend = failing(monkeypatch, call)
    with pytest.raises(OSError, match="No space"):
        appender.append([frame_of(BODIES[1]), frame_of(BODIES[2])])
    store.catch_up()
    mend()
    appender.append([frame_of(BODIES[3])])
    appender.close()
    assert told(store) == expected([BODIES[0], BODIES[3]])
    put_together(store)
    assert told(store) == expected([BODIES[0], BODIES[3]])


def test_gaps_in_what_is_noted_are_found(tmp_path: Path) -> None:
    store = FrameStore(tmp_path)
    appender = store.appender()
    for number, body in enumerate(BODIES):
        frame = frame_of(body)
        (at,) = appender.append([frame])
        if number != 3:
            store.note([Placed(segment=appender.number, at=at, size=len(frame), frame=frames.head(frame))])
    appender.close()
    assert told(store) == expected(BODIES)
    store.catch_up()
    assert told(store) == expected(BODIES)


def test_a_store_has_both_kinds_of_traces(tmp_path: Path) -> None:
    kept = FrameStore(tmp_path)
    written(kept, BODIES)
    store = DirectoryStore(tmp_path)
    own = SpanRecord(trace_id="f" * 32, span_id="1" * 16, parent_id=None, name="own", start_ns=5, end_ns=6)
    late = SpanRecord(trace_id=TRACES[0].hex(), span_id="2" * 16, parent_id=None, name="late", start_ns=5, end_ns=6)
    store.append([own, late])
    assert set(store.trace_ids()) == {*expected(BODIES), "f" * 32}
    assert store.resolve("f") == ["f" * 32]
    assert store.resolve("01") == [TRACES[0].hex()]
    assert len(list(store.spans(TRACES[0].hex()))) == len(expected(BODIES)[TRACES[0].hex()]) + 1
    assert store.may_hold(TRACES[0].hex(), "words")
    assert not store.may_hold(TRACES[0].hex(), "nowhere")
    store.delete(TRACES[0].hex())
    with pytest.raises(InputError, match="holds no trace"):
        list(store.spans(TRACES[0].hex()))


def test_log_events_join_their_spans(tmp_path: Path) -> None:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    from reenact.collect.intake import take
    from reenact.keep.collecting import decoding

    logs = ExportLogsServiceRequest()
    log = logs.resource_logs.add().scope_logs.add().log_records.add(trace_id=TRACES[0], event_name="gen_ai.choice")
    log.body.string_value = "said"
    taken = take(logs.SerializeToString(), "logs", is_json=False, decoding=decoding())
    store = FrameStore(tmp_path)
    appender = store.appender()
    appender.append(taken.frames)
    appender.close()
    written(store, [request(random.Random(1), traces=TRACES[:1])])
    for _ in range(2):
        found = list(DirectoryStore(tmp_path).records(TRACES[0].hex()))
        assert [record.body for record in found if isinstance(record, LogRecord)] == ["said"]
        assert sum(isinstance(record, SpanRecord) for record in found) == 12
        put_together(store)
