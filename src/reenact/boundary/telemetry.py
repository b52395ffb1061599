"""What sends an application's telemetry: no act of the agent's; neither recorded nor answered, and held in a replay."""

from __future__ import annotations

import inspect
from typing import Final

OPENTELEMETRY: Final = (
    "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.trace.export",
    "opentelemetry.sdk._logs._internal.export",
    "opentelemetry.sdk.metrics._internal.export",
)
"""The modules of OpenTelemetry whose processors and readers export."""
_SENDERS: Final = (
    *OPENTELEMETRY,
    "agents.tracing.processors",
    "analytics.consumer",
    "analytics.request",
    "datadog.api.http_client",
    "ddtrace.internal.writer",
    "ddtrace.internal.periodic",
    "langfuse._task_manager.ingestion_consumer",
    "langfuse._utils.request",
    "langsmith._internal._background_thread",
    "newrelic.common.agent_http",
    "posthog.consumer",
    "posthog.request",
    "reenact.export",
    "sentry_sdk.transport",
    "sentry_sdk.worker",
)


def is_sending() -> bool:
    """Tell whether a sender of telemetry is at work on this thread."""
    frame = inspect.currentframe()
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if isinstance(name, str) and name.startswith(_SENDERS):
            return True
        frame = frame.f_back
    return False
