"""Log events that name no trace, in ClickHouse: they come to the run that they are about, as from one file."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from reenact.find import remote

SECOND = 10**9
START = 1_763_600_000
MESSAGES = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}])


def when(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(START + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


def span(number: int, tokens: int, **more: str) -> dict[str, Any]:
    said = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small", "gen_ai.usage.output_tokens": "3"}
    return {
        "Timestamp": when(number),
        "TraceId": f"{number:032x}",
        "SpanId": f"{number:016x}",
        "ParentSpanId": "",
        "SpanName": "chat small",
        "ServiceName": "desk",
        "ResourceAttributes": {"service.name": "desk"},
        "SpanAttributes": {**said, "gen_ai.usage.input_tokens": str(tokens), **more},
        "Duration": SECOND,
        "StatusCode": "Unset",
    }


def event(number: int, tokens: int, service: str = "desk", **more: str) -> dict[str, Any]:
    said = {"gen_ai.request.model": "small", "gen_ai.usage.output_tokens": "3", "gen_ai.input.messages": MESSAGES}
    return {
        "Timestamp": when(number + 0.5),
        "TraceId": "",
        "SpanId": "",
        "ServiceName": service,
        "Body": "",
        "ResourceAttributes": {"service.name": service},
        "EventName": "gen_ai.client.inference.operation.details",
        "LogAttributes": {**said, "gen_ai.usage.input_tokens": str(tokens), **more},
    }


class Rows(BaseHTTPRequestHandler):
    """Answers the queries that the backend asks, by what they ask for. It is no ClickHouse."""

    spans: list[dict[str, Any]]
    logs: list[dict[str, Any]]

    def do_POST(self) -> None:
        ask = self.rfile.read(int(self.headers["Content-Length"])).decode()
        given = {name: value[0] for name, value in parse_qs(urlsplit(self.path).query).items()}
        body = "".join(json.dumps(row) + "\n" for row in self._rows(ask, given)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _rows(self, ask: str, given: dict[str, str]) -> list[dict[str, Any]]:
        if "system.tables" in ask:
            return [{"name": "otel_traces"}, {"name": "otel_logs"}]
        if "TraceId = ''" in ask:
            first, last = (int(given[f"param_{name}"]) // SECOND - START for name in ("first", "last"))
            return [row for row in self.logs if when(first) <= row["Timestamp"] <= when(last)]
        if "toUnixTimestamp64Nano" in ask:
            return [{"TraceId": row["TraceId"], "At": n} for n, row in enumerate(self.spans)]
        return [row for row in self.spans if row["TraceId"] == given.get("param_id") and "otel_traces" in ask]

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def held() -> Iterator[tuple[str, type[Rows]]]:
    class Own(Rows):
        pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Own) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"clickhouse://127.0.0.1:{serving.server_port}/traces", Own
        serving.shutdown()


@pytest.mark.parametrize(
    ("logs", "other", "events"),
    [
        ([event(1, 99, **{"gen_ai.response.id": "r-1"})], 20, 1),  # the id proves it, whatever else is said
        ([event(1, 10)], 20, 1),  # the only one that agrees
        ([event(1, 10)], 10, 0),  # another trace's call agrees as well
        ([event(1, 11)], 20, 0),
        ([event(1, 10, service="kitchen")], 20, 0),  # another program's
        ([event(900, 10)], 20, 0),  # long after
    ],
    ids=["by_id", "by_facts", "two_agree", "none_agrees", "another_program", "another_time"],
)
def test_a_stray_event_comes_to_its_run(
    held: tuple[str, type[Rows]], logs: list[dict[str, Any]], other: int, events: int
) -> None:
    url, rows = held
    rows.spans, rows.logs = [span(1, 10, **{"gen_ai.response.id": "r-1"}), span(2, other)], logs
    run = remote.read(remote.opened(url), f"{1:032x}")
    assert [len(node.span.events) for node in run.nodes] == [events]
    assert ("Where is it?" in str(run.nodes[0].call.request)) is bool(events)
