from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from golden_cases import GOLDEN
from reenact.errors import InputError, UsageError
from reenact.find import big_files, sources
from reenact.find.listing import listed
from reenact.find.sources import find
from reenact.formats import otlp_json
from reenact.graph.build import build
from reenact.pipeline.transfer import write
from reenact.read.open import open_spans
from reenact.stores.directory import DirectoryStore
from reenact.values.finding import Filters
from reenact.values.span import Resource, SpanRecord

RECORDED = GOLDEN / "assertions" / "cleanup" / "incident.jsonl"
_HOUR = 3600 * 10**9


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six copies of a recorded run, an hour apart, of two users."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    spans = [record for record in open_spans(RECORDED) if isinstance(record, SpanRecord)]
    path = tmp_path / "big.otlp.jsonl"
    with path.open("wb") as out:
        for copy in range(6):
            out.write(otlp_json.encode(_copied(span, copy) for span in spans))
    return path


def _copied(span: SpanRecord, copy: int) -> SpanRecord:
    attributes = {**span.attributes, "user.id": f"user-{copy % 2}"}
    resource = {**span.resource.attributes, "reenact.recording.id": f"{copy:032x}"}
    return replace(
        span,
        trace_id=f"{copy}{span.trace_id[1:]}",
        start_ns=span.start_ns + copy * _HOUR,
        end_ns=span.end_ns + copy * _HOUR,
        attributes=attributes,
        resource=replace(span.resource, attributes=resource),
    )


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


FILTERS = {
    "nothing": Filters(),
    "user": Filters(user="user-1"),
    "nobody": Filters(user="somebody-else"),
    "tool": Filters(tool="drop_table"),
    "text": Filters(text="STAGING"),
    "status": Filters(status="ok"),
    "model": Filters(model="gpt"),
    "window": Filters(window=(0, 1)),
}


@pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize(("limit", "skip"), [(20, 0), (2, 1)])
def test_a_big_file_is_listed_as_a_small_one_is(
    file: Path, store: DirectoryStore, monkeypatch: pytest.MonkeyPatch, filters: Filters, limit: int, skip: int
) -> None:
    small = listed(store, str(file), filters, limit, skip=skip)
    monkeypatch.setattr("reenact.read.open.BIG", 1)
    assert listed(store, str(file), filters, limit, skip=skip) == small


def test_the_filters_of_this_test_tell_runs_apart(file: Path, store: DirectoryStore) -> None:
    counts = {name: len(listed(store, str(file), filters, 20)) for name, filters in FILTERS.items()}
    assert counts["nothing"] == 6
    assert counts["user"] == 3
    assert counts["nobody"] == counts["window"] == 0


def test_a_listing_of_everything_is_told_by_a_glance(
    file: Path, store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = listed(store, str(file), Filters(), 0)
    monkeypatch.setattr("reenact.read.open.BIG", 1)
    glanced = listed(store, str(file), Filters(), 0)
    assert [row["id"] for row in glanced] == [row["id"] for row in small]
    for told, known in zip(glanced, small, strict=True):
        assert told.keys() == known.keys() | {"judged"}
        assert (told["verdict"], told["judged"]) == (None, False)
        for fact in ("name", "started", "duration_ms", "status", "user", "session", "source"):
            assert told[fact] == known[fact], fact


def test_one_run_is_found_by_the_beginning_of_its_id(file: Path, store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip  # noqa: E501
    small = find(f"{file}#3", store)
    monkeypatch.setattr("reenact.read.open.BIG", 1)
    found = find(f"{file}#3", store)
    assert found == small
    assert found.run.id.startswith("3")


def test_runs_of_one_recording_come_together(file: Path, store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip  # noqa: E501
    spans = [record for record in open_spans(file) if isinstance(record, SpanRecord)]
    one = {"reenact.recording.id": "f" * 32}
    file.write_bytes(
        otlp_json.encode(
            replace(span, resource=replace(span.resource, attributes={**span.resource.attributes, **one}))
            for span in spans
        )
    )
    small = find(f"{file}#3", store)
    monkeypatch.setattr("reenact.read.open.BIG", 1)
    found = find(f"{file}#3", store)
    assert found.run == small.run
    assert len(found.siblings) == 5
    assert {run.id: run for run in found.siblings} == {run.id: run for run in small.siblings}


def test_a_run_must_be_named_and_be_there(file: Path, store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reenact.read.open.BIG", 1)
    with pytest.raises(UsageError, match="holds 6 runs, name one") as several:
        find(str(file), store)
    assert f"{file}#5" in several.value.hint
    for wanted in ("9", "xyz", "0" * 33):
        with pytest.raises(InputError, match="holds no run"):
            find(f"{file}#{wanted}", store)


def test_log_events_beside_a_big_file_are_read_with_a_run(
    file: Path, monkeypatch: pytest.MonkeyPatch, shared_data: Path
) -> None:
    source = shared_data / "traces" / "rosetta" / "otel-genai-v1.30.otlp.jsonl"
    beside = source.with_name(source.name.replace(".otlp.", ".otlp.logs."))
    target = file.with_name("logs.otlp.jsonl")
    shutil.copy(source, target)
    shutil.copy(beside, target.with_name("logs.otlp.logs.jsonl"))
    small = {run.id: run for run in build(open_spans(target), source=str(target))}
    monkeypatch.setattr("reenact.read.open.BIG", 1)
    with ExitStack() as closing:
        index = big_files.opened(target, closing)
        assert index is not None
        for trace_id, run in small.items():
            assert big_files.run_of(index, trace_id) == run
            assert any(event.name for node in run.nodes for event in node.span.events)


@pytest.mark.parametrize("name", ["otlp-proto", "jaeger", "packed"])
def test_of_other_big_files_only_the_run_that_is_asked_for_is_kept(
    file: Path, store: DirectoryStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    spans = [record for record in open_spans(file) if isinstance(record, SpanRecord)]
    foreign = [replace(span, resource=Resource()) for span in spans]
    other = file.with_name("other.jsonl.gz" if name == "packed" else "other")
    write(foreign, other, "otlp-json" if name == "packed" else name)
    small = find(f"{other}#3", store)
    kept: list[int] = []
    monkeypatch.setattr(
        sources, "build", lambda records, source: kept.append(len(held := [*records])) or build(held, source=source)
    )
    monkeypatch.setattr("reenact.read.open.BIG", 1)
    assert find(f"{other}#3", store).run == small.run
    assert kept == [len(spans) // 6]
