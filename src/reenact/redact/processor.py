"""`RedactionSpanProcessor`: the engine around any OpenTelemetry span processor, ours or not.

A processor that rewrites a span in `on_end` only helps the processors registered after it, and `_on_ending` may not
change a span in today's SDK; so this one *wraps* the processor that it protects and hands it redacted copies only
(opentelemetry-sdk 1.45). It covers the span's name, status text, attributes, events, links, resource and scope
attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import wrapt
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link
from opentelemetry.trace.status import Status

from reenact.contracts.redactor import Redactor
from reenact.values import alarms

_NOTHING: tuple[Mapping[str, Any], Mapping[str, Any]] = {}, {}


class _Begun(wrapt.ObjectProxy):  # type: ignore[misc]
    """A started span as the protected processor may see it: writable, with redacted name, attributes and links."""

    def __init__(
        self, span: Span, name: str, attributes: Mapping[str, Any], links: tuple[Link, ...], resource: Resource
    ) -> None:
        super().__init__(span)
        self._self_name, self._self_attributes, self._self_links = name, attributes, links
        self._self_resource = resource

    @property
    def name(self) -> str:
        return self._self_name

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self._self_attributes

    @property
    def links(self) -> tuple[Link, ...]:
        return self._self_links

    @property
    def resource(self) -> Resource:
        return self._self_resource


class RedactionSpanProcessor(SpanProcessor):
    """Hands `inner` redacted copies of spans and nothing else.

    What cannot be redacted is dropped from the span, never let through: a failing redactor costs the payload, and the
    span keeps its structure with `reenact.redaction.failed` set.
    """

    def __init__(self, inner: SpanProcessor, redactor: Redactor) -> None:
        self._inner, self._redactor = inner, redactor
        self._begun: dict[int, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        self._resources: dict[int, tuple[Resource, Resource]] = {}

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Hand on the start, redacted."""
        given = dict(span.attributes or {})
        clean = self._attributes(given)
        self._begun[span.get_span_context().span_id] = given, clean  # the SDK ends a span with a copy of it
        begun = _Begun(span, self._text(span.name), clean, self._links(span), self._resource(span.resource))
        self._inner.on_start(cast("Span", begun), parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Hand on the end, redacted."""
        self._inner.on_end(self.redacted(span))

    def redacted(self, span: ReadableSpan) -> ReadableSpan:
        """Make the redacted copy of a finished span."""
        context, status = span.get_span_context(), span.status
        given, begun = self._begun.pop(context.span_id, _NOTHING) if context is not None else _NOTHING
        return ReadableSpan(
            name=self._text(span.name),
            context=context,
            parent=span.parent,
            resource=self._resource(span.resource),
            attributes=self._ended(span.attributes or {}, given, begun),
            events=[self._event(event) for event in span.events],
            links=self._links(span),
            kind=span.kind,
            status=Status(status.status_code, self._text(status.description)) if status.description else status,
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=self._scope(span.instrumentation_scope),
        )

    def _links(self, span: ReadableSpan) -> tuple[Link, ...]:
        return tuple(Link(link.context, self._attributes(link.attributes or {})) for link in span.links)

    def _event(self, event: Event) -> Event:
        return Event(self._text(event.name), self._attributes(event.attributes or {}), event.timestamp)

    def _text(self, text: str) -> str:
        try:
            return self._redactor.text(text)
        except Exception:  # noqa: BLE001 - fail closed
            alarms.pass_on()
            return "reenact: could not be redacted"

    def _attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self._redactor.attributes(attributes)
        except Exception:  # noqa: BLE001 - fail closed
            alarms.pass_on()
            return {"reenact.redaction.failed": True}

    def _ended(
        self, attributes: Mapping[str, Any], given: Mapping[str, Any], begun: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Redact, without looking again at values that were redacted when the span began."""
        clean: dict[str, Any] = {}
        fresh: dict[str, Any] = {}
        for key, value in attributes.items():
            if key in begun and given.get(key) is value:
                clean[key] = begun[key]
            else:
                fresh[key] = value
        return clean | self._attributes(fresh)

    def _resource(self, resource: Resource) -> Resource:
        known = self._resources.get(id(resource))
        if known is None or known[0] is not resource:
            clean = Resource(self._attributes(resource.attributes), resource.schema_url)
            known = self._resources[id(resource)] = (resource, clean)
        return known[1]

    def _scope(self, scope: InstrumentationScope | None) -> InstrumentationScope | None:
        if scope is None or not scope.attributes:
            return scope
        return InstrumentationScope(scope.name, scope.version, scope.schema_url, self._attributes(scope.attributes))

    def shutdown(self) -> None:
        """Shut the protected processor down."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the protected processor and give its answer."""
        return self._inner.force_flush(timeout_millis)
