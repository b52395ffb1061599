"""Turns the SDK's spans into `SpanRecord`s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Link, SpanContext

from reenact.values.span import Attribute, Resource, Scope, SpanEvent, SpanLink, SpanRecord

_HAS_IS_REMOTE, _IS_REMOTE = 0x100, 0x200
"""OTLP SpanFlags: whether it is known that the context came from another process, and whether it did."""


def from_readable(span: ReadableSpan) -> SpanRecord:
    """Give the record of an SDK span, with everything that it holds.

    The stock exporter leaves out the W3C trace flags (bits 0 to 7 of `flags`) and the trace state of links; both are
    kept here. A span that has not ended has `end_ns` 0. An attribute of a type that OTLP does not know, which the SDK
    lets nobody set, becomes a string that names the type. Raises `ValueError` on a span that has no context.
    """
    context = span.get_span_context()
    if context is None:
        raise ValueError(f"span {span.name!r} has no context")
    parent = span.parent
    return SpanRecord(
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        parent_id=f"{parent.span_id:016x}" if parent is not None else None,
        name=span.name,
        start_ns=span.start_time or 0,
        end_ns=span.end_time or 0,
        kind=span.kind.value + 1,
        status=span.status.status_code.value,
        status_message=span.status.description or "",
        attributes=_attributes(span.attributes),
        events=tuple(
            SpanEvent(
                name=event.name,
                time_ns=event.timestamp,
                attributes=_attributes(event.attributes),
                dropped_attributes=event.dropped_attributes,
            )
            for event in span.events
        ),
        links=tuple(_link(link) for link in span.links),
        resource=_resource(span),
        scope=_scope(span),
        trace_state=_trace_state(context),
        flags=_flags(context, parent),
        dropped_attributes=span.dropped_attributes,
        dropped_events=span.dropped_events,
        dropped_links=span.dropped_links,
    )


def _link(link: Link) -> SpanLink:
    return SpanLink(
        trace_id=f"{link.context.trace_id:032x}",
        span_id=f"{link.context.span_id:016x}",
        attributes=_attributes(link.attributes),
        trace_state=_trace_state(link.context),
        dropped_attributes=link.dropped_attributes,
        flags=_flags(link.context, link.context),
    )


def _resource(span: ReadableSpan) -> Resource:
    return Resource(attributes=_attributes(span.resource.attributes), schema_url=span.resource.schema_url or "")


def _scope(span: ReadableSpan) -> Scope:
    scope = span.instrumentation_scope
    if scope is None:
        return Scope()
    return Scope(
        name=scope.name,
        version=scope.version or "",
        attributes=_attributes(scope.attributes),
        schema_url=scope.schema_url or "",
    )


def _trace_state(context: SpanContext) -> str:
    return ",".join(f"{key}={value}" for key, value in context.trace_state.items())


def _flags(context: SpanContext, remote: SpanContext | None) -> int:
    flags = _HAS_IS_REMOTE | (_IS_REMOTE if remote is not None and remote.is_remote else 0)
    return flags | (int(context.trace_flags) & 0xFF)


def _attributes(attributes: Mapping[str, Any] | None) -> dict[str, Attribute]:
    return {key: _value(value) for key, value in attributes.items()} if attributes else {}


def _value(value: Any) -> Attribute:
    if value is None or isinstance(value, str | bool | int | float | bytes):
        return value
    if isinstance(value, Mapping):
        return {str(key): _value(part) for key, part in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Sequence):
        return [_value(part) for part in cast("Sequence[Any]", value)]
    return f"<{type(cast('object', value)).__qualname__} is no attribute value>"
