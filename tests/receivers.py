"""Loopback OTLP receivers, HTTP and gRPC, that misbehave as they are told."""

from __future__ import annotations

import contextlib
import gzip
import threading
import zlib
from collections.abc import Callable, Generator
from concurrent import futures
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from reenact.values.span import Resource, Scope, SpanRecord

PROTOBUF = {"Content-Type": "application/x-protobuf"}
ACCEPTED = (200, PROTOBUF, b"")
Answer = tuple[int, dict[str, str], bytes]


def span(number: int, **attributes: Any) -> SpanRecord:
    return SpanRecord(
        trace_id="0af7651916cd43dd8448eb211c80319c",
        span_id=f"{number:016x}",
        parent_id=None,
        name=f"span {number}",
        start_ns=number,
        end_ns=number + 1,
        attributes=attributes,
        resource=Resource(attributes={"service.name": "test"}),
        scope=Scope(name="test"),
    )


def rejecting(rejected: int, message: str) -> bytes:
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = rejected
    response.partial_success.error_message = message
    return response.SerializeToString()


@dataclass
class Receiver:
    """A loopback OTLP/HTTP server that answers as it is told and keeps what it got."""

    url: str = ""
    behave: Callable[[Receiver, ExportTraceServiceRequest], Answer | None] = lambda _self, _request: ACCEPTED
    """Gives the answer to a request; None closes the connection without one."""
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    bodies: list[tuple[str, bytes]] = field(default_factory=list)
    """What came, decompressed, and where; log records too, which `requests` does not hold."""

    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    connections: set[Any] = field(default_factory=set)

    def wire(self, path: str = "") -> bytes:
        """Every byte that came to paths that end so."""
        return b"".join(body for at, body in list(self.bodies) if at.endswith(path))

    @property
    def names(self) -> list[str]:
        return [name for request in self.requests for name in names_in(request)]


def names_in(request: ExportTraceServiceRequest) -> list[str]:
    return [each.name for group in request.resource_spans for scope in group.scope_spans for each in scope.spans]


@contextlib.contextmanager
def http_receiver() -> Generator[Receiver]:
    """Run a `Receiver` for a while."""
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            elif self.headers.get("Content-Encoding") == "deflate":
                body = zlib.decompress(body)
            state.bodies.append((self.path, body))
            request = ExportTraceServiceRequest()
            if not self.path.endswith(("/logs", "/ingestion")):
                request.ParseFromString(body)
            state.paths.append(self.path)
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            state.connections.add(self.client_address)
            answer = state.behave(state, request)
            state.requests.append(request)
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

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield state
    server.shutdown()
    server.server_close()


@dataclass
class GrpcReceiver:
    """A loopback OTLP/gRPC server that answers as it is told and keeps what it got."""

    address: str = ""
    behave: Callable[[ExportTraceServiceRequest, Any], ExportTraceServiceResponse] = lambda _request, _context: (
        ExportTraceServiceResponse()
    )
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    metadata: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    logs: list[Any] = field(default_factory=list)
    """Requests of log records."""


@contextlib.contextmanager
def running_grpc_receiver() -> Generator[GrpcReceiver]:
    """Run a `GrpcReceiver` for a while; it takes messages of up to 100,000 bytes."""
    import grpc
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import (
        LogsServiceServicer,
        add_LogsServiceServicer_to_server,
    )
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
        TraceServiceServicer,
        add_TraceServiceServicer_to_server,
    )

    state = GrpcReceiver()

    class Service(TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802
            state.calls += 1
            state.metadata.append(dict(context.invocation_metadata()))
            response = state.behave(request, context)
            state.requests.append(request)
            return response

    class Logs(LogsServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802
            del context
            state.logs.append(request)
            return ExportLogsServiceResponse()

    server = grpc.server(futures.ThreadPoolExecutor(2), options=(("grpc.max_receive_message_length", 100_000),))
    add_TraceServiceServicer_to_server(Service(), server)
    add_LogsServiceServicer_to_server(Logs(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    state.address = f"127.0.0.1:{port}"
    server.start()
    yield state
    server.stop(None)
