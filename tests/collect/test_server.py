"""The collector as its senders and its owner meet it: encodings, tokens, TLS, pages, the end, and what is read back."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("h2", reason="the extra `collector` is not installed")

import zstandard
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from collect.running import PROTOBUF, Running, collecting
from reenact.find.listing import listed
from reenact.find.sources import find
from reenact.stores.directory import DirectoryStore
from reenact.values.finding import Filters

TRACE = b"\x11" * 16
HEAD = f"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: {PROTOBUF}\r\n"


def traced(number: int = 1, **attributes: str) -> ExportTraceServiceRequest:
    message = ExportTraceServiceRequest()
    span = message.resource_spans.add().scope_spans.add().spans.add(trace_id=TRACE, span_id=bytes([number]) * 8)
    span.name, span.start_time_unix_nano, span.end_time_unix_nano = (
        "chat",
        1_790_000_000_000_000_000,
        1_790_000_000_000_000_009,
    )
    for key, value in attributes.items():
        span.attributes.add(key=key.replace("__", ".")).value.string_value = value
    return message


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with collecting(tmp_path / "store", "--idle", "3600") as found:
        yield found


def test_every_encoding_keeps_the_same(running: Running) -> None:
    body = traced(1, a="ä").SerializeToString()
    told = {
        "traceId": TRACE.hex(), "spanId": "01" * 8, "name": "chat", "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": 1790000000000000009, "attributes": [{"key": "a", "value": {"stringValue": "ä"}}], "new": 1,
    }  # fmt: skip
    as_json = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [told]}]}]}).encode()
    bare = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(body), "zstd": zstandard.compress(body), "deflate": zlib.compress(body), "identity": body,
    }  # fmt: skip
    for encoding, data in packed.items():
        assert running.post(data, content_encoding=encoding)[::2] == (200, b"")
    assert running.post(bare.compress(body) + bare.flush(), content_encoding="deflate")[0] == 200
    assert running.post(as_json, content_type="application/json; charset=utf-8")[::2] == (200, b"{}")
    assert running.post(gzip.compress(as_json), content_type="application/json", content_encoding="gzip")[0] == 200
    (span,) = DirectoryStore(running.store).spans(TRACE.hex())
    assert (span.name, span.attributes, span.end_ns) == ("chat", {"a": "ä"}, 1_790_000_000_000_000_009)


def test_what_is_rejected_is_counted_and_the_rest_is_kept(running: Running) -> None:
    message = traced()
    spans = message.resource_spans[0].scope_spans[0].spans
    spans.add(trace_id=TRACE, span_id=b"short")
    spans.add(trace_id=bytes(16), span_id=b"12345678")
    status, _, body = running.post(message.SerializeToString())
    told = ExportTraceServiceResponse.FromString(body).partial_success
    assert (status, told.rejected_spans) == (200, 2)
    assert "span id of 8 bytes" in told.error_message
    assert len(list(DirectoryStore(running.store).spans(TRACE.hex()))) == 1


def test_log_events_join_the_spans_that_they_are_about(running: Running) -> None:
    assert running.post(traced(1, gen_ai__operation__name="chat").SerializeToString())[0] == 200
    logs = ExportLogsServiceRequest()
    records = logs.resource_logs.add().scope_logs.add().log_records
    about = records.add(trace_id=TRACE, span_id=b"\x01" * 8, event_name="gen_ai.user.message", time_unix_nano=5)
    about.body.kvlist_value.values.add(key="content").value.string_value = "what is new?"
    alone = records.add(event_name="gen_ai.user.message", time_unix_nano=6)
    alone.attributes.add(key="session.id").value.string_value = "s-9"
    assert running.post(logs.SerializeToString(), "/v1/logs")[0] == 200
    store = DirectoryStore(running.store)
    run = find(TRACE.hex(), store).run
    assert [event.name for event in run.nodes[0].span.events] == ["gen_ai.user.message"]
    assert {run["session"] for run in listed(store, None, Filters(), 0)} == {None, "s-9"}


def test_a_page_may_send_where_it_is_allowed(tmp_path: Path) -> None:
    with (
        collecting(tmp_path, "--cors", "https://app.example") as running,
        socket.create_connection(("127.0.0.1", running.http_port), timeout=60) as peer,
    ):
        for origin, allowed in (("https://app.example", True), ("https://evil.example", False)):
            peer.sendall(f"OPTIONS /v1/traces HTTP/1.1\r\nhost: localhost\r\norigin: {origin}\r\n\r\n".encode())
            said = peer.recv(4096).decode()
            assert said.startswith("HTTP/1.1 204" if allowed else "HTTP/1.1 403")
            assert (f"access-control-allow-origin: {origin}" in said.lower()) is allowed


PORT = "{port}"
HOSTS = {
    "localhost": True,
    "LocalHost:{port}": True,
    "127.0.0.1:{port}": True,
    "127.9.9.9": True,
    "[::1]:{port}": True,
    "collector.example": True,
    "collector.example:1": True,
    "named.example:77": True,
    "named.example:78": False,
    "evil.example:{port}": False,
    "localhost.evil.example:{port}": False,
    "localhost:1": False,
    "localhost.:{port}": False,
    "evil.example@localhost": False,
    "localhost:{port}@evil.example": False,
    "127.0.0.1.nip.io:{port}": False,
    "127.1": False,
    "0x7f000001": False,
    "2130706433": False,
    "0.0.0.0:{port}": False,
    "169.254.169.254": False,
    "[::ffff:10.0.0.1]": False,
    "[::1%25eth0]": False,
    "[::1": False,
    "localhost:": False,
    "localhost:x": False,
    "localhost, evil.example": False,
    "": False,
}
ORIGINS = {
    "": True,
    "https://app.example:8443": True,
    "https://app.example": False,
    "http://app.example:8443": False,
    "https://app.example:8443.evil.example": False,
    "https://evil.example": False,
    "http://localhost:{port}": False,
    "http://127.0.0.1:{port}": False,
    "null": False,
    "https://app.example:8443\r\norigin: https://evil.example": False,
}


def test_host_and_origin_are_compared_whole(tmp_path: Path) -> None:
    import grpc

    def asked(running: Running, host: str, origin: str = "") -> int:
        head = f"GET /healthz HTTP/1.1\r\nhost: {host}\r\n{f'origin: {origin}' if origin else 'x: y'}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", running.http_port), timeout=60) as peer:
            peer.sendall(head.replace(PORT, str(running.http_port)).encode())
            return int(peer.recv(4096).split()[1])

    names = ("--allow-host", "collector.example", "--allow-host", "Named.example:77")
    with collecting(tmp_path, "--cors", "https://app.example:8443", *names) as running:
        for host, taken in HOSTS.items():
            assert (asked(running, host) == 200) is taken, host
        for origin, taken in ORIGINS.items():
            assert asked(running, "localhost", origin) == (200 if taken else 403), origin
        for authority, code in (
            (f"localhost:{running.grpc_port}", None),
            (f"[::1]:{running.grpc_port}", None),
            (f"evil.example:{running.grpc_port}", grpc.StatusCode.PERMISSION_DENIED),
        ):
            told = (("grpc.default_authority", authority),)
            with grpc.insecure_channel(f"127.0.0.1:{running.grpc_port}", told) as channel:
                export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
                if code is None:
                    assert export(traced().SerializeToString(), timeout=10) == b"", authority
                    continue
                with pytest.raises(grpc.RpcError) as refused:
                    export(traced().SerializeToString(), timeout=10)
                assert refused.value.code() is code, authority


@pytest.mark.sample(3)
@pytest.mark.parametrize("given", [("--cors", "https://app.example/"), ("--allow-host", "http://x"), ("--cors", "a b")])
def test_what_can_never_fit_is_a_usage_error(tmp_path: Path, given: tuple[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "reenact", "collect", "--store", str(tmp_path), *given],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "can never fit" in done.stderr


def test_without_a_token_it_is_said_how_to_set_one(tmp_path: Path) -> None:
    with collecting(tmp_path) as running:
        assert "--token-file FILE (or $REENACT_COLLECT_TOKEN) asks for one" in "".join(running.said)


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    import grpc

    (tmp_path / "token").write_text("s3cret\n")
    body = traced().SerializeToString()
    with collecting(tmp_path / "store", "--token-file", str(tmp_path / "token")) as running:
        assert running.post(body)[0] == 401
        status, headers, _ = running.post(body, authorization="Bearer wrong")
        assert (status, headers["www-authenticate"], headers["content-type"]) == (401, "Bearer", PROTOBUF)
        assert running.post(body, authorization="Bearer s3cret")[0] == 200
        assert running.get("/healthz")[0] == 200
        assert running.get("/metrics")[0] == 401
        with grpc.insecure_channel(f"127.0.0.1:{running.grpc_port}") as channel:
            call = channel.unary_unary(
                "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
                request_serializer=bytes, response_deserializer=bytes,
            )  # fmt: skip
            with pytest.raises(grpc.RpcError) as refused:
                call(body)
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED  # type: ignore[attr-defined]
            assert call(body, metadata=[("authorization", "Bearer s3cret")]) == b""
    assert not any("s3cret" in line for line in running.said)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not here to make a certificate")
    key, made = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(made)]
    subprocess.run(
        [*command, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    return made, key


@pytest.mark.slow
def test_tls(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    import grpc

    made, key = certificate
    with collecting(tmp_path / "store", "--tls-cert", str(made), "--tls-key", str(key)) as running:
        context = ssl.create_default_context(cafile=str(made))
        plain = socket.create_connection(("127.0.0.1", running.http_port), timeout=60)
        with context.wrap_socket(plain, server_hostname="localhost") as peer:
            body = traced().SerializeToString()
            peer.sendall(f"{HEAD}content-length: {len(body)}\r\n\r\n".encode() + body)
            assert peer.recv(100).startswith(b"HTTP/1.1 200")
        trusted = grpc.ssl_channel_credentials(made.read_bytes())
        with grpc.secure_channel(f"localhost:{running.grpc_port}", trusted) as channel:
            call = channel.unary_unary(
                "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
                request_serializer=bytes, response_deserializer=bytes,
            )  # fmt: skip
            assert call(traced(2).SerializeToString(), timeout=60) == b""
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", running.http_port), timeout=60) as peer,
        ):
            peer.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert not peer.recv(100).startswith(b"HTTP/1.1 200"), "nothing is spoken in the clear"
    assert len(list(DirectoryStore(tmp_path / "store").spans(TRACE.hex()))) == 2


@pytest.mark.parametrize("options", [[], ["--token-file", "{token}"]])
def test_it_listens_beyond_this_machine_only_with_token_and_tls(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "token").write_text("t")
    given = [option.format(token=tmp_path / "token") for option in options]
    command = [sys.executable, "-m", "reenact", "collect", "--store", str(tmp_path / "s"), "--host", "0.0.0.0", *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "--insecure" in done.stderr


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=60).close()
    except ConnectionRefusedError:
        return False
    return True


def test_what_is_under_way_is_finished_at_the_end(running: Running) -> None:
    body = traced().SerializeToString()
    with socket.create_connection(("127.0.0.1", running.http_port), timeout=60) as peer:
        head = f"{HEAD}content-length: {len(body)}\r\n\r\n"
        peer.sendall(head.encode() + body[:10])
        while b'"in_flight_bytes":0' in running.get("/metrics.json")[1].replace(b" ", b""):
            time.sleep(0.02)
        running.process.send_signal(signal.SIGTERM)
        while listens(running.http_port):
            time.sleep(0.02)
        peer.sendall(body[10:])
        assert peer.recv(100).startswith(b"HTTP/1.1 200")
    assert running.process.wait(60) == 0
    assert len(list(DirectoryStore(running.store).spans(TRACE.hex()))) == 1


def test_a_second_collector_on_the_same_store_is_refused(running: Running) -> None:
    command = [sys.executable, "-m", "reenact", "collect", "--store", str(running.store), "--http-port", "0"]
    done = subprocess.run([*command, "--grpc-port", "0"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "another collector" in done.stderr) == (3, True)


def test_it_says_how_it_is(running: Running) -> None:
    assert running.post(traced().SerializeToString())[0] == 200
    assert running.post(b"nonsense")[0] == 400
    assert running.get("/healthz") == (200, b'{"status":"ok"}')
    text = running.get("/metrics")[1].decode()
    assert "reenact_collector_accepted_spans_total 1\n" in text
    assert 'reenact_collector_requests_total{transport="http",status="400"} 1' in text
    told: dict[str, Any] = json.loads(running.get("/metrics.json")[1])
    assert told["accepted_spans"] == 1
    assert told["in_flight_bytes"] == 0


SECRET = "sk-proj-" + "a1B2c3D4" * 6


def test_a_policy_takes_out_before_anything_is_written(tmp_path: Path) -> None:
    body = traced(1, input__value=json.dumps({"key": SECRET}), note="plain").SerializeToString()
    logs = ExportLogsServiceRequest()
    log = logs.resource_logs.add().scope_logs.add().log_records.add(trace_id=TRACE, event_name="x")
    log.body.string_value = f"my key is {SECRET}"
    with collecting(tmp_path / "s", "--redact", "--idle", "3600") as running:
        assert running.post(body)[0] == 200
        assert running.post(logs.SerializeToString(), "/v1/logs")[0] == 200
        store = DirectoryStore(tmp_path / "s")
        span, kept = store.records(TRACE.hex())
        for further in store.further():
            assert SECRET.encode() not in (further.raw(TRACE.hex()) or b"")
    assert "REDACTED_" in str(span.attributes["input.value"])
    assert span.attributes["note"] == "plain"
    assert any(name.startswith("reenact.redaction.replaced.") for name in span.attributes)
    assert "REDACTED_" in str(kept.body)  # type: ignore[union-attr]
