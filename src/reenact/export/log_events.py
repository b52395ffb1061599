"""Ways for log events to the backends that spans go to: each record leaves as the bytes it came as.

OTLP has a service of its own for them: `/v1/logs` in place of `/v1/traces`, `LogsService` in place of `TraceService`. A
file has them in lines among those of spans. Not every backend takes them, and one that does not says so the same way as
one that is set up wrongly (`outcome.Rejected.cure`, `absent`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from reenact.disk.envelopes import Part, joined
from reenact.export.file import FileSender
from reenact.export.limits import BATCH_BYTES
from reenact.export.otlp_grpc import LOGS, OtlpGrpcSender
from reenact.export.otlp_http import OtlpHttpSender
from reenact.export.outcome import Outcome, Rejected, over
from reenact.export.sender import Sender

SUFFIX = " (log events)"
"""Behind the name of a backend: how it stands with log events is told apart from how it does with spans."""
_ABSENT = frozenset({"404", "405", "501", "UNIMPLEMENTED"})
_Post: TypeAlias = Callable[[bytes, int, float | None], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvents:
    """A sender of log records, as a collector took them in (`disk.envelopes.Part`)."""

    name: str
    post: _Post
    """Makes one request of so many records, given as its protobuf, and judges the answer."""
    end: Callable[[], None]
    most_bytes: int = BATCH_BYTES

    def send(self, spans: Sequence[Part], within_s: float | None = None) -> Outcome:
        """Make one request and judge the answer; see `sender.Sender`."""
        body = joined(spans)
        outcome = over(len(body), len(spans), self.most_bytes) or self.post(body, len(spans), within_s)
        if isinstance(outcome, Rejected) and outcome.cure and outcome.code in _ABSENT:
            return replace(outcome, cure="absent")
        return outcome

    def close(self) -> None:
        """Let go of connections."""
        self.end()


def for_log_events(sender: Sender) -> Sender | None:
    """Give the way for log events to where a sender brings spans; None where its URL does not tell that way."""
    if isinstance(sender, FileSender):
        return LogEvents(name=sender.name + SUFFIX, post=_into(sender), end=sender.close)
    if isinstance(sender, OtlpGrpcSender):
        other = sender.again()

        def export(body: bytes, count: int, within_s: float | None) -> Outcome:
            return other.post(body, count, within_s, LOGS)

        return LogEvents(name=sender.name + SUFFIX, post=export, end=other.close, most_bytes=sender.most_bytes)
    if isinstance(sender, OtlpHttpSender) and (beside := sender.beside("logs")) is not None:
        return LogEvents(name=beside.name + SUFFIX, post=beside.post, end=beside.close, most_bytes=sender.most_bytes)
    return None


def _into(sender: FileSender) -> _Post:
    def append(body: bytes, count: int, within_s: float | None) -> Outcome:
        del within_s
        return sender.append(as_json(body), count)

    return append


def as_json(body: bytes) -> bytes:
    """Spell an ExportLogsServiceRequest as a line of OTLP/JSON: ids in hexadecimal, enums as numbers."""
    import orjson
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    request = ExportLogsServiceRequest.FromString(body)
    json_request: dict[str, Any] = MessageToDict(request, use_integers_for_enums=True)
    for group, told_group in zip(request.resource_logs, json_request.get("resourceLogs", ()), strict=True):
        for scope, told_scope in zip(group.scope_logs, told_group.get("scopeLogs", ()), strict=True):
            for record, told_record in zip(scope.log_records, told_scope.get("logRecords", ()), strict=True):
                ids = {"traceId": record.trace_id.hex(), "spanId": record.span_id.hex()}
                told_record.update({name: value for name, value in ids.items() if value})
    return orjson.dumps(json_request) + b"\n"
