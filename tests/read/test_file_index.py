from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from golden_cases import GOLDEN
from reenact.errors import InputError
from reenact.formats import otlp_json
from reenact.graph.build import build
from reenact.keep.catalog import status
from reenact.read import file_index
from reenact.read.file_index import FileIndex, NotLinesError, cache_folder, indexed, may_be_indexed, naming
from reenact.read.open import open_recording, open_spans
from reenact.values.log import LogRecord, Record
from reenact.values.span import SpanRecord

RECORDED = GOLDEN / "assertions" / "cleanup" / "incident.jsonl"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("reenact.read.open.BIG", 1)
    return tmp_path / "cache"


def of(traces: Iterable[int], **changed: Any) -> list[SpanRecord]:
    """Spans of several traces, taking turns."""
    return [
        SpanRecord(
            trace_id=f"{trace:032x}",
            span_id=f"{trace * 100 + number:016x}",
            parent_id=f"{trace * 100:016x}" if number else None,
            name=f"call {number}" if number else f"run {trace}",
            start_ns=10**18 + trace * 1000 + number,
            end_ns=10**18 + trace * 1000 + 500,
            status=1,
            attributes={"openinference.span.kind": "LLM" if number else "AGENT", "session.id": f"s-{trace}"} | changed,
        )
        for number in range(3)
        for trace in traces
    ]


def written(tmp_path: Path, spans: Iterable[SpanRecord], name: str = "big.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(b"".join(otlp_json.encode([span]) for span in spans))
    return path


def made_by_opening(path: Path) -> list[tuple[int, int]]:
    """Open the index and give what progress was told."""
    told: list[tuple[int, int]] = []
    with indexed(path, lambda done, total: told.append((done, total))):
        return told


def databases() -> list[Path]:
    return sorted(cache_folder().glob("*"))


def test_every_trace_is_listed_and_read_from_its_own_lines(tmp_path: Path) -> None:
    spans = of(range(1, 8))
    path = written(tmp_path, spans)
    with indexed(path) as index:
        rows = list(index.newest())
        assert [row.name for row in rows] == [f"run {trace}" for trace in range(7, 0, -1)]
        assert rows[0].calls == {"llm": 2, "agent": 1}
        assert (rows[0].session, rows[0].status) == ("s-7", "ok")
        assert (rows[0].started_ns, rows[0].ended_ns) == (10**18 + 7000, 10**18 + 7500)
        for row in rows:
            assert list(index.records(row.id)) == [span for span in spans if span.trace_id == row.id]
        assert index.beginning_with("0" * 31) == [f"{trace:032x}" for trace in range(1, 8)]
        assert index.beginning_with(f"{3:032x}") == [f"{3:032x}"]


def test_the_index_is_the_same_however_little_is_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = of(range(1, 30))
    random.Random(1).shuffle(spans)
    path = written(tmp_path, spans)
    with indexed(path) as index:
        whole = list(index.newest())
    databases()[0].unlink()
    monkeypatch.setattr(file_index, "_MOST_ROWS", 3)
    with indexed(path) as index:
        assert list(index.newest()) == whole
        assert {record.span_id for record in index.records(whole[0].id) if isinstance(record, SpanRecord)} == {
            span.span_id for span in spans if span.trace_id == whole[0].id
        }


def test_a_second_access_reads_the_index_alone(tmp_path: Path) -> None:
    path = written(tmp_path, of([1, 2]))
    assert made_by_opening(path)[-1] == (path.stat().st_size, path.stat().st_size)
    assert made_by_opening(path) == []
    assert [each.name for each in tmp_path.iterdir() if each.name != "cache"] == ["big.jsonl"]
    assert [each.stat().st_mode & 0o777 for each in databases()] == [0o600]


@pytest.mark.parametrize("change", ["grown", "touched", "same size and time"])
def test_an_index_that_no_longer_fits_is_made_again(tmp_path: Path, change: str) -> None:
    path = written(tmp_path, of([1, 2]))
    before = path.stat()
    made_by_opening(path)
    if change == "grown":
        with path.open("ab") as file:
            file.write(otlp_json.encode(of([3])))
    elif change == "touched":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    else:
        path.write_bytes(path.read_bytes().replace(b"run 2", b"run X"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert made_by_opening(path) != []
    with indexed(path) as index:
        assert index.count() == (3 if change == "grown" else 2)
    assert len(databases()) == 1


@pytest.mark.parametrize("damage", [b"", b"not a database", None])
def test_a_damaged_index_is_made_again(tmp_path: Path, damage: bytes | None) -> None:
    path = written(tmp_path, of([1, 2]))
    made_by_opening(path)
    (database,) = databases()
    database.write_bytes(database.read_bytes()[:5000] if damage is None else damage)
    with indexed(path) as index:
        assert index.count() == 2


def test_where_the_cache_cannot_be_written_the_index_goes_with_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/none")
    path = written(tmp_path, of([1, 2]))
    for _ in range(2):
        with indexed(path) as index:
            assert index.count() == 2
    assert not databases()


def test_log_events_are_found_with_the_spans_of_their_trace(tmp_path: Path) -> None:
    path = written(tmp_path, of([1, 2]))
    log = {"traceId": f"{1:032x}", "spanId": f"{100:016x}", "observedTimeUnixNano": "5", "eventName": "said"}
    lost = {"observedTimeUnixNano": "5", "eventName": "said"}
    with path.open("a") as file:
        file.write(json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [log, lost]}]}]}) + "\n")
    with indexed(path) as index:
        assert index.unplaced == 1
        assert index.count() == 2
        assert [type(record) for record in index.records(f"{1:032x}")] == [SpanRecord] * 3 + [LogRecord]


def test_ids_are_found_in_whatever_spelling_the_file_has_them(tmp_path: Path) -> None:
    spans = of([0xABCDEF])
    path = written(tmp_path, spans)
    path.write_bytes(path.read_bytes().replace(spans[0].trace_id.encode(), spans[0].trace_id.upper().encode()))
    with indexed(path) as index:
        assert list(index.records(spans[0].trace_id)) == spans


def test_what_is_no_json_lines_is_left_to_be_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "pretty.json"
    path.write_text(json.dumps(json.loads(otlp_json.encode(of([1]))), indent=1))
    assert may_be_indexed(path)
    with pytest.raises(NotLinesError):
        indexed(path)
    assert not databases()


def test_a_broken_line_is_told_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, of([1, 2]))
    with path.open("ab") as file:
        file.write(b'{"resourceSpans": [{"sco')
    with pytest.raises(InputError) as refusal:
        indexed(path)
    assert refusal.value.place == f"{path}:7"
    assert not databases()
    monkeypatch.setenv("REENACT_MAX_LINE_BYTES", "100")
    with pytest.raises(InputError, match="longer than the limit of 100 bytes"):
        indexed(path)


def test_only_big_plain_otlp_is_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, of([1]))
    assert may_be_indexed(path)
    assert not may_be_indexed(tmp_path)
    assert not may_be_indexed(tmp_path / "missing")
    other = tmp_path / "other.json"
    other.write_text('{"data": []}')
    assert not may_be_indexed(other)
    monkeypatch.setattr("reenact.read.open.BIG", path.stat().st_size + 1)
    assert not may_be_indexed(path)


def agrees(index: FileIndex, records: list[Record]) -> None:
    """The index says what rebuilding every run says."""
    ids = {record.trace_id for record in records if record.trace_id}
    rows = {row.id: row for row in index.newest()}
    assert rows.keys() == ids
    for trace_id in ids:
        mine = [record for record in records if record.trace_id == trace_id]
        assert [repr(record) for record in index.records(trace_id)] == [repr(record) for record in mine]
    for run in build(record for record in records if isinstance(record, SpanRecord)):
        row = rows[run.id]
        spans = [record for record in records if isinstance(record, SpanRecord) and record.trace_id == run.id]
        assert (row.started_ns, row.ended_ns) == (
            min(span.start_ns for span in spans),
            max(span.end_ns for span in spans),
        )
        tops = [span for span in spans if span.parent_id is None]
        if run.root is not None and [span.span_id for span in tops] == [run.root.id]:
            assert row.name == run.name
            assert row.status == status(run) or status(run) == "interrupted"
        assert run.recording in (None, row.recording)
        for fact in ("session", "user", "tenant"):
            value = getattr(run, fact)
            named = value in {told for span in spans for told in span.attributes.values() if isinstance(told, str)}
            if named:  # in an attribute of its own, not inside a vendor's blob
                assert run.id in {each.id for each in index.newest([naming(fact, value)])}, (run.id, fact)


def test_the_index_of_a_recording_says_what_the_recording_says() -> None:
    with indexed(RECORDED) as index:
        agrees(index, list(open_spans(RECORDED)))


def test_the_indexes_of_real_files_say_what_the_files_say(shared_data: Path) -> None:
    for path in sorted(shared_data.glob("traces/**/*.otlp.jsonl")):
        with indexed(path) as index:
            beside = path.with_name(path.name.replace(".otlp.", ".otlp.logs."))
            logs = list(open_spans(beside)) if beside.exists() else []
            agrees(index, [record for record in open_spans(path) if record not in logs])


@pytest.mark.parametrize(
    "changed",
    [
        {"spanId": None},
        {"spanId": "0" * 16},
        {"spanId": "x" * 16},
        {"traceId": ""},
        {"traceId": "0" * 32},
        {"links": [{"traceId": "", "spanId": ""}]},
        {"parentSpanId": "12"},
    ],
    ids=repr,
)
def test_what_has_no_id_is_passed_over_and_told_as_it_is_where_the_file_is_read_whole(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    path = written(tmp_path, of([1, 2]))
    told = json.loads(path.read_bytes().splitlines()[0])
    told["resourceSpans"][0]["scopeSpans"][0]["spans"][0] |= changed
    path.write_bytes(json.dumps(told).encode() + b"\n" + path.read_bytes())
    opened = open_recording(path)
    read = list(opened.records)
    for _ in range(2):  # the second time from the index that was kept
        with indexed(path) as index:
            assert index.notes == opened.notes
            assert len(index.notes) == 1
            assert [each for row in index.newest() for each in index.records(row.id)] == sorted(
                read, key=lambda each: -int(each.trace_id, 16)
            )
