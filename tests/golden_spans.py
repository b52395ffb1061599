"""Spans as the golden cases of the dialects spell them: what a dialect looks at, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reenact.values.span import Scope, SpanEvent, SpanRecord


def span_of(written: Mapping[str, Any]) -> SpanRecord:
    """Make a span of a case: its name and attributes, and its scope's name, events and status where it has them."""
    events = tuple(
        SpanEvent(name=event["name"], time_ns=place, attributes=event.get("attributes", {}))
        for place, event in enumerate(written.get("events", ()), 1)
    )
    return SpanRecord(
        trace_id="1" * 32,
        span_id="2" * 16,
        parent_id=None,
        name=written["name"],
        start_ns=1,
        end_ns=2,
        attributes=written.get("attributes", {}),
        events=events,
        scope=Scope(name=written.get("scope", "")),
        status=written.get("status", 0),
        status_message=written.get("status_message", ""),
    )
