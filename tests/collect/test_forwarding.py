"""Spans that come in go on to backends, each with a queue of its own, whoever is killed or down meanwhile."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

pytest.importorskip("h2", reason="the extra `collector` is not installed")

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collect.running import collecting, request, start
from receivers import Receiver, http_receiver, running_grpc_receiver
from reenact.read.open import open_spans
from reenact.stores.directory import DirectoryStore
from reenact.stores.outbox import Account, Outbox
from reenact.values.lenient import as_text, at
from reenact.values.log import LogRecord
from reenact.values.span import SpanRecord

T = TypeVar("T")


def received(receiver: Receiver) -> list[bytes]:
    return [
        span.trace_id + span.span_id
        for message in receiver.requests
        for group in message.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def settled(store: Path, spans: int, within: float = 45) -> list[tuple[int, int, int]]:
    end = time.monotonic() + within
    while time.monotonic() < end:
        found = [(each.created, each.exported, each.waiting) for each in Outbox(store).accounts()]
        if found and all(created >= spans and not waiting for created, _, waiting in found):
            return found
        time.sleep(0.1)
    return [(each.created, each.exported, each.waiting) for each in Outbox(store).accounts()]


def test_each_backend_has_every_span_once(tmp_path: Path) -> None:
    rng, sent = random.Random(2), set[bytes]()
    with http_receiver() as one, http_receiver() as two:
        with collecting(tmp_path / "s", "--idle", "0.2", "--forward", one.url, "--forward", two.url) as running:
            for _ in range(20):
                body, ids = request(rng)
                assert running.post(body)[0] == 200
                sent |= ids
            assert settled(tmp_path / "s", 400) == [(400, 400, 0)] * 2
        for receiver in (one, two):
            assert sorted(received(receiver)) == sorted(sent)


def said(rng: random.Random, records: int = 6) -> tuple[bytes, set[str]]:
    """A request of log events, some of them of no trace, and their texts."""
    message = ExportLogsServiceRequest()
    group = message.resource_logs.add()
    group.resource.attributes.add(key="service.name").value.string_value = "a.program"
    texts: set[str] = set()
    for number in range(records):
        record = group.scope_logs.add().log_records.add(event_name="gen_ai.choice", severity_number=9)
        record.time_unix_nano = 1_790_000_000_000_000_000 + number
        if number % 2:
            record.trace_id, record.span_id = rng.randbytes(16), rng.randbytes(8)
        text = f"said {rng.randbytes(6).hex()} ä"
        record.body.kvlist_value.values.add(key="content").value.string_value = text
        record.body.kvlist_value.values.add(key="raw").value.bytes_value = b"\xff\x00"
        texts.add(text)
    return message.SerializeToString(), texts


def texts_in(request: ExportLogsServiceRequest) -> list[str]:
    return [
        record.body.kvlist_value.values[0].value.string_value
        for group in request.resource_logs
        for scope in group.scope_logs
        for record in scope.log_records
    ]


def texts_at(receiver: Receiver) -> list[str]:
    bodies = [body for path, body in receiver.bodies if path == "/v1/logs"]
    return [text for body in bodies for text in texts_in(ExportLogsServiceRequest.FromString(body))]


def accounts(store: Path) -> dict[str, Account]:
    return {account.name: account for account in Outbox(store).accounts()}


def until(holds: Callable[[], object], within: float = 45) -> None:
    end = time.monotonic() + within
    while not holds() and time.monotonic() < end:
        time.sleep(0.1)


def test_log_events_go_on_as_well_each_once_and_as_they_came(tmp_path: Path) -> None:
    rng, spans, texts = random.Random(4), set[bytes](), set[str]()
    file = tmp_path / "out.jsonl"
    with http_receiver() as http, running_grpc_receiver() as grpc:
        targets = (http.url, f"grpc://{grpc.address}", f"file://{file}")
        options = [word for target in targets for word in ("--forward", target)]
        with collecting(tmp_path / "s", "--idle", "0.2", *options) as running:
            for _ in range(15):
                body, ids = request(rng)
                assert running.post(body)[0] == 200
                spans |= ids
                body, found = said(rng)
                assert running.post(body, "/v1/logs")[0] == 200
                texts |= found
            until(
                lambda: len(told := accounts(tmp_path / "s")) == 6 and not any(each.waiting for each in told.values())
            )
        told = accounts(tmp_path / "s")
        assert {(name.endswith(" (log events)"), each.created, each.exported) for name, each in told.items()} == {
            (False, 300, 300),
            (True, 90, 90),
        }
        assert sorted(received(http)) == sorted(spans)
        assert sorted(texts_at(http)) == sorted(texts)
        assert sorted(text for each in grpc.logs for text in texts_in(each)) == sorted(texts)
    read = list(open_spans(file))
    assert {record.trace_id + record.span_id for record in read if isinstance(record, SpanRecord)} == {
        span.hex() for span in spans
    }
    logs = [record for record in read if isinstance(record, LogRecord)]
    assert sorted(as_text(at(log.body, "content")) for log in logs) == sorted(texts)
    assert {
        (log.event_name, log.severity, log.resource.attributes["service.name"], at(log.body, "raw")) for log in logs
    } == {("gen_ai.choice", 9, "a.program", "/wA=")}
    kept = DirectoryStore(tmp_path / "s")
    assert sorted(repr(log) for log in logs) == sorted(
        repr(record) for each in kept.trace_ids() for record in kept.records(each) if isinstance(record, LogRecord)
    ), "what is sent on is what was kept"


def test_a_backend_that_takes_no_log_events_has_every_span(tmp_path: Path) -> None:
    rng = random.Random(5)

    def no_logs(_self: Receiver, sent: ExportTraceServiceRequest) -> tuple[int, dict[str, str], bytes]:
        return (
            (200, {"content-type": "application/x-protobuf"}, b"")
            if sent.resource_spans
            else (404, {}, b"no such page")
        )

    with http_receiver() as traces_alone:
        traces_alone.behave = no_logs
        with collecting(tmp_path / "s", "--idle", "0.2", "--forward", traces_alone.url) as running:
            assert running.post(said(rng)[0], "/v1/logs")[0] == 200
            for _ in range(10):
                assert running.post(request(rng)[0])[0] == 200
            until(lambda: accounts(tmp_path / "s")[traces_alone.url].exported == 200)
            until(
                lambda: len(accounts(tmp_path / "s")) == 2 and any(e.error for e in accounts(tmp_path / "s").values())
            )
        told = accounts(tmp_path / "s")
        assert told[traces_alone.url].exported == 200
        logs = told[f"{traces_alone.url.replace('traces', 'logs')} (log events)"]
        assert (logs.created, logs.waiting, logs.exported) == (6, 6, 0), "a wrong setting costs nothing"
        assert "answered 404" in str(logs.error)


def killed_thrice(
    store: Path, down: Receiver, path: str, make: Callable[[random.Random], tuple[bytes, set[T]]]
) -> set[T]:
    """Kill three collectors that take ten requests each and bring them to nobody, and say what was in these."""
    rng, sent = random.Random(3), set[T]()
    down.behave = lambda _self, _request: (503, {}, b"")
    for _ in range(3):
        running = start(store, "--idle", "0.2", "--forward", down.url)
        for _ in range(10):
            body, said_in_it = make(rng)
            assert running.post(body, path)[0] == 200
            sent |= said_in_it
        time.sleep(rng.uniform(0, 0.8))
        running.kill()
    down.requests.clear()
    down.bodies.clear()
    down.behave = lambda _self, _request: (200, {"content-type": "application/x-protobuf"}, b"")
    return sent


@pytest.mark.slow
def test_log_events_that_a_dead_collector_owed_go_out_with_the_next(tmp_path: Path) -> None:
    with http_receiver() as down:
        sent = killed_thrice(tmp_path / "s", down, "/v1/logs", said)
        with collecting(tmp_path / "s", "--idle", "0.2", "--forward", down.url):
            until(lambda: sum(each.exported for each in accounts(tmp_path / "s").values()) >= 180)
        assert sorted(texts_at(down)) == sorted(sent)


@pytest.mark.slow
def test_what_a_dead_collector_owed_goes_out_with_the_next(tmp_path: Path) -> None:
    with http_receiver() as down:
        sent = killed_thrice(tmp_path / "s", down, "/v1/traces", request)
        with collecting(tmp_path / "s", "--idle", "0.2", "--forward", down.url):
            found = settled(tmp_path / "s", 600)
        assert found == [(600, 600, 0)]
        assert set(received(down)) >= sent
        assert len(received(down)) == len(sent)
