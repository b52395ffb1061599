"""What nobody well-meaning sends: the right status, no crash, memory within its bound."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("h2", reason="the extra `collector` is not installed")

import zstandard
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collect.running import PROTOBUF, Running, collecting, request
from collect.served import served
from reenact.find.listing import listed
from reenact.find.sources import find
from reenact.stores.directory import DirectoryStore
from reenact.values.finding import Filters

MIB = 1 << 20
HALF_A_BODY = (
    b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
)
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with collecting(tmp_path_factory.mktemp("hostile") / "store", "--idle", "1") as found:
        yield found


@pytest.fixture(autouse=True)
def alive(request: pytest.FixtureRequest) -> Iterator[None]:
    """After whatever was sent, the server goes on, with bounded memory."""
    yield
    if "running" in request.fixturenames:
        running: Running = request.getfixturevalue("running")
        body, _ = sample()
        assert running.post(body)[0] == 200
        assert running.memory < 700 * MIB


def sample() -> tuple[bytes, set[bytes]]:
    return request(random.Random(3))


def grpc_call(running: Running, body: bytes, **options: Any) -> Any:
    """The code of a call whose message is these very bytes."""
    import grpc

    limits = [("grpc.max_send_message_length", 512 * MIB), ("grpc.max_receive_message_length", 16 * MIB)]
    with grpc.insecure_channel(f"127.0.0.1:{running.grpc_port}", options=limits) as channel:
        call = channel.unary_unary(EXPORT, request_serializer=bytes, response_deserializer=bytes)
        try:
            call(body, timeout=60, **options)
        except grpc.RpcError as error:
            return error.code().name  # type: ignore[attr-defined]
    return "OK"


def bomb(size: int, encoding: str) -> bytes:
    """A body that unpacks to a great many zeros."""
    if encoding == "gzip":
        made = zlib.compressobj(6, zlib.DEFLATED, 31)
        return b"".join([*(made.compress(bytes(MIB)) for _ in range(size // MIB)), made.flush()])
    return zstandard.ZstdCompressor(level=1).compress(bytes(size))


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_is_stopped_while_it_grows(running: Running, encoding: str) -> None:
    body = bomb(400 * MIB, encoding)
    before = running.memory
    assert running.post(body, content_encoding=encoding)[0] == 413
    assert running.memory - before < 200 * MIB


@pytest.mark.slow
def test_a_bomb_over_grpc(running: Running) -> None:
    import grpc

    body, before = bytes(300 * MIB), running.memory
    assert grpc_call(running, body, compression=grpc.Compression.Gzip) == "RESOURCE_EXHAUSTED"
    assert running.memory - before < 200 * MIB


@pytest.mark.slow
def test_many_small_bombs_at_once(running: Running) -> None:
    from concurrent.futures import ThreadPoolExecutor

    body = bomb(100 * MIB, "gzip")
    with ThreadPoolExecutor(16) as pool:
        found = [answer[0] for answer in pool.map(lambda _: running.post(body, content_encoding="gzip"), range(16))]
    assert set(found) <= {413, 503}


def nested_protobuf(depth: int) -> bytes:
    """A span with an attribute of arrays in arrays, written by hand: protobuf's own writer refuses it."""

    def field(number: int, content: bytes) -> bytes:
        size, spelled = len(content), bytearray([number << 3 | 2])
        while size > 0x7F:
            spelled.append(size & 0x7F | 0x80)
            size >>= 7
        return bytes([*spelled, size]) + content

    value = field(1, b"x")
    for _ in range(depth):
        value = field(5, field(1, value))
    attribute = field(1, b"a") + field(2, value)
    span = field(1, bytes(range(16))) + field(2, bytes(range(8))) + field(9, attribute)
    return field(1, field(2, field(2, span)))


@pytest.mark.parametrize("depth", [60, 500, 10_000])
def test_deep_values_in_protobuf(running: Running, depth: int) -> None:
    assert running.post(nested_protobuf(depth))[0] == 400
    assert grpc_call(running, nested_protobuf(depth)) == "INVALID_ARGUMENT"


@pytest.mark.parametrize("depth", [60, 300, 10_000])
def test_deep_values_in_json(running: Running, depth: int) -> None:
    value = '{"arrayValue":{"values":[' * depth + '{"stringValue":"x"}' + "]}}" * depth
    attribute = '{"key":"a","value":' + value + "}"
    ids = f'"traceId":"{"1" * 32}","spanId":"{"2" * 16}"'
    body = '{"resourceSpans":[{"scopeSpans":[{"spans":[{' + ids + ',"attributes":[' + attribute + "]}]}]}]}"
    status, headers, said = running.post(body.encode(), content_type="application/json")
    assert (status, headers["content-type"]) == (400, "application/json")
    assert "code" in json.loads(said)


@pytest.mark.slow
def test_a_body_of_300_mebibytes(running: Running) -> None:
    before = running.memory
    status, _, _ = running.post(bytes(300 * MIB))
    assert status == 413
    assert running.memory - before < 100 * MIB
    assert grpc_call(running, bytes(300 * MIB)) == "RESOURCE_EXHAUSTED"
    assert running.memory - before < 100 * MIB


@pytest.mark.slow
def test_a_body_of_300_mebibytes_in_chunks(running: Running) -> None:
    before = running.memory
    with socket.create_connection(("127.0.0.1", running.http_port), timeout=60) as peer:
        head = f"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: {PROTOBUF}\r\n"
        head += "transfer-encoding: chunked\r\n\r\n"
        peer.sendall(head.encode())
        with contextlib.suppress(OSError):
            for _ in range(300):
                peer.sendall(b"100000\r\n" + bytes(MIB) + b"\r\n")
            peer.sendall(b"0\r\n\r\n")
        assert peer.recv(100).startswith(b"HTTP/1.1 413")
    assert running.memory - before < 200 * MIB


def test_text_that_is_no_utf_8(running: Running) -> None:
    body, _ = sample()
    assert running.post(body.replace(b"span 1", b"span \xff"))[0] == 400
    assert grpc_call(running, body.replace(b"span 1", b"span \xff")) == "INVALID_ARGUMENT"
    assert running.post(b'{"resourceSpans":"\xff"}', content_type="application/json")[0] == 400


@pytest.mark.parametrize("at", [0, 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_times_at_the_edges(running: Running, at: int) -> None:
    message = ExportTraceServiceRequest()
    span = message.resource_spans.add().scope_spans.add().spans.add(name="at the edge", start_time_unix_nano=at)
    span.trace_id, span.span_id = (at % 2**63 + 1).to_bytes(16, "big"), b"12345678"
    span.end_time_unix_nano = at
    assert running.post(message.SerializeToString())[0] == 200
    store = DirectoryStore(running.store)
    found = find(span.trace_id.hex(), store)
    assert (found.run.nodes[0].span.start_ns, found.run.nodes[0].span.end_ns) == (at, at)
    assert any(run["id"] == span.trace_id.hex() for run in listed(store, None, Filters(), 0))


def test_ids_that_come_twice_and_ids_that_collide(running: Running) -> None:
    message = ExportTraceServiceRequest()
    span = message.resource_spans.add().scope_spans.add().spans.add(name="one", trace_id=b"t" * 16, span_id=b"s" * 8)
    body = message.SerializeToString()
    for _ in range(3):
        assert running.post(body)[0] == 200
    span.name = "another"
    assert running.post(message.SerializeToString())[0] == 200
    store = DirectoryStore(running.store)
    assert [record.name for record in store.spans((b"t" * 16).hex())] == ["one", "another"]
    assert len(find((b"t" * 16).hex(), store).run.nodes) == 1
    end = time.monotonic() + 60
    while store.further()[0].idle(2**62, 10) and time.monotonic() < end:  # type: ignore[attr-defined]
        time.sleep(0.1)
    assert [record.name for record in store.spans((b"t" * 16).hex())] == ["one", "another"], "put together, too"


@pytest.mark.parametrize("port", ["http_port", "grpc_port"])
def test_noise(running: Running, port: str) -> None:
    rng = random.Random(5)
    starts = [
        b"",
        b"\x16\x03\x01\x02\x00\x01",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /v1/traces HTTP/1.1\r\n",
        b"PRI",
    ]
    for number in range(60):
        with (
            socket.create_connection(("127.0.0.1", getattr(running, port)), timeout=60) as peer,
            contextlib.suppress(OSError),
        ):
            peer.sendall(starts[number % len(starts)] + rng.randbytes(rng.randrange(1, 5000)))
            if number % 2:
                peer.shutdown(socket.SHUT_WR)
                peer.recv(1000)


def test_frames_of_http2_that_make_no_sense(running: Running) -> None:
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04\0" + bytes(4)
    for kind in range(12):
        for size in (0, 5, 17):
            frame = struct.pack(">I", size)[1:] + bytes([kind, 0xFF]) + struct.pack(">I", 1) + bytes(size)
            address = ("127.0.0.1", running.grpc_port)
            with socket.create_connection(address, timeout=60) as peer, contextlib.suppress(OSError):
                peer.sendall(preface + frame * 3)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(4096):
                    pass


def test_a_thousand_connections(running: Running) -> None:
    peers: list[socket.socket] = []
    try:
        for number in range(1000):
            port = running.http_port if number % 2 else running.grpc_port
            peer = socket.create_connection(("127.0.0.1", port), timeout=60)
            if number % 3 == 0:
                peer.sendall(b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\n")
            peers.append(peer)
        body, _ = sample()
        assert running.post(body)[0] == 200
        assert b'"connections":' in running.get("/metrics.json")[1]
    finally:
        for peer in peers:
            peer.close()


def test_more_connections_than_are_allowed(tmp_path: Path) -> None:
    with served(tmp_path, connections=20) as at:
        peers = [socket.create_connection(at.http, timeout=60) for _ in range(40)]
        end = time.monotonic() + 60
        while at.server.meters.refused_connections < 20 and time.monotonic() < end:
            time.sleep(0.02)
        assert at.server.meters.refused_connections == 20
        for peer in peers:
            peer.close()


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", b""),
        (b"POST /v1/traces HTTP/1.1\r\n", b""),
        (HALF_A_BODY, b"HTTP/1.1 408"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b""),
    ],
    ids=["nothing", "half a head", "half a body", "only a preface"],
)  # fmt: skip
def test_clients_that_stop(tmp_path: Path, sent: bytes, expected: bytes) -> None:
    with served(tmp_path, head_s=0.3, stall_s=0.3, idle_s=0.5) as at:
        with socket.create_connection(at.http, timeout=60) as peer:
            peer.sendall(sent)
            found = b""
            while data := peer.recv(1000):
                found += data
        assert expected in found
        end = time.monotonic() + 60
        while at.server.meters.connections and time.monotonic() < end:
            time.sleep(0.02)
        assert at.server.meters.connections == 0
        assert at.server.meters.in_flight_bytes == 0


def test_a_client_that_dribbles(tmp_path: Path) -> None:
    with served(tmp_path, head_s=0.4, stall_s=0.4, least_rate=1000) as at:
        with socket.create_connection(at.http, timeout=60) as peer:
            peer.sendall(
                b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\n"
                b"content-type: application/json\r\ncontent-length: 9999\r\n\r\n"
            )
            peer.settimeout(0.05)
            found = b""
            end = time.monotonic() + 60
            while not found and time.monotonic() < end:
                peer.sendall(b" ")
                with contextlib.suppress(TimeoutError):
                    found = peer.recv(100)
        assert found.startswith(b"HTTP/1.1 408")
        with socket.create_connection(at.http, timeout=60) as peer:
            with contextlib.suppress(OSError):
                for _ in range(40):
                    peer.sendall(b"P")
                    time.sleep(0.02)
            with contextlib.suppress(ConnectionResetError):
                assert peer.recv(100) == b"", "a head that does not come to its end"
        assert at.server.meters.in_flight_bytes == 0


def test_too_much_at_once_is_told_to_come_again(tmp_path: Path) -> None:
    with served(tmp_path, most_bytes=MIB, in_flight_bytes=2 * MIB) as at:
        head = b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\n"
        head += f"content-type: {PROTOBUF}\r\ncontent-length: {MIB}\r\n\r\n".encode()
        holding = [socket.create_connection(at.http, timeout=60) for _ in range(2)]
        for peer in holding:
            peer.sendall(head + bytes(MIB - 1))
        end = time.monotonic() + 60
        while at.server.meters.in_flight_bytes < 2 * MIB - 2 and time.monotonic() < end:
            time.sleep(0.01)
        with socket.create_connection(at.http, timeout=60) as peer:
            peer.sendall(head + bytes(MIB))
            said = peer.recv(1000)
        assert said.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1" in said.lower()
        for peer in holding:
            peer.close()
        end = time.monotonic() + 60
        while at.server.meters.in_flight_bytes and time.monotonic() < end:
            time.sleep(0.01)
        assert at.server.meters.in_flight_bytes == 0
