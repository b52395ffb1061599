"""Our own pipe: a tracer provider beside the application's, always on, with limits of its own.

Identifiers come from `os.urandom`, so that the host's `random` is neither used nor disturbed (the stock generator
shares it: two processes that seed alike get the same trace id). No attribute limit applies: the stock 128 drops the
oldest, in silence.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from reenact.values.json import Json

_urandom: Callable[[int], bytes] = os.urandom


class UrandomIds(IdGenerator):
    """Trace and span ids from the operating system."""

    def generate_span_id(self) -> int:
        """Give 64 random bits, never 0 (W3C Trace Context, section 3.2.2.4)."""
        return int.from_bytes(_urandom(8), "big") or 1

    def generate_trace_id(self) -> int:
        """Give 128 random bits, never 0 (W3C Trace Context, section 3.2.2.3)."""
        return int.from_bytes(_urandom(16), "big") or 1


def resource(service: str, facts: dict[str, Json]) -> Resource:
    """Say what this process is: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES first, ours where they are silent."""
    environment = OTELResourceDetector().detect()
    mine = {"service.name": service, "telemetry.sdk.language": "python", "telemetry.sdk.name": "opentelemetry"}
    return Resource({**mine, **{k: v for k, v in facts.items() if isinstance(v, str | int)}}).merge(environment)


def provider(described: Resource, processor: SpanProcessor) -> TracerProvider:
    """Make the provider; every span goes through `processor` alone."""
    unset = SpanLimits.UNSET
    limits = SpanLimits(
        max_span_attributes=unset,
        max_event_attributes=unset,
        max_link_attributes=unset,
        max_attributes=unset,
        max_events=unset,
        max_links=unset,
        max_attribute_length=unset,
        max_span_attribute_length=unset,
    )
    tracer_provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=described,
        id_generator=UrandomIds(),
        span_limits=limits,
        shutdown_on_exit=False,
    )
    tracer_provider._disabled = False  # noqa: SLF001  # pyright: ignore - OTEL_SDK_DISABLED is about the application's telemetry
    tracer_provider.add_span_processor(processor)
    return tracer_provider
