"""Fuzzes what the collector reads of its senders, with atheris: bodies, their packing, and both protocols.

    python tests/fuzz/collector.py [--seconds N] [--keep DIR]

Each input is one of: the body of a request in protobuf or JSON, of spans or of log records; a packed body; the bytes of
a connection. A body that is taken must be there again, record for record, when its frames are read; everything else
ends in a `Refusal`. Exits with 1 where anything else was raised, took too long or too much memory.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
_LARGEST = 1 << 15
_MEMORY_MB, _ONE_INPUT_S = 1500, 20
_LIMIT = 1 << 20


class _Wire:
    """What a connection writes to."""

    transport = None

    def __init__(self) -> None:
        self.sent = bytearray()

    def write(self, data: bytes) -> None:
        self.sent += data

    async def drain(self) -> None:
        pass


class _Kept:
    """Takes frames, and reads them again."""

    number = 1

    def append(self, frames: Any) -> list[int]:
        for frame in frames:
            read_again(frame)
        return [0] * len(frames)

    def close(self) -> None:
        pass


def read_again(frame: bytes) -> int:
    """Read a frame by way of everything that reads frames, and count its records."""
    from reenact.disk import frames
    from reenact.disk.gathering import Gathering
    from reenact.stores.frames import decoded

    read = frames.read(frame)
    spans, logs = (read.payload, b"") if read.kind == frames.SPANS else (b"", read.payload)
    records = list(decoded(spans, logs, place="fuzz"))
    assert len(records) == read.records, (len(records), read.records)
    gathering = Gathering(read.traces)
    gathering.add(read)
    again = [record for trace in read.traces for record in decoded(*gathering.whole(trace), place="fuzz")]
    assert len(again) <= len(records)
    assert {repr(record) for record in again} == {repr(record) for record in records}
    return len(records)


def run(data: bytes) -> None:
    """Try one input."""
    from reenact.collect.inflate import inflate
    from reenact.collect.intake import answer, take
    from reenact.collect.refusals import Refusal
    from reenact.keep.collecting import decoding

    if len(data) < 2:
        return
    kind, body = data[0] % 8, data[1:]
    try:
        if kind < 4:
            signal = "logs" if kind & 1 else "traces"
            taken = take(body, signal, is_json=kind >= 2, decoding=decoding())
            answer(taken, signal, is_json=kind >= 2)
            assert sum(read_again(frame) for frame in taken.frames) == taken.accepted
        elif kind == 4:
            encoding = ("gzip", "zstd", "deflate", "identity", "")[body[0] % 5]
            assert len(inflate(body[1:], encoding, _LIMIT)) <= _LIMIT
        elif kind < 7:
            asyncio.run(_connection(body, http2=kind == 6))
    except Refusal as refusal:
        refusal.as_json()
        refusal.as_protobuf()


async def _connection(data: bytes, *, http2: bool) -> None:
    from reenact.collect.admission import Desk
    from reenact.collect.grpc import GrpcConnection
    from reenact.collect.http1 import HttpConnection
    from reenact.collect.meters import Meters
    from reenact.collect.settings import Settings
    from reenact.collect.writer import Writer
    from reenact.keep.collecting import decoding

    settings = Settings(decoding=decoding(), most_bytes=_LIMIT, head_s=1, stall_s=1, idle_s=1)
    meters = Meters()
    said: list[str] = []
    writer = Writer(_Kept(), lambda _: None, meters, said.append)
    desk = Desk(settings, writer, meters, said.append)
    reader = asyncio.StreamReader()
    first = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" if http2 else data[:3]
    reader.feed_data(data if http2 else data[3:])
    reader.feed_eof()
    kind = GrpcConnection if http2 else HttpConnection
    await kind(reader, _Wire(), desk, first).serve()  # type: ignore[arg-type]
    await writer.close()
    desk.close()
    assert meters.in_flight_bytes == 0, meters.in_flight_bytes
    assert not said, said


def seeds() -> list[bytes]:
    """Inputs to begin with."""
    import random

    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    from collect.running import request

    body, _ = request(random.Random(1), 3, 2)
    logs = ExportLogsServiceRequest()
    log = logs.resource_logs.add().scope_logs.add().log_records.add(event_name="gen_ai.user.message")
    log.attributes.add(key="gen_ai.conversation.id").value.string_value = "c"
    log.body.kvlist_value.values.add(key="content").value.string_value = "hi"
    found: list[bytes] = []
    for kind, message in ((0, ExportTraceServiceRequest.FromString(body)), (1, logs)):
        data = message.SerializeToString()
        told = json.dumps(MessageToDict(message)).replace("==", "").encode()
        found += [bytes([kind]) + data, bytes([kind + 2]) + told, b"\x04\x00" + gzip.compress(data)]
        head = "POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n"
        head += f"content-length: {len(data)}\r\n\r\n"
        found += [b"\x05" + head.encode() + data, b"\x05" + (head.encode() + data) * 2]
    asked = b"OPTIONS /v1/traces HTTP/1.1\r\nhost: localhost\r\norigin: http://a\r\n\r\n"
    found.append(b"\x05" + asked + b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n")
    found.append(b"\x06" + _call(body))
    return found


def _call(body: bytes) -> bytes:
    import h2.connection

    client = h2.connection.H2Connection()
    client.initiate_connection()
    path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"), ("te", "trailers")]
    client.send_headers(1, [*headers, ("content-type", "application/grpc")])
    client.send_data(1, b"\0" + len(body).to_bytes(4, "big") + body, end_stream=True)
    return client.data_to_send().removeprefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--keep", type=Path, help="folder for corpus and findings; default: a temporary one")
    told = parser.parse_args()
    import atheris

    keep = told.keep or Path(tempfile.mkdtemp(prefix="reenact-fuzz-"))
    corpus, found = keep / "corpus", keep / "found"
    for made in (corpus, found):
        made.mkdir(parents=True, exist_ok=True)
    with atheris.instrument_imports(
        include=["reenact.collect", "reenact.values", "h11", "h2"], enable_loader_override=False
    ):
        import reenact.collect.server
        import reenact.keep.collecting  # noqa: F401
    for number, data in enumerate(seeds()):
        run(data)
        (corpus / f"seed-{number:04}").write_bytes(data)
    options = [
        f"-max_total_time={told.seconds}", f"-timeout={_ONE_INPUT_S}", f"-rss_limit_mb={_MEMORY_MB}",
        f"-max_len={_LARGEST}", f"-artifact_prefix={found}/", "-print_final_stats=1", str(corpus),
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], run)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
