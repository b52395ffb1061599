"""The view for other vendors' screens, made when spans leave."""

from __future__ import annotations

from dataclasses import replace

from reenact.dialects.openinference import WRITING
from reenact.graph.build import interpret
from reenact.values.span import SpanRecord


def flattened(span: SpanRecord) -> SpanRecord:
    """Add the derived, view-only attributes (messages one by one, token counts) that other vendors' screens read."""
    if "reenact.schema_version" not in span.attributes or "reenact.boundary" not in span.attributes:
        return span
    call, outcome = interpret(span)
    return replace(span, attributes={**WRITING.flatten(call, outcome), **span.attributes})
