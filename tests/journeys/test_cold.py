"""Cold cases: what cannot be replayed is counted, and the counts can be exported."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

from inside import Inside
from reenact.formats import otlp_json
from reenact.values.span import Resource, Scope, SpanRecord

GENAI = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai"}
ASKED = '[{"role":"user","parts":[{"type":"text","content":"hi"}]}]'
ANSWERED = '[{"role":"assistant","parts":[{"type":"text","content":"ho"}],"finish_reason":"stop"}]'
HOUR_NS = 3600 * 10**9
START_NS = 1_795_334_400 * 10**9  # 2026-11-22T08:00:00Z


def span(trace: int, number: int, start_ns: int, **attributes: str) -> SpanRecord:
    return SpanRecord(
        trace_id=f"{trace:032x}",
        span_id=f"{trace * 100 + number:016x}",
        parent_id=None if number == 1 else f"{trace * 100 + 1:016x}",
        name=attributes.pop("name", "chat"),
        start_ns=start_ns + number,
        end_ns=start_ns + number + 10**9,
        attributes={name.replace("__", "."): value for name, value in attributes.items()},
        scope=Scope(name="opentelemetry.util.genai.handler"),
        resource=Resource(attributes={"service.name": "desk"}),
    )


def chat(trace: int, number: int, start_ns: int, model: str, tenant: str, *, kept: bool) -> SpanRecord:
    content = {"gen_ai__input__messages": ASKED, "gen_ai__output__messages": ANSWERED} if kept else {}
    named = {name.replace(".", "__"): value for name, value in GENAI.items()}
    return span(trace, number, start_ns, **named, gen_ai__request__model=model, reenact__tenant=tenant, **content)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inside:
    for name in ("REENACT_EXPORT_HEADERS", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    return Inside(tmp_path, monkeypatch)


@pytest.fixture
def traces(tmp_path: Path) -> str:
    """Four runs: two of which nothing was kept, one with a call of a tool without its result, one whole."""
    tool = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "charge", "name": "execute_tool charge"}
    spans = [
        chat(1, 1, START_NS, "gpt-4o", "acme", kept=False),
        chat(2, 1, START_NS + HOUR_NS, "gpt-4o", "acme", kept=False),
        chat(2, 2, START_NS + HOUR_NS, "gpt-4o-mini", "acme", kept=False),
        chat(3, 1, START_NS, "gpt-4o", "globex", kept=True),
        span(3, 2, START_NS, **tool),
        chat(4, 1, START_NS, "gpt-4o", "globex", kept=True),
    ]
    path = tmp_path / "traces.jsonl"
    path.write_bytes(otlp_json.FORMAT.encode(spans) if otlp_json.FORMAT.encode else b"")
    return str(path)


class Receiver:
    """An OTLP/HTTP receiver of metrics."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], ExportMetricsServiceRequest]] = []
        self.answer = ExportMetricsServiceResponse()
        self.status, self.kind = 200, "application/x-protobuf"
        receiver = self

        class Receives(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = gzip.decompress(self.rfile.read(int(self.headers["content-length"])))
                message = ExportMetricsServiceRequest()
                message.ParseFromString(body)
                receiver.requests.append((self.path, dict(self.headers), message))
                self.send_response(receiver.status)
                self.send_header("content-type", receiver.kind)
                self.end_headers()
                self.wfile.write(receiver.answer.SerializeToString())

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Receives)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def metrics() -> Iterator[Receiver]:
    standing = Receiver()
    yield standing
    standing.server.shutdown()
    standing.server.server_close()


def test_the_unreplayable_is_grouped_and_counted(desk: Inside, traces: str) -> None:
    said = json.loads(desk.reenact("cold", traces, "--json").stdout)
    assert said["runs"] == {"read": 4, "cold": 2}
    assert said["calls"] == {"read": 6, "cold": 4}
    assert [(each["model"], each["runs"], each["calls"]) for each in said["by"]["model"]] == [
        ("gpt-4o", 2, 2),
        ("gpt-4o-mini", 1, 1),
        ("", 0, 1),
    ]
    assert [(each["tool"], each["runs"], each["calls"]) for each in said["by"]["tool"]] == [
        ("", 2, 3),
        ("charge", 0, 1),
    ]
    assert {(each["tenant"], each["runs"], each["calls"]) for each in said["by"]["tenant"]} >= {("acme", 2, 3)}
    assert {(each["hour"], each["runs"], each["calls"]) for each in said["by"]["hour"]} == {
        ("2026-11-22T08", 1, 2),
        ("2026-11-22T09", 1, 2),
    }
    assert all(each["reason"] for each in said["by"]["reason"])
    assert {each["id"] for each in said["cold"]} == {f"{1:032x}", f"{2:032x}"}
    assert all(each["reasons"] for each in said["cold"])


def test_groups_of_several_names(desk: Inside, traces: str) -> None:
    said = json.loads(desk.reenact("cold", traces, "--by", "model,hour", "--json").stdout)
    assert {(each["model"], each["hour"], each["calls"]) for each in said["groups"]} == {
        ("gpt-4o", "2026-11-22T08", 1),
        ("gpt-4o", "2026-11-22T09", 1),
        ("gpt-4o-mini", "2026-11-22T09", 1),
        ("", "2026-11-22T08", 1),
    }
    shown = desk.reenact("cold", traces, "--by", "model,hour").stdout
    assert shown.startswith("2 of 4 runs cannot be replayed; 4 of 6 calls cannot be answered")
    assert "gpt-4o-mini" in shown
    refused = desk.reenact("cold", traces, "--by", "weather")
    assert refused.returncode == 2
    assert "model, tool, tenant, hour, reason" in refused.stderr


def test_a_store_keeps_its_cold_cases(desk: Inside, traces: str) -> None:
    assert desk.reenact("import", traces).returncode == 0
    from_store = json.loads(desk.reenact("cold", "--json").stdout)
    from_file = json.loads(desk.reenact("cold", traces, "--json").stdout)
    assert from_store["by"] == from_file["by"]
    assert from_store["runs"] == from_file["runs"]
    assert desk.reenact("cold", str(desk.folder / "nothing.jsonl")).returncode == 3


def test_the_counts_are_metrics(desk: Inside, traces: str, metrics: Receiver) -> None:
    desk.environ["REENACT_EXPORT_HEADERS"] = "x-team=desk"
    done = desk.reenact("cold", traces, "--metric", metrics.url)
    assert done.returncode == 0, done.stderr
    ((path, headers, message),) = metrics.requests
    assert path == "/v1/metrics"
    assert {name.lower(): value for name, value in headers.items()}["x-team"] == "desk"
    (group,) = message.resource_metrics
    found = {metric.name: metric for metric in group.scope_metrics[0].metrics}
    assert set(found) == {"reenact.cold.runs", "reenact.cold.calls", "reenact.runs", "reenact.calls"}
    points = found["reenact.cold.runs"].gauge.data_points
    told = {
        ({each.key: each.value.string_value for each in point.attributes}["model"], point.as_int) for point in points
    }
    assert told == {("gpt-4o", 2), ("gpt-4o-mini", 1), ("", 0)}
    assert sum(point.as_int for point in found["reenact.cold.calls"].gauge.data_points) == 4
    assert [point.as_int for point in found["reenact.runs"].gauge.data_points] == [4]
    assert all(point.time_unix_nano > START_NS // 2 for point in points)


def test_opentelemetrys_own_variables_name_the_endpoint(desk: Inside, traces: str, metrics: Receiver) -> None:
    desk.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = metrics.url
    desk.environ["OTEL_EXPORTER_OTLP_HEADERS"] = "authorization=Bearer%20t"
    assert desk.reenact("cold", traces, "--metric", "otlp").returncode == 0
    ((path, given, _),) = metrics.requests
    headers = {name.lower(): value for name, value in given.items()}
    assert (path, headers["authorization"]) == ("/v1/metrics", "Bearer t")


def test_what_a_receiver_did_not_take_is_said(desk: Inside, traces: str, metrics: Receiver) -> None:
    metrics.answer.partial_success.rejected_data_points = 2
    metrics.answer.partial_success.error_message = "too many labels"
    done = desk.reenact("cold", traces, "--metric", metrics.url)
    assert done.returncode == 3
    assert "2 of 8 points were rejected: too many labels" in done.stderr, done.stderr
    metrics.answer.Clear()
    metrics.status = 503
    assert "answered 503" in desk.reenact("cold", traces, "--metric", metrics.url).stderr
    metrics.status, metrics.kind = 200, "text/html"
    assert "something that is no OTLP reply (text/html)" in desk.reenact("cold", traces, "--metric", metrics.url).stderr
    assert desk.reenact("cold", traces, "--metric", "http://127.0.0.1:1").returncode == 3
    assert desk.reenact("cold", traces, "--metric", "ftp://x").returncode == 2


def test_prometheus_reads_it(desk: Inside, traces: str) -> None:
    lines = desk.reenact("cold", traces, "--metric", "-").stdout.splitlines()
    assert "# TYPE reenact_cold_runs gauge" in lines
    assert "reenact_runs 4" in lines
    assert any(line.startswith('reenact_cold_runs{model="gpt-4o",tool="",tenant="acme",reason="') for line in lines)
    assert all(line.startswith("#") or line.rpartition(" ")[2].isdigit() for line in lines)
