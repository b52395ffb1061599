"""What is left of spans in formats that cannot carry all of them, worked out from what the format's own page says."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from reenact.values.span import Resource, Scope, SpanEvent, SpanLink, SpanRecord


def as_jaeger_keeps_them(spans: Iterable[SpanRecord]) -> Iterator[SpanRecord]:
    """Trace by trace, to the microsecond, compounds as JSON text, without what Jaeger has no place for."""
    traces: dict[str, list[SpanRecord]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    for found in traces.values():
        yield from told_to_have_lost([_kept(span) for span in found], "Jaeger")


def told_to_have_lost(spans: list[SpanRecord], carrier: str) -> list[SpanRecord]:
    """With what the carrier loses told on the first span of each trace that has no parent there, or else its first."""
    marked = list(spans)
    for trace_id in {span.trace_id for span in spans}:
        mine = [at for at, span in enumerate(spans) if span.trace_id == trace_id]
        ids = {spans[at].span_id for at in mine}
        at = next((at for at in mine if spans[at].parent_id not in ids), mine[0])
        marked[at] = replace(spans[at], attributes={**spans[at].attributes, "reenact.lost": _LOSSES[carrier]})
    return marked


def _kept(span: SpanRecord) -> SpanRecord:
    same = [link for link in span.links if link.trace_id == span.trace_id and link.span_id.strip("0")]
    parent = span.parent_id
    links = list(span.links)
    if parent is None and same:  # Jaeger takes the span that a root follows from for its parent
        links.remove(same[0])
        parent = same[0].span_id
    start = span.start_ns // 1000 * 1000
    return replace(
        span,
        parent_id=parent,
        start_ns=start,
        end_ns=max(start, span.end_ns // 1000 * 1000),
        kind=span.kind if span.kind <= 5 else 0,
        status=span.status if span.status <= 2 else 0,
        attributes=_texts(span.attributes),
        events=tuple(
            SpanEvent(name=each.name, time_ns=each.time_ns // 1000 * 1000, attributes=_texts(each.attributes))
            for each in span.events
        ),
        links=tuple(SpanLink(trace_id=link.trace_id, span_id=link.span_id) for link in links),
        resource=Resource(attributes=_texts(span.resource.attributes)),
        scope=Scope(name=span.scope.name, version=span.scope.version),
        dropped_attributes=0,
        dropped_events=0,
        dropped_links=0,
    )


def _texts(attributes: Any) -> dict[str, Any]:
    return {name: _text(value) for name, value in attributes.items()}


def _text(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, list | dict):
        return json.dumps(_base64(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return value


def _base64(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [_base64(item) for item in value]
    if isinstance(value, dict):
        return {name: _base64(item) for name, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


_OTLP = "export OTLP from the emitter, or read Jaeger through its API v3"
_BESIDE = "export OTLP from the emitter beside Phoenix, as with REENACT_EXPORT"
_LOSSES: dict[str, list[Any]] = {
    carrier: [{"field": field, "lost": f"{carrier} keeps {lost}", "fix": fix} for field, lost in told]
    for carrier, fix, told in (
        (
            "Jaeger",
            _OTLP,
            (
                ("times", "microseconds: instants closer than that have no order"),
                ("arrays", "arrays and objects among attributes as JSON text"),
            ),
        ),
        (
            "Phoenix",
            _BESIDE,
            (
                ("resource", "no resource, scope, links or kind of a span: which process and program it was"),
                ("times", "microseconds: instants closer than that have no order"),
            ),
        ),
    )
}
