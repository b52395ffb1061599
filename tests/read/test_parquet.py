"""Parquet files of several vendors: their rows are known by what they hold, as any other row is."""

from __future__ import annotations

import builtins
import gzip
import io
from pathlib import Path
from typing import Any

import pytest

from reenact.errors import InputError
from reenact.read.open import open_spans
from reenact.values.span import SpanRecord

arrow = pytest.importorskip("pyarrow")
TRACE, SPAN = "20fbe07c68e9b62569ca7c0d846c7395", "8d2de1581a113ca"
START_NS = 1_795_335_000_123_456_789


def written(path: Path, columns: dict[str, Any]) -> Path:
    from pyarrow import parquet

    parquet.write_table(arrow.table(columns), path)
    return path


def spans(path: Path) -> list[SpanRecord]:
    return [record for record in open_spans(path) if isinstance(record, SpanRecord)]


def dataframe(rows: int = 1) -> dict[str, Any]:
    message = arrow.struct(
        [
            ("message.role", arrow.string()),
            ("message.content", arrow.string()),
            ("message.tool_calls", arrow.list_(arrow.struct([("tool_call.function.name", arrow.string())]))),
        ]
    )
    said = [
        {"message.role": "user", "message.content": "hi"},
        {"message.role": "assistant", "message.tool_calls": [{"tool_call.function.name": "w"}]},
    ]
    instants = arrow.timestamp("ns", tz="UTC")
    event = arrow.struct([("name", arrow.string()), ("timestamp", instants), ("message", arrow.string())])
    return {
        "attributes.input.value": ["x" * 100_000] * rows,
        "name": arrow.array(["chat"] * rows).dictionary_encode(),
        "span_kind": ["LLM"] * rows,
        "parent_id": arrow.array([None] * rows, arrow.string()),
        "start_time": arrow.array([START_NS] * rows, instants),
        "end_time": arrow.array([START_NS + 1] * rows, instants),
        "status_code": ["OK"] * rows,
        "context.span_id": [SPAN if rows == 1 else f"{n + 1:015x}" for n in range(rows)],
        "context.trace_id": [TRACE] * rows,
        "events": arrow.array([[{"name": "e", "timestamp": START_NS + 5, "message": "m"}]] * rows, arrow.list_(event)),
        "attributes.llm.input_messages": arrow.array([said] * rows, arrow.list_(message)),
        "attributes.llm.token_count.prompt": arrow.array([float("nan")] * rows),
        "attributes.metadata": arrow.array([[("team", "desk")]] * rows, arrow.map_(arrow.string(), arrow.string())),
        "attributes.embedding.vector": arrow.array([[0.5, 1.0]] * rows, arrow.list_(arrow.float32(), 2)),
    }


def test_a_dataframe_keeps_nanoseconds_nesting_and_short_ids(tmp_path: Path) -> None:
    (span,) = spans(written(tmp_path / "spans.parquet", dataframe()))
    assert (span.trace_id, span.span_id, span.name) == (TRACE, f"0{SPAN}", "chat")
    assert (span.start_ns, span.end_ns, span.status) == (START_NS, START_NS + 1, 1)
    assert span.events[0].time_ns == START_NS + 5
    held = span.attributes
    assert held["llm.input_messages.0.message.content"] == "hi"
    assert held["llm.input_messages.1.message.tool_calls.0.tool_call.function.name"] == "w"
    assert "llm.input_messages.0.message.tool_calls" not in " ".join(held)
    assert "llm.token_count.prompt" not in held
    assert held["metadata"] == '{"team":"desk"}'
    assert held["embedding.vector"] == [0.5, 1.0]
    assert held["openinference.span.kind"] == "LLM"


def test_rows_of_several_batches_and_packings_come_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "many.parquet", dataframe(700))
    assert len({span.span_id for span in spans(path)}) == 700
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert len(spans(packed)) == 700


def test_rows_of_other_vendors_find_their_own_format(tmp_path: Path) -> None:
    attributes = arrow.map_(arrow.string(), arrow.string())
    otel = written(
        tmp_path / "otel_traces.parquet",
        {
            "Timestamp": arrow.array([START_NS], arrow.timestamp("ns")),
            "TraceId": [TRACE],
            "SpanId": [f"0{SPAN}"],
            "ParentSpanId": [""],
            "SpanName": ["chat"],
            "SpanKind": ["Client"],
            "SpanAttributes": arrow.array([[("gen_ai.usage.input_tokens", "7")]], attributes),
            "Duration": arrow.array([5], arrow.uint64()),
            "StatusCode": ["Ok"],
        },
    )
    (span,) = spans(otel)
    assert (span.start_ns, span.end_ns, span.kind, span.status) == (START_NS, START_NS + 5, 3, 1)
    assert span.attributes == {"gen_ai.usage.input_tokens": 7}


@pytest.mark.parametrize("cut", [10, 400, 2000])
def test_a_damaged_file_is_named(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path / "spans.parquet", dataframe())
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(InputError) as refused:
        spans(path)
    assert refused.value.place == str(path)


def test_a_table_of_something_else_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`sku`, `price`"):
        spans(written(tmp_path / "prices.parquet", {"sku": ["K"], "price": [1.5]}))


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "spans.parquet", dataframe())
    genuine = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return genuine(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"reenact\[parquet\]"):
        spans(path)


def test_a_stream_that_cannot_seek_is_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(tmp_path / "spans.parquet", dataframe()).read_bytes()

    class Piped(io.BytesIO):
        def seekable(self) -> bool:
            return False

    class Stdin:
        buffer = Piped(data)

    monkeypatch.setattr("sys.stdin", Stdin())
    assert len(spans(Path("-"))) == 1
