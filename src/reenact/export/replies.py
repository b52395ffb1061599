"""Judges the answers of OTLP/HTTP receivers (OTLP specification 1.11, "OTLP/HTTP Response").

A status of 200 alone says little: proxies and captive portals answer 200 with a page of their own, and a receiver that
threw spans away says so in the body only.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import urlsplit

from reenact.export.outcome import Delivered, Outcome, Rejected, Retry, TooLarge
from reenact.export.rpc_status import read_status

_RETRYABLE = frozenset({429, 502, 503, 504})
_TOO_LARGE = re.compile(
    r"(?:body|request|entity|payload|message)[^.]{0,60}(?:too large|larger than|exceeds)|max\w* \w+ size", re.IGNORECASE
)
_ADVICE = {
    401: "; check the credentials in the headers variable",
    403: "; check the credentials in the headers variable",
    404: "; check the path of the endpoint, most end in /v1/traces",
    405: "; check the path of the endpoint, most end in /v1/traces",
    415: "; it may not take protobuf, or not gzip (OTEL_EXPORTER_OTLP_COMPRESSION=none)",
}
_SETTINGS = frozenset({*_ADVICE, 402, 407, 421, 426, 511})
"""Statuses that say nothing of the spans: they were asked of the wrong place, or by the wrong one."""
_EXCERPT = 200
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
"""What people are shown: no receiver's answer, an empty one neither."""
_REJECTED = (
    *("rejectedSpans", "rejected_spans", "rejectedDataPoints", "rejected_data_points"),
    *("rejectedLogRecords", "rejected_log_records"),
)
"""How JSON answers count what was not taken; in protobuf it is the same field of every signal's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """What came back, whole."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def content_type(self) -> str:
        """The media type, without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def judged(answer: HttpAnswer, count: int) -> Outcome:
    """Tell what became of a request with `count` spans from the answer to it."""
    status = answer.status
    if 200 <= status < 300:
        return _judged_success(answer, count)
    if 300 <= status < 400:
        reason = f"answered {status}, sending us to {_location(answer)}; name that endpoint"
        return Rejected(count=count, reason=reason, cure="setting")
    message = error_sentence(answer)
    reason = f"answered {status}" + (f": {message}" if message else "")
    if status in _RETRYABLE:
        return Retry(reason=reason, after_s=retry_after(answer.headers.get("retry-after", "")))
    # The Collector answers an oversized body with 400, as its server library does.
    if status == 413 or (status == 400 and _TOO_LARGE.search(message)):
        return TooLarge(reason=reason)
    if status in _SETTINGS or status >= 500:
        cure = "setting" if status in _SETTINGS else "time"
        return Rejected(count=count, reason=reason + _ADVICE.get(status, ""), whole=True, cure=cure, code=str(status))
    return Rejected(count=count, reason=reason + _ADVICE.get(status, ""), whole=True, code=str(status))


def retry_after(text: str, now: datetime | None = None) -> float | None:
    """Read a `Retry-After` (RFC 9110, section 10.2.3): seconds from now, 0 for the past, None where it says nothing."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


def error_sentence(answer: HttpAnswer) -> str:
    """Give what an error's body says to people, in one short line."""
    text = ""
    if answer.content_type == "application/x-protobuf":
        text = read_status(answer.body).message
    elif answer.content_type == "application/json":
        fields = _json(answer.body)
        text = str(fields.get("message") or fields.get("error") or "") if fields else ""
    text = text or answer.body.decode("utf-8", "replace")
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= _EXCERPT else line[:_EXCERPT] + "…"


def _judged_success(answer: HttpAnswer, count: int) -> Outcome:
    if not answer.body and answer.content_type not in _PAGES:
        return Delivered(count=count)  # an empty ExportTraceServiceResponse
    if answer.content_type == "application/json":
        body = _json(answer.body)
        if body is not None and not body.get("error"):
            return _judged_json(body, count)
    elif answer.content_type in ("application/x-protobuf", "application/protobuf", ""):
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

        try:
            part = ExportTraceServiceResponse.FromString(answer.body).partial_success
        except DecodeError:
            pass
        else:
            return partial(part.rejected_spans, part.error_message, count)
    kind = answer.content_type or "no content type"
    body = error_sentence(answer)
    reason = f"answered {answer.status} with something that is no OTLP reply ({kind})" + (f": {body}" if body else "")
    return Rejected(count=count, reason=reason, cure="setting")


def _judged_json(body: dict[str, Any], count: int) -> Outcome:
    part: object = body.get("partialSuccess") or body.get("partial_success") or dict[str, Any]()
    if not isinstance(part, dict):
        return Rejected(count=count, reason="answered with a partialSuccess that is no object")
    fields = cast("dict[str, Any]", part)
    message = str(fields.get("errorMessage") or fields.get("error_message") or "")
    try:
        rejected = int(next((fields[name] for name in _REJECTED if fields.get(name)), 0))
    except (TypeError, ValueError):
        return Rejected(count=count, reason="answered with a number of rejected spans that is no number")
    return partial(rejected, message, count)


def partial(rejected: int, message: str, count: int) -> Outcome:
    """Judge an ExportTracePartialSuccess: how many of `count` spans were rejected, and what was said about it."""
    if rejected <= 0:
        return Delivered(count=count, note=message)
    rejected = min(rejected, count)
    return Rejected(count=rejected, delivered=count - rejected, reason=message or "rejected without a reason")


def _location(answer: HttpAnswer) -> str:
    try:
        parts = urlsplit(answer.headers.get("location", ""))
    except ValueError:
        return "nowhere that can be read"
    host = parts.netloc.rpartition("@")[2]
    location = parts._replace(netloc=host, query="", fragment="").geturl()
    return location or "nowhere (no Location)"


def _json(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def shortest(*limits: float | None) -> float:
    """Give the shortest of some time limits in seconds, at least a millisecond; None is no limit."""
    return max(0.001, min((limit for limit in limits if limit is not None), default=math.inf))
