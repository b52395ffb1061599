"""Spans that stand for several calls, and spans that stand for one that has not ended yet.

Some emitters run several tools in one span, and coding agents log a whole session's calls as events: the dialect that
reads such a span gives a span for each call (`Dialect.parts`). Logfire writes down that a span began as a span of its
own below it (`logfire.span_type = "pending_span"`): it goes where the span is there, and stands for it where it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reenact.graph.interpret import likely
from reenact.values.span import SpanRecord

_TYPE = "logfire.span_type"
_PENDING = "pending_span"
_ABOVE = "logfire.pending_parent_id"
_NO_SPAN = "0" * 16


def with_parts(spans: Mapping[str, SpanRecord]) -> dict[str, SpanRecord]:
    """Give the spans of one trace by id, with those that dialects find in them. What is there already is not made."""
    whole = dict(spans)
    for span in spans.values():
        among = likely(span)
        several = [each for each in among if each.entry.outline["parts"]]
        for each in sorted(several, key=lambda each: each.place):
            sure = each.sure(span)
            if sure <= 0 or any(other.most > sure and other.sure(span) > sure for other in among):
                continue
            find = each.entry.load().parts
            for part in find(span) if find is not None else ():
                whole.setdefault(part.span_id, part)
            break
    return whole


def settled(spans: Mapping[str, SpanRecord]) -> dict[str, SpanRecord]:
    """Give the spans of one trace by id without the pending ones; one whose span never came takes that span's place."""
    if not any(span.attributes.get(_TYPE) == _PENDING for span in spans.values()):
        return dict(spans)
    settled_spans = {span_id: span for span_id, span in spans.items() if span.attributes.get(_TYPE) != _PENDING}
    for span in sorted(spans.values(), key=lambda span: (span.start_ns, span.span_id)):
        if span.attributes.get(_TYPE) != _PENDING or span.parent_id is None or span.parent_id in settled_spans:
            continue
        above = span.attributes.get(_ABOVE)
        parent = above if isinstance(above, str) and above != _NO_SPAN else None
        attributes = {**span.attributes, "reenact.incomplete": True}
        settled_spans[span.parent_id] = replace(span, span_id=span.parent_id, parent_id=parent, attributes=attributes)
    return settled_spans
