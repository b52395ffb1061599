"""Asking an OTLP server, over raw HTTP/1.1 and gRPC, so that what it answers is seen as it is."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from reenact.values.span import SpanRecord

MIB = 1 << 20
PROTOBUF, JSON = "application/x-protobuf", "application/json"
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A running OTLP server.

    `stored` gives the spans of a trace that it keeps (all of them, doubles too), waiting a little for them to come;
    without it, what is kept is not looked at. `limit` is the size of a request that it is set to take, unpacked.
    """

    name: str
    http: str
    """`http://127.0.0.1:4318`, without a path."""
    grpc: str | None = None
    """`127.0.0.1:4317`."""
    limit: int = 64 * MIB
    stored: Callable[[str], Sequence[SpanRecord]] | None = None
    token: str | None = None
    """What the server wants as a bearer token."""
    choked: Target | None = None
    """The same server in a state in which it can take nothing: its queue or disk full, its memory at the limit."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back over HTTP; `status` 0 where nothing did, and `lost` says why."""

    status: int
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    lost: str = ""

    @property
    def type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def __str__(self) -> str:
        return str(self.status) if self.status else self.lost


@dataclass(frozen=True, slots=True)
class Called:
    """What came back over gRPC: the name of the code, the bytes of the answer, and the details of a refusal."""

    code: str
    body: bytes = b""
    details: Status = field(default_factory=Status)
    said: str = ""

    @property
    def retry_info(self) -> bool:
        return any(each.type_url.endswith("google.rpc.RetryInfo") for each in self.details.details)


def ask(
    target: Target,
    body: bytes,
    kind: str = PROTOBUF,
    *,
    path: str = "/v1/traces",
    method: str = "POST",
    encoding: str | None = None,
    headers: dict[str, str] | None = None,
    chunked: bool = False,
    wait: float = 60,
) -> Reply:
    """Ask once, on a connection of its own."""
    connection = connected(target, wait)
    try:
        return ask_on(
            connection,
            target,
            body,
            kind,
            path=path,
            method=method,
            encoding=encoding,
            headers=headers,
            chunked=chunked,
        )
    finally:
        connection.close()


def connected(target: Target, wait: float = 60) -> http.client.HTTPConnection:
    place = urllib.parse.urlsplit(target.http)
    return http.client.HTTPConnection(place.hostname or "", place.port, timeout=wait)


def ask_on(
    connection: http.client.HTTPConnection,
    target: Target,
    body: bytes,
    kind: str = PROTOBUF,
    *,
    path: str = "/v1/traces",
    method: str = "POST",
    encoding: str | None = None,
    headers: dict[str, str] | None = None,
    chunked: bool = False,
) -> Reply:
    """Ask on a connection; a server that answers before it has read all of a body is heard."""
    sent = {"Content-Type": kind} if kind else {}
    if encoding:
        sent["Content-Encoding"] = encoding
    if target.token:
        sent["Authorization"] = f"Bearer {target.token}"
    sent |= {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(len(body))}
    sent |= headers or {}
    trouble = ""
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders()
        for at in range(0, len(body), MIB):
            piece = body[at : at + MIB]
            connection.send(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            connection.send(b"0\r\n\r\n")
    except OSError as failure:  # it may have answered already
        trouble = type(failure).__name__
    try:
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        content = answer.read()
    except (OSError, http.client.HTTPException) as failure:
        return Reply(0, lost=f"no answer ({trouble or type(failure).__name__})")
    if found.get("content-encoding") == "gzip":
        content = gzip.decompress(content)
    return Reply(answer.status, found, content)


def call(target: Target, body: bytes, method: str = EXPORT, *, compressed: bool = False, wait: float = 60) -> Called:
    """Call over gRPC, with the bytes of a message as they are."""
    import grpc

    assert target.grpc
    options = (("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1))
    metadata = [("authorization", f"Bearer {target.token}")] if target.token else []
    compression = grpc.Compression.Gzip if compressed else grpc.Compression.NoCompression
    with grpc.insecure_channel(target.grpc, options=options) as channel:
        grpc.channel_ready_future(channel).result(timeout=20)
        asked = channel.unary_unary(method, request_serializer=None, response_deserializer=None)
        try:
            return Called("OK", asked(body, timeout=wait, metadata=metadata, compression=compression))
        except grpc.RpcError as failure:
            return refused(failure)


def refused(failure: Any) -> Called:
    trailing = dict(failure.trailing_metadata() or ())
    details = Status()
    if isinstance(packed := trailing.get("grpc-status-details-bin"), bytes):
        details.ParseFromString(packed)
    return Called(failure.code().name, details=details, said=failure.details() or "")


def one_span(trace_id: str | None = None, **attributes: str | int) -> ExportTraceServiceRequest:
    """Make a request of one span with ids of chance."""
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(
            trace_id=bytes.fromhex(trace_id) if trace_id else os.urandom(16),
            span_id=os.urandom(8),
            name="probe",
            kind=1,
            start_time_unix_nano=1_700_000_000_000_000_000,
            end_time_unix_nano=1_700_000_000_000_000_001,
        )
    )
    for name, value in attributes.items():
        held = span.attributes.add(key=name).value
        if isinstance(value, int):
            held.int_value = value
        else:
            held.string_value = value
    return request


def sized(size: int) -> bytes:
    """Make a request of one span of about so many bytes; it compresses well."""
    return one_span(padding="x" * (size - 128)).SerializeToString()


def json_span(trace_id: str, span_id: str, **more: Any) -> dict[str, Any]:
    """Make the JSON of a span."""
    times = {"startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000000000001"}
    return {"traceId": trace_id, "spanId": span_id, "name": "probe", "kind": 1, **times, **more}


def json_request(*spans: dict[str, Any], **more: Any) -> bytes:
    """Make the JSON of a request."""
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}], **more}).encode()


def accepted(reply: Reply) -> ExportTraceServiceResponse | None:
    """Read the body of a 200; None where it is none, or of another type than it says."""
    try:
        if reply.status == http.HTTPStatus.OK and reply.type == PROTOBUF:
            return ExportTraceServiceResponse.FromString(reply.body)
        if reply.status == http.HTTPStatus.OK and reply.type == JSON:
            return json_format.Parse(reply.body or b"nothing", ExportTraceServiceResponse())
    except (DecodeError, ValueError, json_format.ParseError):
        return None
    return None


def status_of(reply: Reply) -> Status | None:
    """Read the `google.rpc.Status` of an error in the encoding that its content type names; None where there is none.

    Details in JSON are read over: their types need not be known to be there.
    """
    try:
        if reply.type == PROTOBUF:
            return Status.FromString(reply.body)
        if reply.type == JSON:
            read: Any = json.loads(reply.body)
            if isinstance(read, dict) and set(read) <= {"code", "message", "details"}:  # pyright: ignore[reportUnknownArgumentType]
                return json_format.ParseDict({**read, "details": []}, Status())
    except (DecodeError, ValueError, json_format.ParseError):
        return None
    return None


def detailed(reply: Reply) -> bool:
    """Tell whether the `Status` of an error has a `BadRequest` among its details."""
    found = status_of(reply)
    return found is not None and (
        any(each.type_url.endswith("google.rpc.BadRequest") for each in found.details)
        or (reply.type == JSON and b"google.rpc.BadRequest" in reply.body)
    )
