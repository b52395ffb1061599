"""A span as it was written down: any dialect, nothing interpreted, nothing dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Attribute: TypeAlias = "None | bool | int | float | str | bytes | list[Attribute] | dict[str, Attribute]"
"""An OTLP AnyValue (opentelemetry/proto/common/v1/common.proto): scalars, bytes, arrays, key-value lists."""

STATUS_UNSET, STATUS_OK, STATUS_ERROR = 0, 1, 2
"""OTLP Status.StatusCode."""

KIND_UNSPECIFIED, KIND_INTERNAL, KIND_SERVER, KIND_CLIENT, KIND_PRODUCER, KIND_CONSUMER = range(6)
"""OTLP Span.SpanKind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """Something that happened at one instant of a span."""

    name: str
    time_ns: int
    """Nanoseconds since the Unix epoch."""
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Any])
    dropped_attributes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanLink:
    """A pointer from one span to another, perhaps in another trace."""

    trace_id: str
    span_id: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Any])
    trace_state: str = ""
    dropped_attributes: int = 0
    flags: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The instrumentation scope that emitted a span."""

    name: str = ""
    version: str = ""
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Any])
    schema_url: str = ""
    dropped_attributes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The entity that produced a span: service, process, host."""

    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Any])
    schema_url: str = ""
    dropped_attributes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRecord:
    """One span of opentelemetry/proto/trace/v1/trace.proto, with the resource and scope it came under."""

    trace_id: str
    """32 lower-case hexadecimal digits."""
    span_id: str
    """16 lower-case hexadecimal digits."""
    parent_id: str | None
    """16 lower-case hexadecimal digits, or None for a span that names no parent."""
    name: str
    start_ns: int
    """Nanoseconds since the Unix epoch."""
    end_ns: int
    """Nanoseconds since the Unix epoch; 0 where the emitter did not know."""
    kind: int = KIND_INTERNAL
    status: int = STATUS_UNSET
    status_message: str = ""
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Any])
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()
    resource: Resource = field(default_factory=Resource)
    scope: Scope = field(default_factory=Scope)
    trace_state: str = ""
    flags: int = 0
    dropped_attributes: int = 0
    dropped_events: int = 0
    dropped_links: int = 0
    own: bool = False
    """This user's recorder wrote it into the store that it was read from (`values.origin`); no format holds this."""
    sent: bool = False
    """It was sent to the store that it was read from, for a trace that was recorded there; no format holds this."""
