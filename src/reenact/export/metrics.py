"""Counts as OpenTelemetry metrics, sent over OTLP/HTTP in one request.

Gauges, since what is counted is what lies in a store at this moment: sending twice counts nothing twice. The endpoint
is a URL (`/v1/metrics` is added where it has no path), or what OTEL_EXPORTER_OTLP_METRICS_ENDPOINT and
OTEL_EXPORTER_OTLP_ENDPOINT name, with their headers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from reenact.errors import InputError, UsageError
from reenact.export.otlp_http import HttpTarget, OtlpHttpSender
from reenact.export.outcome import Delivered, Rejected
from reenact.version import VERSION

_PATH: Final = "/v1/metrics"
_SPECIFIC: Final = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
_GENERAL: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One number with its labels."""

    value: int
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A metric: how many there are now."""

    name: str
    """Dotted, as OpenTelemetry names metrics: `reenact.cold.runs`."""
    description: str
    unit: str
    """In UCUM's curly brackets for things that are counted: `{run}`."""
    points: Sequence[Point]


def endpoint(target: str, environ: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Find where to send, and with which headers: `otlp` stands for what the environment names.

    Raises `UsageError` where that is nothing, or no http or https URL.
    """
    url, headers = target, environ.get("REENACT_EXPORT_HEADERS", "")
    if target == "otlp":
        general = environ.get(_GENERAL, "")
        url = environ.get(_SPECIFIC) or (f"{general.rstrip('/')}{_PATH}" if general else "")
        headers = environ.get("OTEL_EXPORTER_OTLP_METRICS_HEADERS") or environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        hint = f"give http://host:4318, or set {_GENERAL}; `-` prints them for Prometheus"
        raise UsageError("metrics go to an http or https URL", hint=hint)
    if urlsplit(url).path in ("", "/"):
        url = url.rstrip("/") + _PATH
    pairs = [pair.partition("=") for pair in headers.split(",") if "=" in pair]
    return url, {name.strip(): unquote(value.strip()) for name, _, value in pairs}


def send(gauges: Sequence[Gauge], url: str, headers: Mapping[str, str], *, service: str = "reenact") -> int:
    """Send the metrics and give how many points were taken. Raises `InputError` where any was not.

    `url` is the whole one; `service` is `service.name` of the resource.
    """
    body = request(gauges, service=service, at_ns=time.time_ns())
    points = sum(len(gauge.points) for gauge in gauges)
    sender = OtlpHttpSender(HttpTarget(url=url, headers=tuple(headers.items())))
    try:
        outcome = sender.post(body, points)
    finally:
        sender.close()
    if isinstance(outcome, Delivered):
        return points
    lost = f"{outcome.count} of {points} points were rejected" if isinstance(outcome, Rejected) else "nothing was taken"
    raise InputError(sender.name, f"{lost}: {outcome.reason}")


def request(gauges: Sequence[Gauge], *, service: str, at_ns: int) -> bytes:
    """Spell metrics as an ExportMetricsServiceRequest (opentelemetry/proto/collector/metrics/v1)."""
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    message = ExportMetricsServiceRequest()
    group = message.resource_metrics.add()
    name = group.resource.attributes.add()
    name.key, name.value.string_value = "service.name", service
    scope = group.scope_metrics.add()
    scope.scope.name, scope.scope.version = "reenact", VERSION
    for gauge in gauges:
        metric = scope.metrics.add(name=gauge.name, description=gauge.description, unit=gauge.unit)
        metric.gauge.SetInParent()
        for each in gauge.points:
            point = metric.gauge.data_points.add(time_unix_nano=at_ns, as_int=each.value)
            for key, value in each.attributes.items():
                attribute = point.attributes.add()
                attribute.key, attribute.value.string_value = key, value
    return message.SerializeToString()
