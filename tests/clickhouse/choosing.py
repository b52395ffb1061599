"""What the choice of tables costs: the exporter's own, ours, ours with coarser granules, ours with JSON columns.

    .venv-clickhouse/bin/python tests/clickhouse/choosing.py [--spans 1000000]

Each arm gets the same spans, in the same order: runs of 30 spans whose texts grow by what was said before, many runs at
a time, as they come from many agents. Printed are bytes on disk once merged, and for one trace of all: time, rows read.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from chdb import session

HERE = Path(__file__).resolve().parent
SCHEMA = (HERE.parents[1] / "collector" / "clickhouse" / "schema.sql").read_text(encoding="utf-8")
SPANS_OF_A_RUN, RUNS_AT_A_TIME = 30, 400
BATCH = 50_000
LOOKUPS = 40
_EXPORTERS = """
CREATE TABLE otel_traces (
  Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)), TraceId String CODEC(ZSTD(1)), SpanId String CODEC(ZSTD(1)),
  ParentSpanId String CODEC(ZSTD(1)), TraceState String CODEC(ZSTD(1)), SpanName LowCardinality(String) CODEC(ZSTD(1)),
  SpanKind LowCardinality(String) CODEC(ZSTD(1)), ServiceName LowCardinality(String) CODEC(ZSTD(1)),
  ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)), ScopeName String CODEC(ZSTD(1)),
  ScopeVersion String CODEC(ZSTD(1)), SpanAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
  Duration UInt64 CODEC(ZSTD(1)), StatusCode LowCardinality(String) CODEC(ZSTD(1)), StatusMessage String CODEC(ZSTD(1)),
  INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1,
  INDEX idx_span_attr_key mapKeys(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX idx_span_attr_value mapValues(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 1
) ENGINE = MergeTree PARTITION BY toDate(Timestamp) ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))
"""
_TEXTS = """
WITH number AS n,
     intDiv(n, {wave}) AS wave, (n % {wave}) % {at_a_time} AS run, intDiv(n % {wave}, {at_a_time}) AS step,
     lower(hex(MD5(concat('run', toString(wave), '-', toString(run))))) AS trace
SELECT toDateTime64('2026-11-01 00:00:00', 9) + toIntervalMillisecond(n * 20) AS Timestamp, trace AS TraceId,
    lower(hex(reinterpretAsFixedString(toUInt64(n + 1)))) AS SpanId, if(step = 0, '', 'ab') AS ParentSpanId,
    ['chat', 'search_orders', 'agent'][step % 3 + 1] AS SpanName, 'agents' AS ServiceName, 'reenact' AS ScopeName,
    {attributes} AS SpanAttributes, 20000000 AS Duration, 'Ok' AS StatusCode
FROM numbers({begin}, {count})
"""
_SAID = """arrayStringConcat(arrayMap(i -> concat(trace, ' asked ', hex(MD5(concat(trace, toString(i)))),
    ' and was told that the order ', toString(cityHash64(trace, i) % 100000), ' was on its way. '),
    range(step * 4 + 1)))"""
_MAP = f"""map('openinference.span.kind', 'LLM', 'llm.model_name', 'small-2', 'session.id', toString(run),
    'input.value', {_SAID}, 'output.value', hex(MD5(toString(n))), 'llm.token_count.prompt', toString(step * 100))"""


def arms() -> dict[str, str]:
    """Give the tables of each arm."""
    ours = re.sub(r"--[^\n]*", "", SCHEMA)
    as_json = ours.replace("SpanAttributes     Map(LowCardinality(String), String)", "SpanAttributes     JSON")
    as_json = as_json[: as_json.index("CREATE TABLE IF NOT EXISTS otel_runs")]
    coarse = ours.replace("index_granularity = 512", "index_granularity = 8192")
    return {"the exporter's": _EXPORTERS, "ours": ours, "ours, granules of 8192": coarse, "ours, JSON": as_json}


def measure(tables: str, folder: Path, spans: int) -> dict[str, Any]:
    """Fill one arm and look traces up. One process has one path: the arms are databases of one session."""
    asked = _SESSION.query
    asked(f"CREATE DATABASE {folder.name}")
    asked(f"USE {folder.name}")
    for statement in tables.split(";"):
        if statement.strip():
            asked(statement)
    attributes = f"toJSONString({_MAP})::JSON" if "SpanAttributes     JSON" in tables else _MAP
    began = time.perf_counter()
    for begin in range(0, spans, BATCH):
        wave = SPANS_OF_A_RUN * RUNS_AT_A_TIME
        told = {"wave": wave, "at_a_time": RUNS_AT_A_TIME, "attributes": attributes}
        said = _TEXTS.format(**told, begin=begin, count=min(BATCH, spans - begin))
        columns = "Timestamp, TraceId, SpanId, ParentSpanId, SpanName, ServiceName, ScopeName, SpanAttributes, Duration"
        asked(f"INSERT INTO otel_traces ({columns}, StatusCode) {said}")
    filled = time.perf_counter() - began
    asked("OPTIMIZE TABLE otel_traces FINAL")
    sizes = (
        "SELECT sum(data_compressed_bytes), sum(data_uncompressed_bytes) FROM system.parts WHERE active AND database="
    )
    disk, raw = map(int, str(asked(f"{sizes}'{folder.name}'", "TSV")).split())
    ids = str(asked(f"SELECT DISTINCT TraceId FROM otel_traces ORDER BY cityHash64(TraceId) LIMIT {LOOKUPS}", "TSV"))
    took: list[float] = []
    rows: list[int] = []
    for trace_id in ids.split():
        found = asked(f"SELECT * FROM otel_traces WHERE TraceId = '{trace_id}' ORDER BY Timestamp", "JSONEachRow")
        took.append(found.elapsed() * 1e3)
        rows.append(found.storage_rows_read())
        if found.rows_read() != SPANS_OF_A_RUN:
            raise SystemExit(f"{found.rows_read()} spans of a run of {SPANS_OF_A_RUN}")
    return {"filled": filled, "disk": disk, "raw": raw, "ms": statistics.median(took), "rows": statistics.median(rows)}


_SESSION: Any = None


def main() -> None:
    """Print a row an arm."""
    global _SESSION  # noqa: PLW0603 - a process has one
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spans", type=int, default=1_000_000)
    told = parser.parse_args()
    spans = told.spans - told.spans % (SPANS_OF_A_RUN * RUNS_AT_A_TIME)
    with tempfile.TemporaryDirectory() as folder:
        _SESSION = session.Session(folder)
        sys.stdout.write(
            f"{spans:,} spans\n{'tables':24}{'raw MB':>8}{'disk MB':>9}{'one trace, ms':>15}{'rows read':>11}\n"
        )
        for number, (name, tables) in enumerate(arms().items()):
            found = measure(tables, Path(folder) / f"arm{number}", spans)
            sizes = f"{found['raw'] / 1e6:8.0f}{found['disk'] / 1e6:9.0f}"
            sys.stdout.write(
                f"{name:24}{sizes}{found['ms']:15.1f}{found['rows']:11,.0f}   ({found['filled']:.0f} s to fill)\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
