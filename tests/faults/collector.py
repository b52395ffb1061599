"""A collector in a process of its own that decodes OTLP in earnest, over HTTP or gRPC, and misbehaves as it is told.

    python collector.py http|grpc FOLDER BEHAVIOUR [NUMBER [PORT]]

What it accepts it keeps: `FOLDER/accepted` has 16 bytes of id for every span, in the order of coming; where there is a
folder `FOLDER/requests`, it has the bytes of each. `FOLDER/address` says where it listens, `FOLDER/asked` has a
line for each request: its spans and bytes. NUMBER is what the behaviour takes: seconds, or bytes.
"""

from __future__ import annotations

import gzip
import os
import signal
import sys
import threading
import time
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

PROTOBUF = {"Content-Type": "application/x-protobuf"}
BEHAVIOURS = {
    "healthy",
    "slow",  # takes NUMBER seconds for each request
    "503",  # for the first NUMBER seconds after the first request
    "400",
    "413",  # over NUMBER bytes: RESOURCE_EXHAUSTED over gRPC
    "302",
    "partial",  # rejects one span of each request
    "html",
    "hang",
    "close",  # stores, and closes the connection without an answer, every second time
    "poison",  # 400 for a request with a span named `bad`
    "quota",  # 429, or RESOURCE_EXHAUSTED with RetryInfo, every second time
    "killer",  # kills the process whose id is in FOLDER/victim, NUMBER seconds or so after it stored or answered
}


class Collector:
    """What both servers do with a request."""

    def __init__(self, folder: Path, behaviour: str, number: float) -> None:
        assert behaviour in BEHAVIOURS, behaviour
        self.folder, self.behaviour, self.number = folder, behaviour, number
        self.first: float | None = None
        self.asked = 0
        self._lock = threading.Lock()

    def count(self, size: int, request: ExportTraceServiceRequest) -> int:
        """Note that a request came, and give its number."""
        with self._lock:
            self.first = self.first or time.monotonic()
            self.asked += 1
            with (self.folder / "asked").open("a") as file:
                file.write(f"{len(list(spans_in(request)))} {size}\n")
            return self.asked

    def accept(self, request: ExportTraceServiceRequest, less: int = 0) -> None:
        """Keep a request, but for its first spans."""
        ids = [span.trace_id[:8] + span.span_id for span in spans_in(request)][less:]
        with self._lock, (self.folder / "accepted").open("ab") as file:
            file.write(b"".join(ids))
            if (kept := self.folder / "requests").is_dir():
                draft = self.folder / "request.draft"  # it may be killed while it writes
                draft.write_bytes(request.SerializeToString())
                draft.rename(kept / f"{time.time_ns():020d}.binpb")

    @property
    def early(self) -> bool:
        return self.first is not None and time.monotonic() - self.first < self.number

    def kill(self) -> None:
        """Kill the sender, at about this moment."""
        try:
            os.kill(int((self.folder / "victim").read_text()), signal.SIGKILL)
        except (OSError, ValueError):
            return


def spans_in(request: ExportTraceServiceRequest) -> Any:
    return (span for group in request.resource_spans for scope in group.scope_spans for span in scope.spans)


def rejecting(rejected: int) -> ExportTraceServiceResponse:
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = rejected
    response.partial_success.error_message = "one of them is not to our liking"
    return response


def answered(  # noqa: C901, PLR0911 - one case each
    collector: Collector, size: int, request: ExportTraceServiceRequest
) -> tuple[int, dict[str, str], bytes] | None:
    """Behave over HTTP: give status, headers and body, or None for no answer."""
    number = collector.count(size, request)
    match collector.behaviour:
        case "slow":
            time.sleep(collector.number)
        case "503" if collector.early:
            return 503, {}, b"not yet"
        case "400":
            return 400, {}, b"I do not like any of it"
        case "413" if size > collector.number:
            return 413, {}, b"too much at once"
        case "302":
            return 302, {"Location": "https://login.example.com/"}, b""
        case "partial":
            collector.accept(request, 1)
            return 200, PROTOBUF, rejecting(1).SerializeToString()
        case "html":
            return 200, {"Content-Type": "text/html"}, b"<html>Please sign in</html>"
        case "hang":
            time.sleep(3600)
        case "close" if number % 2:
            collector.accept(request)
            return None
        case "poison" if any(span.name == "bad" for span in spans_in(request)):
            return 400, {}, b"bad span"
        case "quota" if number % 2:
            return 429, {"Retry-After": "1"}, b"slow down"
        case _:
            pass
    collector.accept(request)
    return 200, PROTOBUF, b""


def serve_http(collector: Collector, port: int) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            answer = answered(collector, len(body), ExportTraceServiceRequest.FromString(body))
            if collector.behaviour == "killer" and os.urandom(1)[0] < 128:
                time.sleep(collector.number * os.urandom(1)[0] / 255)
                collector.kill()
            if answer is None:
                self.close_connection = True
                return
            status, headers, content = answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            if collector.behaviour == "killer":
                self.wfile.flush()
                time.sleep(collector.number * os.urandom(1)[0] / 255)
                collector.kill()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    ready(collector, f"http://127.0.0.1:{server.server_port}/v1/traces")
    server.serve_forever()


def serve_grpc(collector: Collector, port: int) -> None:
    import grpc
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
        TraceServiceServicer,
        add_TraceServiceServicer_to_server,
    )

    class Service(TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802
            number = collector.count(request.ByteSize(), request)
            match collector.behaviour:
                case "slow":
                    time.sleep(collector.number)
                case "503" if collector.early:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
                case "400":
                    context.abort(grpc.StatusCode.INVALID_ARGUMENT, "I do not like any of it")
                case "partial":
                    collector.accept(request, 1)
                    return rejecting(1)
                case "hang":
                    time.sleep(3600)
                case "close" if number % 2:
                    collector.accept(request)
                    context.abort(grpc.StatusCode.UNAVAILABLE, "connection reset")
                case "quota" if number % 2:
                    context.set_trailing_metadata((("grpc-status-details-bin", RETRY_IN_A_SECOND),))
                    context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "slow down")
                case _:
                    pass
            collector.accept(request)
            return ExportTraceServiceResponse()

    most = int(collector.number) if collector.behaviour == "413" else 4 << 20  # the default of a gRPC receiver
    options = (("grpc.max_receive_message_length", most),)
    server = grpc.server(futures.ThreadPoolExecutor(4), options=options)
    add_TraceServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    ready(collector, f"grpc://127.0.0.1:{port}")
    server.wait_for_termination()


_INFO = b"\n\x02\x08\x01"
_DETAIL = b"\n\x28type.googleapis.com/google.rpc.RetryInfo" + b"\x12" + bytes([len(_INFO)]) + _INFO
RETRY_IN_A_SECOND = b"\x08\x08\x1a" + bytes([len(_DETAIL)]) + _DETAIL
"""A google.rpc.Status with a RetryInfo of one second."""


def ready(collector: Collector, address: str) -> None:
    draft = collector.folder / "address.draft"
    draft.write_text(address)
    draft.rename(collector.folder / "address")


if __name__ == "__main__":
    kind, folder, behaviour, number, port = (*sys.argv[1:], "0", "0")[:5]
    made = Collector(Path(folder), behaviour, float(number))
    (serve_http if kind == "http" else serve_grpc)(made, int(port))
