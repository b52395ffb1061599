"""What a carrier cannot hold, told once for each trace that it carried: on its topmost span, as `reenact.lost`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reenact.values.json import parsed_or_none
from reenact.values.span import Attribute, SpanRecord

LOST = "reenact.lost"
"""Attribute: a list of objects with `field`, `lost` and `fix`; the verdict gives each as a reason."""


def marked(spans: Iterable[SpanRecord], losses: Iterable[Mapping[str, str]]) -> list[SpanRecord]:
    """Mark the first span of each trace that has no parent among `spans`, else the first one there is."""
    span_list = list(spans)
    ids = {(span.trace_id, span.span_id) for span in span_list}
    first: dict[str, int] = {}
    top: dict[str, int] = {}
    for at, span in enumerate(span_list):
        first.setdefault(span.trace_id, at)
        if span.parent_id is None or (span.trace_id, span.parent_id) not in ids:
            top.setdefault(span.trace_id, at)
    entries: list[Attribute] = [dict(loss) for loss in losses]
    for trace_id, at in first.items():
        at = top.get(trace_id, at)  # noqa: PLW2901 - the better of two places
        before = span_list[at].attributes.get(LOST)
        before = parsed_or_none(before) if isinstance(before, str) else before
        whole = [*before, *entries] if isinstance(before, list) else entries
        span_list[at] = replace(span_list[at], attributes={**span_list[at].attributes, LOST: whole})
    return span_list
