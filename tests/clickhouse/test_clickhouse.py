"""A recording goes through the real Collector into ClickHouse, and is found, shown and replayed from there.

ClickHouse is chdb, the same code in process, behind `serving.py`; the Collector's exporter speaks to it as to a server.
"""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from collector.real import GATEWAY, Collector, needs_collector, running
from desk import EXAMPLES, ROOT, Desk
from reenact.backends.clickhouse import BACKEND
from reenact.demo.provider import StandIn
from reenact.find.remote import read
from reenact.values.finding import Filters
from waiting import until

PYTHON = ROOT / ".venv-clickhouse" / "bin" / "python"
SCHEMA = ROOT / "collector" / "clickhouse" / "schema.sql"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    needs_collector,
    pytest.mark.skipif(not PYTHON.exists(), reason="chdb lives in an environment of its own: make test-clickhouse"),
]


@dataclass(frozen=True)
class Server:
    """ClickHouse's HTTP interface."""

    port: int

    @property
    def url(self) -> str:
        return f"clickhouse://127.0.0.1:{self.port}/default"

    def asked(self, query: str) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """Give rows, and what was read for them."""
        place = f"http://127.0.0.1:{self.port}/?default_format=JSONEachRow&output_format_json_quote_64bit_integers=0"
        with urllib.request.urlopen(urllib.request.Request(place, query.encode()), timeout=60) as reply:
            summary = json.loads(reply.headers["X-ClickHouse-Summary"])
            return [json.loads(line) for line in reply.read().splitlines()], {k: int(v) for k, v in summary.items()}


def serving(folder: Path, *scripts: Path) -> Iterator[Server]:
    words = [PYTHON, ROOT / "tests" / "clickhouse" / "serving.py", folder / "data", *scripts]
    with (folder / "err").open("w") as err:
        process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=err, text=True)
    assert process.stdout is not None
    port = process.stdout.readline()
    assert port, (folder / "err").read_text()
    yield Server(int(port))
    process.kill()
    process.wait()


@pytest.fixture(scope="module", params=["our tables", "the exporter's tables"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, bool]]:
    folder, ours = tmp_path_factory.mktemp("clickhouse"), request.param == "our tables"
    for each in serving(folder, *([SCHEMA] if ours else [])):
        yield each, ours


@dataclass(frozen=True)
class Recorded:
    desk: Desk
    id: str
    stdout: str
    server: Server
    ours: bool


@pytest.fixture(scope="module")
def recorded(server: tuple[Server, bool], tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Record an agent that sends to the Collector, which writes to ClickHouse; wait until every span is there."""
    clickhouse, ours = server
    folder = tmp_path_factory.mktemp("desk")
    settings = {
        "CLICKHOUSE_ENDPOINT": f"http://127.0.0.1:{clickhouse.port}",
        "CLICKHOUSE_ASYNC_INSERT": "false",
        "CLICKHOUSE_COMPRESS": "none",
        "CLICKHOUSE_FLUSH": "200ms",
    }
    overlay = ROOT / "collector" / "gateway-clickhouse.yaml"
    sets = () if ours else ("exporters.clickhouse.create_schema=true",)
    collector = Collector(folder / "gateway", (GATEWAY, overlay), settings, sets)
    with running(collector), StandIn(slip=1.0, max_delay_ms=5) as provider:
        environ = {
            "OPENAI_BASE_URL": provider.base_url,
            "OPENAI_API_KEY": "x",
            "CLEANUP_DATA": str(folder / "data"),
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.http,
        }
        desk = Desk(folder, environ)
        words = ("run", "--user", "u-17", "--session", "s-1", "--", "python", str(EXAMPLES / "cleanup_agent.py"))
        done = desk.reenact(*words)
        assert done.returncode == 0, done.stderr
        (run,) = json.loads(desk.reenact("ls", "--json").stdout)["runs"]
        assert desk.reenact("export", "last", "-o", "ours.jsonl").returncode == 0
        count = len((folder / "ours.jsonl").read_text().splitlines())
        until(lambda: stored(clickhouse, run["id"]) >= count, 60, lambda: collector.log[-3000:], 0.3)
    return Recorded(desk, run["id"], done.stdout, clickhouse, ours)


def stored(server: Server, trace_id: str) -> int:
    try:
        rows, _ = server.asked(f"SELECT count(DISTINCT SpanId) AS n FROM otel_traces WHERE TraceId = '{trace_id}'")
    except OSError:
        return 0  # the exporter has not made it yet
    return int(rows[0]["n"])


def test_it_is_found_by_what_people_know_of_it(recorded: Recorded) -> None:
    def ids(*words: str) -> list[str]:
        done = recorded.desk.reenact("ls", recorded.server.url, "--json", *words)
        assert done.returncode == 0, done.stderr
        return [run["id"] for run in json.loads(done.stdout)["runs"]]

    (told,) = json.loads(recorded.desk.reenact("ls", recorded.server.url, "--json").stdout)["runs"]
    (here,) = json.loads(recorded.desk.reenact("ls", "--json").stdout)["runs"]
    assert told["source"] == recorded.server.url
    assert {name: told[name] for name in ("id", "name", "calls", "user", "session")} == {
        name: here[name] for name in ("id", "name", "calls", "user", "session")
    }
    fitting = ("--user", "u-17", "--session", "s-1", "--tool", "delete_accounts", "--since", "1h")
    assert ids(*fitting) == [recorded.id]
    for words in (("--user", "u'; --"), ("--session", "s\\-1"), ("--tool", "no_such"), ("--until", "2020-01-01")):
        assert ids(*words) == []


def test_it_is_replayed_from_there(recorded: Recorded) -> None:
    named = f"{recorded.server.url}#{recorded.id[:12]}"
    replayed = recorded.desk.reenact("replay", "--trust", named, "--store", "elsewhere", environ=recorded.desk.bare())
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout
    assert ", 0 live" in replayed.stderr
    judged = json.loads(recorded.desk.reenact("doctor", named, "--json").stdout)
    assert judged["verdict"]["grade"] in ("exact", "partial")


def test_one_trace_is_read_without_a_scan(recorded: Recorded, record_property: Callable[[str, object], None]) -> None:
    if not recorded.ours:
        pytest.skip("the exporter's own tables are found by a bloom filter")
    others = 200_000
    recorded.server.asked(
        "INSERT INTO otel_traces (Timestamp, TraceId, SpanId, SpanName, ScopeName, SpanAttributes) SELECT "
        "now64(9) - toIntervalSecond(number % 86400), lower(hex(MD5(toString(number % 10000)))), "
        "lower(hex(reinterpretAsFixedString(number + 1))), 'chat', 'reenact', "
        f"map('input.value', repeat(toString(number), 40), 'user.id', toString(number % 100)) FROM numbers({others})"
    )
    _, read_rows = recorded.server.asked(f"SELECT * FROM otel_traces WHERE TraceId = '{recorded.id}'")
    assert read_rows["read_rows"] <= 4 * 512, "a few granules, whatever the table holds"
    held = BACKEND.open(recorded.server.url)
    assert read(held, recorded.id).id == recorded.id
    assert recorded.id in set(held.newest(Filters(user="u-17")))
    assert len(set(held.newest(Filters(user="7")))) == 100
    assert held.resolve(recorded.id[:10]) == [recorded.id]
    assert held.resolve("no'thing") == []
    record_property(
        "figure", f"ClickHouse, {others:,} spans beside it: one trace out, {read_rows['read_rows']} rows read"
    )


def test_errors_are_kept_beyond_the_thirty_days(server: tuple[Server, bool]) -> None:
    clickhouse, ours = server
    if not ours:
        pytest.skip("retention is a column of our tables")
    old = "now64(9) - toIntervalDay(40)"
    clickhouse.asked(
        "INSERT INTO otel_traces (Timestamp, TraceId, SpanId, StatusCode, ResourceAttributes) VALUES "
        f"(now64(9), 'failed', '01', 'Error', map()), (now64(9), 'went-well', '02', 'Ok', map()), "
        f"({old}, 'old', '03', 'Ok', map()), ({old}, 'old-but-kept', '04', 'Ok', map('reenact.retention', 'kept'))"
    )
    script = (ROOT / "collector" / "clickhouse" / "keep.sql").read_text()
    keep = "\n".join(line for line in script.splitlines() if not line.startswith("--")).strip().rstrip(";")
    clickhouse.asked(f"{keep} SETTINGS mutations_sync = 1")
    clickhouse.asked("OPTIMIZE TABLE otel_traces FINAL")
    rows, _ = clickhouse.asked("SELECT TraceId, Retention FROM otel_traces WHERE SpanId IN ('01', '02', '03', '04')")
    assert {row["TraceId"]: row["Retention"] for row in rows} == {
        "failed": "kept", "went-well": "standard", "old-but-kept": "kept",
    }  # fmt: skip
