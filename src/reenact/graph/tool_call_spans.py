"""Tool calls of a reply that an emitter wrote on spans below the model's call: they go back into the reply.

AgentOps leaves the calls out of `gen_ai.completion.*` and gives each a span of its own, `tool_call.<name>`, with
`tool.name`, `tool.parameters` and `tool.call.id`. Nothing ran there: a tool that did run has its span elsewhere, with
what it said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from reenact.values.span import Attribute, SpanRecord

_ASKED_FOR = "tool_call."
_REPLY = "gen_ai.completion.0"
_CARRIED = (("id", "tool.call.id"), ("name", "tool.name"), ("arguments", "tool.parameters"))


def with_calls_below(spans: Mapping[str, SpanRecord]) -> dict[str, SpanRecord]:
    """Give the spans of one trace by id, the calls that stood below in their replies and their spans gone."""
    below: dict[str, list[SpanRecord]] = defaultdict(list)
    for span in spans.values():
        if _is_asked_for(span) and _is_model(spans.get(span.parent_id or "")):
            below[span.parent_id or ""].append(span)
    if not below:
        return dict(spans)
    call_ids = {span.span_id for calls in below.values() for span in calls}
    return {
        span_id: _with(span, below[span_id]) if span_id in below else _lifted(span, spans, call_ids)
        for span_id, span in spans.items()
        if span_id not in call_ids
    }


def _is_asked_for(span: SpanRecord) -> bool:
    attributes = span.attributes
    ran = "tool.result" in attributes or "agentops.tool.output" in attributes or "agentops.entity.output" in attributes
    return span.name.startswith(_ASKED_FOR) and "tool.name" in attributes and not ran


def _is_model(span: SpanRecord | None) -> bool:
    return span is not None and any(
        name.startswith(("gen_ai.prompt.", "gen_ai.completion.")) for name in span.attributes
    )


def _with(span: SpanRecord, calls: list[SpanRecord]) -> SpanRecord:
    attributes: dict[str, Attribute] = dict(span.attributes)
    if any(name.startswith(f"{_REPLY}.tool_calls.") for name in attributes):
        return span
    for place, call in enumerate(sorted(calls, key=lambda call: (call.start_ns, call.span_id))):
        for word, name in _CARRIED:
            if (value := call.attributes.get(name)) is not None:
                attributes[f"{_REPLY}.tool_calls.{place}.{word}"] = value
    attributes.setdefault(f"{_REPLY}.role", "assistant")
    return replace(span, attributes=attributes)


def _lifted(span: SpanRecord, spans: Mapping[str, SpanRecord], call_ids: set[str]) -> SpanRecord:
    """Hang what stood below a span that goes where that stood."""
    parent, seen_ids = span.parent_id, set[str]()
    while parent in call_ids and parent not in seen_ids:
        seen_ids.add(parent)
        parent = spans[parent].parent_id
    return span if parent == span.parent_id else replace(span, parent_id=parent)
