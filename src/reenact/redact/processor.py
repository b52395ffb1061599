"""`RedactionSpanProcessor`: the engine around any OpenTelemetry span processor, ours or not.

A processor that rewrites a span in `on_end` only helps the processors registered after it, and `_on_ending` may not
change a span in today's SDK; so this one *wraps* what it protects and hands it redacted copies only (opentelemetry-sdk
1.45). Nothing of a span is left out: `copies` says what there is.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import wrapt
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from reenact.contracts.redactor import Redactor
from reenact.redact import provider_processors
from reenact.redact.process_redactor import copies
from reenact.redact.sdk_copies import Copies
from reenact.values import alarms

_log = logging.getLogger("reenact")
_NOTHING: tuple[Mapping[str, Any], Mapping[str, Any]] = {}, {}
_EXPORT = "opentelemetry.sdk.trace.export"
"""Named and not imported: the recorder, which is a guest in whatever it starts with, has no use for it."""
_STOCK = {(_EXPORT, "BatchSpanProcessor"), (_EXPORT, "SimpleSpanProcessor")}
"""These pass a span on as it is, if it is sampled, and do nothing else."""
_DEAF = {("opentelemetry.sdk.trace", "SpanProcessor.on_start"), *((at, f"{name}.on_start") for at, name in _STOCK)}
"""These do nothing when a span begins."""
_CARRIED = ("_name", "_attributes", "_events", "_links", "_status", "_resource", "_instrumentation_scope")


def _part(name: str, clean: Callable[[Copies, Any, Mapping[str, str]], Any]) -> property:
    """Make a part of a span that is read redacted, and written to the span itself."""

    def read(begun: Any) -> Any:
        span, copies = begun.__wrapped__, begun._self_copies  # noqa: SLF001 - wrapt's own names begin so
        return clean(copies, getattr(span, name), copies.about(span.attributes or {}))

    def write(begun: Any, value: Any) -> None:
        setattr(begun.__wrapped__, name, value)

    return property(read, write)


class _Begun(wrapt.ObjectProxy):  # type: ignore[misc]  # wrapt is untyped
    """A started span as the protected processor may see it: writable, and redacted wherever it is read."""

    def __init__(self, span: Span, copies: Copies, attributes: Callable[[Span], Mapping[str, Any]]) -> None:
        super().__init__(span)
        self._self_copies, self._self_attributes = copies, attributes

    name = _name = _part("_name", lambda copies, name, about: copies.text(name, "name", about))
    events = _events = _part("_events", lambda copies, events, about: tuple(copies.events(events, about)))
    links = _links = _part("_links", Copies.links)
    status = _status = _part("_status", Copies.status)
    resource = _resource = _part("_resource", lambda copies, resource, _: copies.resource(resource))
    instrumentation_scope = _instrumentation_scope = _part(
        "_instrumentation_scope", lambda copies, scope, _: copies.scope(scope)
    )
    context = _context = _part("_context", lambda copies, context, _: copies.context(context))
    parent = _parent = _part("_parent", lambda copies, parent, _: copies.context(parent))

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self._self_attributes(cast("Span", self.__wrapped__))

    _attributes = attributes

    def get_span_context(self) -> Any:
        return self.context

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r}, context={self.context!r})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def _readable_span(self) -> ReadableSpan:
        return self._self_copies.safely(cast("Any", self.__wrapped__)._readable_span())  # noqa: SLF001 - wrapt's own names begin so

    def to_json(self, indent: int | None = 4) -> str:
        return self._readable_span().to_json(indent)


def _qualified_name(thing: object) -> tuple[str, str]:
    return getattr(thing, "__module__", ""), getattr(thing, "__qualname__", "")


class RedactionSpanProcessor(SpanProcessor):
    """Hands `inner` redacted copies of spans and nothing else.

        provider.add_span_processor(reenact.RedactionSpanProcessor(BatchSpanProcessor(OTLPSpanExporter())))

    What cannot be redacted is left out of the span, never let through: a failing redactor costs the payload, and the
    span keeps its structure with `reenact.redaction.failed` set. Neither a failing redactor nor a failing `inner`
    reaches the program that is traced. Exporters that are registered beside this one are named in a warning.
    `policy` is a file, else what is configured holds; `redactor` is what does it instead. `own` says that the recorder
    protects its own pipe: it marks the run instead of its spans, and forgives what fails in `inner` itself.
    """

    def __init__(
        self,
        inner: SpanProcessor,
        redactor: Redactor | None = None,
        *,
        policy: str | Path = "",
        own: bool = False,
    ) -> None:
        self._inner, self._own = inner, own
        self._copies = copies(redactor, policy, marked=not own)
        self._starts: dict[int, tuple[Any, Mapping[str, Any], Mapping[str, Any]]] = {}
        own_way = {"on_start", "_on_ending", "on_end"} & vars(inner).keys()  # vendors replace methods of an object
        self._hears = _qualified_name(getattr(type(inner), "on_start", None)) not in _DEAF or bool(own_way)
        self._stock = _qualified_name(type(inner)) in _STOCK and not own_way
        self._writes = not provider_processors.exporters(inner)
        self._last_processors: object = None
        self._warned = False

    @property
    def inner(self) -> SpanProcessor:
        """The processor that is protected."""
        return self._inner

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Hand on the start, redacted."""
        self._look_beside(span)
        if self._hears:
            begun = cast("Span", _Begun(span, self._copies, self._attributes))
            self._hand(self._inner.on_start, begun, parent_context)

    def _on_ending(self, span: Span) -> None:
        """Hand on that a span is about to end; what `inner` writes to it then is the span's."""
        ending = None if self._stock else getattr(self._inner, "_on_ending", None)
        if ending is not None:
            self._hand(ending, cast("Span", _Begun(span, self._copies, self._attributes)))

    def on_end(self, span: ReadableSpan) -> None:
        """Hand on the end, redacted."""
        context = span.get_span_context()
        if self._stock and not (context and context.trace_flags.sampled):
            return
        clean = self.redacted(span)
        if not self._writes:
            self._hand(self._inner.on_end, clean)
            return
        before = [getattr(clean, name) for name in _CARRIED]
        self._hand(self._inner.on_end, clean)
        for name, value in zip(_CARRIED, before, strict=True):
            if getattr(clean, name) is not value:  # it rewrites spans for the processors that come after it
                setattr(span, name, getattr(clean, name))

    def redacted(self, span: ReadableSpan) -> ReadableSpan:
        """Make the redacted copy of a finished span."""
        context = span.get_span_context()
        _, attributes, begun = self._starts.pop(context.span_id if context else 0, (None, *_NOTHING))
        return self._copies.safely(span, attributes, begun)

    def _attributes(self, span: Span) -> Mapping[str, Any]:
        """Redact what a span began with, once: it is not looked at again when the span ends."""
        key = span.get_span_context().span_id
        attributes = dict(span.attributes or {})
        _, before, begun = self._starts.get(key, (None, *_NOTHING))
        reusable = attributes if self._copies.uniform else _NOTHING[0]  # elsewhere it depends on all of them
        clean = {name: begun[name] for name in reusable if name in begun and before[name] is attributes[name]}
        fresh = {name: value for name, value in attributes.items() if name not in clean}
        clean |= self._copies.attributes(fresh, self._copies.about(attributes))
        if span.is_recording():
            # A span that never ends takes its entry along when it goes.
            with suppress(TypeError):
                self._starts[key] = weakref.ref(span, lambda _: self._starts.pop(key, None)), attributes, clean
        return clean

    def _hand(self, method: Callable[..., None], *arguments: Any) -> None:
        try:
            method(*arguments)
        except Exception as error:
            if self._own:
                raise
            alarms.pass_on()
            if not self._warned:
                self._warned = True
                name, kind = (
                    provider_processors.processor_name(self._inner),
                    type(error).__name__,
                )  # its text may hold anything
                _log.warning("reenact: %s failed on a span (%s); the program goes on", name, kind)

    def _look_beside(self, span: Span) -> None:
        """Warn of exporters beside this one, each time that processors were registered since."""
        registered = getattr(getattr(span, "_span_processor", None), "_span_processors", None)
        if registered is not self._last_processors:
            self._last_processors = registered
            if registered is not None and not self._own:
                provider_processors.warn(registered)

    def shutdown(self) -> None:
        """Shut the protected processor down."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the protected processor and give its answer."""
        return self._inner.force_flush(timeout_millis) is not False
