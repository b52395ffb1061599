"""The same calls shown on the application's own tracer provider, parented in its context, under its sampler and limits.

A projection is for reading in the application's own backend. It is never the recording: a sampler may drop it and the
stock limits may cut it. What matters most is set last, since the stock SDK evicts the oldest attribute first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.environment_variables import OTEL_PYTHON_TRACER_PROVIDER
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import SpanKind
from opentelemetry.trace.status import Status, StatusCode

from reenact.boundary import door
from reenact.contracts.dialect import View, Writing
from reenact.contracts.redactor import Redactor
from reenact.record.pipe import UrandomIds
from reenact.record.shield import shielded
from reenact.values.call import Call, FunctionCall, HttpRequest, Outcome
from reenact.values.discovered_tools import FOUND

_time_ns: Callable[[], int] = time.time_ns  # the real one, before the clock integration stands in front of it
_NONE_NAMED = OTEL_PYTHON_TRACER_PROVIDER not in os.environ
"""The environment names no provider that the first use of OpenTelemetry would make."""


class Projected:
    """One call's span on the application's provider."""

    def __init__(self, owner: Projection, span: trace.Span, attributes: Mapping[str, Any], *, declared: bool) -> None:
        self._owner, self._span, self._attributes, self._declared = owner, span, attributes, declared

    @shielded
    def attach(self) -> tuple[Context, Context] | None:
        """Make it the application's current span, where its code asked for that with a decorator of ours.

        Elsewhere every other span keeps the parent that it has without us. One that a sampler dropped would take the
        application's own along.
        """
        if not self._declared or not self._span.is_recording():
            return None
        before = otel_context.get_current()
        ours = trace.set_span_in_context(self._span, before)
        otel_context.attach(ours)
        return before, ours

    @staticmethod
    @shielded
    def detach(attached: tuple[Context, Context] | None) -> None:
        """Give the application its own current span back.

        By hand and never by token: a coroutine may be closed in another context, whose current span is its own.
        """
        if attached is not None and otel_context.get_current() is attached[1]:
            otel_context.attach(attached[0])

    @shielded
    def finish(self, call: Call, outcome: Outcome, code: StatusCode, message: str) -> None:
        """End it, with the flattened view first and the exact bodies last."""
        try:
            if self._span.is_recording():
                self._span.set_status(Status(code, self._owner.redactor.text(message) or None))
                self._describe(call, outcome)
        finally:
            began, now = getattr(self._span, "start_time", None), _time_ns()
            self._span.end(began if began is not None and now < began else now)

    def _describe(self, call: Call, outcome: Outcome) -> None:
        dialect, redactor = self._owner.dialect, self._owner.redactor
        exact = {**self._attributes, **dialect.encode_outcome(call, outcome)}
        view = self._owner.show(call, outcome)
        last = ("output.value", "input.value", "openinference.span.kind")
        ordered = {**view.attributes, **{k: v for k, v in exact.items() if k not in last}}
        if view.name:
            self._span.update_name(redactor.text(view.name))
        ordered |= {key: exact[key] for key in last if key in exact}
        self._span.set_attributes(redactor.attributes(ordered))


class Projection:
    """Opens spans on a provider of the application's."""

    def __init__(
        self,
        provider: trace.TracerProvider,
        dialect: Writing,
        redactor: Redactor,
        version: str = "",
        show: Callable[[Call, Outcome], View] | None = None,
    ) -> None:
        self._tracer = provider.get_tracer("reenact", version)
        if type(getattr(self._tracer, "id_generator", None)) is RandomIdGenerator:
            # it would draw from the application's `random`; a generator of the application's own making stays
            self._tracer.id_generator = UrandomIds()  # type: ignore[attr-defined]  # the SDK's tracer, not the API's
        self.dialect, self.redactor = dialect, redactor
        self._show = show

    def show(self, call: Call, outcome: Outcome) -> View:
        """Give what of a call is derived for readers."""
        if self._show is not None:
            return self._show(call, outcome)
        return View(attributes=self.dialect.flatten(call, outcome))

    @shielded
    def begin(self, call: Call, attributes: Mapping[str, Any], span_id: int) -> Projected | None:
        """Begin the projection of the call whose own span is `span_id`; None where nothing is to be shown."""
        if door.is_quiet():
            return None
        kind = SpanKind.CLIENT if isinstance(call.request, HttpRequest) else SpanKind.INTERNAL
        own_attributes = {"openinference.span.kind": call.kind.value, "reenact.projection.of": format(span_id, "016x")}
        span = self._tracer.start_span(self.redactor.text(call.name), kind=kind, attributes=own_attributes)
        declared = isinstance(call.request, FunctionCall) and FOUND not in call.attributes
        return Projected(self, span, {**attributes, **own_attributes}, declared=declared)


def application_provider(own: trace.TracerProvider) -> trace.TracerProvider | None:
    """Give the provider that the application itself set up, or None where it set up none."""
    if _NONE_NAMED and getattr(trace, "_TRACER_PROVIDER", own) is None:
        return None  # as the next line would find, at many times the cost to every call
    current = trace.get_tracer_provider()
    if isinstance(current, trace.ProxyTracerProvider | trace.NoOpTracerProvider) or current is own:
        return None
    return current
