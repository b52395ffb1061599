"""Sends spans over OTLP/gRPC, and judges every answer. grpcio is the extra `reenact[grpc]`."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reenact.errors import InputError
from reenact.export.credential_removal import hushed, secrets_of
from reenact.export.limits import BATCH_BYTES
from reenact.export.outcome import Outcome, Rejected, Retry, TooLarge, over
from reenact.export.replies import partial, shortest
from reenact.export.rpc_status import RpcStatus, read_status
from reenact.formats.otlp_proto import to_request
from reenact.values import locks
from reenact.values.span import SpanRecord

_TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
_RETRYABLE = frozenset({"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"})
"""OTLP specification 1.11, "Failures"; RESOURCE_EXHAUSTED is one of them only where RetryInfo comes along."""
_SETTINGS = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED", "UNIMPLEMENTED", "NOT_FOUND"})
_PERHAPS_LATER = frozenset({"INTERNAL", "UNKNOWN", "RESOURCE_EXHAUSTED"})
"""Not to be retried by OTLP; yet the spans are in the store, and asking a few times more costs nobody anything."""
_TOO_LARGE = re.compile(r"message[^.]{0,60}(?:larger than|too large|exceeds)", re.IGNORECASE)
_DETAILS = "grpc-status-details-bin"
_EXCERPT = 200
_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 5000),  # else a backend that comes back is noticed after two minutes
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcTarget:
    """Where to send, and how."""

    address: str
    """`host:port`."""
    tls: bool = True
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout_s: float = 10.0
    """For one request."""
    gzip: bool = True
    certificate: str | None = None
    """A file of trusted certificate authorities (PEM) instead of the system's."""
    client_certificate: str | None = None
    client_key: str | None = None
    max_bytes: int = BATCH_BYTES
    """A request of several spans with more than this before compression is not tried."""


class OtlpGrpcSender:
    """A sender over one gRPC channel.

    Raises `InputError` when it is made where grpcio is not installed or a certificate cannot be read.
    """

    def __init__(self, target: GrpcTarget) -> None:
        self._target = target
        self._name = f"{'grpcs' if target.tls else 'grpc'}://{target.address}"
        if importlib.util.find_spec("grpc") is None:
            hint = "Run `pip install 'reenact[grpc]'`, or set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf."
            raise InputError(self._name, "sending over gRPC needs grpcio, which is not installed", hint=hint)
        self._files = [_read(name, self._name) for name in _files(target)]
        self._secrets = secrets_of(target.headers)
        self._lock = locks.lock()
        self._channel: Any = None
        self._owner = 0

    @property
    def name(self) -> str:
        """The address, as `grpc://host:port`, or `grpcs://` with TLS."""
        return self._name

    def send(self, spans: Sequence[SpanRecord], within_s: float | None = None) -> Outcome:
        """Make one request and judge the answer; see `sender.Sender`."""
        body = to_request(spans).SerializeToString()
        return over(len(body), len(spans), self._target.max_bytes) or self.post(body, len(spans), within_s)

    @property
    def most_bytes(self) -> int:
        """What a request of several may have before compression."""
        return self._target.max_bytes

    def again(self) -> OtlpGrpcSender:
        """Give another sender to the same backend, with a channel of its own."""
        return OtlpGrpcSender(self._target)

    def post(self, body: bytes, count: int, within_s: float | None = None, method: str = _TRACES) -> Outcome:
        """Send one request of `count` spans, or of another signal's records by its `method`; judge the answer."""
        return hushed(self._posted(body, count, within_s, method), self._secrets)

    def _posted(self, body: bytes, count: int, within_s: float | None, method: str) -> Outcome:
        import grpc
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

        try:
            call: Any = self._open().unary_unary(method)
            answer: bytes = call(
                body,
                timeout=shortest(self._target.timeout_s, within_s),
                metadata=tuple((name.lower(), value) for name, value in self._target.headers) or None,
                compression=grpc.Compression.Gzip if self._target.gzip else None,
            )
            part = ExportTraceServiceResponse.FromString(answer).partial_success  # the same fields for every signal
        except grpc.RpcError as failure:
            return _judged(failure, count)
        except Exception as failure:  # a header that cannot be sent, an answer that cannot be read
            return Rejected(count=count, reason=f"{type(failure).__name__}: {failure}")
        return partial(part.rejected_spans, part.error_message, count)

    def close(self) -> None:
        """Close the channel; the next request opens another."""
        with self._lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _open(self) -> Any:
        import grpc

        with self._lock:
            if self._channel is None or self._owner != os.getpid():  # a channel does not work in a forked child
                if self._target.tls:
                    trusted: Any = grpc.ssl_channel_credentials(*self._files)
                    self._channel = grpc.secure_channel(self._target.address, trusted, options=_OPTIONS)
                else:
                    self._channel = grpc.insecure_channel(self._target.address, options=_OPTIONS)
                self._owner = os.getpid()
            return self._channel


def _judged(failure: Any, count: int) -> Outcome:
    code: str = failure.code().name
    details = " ".join(str(failure.details() or "").split())
    reason = f"answered {code}: {details[:_EXCERPT]}"
    delay = _status(failure).retry_after_s
    if code in _RETRYABLE or (code == "RESOURCE_EXHAUSTED" and delay is not None):
        return Retry(reason=reason, after_s=delay)
    if code == "RESOURCE_EXHAUSTED" and _TOO_LARGE.search(details):
        return TooLarge(reason=reason)
    if code in _SETTINGS:
        return Rejected(count=count, reason=reason, cure="setting", code=code)
    return Rejected(count=count, reason=reason, whole=True, cure="time" if code in _PERHAPS_LATER else "", code=code)


def _status(failure: Any) -> RpcStatus:
    for key, value in failure.trailing_metadata() or ():
        if key == _DETAILS:
            return read_status(value)
    return RpcStatus()


def _files(target: GrpcTarget) -> tuple[str | None, str | None, str | None]:
    return target.certificate, target.client_key, target.client_certificate


def _read(name: str | None, place: str) -> bytes | None:
    if not name:
        return None
    try:
        return Path(name).read_bytes()
    except OSError as failure:
        hint = "Check OTEL_EXPORTER_OTLP_CERTIFICATE, …_CLIENT_CERTIFICATE and …_CLIENT_KEY."
        raise InputError(place, f"a certificate file cannot be read ({failure})", hint=hint) from None
