"""From the body of a request to a frame: checked, sorted by trace, what cannot be kept counted and said."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from reenact.collect.json_messages import read_json
from reenact.collect.refusals import malformed, too_many
from reenact.disk import envelopes, frames
from reenact.values.log import LogRecord

if TYPE_CHECKING:
    from google.protobuf.message import Message

Signal: TypeAlias = Literal["traces", "logs"]
Redact: TypeAlias = Callable[["Message"], None]
"""Replaces what must not be written, in a request of spans or of log records."""
Place: TypeAlias = Callable[["Message"], "list[tuple[str, bytes]]"]
MOST_FIELDS = 1_000_000
"""Groups, scopes, records and other fields around these that a request may have; in JSON, items of all its lists."""
_WORTH_COUNTING = 2 << 20
_MOST_SAID = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What is to be written of a request before it is answered."""

    frames: tuple[bytes, ...]
    accepted: int
    rejected: int = 0
    why: str = ""
    """Why some were rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How requests are read."""

    trace_of: Callable[[LogRecord], str]
    """Gives the trace id under which a log record belongs that names none."""
    logs_of: Callable[[bytes, str], Any]
    """Reads the records of a request of logs."""
    redact: Redact | None = None


def take(body: bytes, signal: Signal, *, is_json: bool, decoding: Decoding) -> Intake:
    """Read a request and make frames of it. Raises `Refusal` for what cannot be decoded at all."""
    kind = _kinds()[signal]
    if not is_json:
        _count(body)
    message: Any
    rejected: Mapping[str, int] = {}
    if is_json:
        message, rejected = read_json(body, kind, MOST_FIELDS)
    else:
        message = _parsed(body, kind)
    data = message.SerializeToString() if is_json else body
    if is_json:
        _parsed(data, kind)  # what is nested deeper than protobuf allows could be written and never be read
    if decoding.redact is not None:
        decoding.redact(message)
        data = message.SerializeToString()
    if signal == "logs":
        return _logs(message, data, decoding, rejected)
    if without_ids := _reject(message):
        rejected = {**rejected, **without_ids}
        data = message.SerializeToString()
    traces, count, data = _sorted(message, data)
    why, lost = _why(rejected), sum(rejected.values())
    if not count:
        return Intake(frames=(), accepted=0, rejected=lost, why=why)
    frame = frames.framed(frames.SPANS, data, traces, records=count, time_ns=time.time_ns())
    return Intake(frames=(frame,), accepted=count, rejected=lost, why=why)


def _why(rejected: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {what}" for what, number in rejected.items())[:_MOST_SAID]


def _count(body: bytes) -> None:
    """Refuse a request of nothing but envelopes before it is unfolded: two bytes would become a hundred."""
    if len(body) < _WORTH_COUNTING:
        return
    try:
        for _ in envelopes.parts(body, MOST_FIELDS):
            pass
    except envelopes.TooManyError:
        raise too_many(MOST_FIELDS) from None
    except envelopes.NotSplitError:
        return  # protobuf itself says what is wrong


def _parsed(body: bytes, kind: Any) -> Message:
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(body)
    except DecodeError as error:
        raise malformed(f"this is not the protobuf of an OTLP request ({error})") from None


def _reject(request: Any) -> Mapping[str, int]:
    """Take spans out that nobody could find again, and count them by what is wrong with them."""
    rejected: dict[str, int] = {}
    for group in request.resource_spans:
        for entry in group.scope_spans:
            bad = [
                (number, what)
                for number, span in enumerate(entry.spans)
                if (what := _wrong(span.trace_id, span.span_id))
            ]
            for number, what in reversed(bad):
                del entry.spans[number]
                rejected[what] = rejected.get(what, 0) + 1
    return rejected


_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)


def _wrong(trace_id: bytes, span_id: bytes) -> str:
    if len(trace_id) != 16 or trace_id == _NO_TRACE:
        return "spans without a trace id of 16 bytes that are not all zero"
    if len(span_id) != 8 or span_id == _NO_SPAN:
        return "spans without a span id of 8 bytes that are not all zero"
    return ""


def _sorted(request: Any, data: bytes) -> tuple[list[bytes], int, bytes]:
    """Give the traces of a request's spans, how many these are, and the request as it can be taken apart."""
    try:
        ids = [envelopes.trace_of(part[2]) for part in envelopes.parts(data)]
    except envelopes.NotSplitError:  # unknown fields in a spelling that protobuf has given up: they are left out
        request.DiscardUnknownFields()
        data = request.SerializeToString()
        ids = [envelopes.trace_of(part[2]) for part in envelopes.parts(data)]
    return list(dict.fromkeys(ids)), len(ids), data


def _logs(request: Any, data: bytes, decoding: Decoding, rejected: Mapping[str, int]) -> Intake:
    """Make a frame for the log records of each trace; those that name none belong to one all the same."""
    try:
        parts = list(envelopes.parts(data))
    except envelopes.NotSplitError:
        request.DiscardUnknownFields()
        parts = list(envelopes.parts(request.SerializeToString()))
    by_trace: dict[bytes, list[envelopes.Part]] = {}
    for part, record in zip(parts, decoding.logs_of(envelopes.joined(parts), "the request"), strict=True):
        trace = bytes.fromhex(record.trace_id or decoding.trace_of(record))
        by_trace.setdefault(trace, []).append(part)
    now = time.time_ns()
    log_frames = tuple(
        frames.framed(frames.LOGS, envelopes.joined(group), [trace], records=len(group), time_ns=now)
        for trace, group in by_trace.items()
    )
    return Intake(frames=log_frames, accepted=len(parts), rejected=sum(rejected.values()), why=_why(rejected))


def _kinds() -> Mapping[Signal, Any]:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    return {"traces": ExportTraceServiceRequest, "logs": ExportLogsServiceRequest}


def answer(intake: Intake, signal: Signal, *, is_json: bool) -> bytes:
    """Spell the response to a request that was taken: nothing at all where nothing was rejected."""
    if not intake.rejected:
        return b"{}" if is_json else b""
    if is_json:
        import orjson

        name = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
        return orjson.dumps({"partialSuccess": {name: str(intake.rejected), "errorMessage": intake.why}})
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    response: Any = ExportTraceServiceResponse() if signal == "traces" else ExportLogsServiceResponse()
    partial_success = response.partial_success
    if signal == "traces":
        partial_success.rejected_spans = intake.rejected
    else:
        partial_success.rejected_log_records = intake.rejected
    partial_success.error_message = intake.why
    return response.SerializeToString()
