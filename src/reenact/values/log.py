"""A log event as it was written down: some emitters put what was said into logs, beside the span that it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from reenact.values.json import Json
from reenact.values.span import Attribute, Resource, Scope, SpanRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """One record of opentelemetry/proto/logs/v1/logs.proto, with the resource and scope it came under."""

    trace_id: str = ""
    """32 lower-case hexadecimal digits; empty where the record names no trace."""
    span_id: str = ""
    """16 lower-case hexadecimal digits; empty where the record names no span."""
    time_ns: int = 0
    """Nanoseconds since the Unix epoch, when it happened; 0 where the emitter did not say."""
    observed_ns: int = 0
    """Nanoseconds since the Unix epoch, when it was collected; 0 where nobody said."""
    event_name: str = ""
    """The record's own name, else its attribute `event.name`; empty for a plain line of a log."""
    body: Json = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Any])
    severity: int = 0
    """OTLP SeverityNumber: 1 to 24, 0 where the emitter did not say."""
    severity_text: str = ""
    resource: Resource = field(default_factory=Resource)
    scope: Scope = field(default_factory=Scope)
    flags: int = 0
    dropped_attributes: int = 0

    @property
    def at_ns(self) -> int:
        """When it happened as well as anybody knows: its own time, else the time it was collected."""
        return self.time_ns or self.observed_ns


Record: TypeAlias = SpanRecord | LogRecord
"""What a file of traces holds."""
