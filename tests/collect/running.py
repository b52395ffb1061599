"""`reenact collect` in a process of its own, and clients that send to it and remember what was acknowledged."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROTOBUF = "application/x-protobuf"
_ADDRESS = re.compile(r"OTLP/HTTP https?://[^ ]*:(\d+)  OTLP/gRPC [^ ]*:(\d+)")


@dataclass
class Running:
    """A collector that runs."""

    store: Path
    process: subprocess.Popen[str]
    http_port: int
    grpc_port: int
    said: list[str] = field(default_factory=list)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def post(
        self, body: bytes, path: str = "/v1/traces", timeout: float = 30, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Make one request on a connection of its own."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=timeout)) as connection:
            named = {"content-type": PROTOBUF} | {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("POST", path, body, named)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def get(self, path: str) -> tuple[int, bytes]:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=60)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()

    @property
    def memory(self) -> int:
        """The most bytes that it ever had in memory."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) << 10  # type: ignore[index]


def start(store: Path, *options: str, environ: dict[str, str] | None = None) -> Running:
    """Start a collector on free ports, and wait until it listens."""
    command = [sys.executable, "-m", "reenact", "collect", "--store", str(store), *options]
    for name in ("--http-port", "--grpc-port"):
        if name not in options:
            command += [name, "0"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_"))}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=plain | (environ or {}))
    said: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line)
        if found := _ADDRESS.search(line):
            running = Running(store, process, int(found[1]), int(found[2]), said)
            threading.Thread(target=said.extend, args=(process.stderr,), daemon=True).start()
            return running
    raise AssertionError(f"it ended with {process.wait()}: {''.join(said)}")


@contextlib.contextmanager
def collecting(store: Path, *options: str, environ: dict[str, str] | None = None) -> Generator[Running]:
    running = start(store, *options, environ=environ)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.end()


def request(rng: random.Random, spans: int = 20, traces: int = 4) -> tuple[bytes, set[bytes]]:
    """A request, and the ids of its spans."""
    message = ExportTraceServiceRequest()
    under = message.resource_spans.add().scope_spans.add()
    ids = [rng.randbytes(16) for _ in range(traces)]
    found = set[bytes]()
    for number in range(spans):
        span = under.spans.add(trace_id=rng.choice(ids), span_id=rng.randbytes(8), name=f"span {number}")
        span.start_time_unix_nano = 1_790_000_000_000_000_000 + number
        span.end_time_unix_nano = span.start_time_unix_nano + 5
        span.attributes.add(key="input.value").value.string_value = "what was asked " * rng.randrange(1, 60)
        found.add(span.trace_id + span.span_id)
    return message.SerializeToString(), found


@dataclass
class Load:
    """Clients that send as fast as they can, each the same request again until it is acknowledged."""

    port: int
    clients: int = 4
    acknowledged: set[bytes] = field(default_factory=set)
    retried: int = 0
    refused: int = 0
    other: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    """Set to end once what is under way is acknowledged."""
    giving_up: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(self.clients)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join()

    def _send(self, number: int) -> None:
        rng = random.Random(os.urandom(8) + bytes([number]))
        connection = None
        while not self.over.is_set():
            body, ids = request(rng)
            while not self.giving_up.is_set():
                try:
                    connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                    connection.request("POST", "/v1/traces", body, {"content-type": PROTOBUF})
                    answer = connection.getresponse()
                    answer.read()
                except (OSError, http.client.HTTPException):
                    connection = None
                    self.retried += 1
                    time.sleep(0.02)
                    continue
                if answer.status == 200:
                    with self._lock:
                        self.acknowledged |= ids
                    break
                if answer.status == 503:
                    self.refused += 1
                    time.sleep(0.05)
                    continue
                self.other.append(f"{answer.status}")
                break
