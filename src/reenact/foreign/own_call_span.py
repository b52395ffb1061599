"""A call of another emitter as the spans of this package carry one: what was made of its span, its twins and its logs.

A replaying process reads a recording once more. It is told what was made of it, not what it was made of, so that the
two can never come to different calls.
"""

from __future__ import annotations

from dataclasses import replace

from reenact.foreign.partial_question import LOST, REBUILT, losses, rebuilt_parts
from reenact.values.evidence import outcome_to_attributes, request_to_attributes
from reenact.values.json import compact
from reenact.values.run import OURS, Node
from reenact.values.span import Attribute, SpanRecord


def settled(node: Node) -> SpanRecord:
    """Give the span of a call with its evidence spelled as ours. Structure, and what we recorded, stays as it is."""
    if OURS in node.span.attributes or node.call.is_structure:
        return node.span
    request = node.call.request
    attributes: dict[str, Attribute] = {
        **node.span.attributes,
        "openinference.span.kind": node.kind.value,
        **request_to_attributes(request),
        **outcome_to_attributes(request, node.outcome),
        REBUILT: compact([*rebuilt_parts(node)]),
        LOST: compact([*losses(node)]),
    }
    if node.tool_call_id:
        attributes["gen_ai.tool.call.id"] = node.tool_call_id
    attributes.pop(OURS)
    return replace(node.span, name=node.call.name, attributes=attributes, events=())
