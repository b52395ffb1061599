"""A run as it would have been recorded, had it gone the way that variations say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from reenact.values.call import Outcome
from reenact.values.discovered_tools import FOUND, TOUCHED
from reenact.values.evidence import outcome_to_attributes, request_to_attributes
from reenact.values.run import Node, Run
from reenact.values.span import STATUS_UNSET, Attribute, SpanRecord
from reenact.values.variation import Edit, Variation

_OF_OUTCOMES = (
    "reenact.outcome",
    "reenact.exception",
    "reenact.stream.",
    "reenact.http.response.",
    "http.response.status_code",
    "output.value",
    "output.mime_type",
)
"""How the names of attributes begin that tell an outcome."""


def applied(run: Run, variations: Iterable[Variation]) -> Run:
    """Give the run that has these variations. Its ids stay, so that it is answered for as the recorded one is."""
    chosen = [*variations]
    edits: dict[str, list[Edit]] = {}
    for edit in (edit for variation in chosen for edit in variation.edits):
        edits.setdefault(edit.node, []).append(edit)
    nodes: list[Node] = []
    for node in run.nodes:
        nodes += _edited(node, edits.get(node.id, ()))
    renames = [pair for variation in chosen for pair in variation.renames]
    if renames:
        nodes = [replace(node, span=_renamed(node.span, renames)) for node in nodes]
    root = next((node for node in nodes if run.root is not None and node.id == run.root.id), run.root)
    return replace(run, nodes=tuple(nodes), root=root)


def _edited(node: Node, edits: Iterable[Edit]) -> list[Node]:
    further: list[Node] = []
    for edit in edits:
        attributes: dict[str, Attribute] = dict(edit.attributes)
        if edit.head_order is not None:
            attributes["reenact.order.head"] = edit.head_order
        if edit.end_order is not None:
            attributes["reenact.order.end"] = edit.end_order
        if attributes:
            span = replace(node.span, attributes={**node.span.attributes, **attributes})
            end = node.end_order if edit.end_order is None else edit.end_order
            head = node.head_order if edit.head_order is None else edit.head_order
            node = replace(node, span=span, end_order=end, head_order=head)
        if edit.end_ns is not None:
            node = replace(node, span=replace(node.span, end_ns=max(edit.end_ns, node.span.start_ns)))
        if edit.outcome is not None and edit.before:
            further.append(_copy(_coming_to(node, edit.outcome), 0))
        elif edit.outcome is not None:
            node = _coming_to(node, edit.outcome)
        further += [_copy(node, again) for again in range(1, edit.repeats + 1)]
    return [node, *further]


def _coming_to(node: Node, outcome: Outcome) -> Node:
    """Give the same call with another outcome, in our own spelling whoever recorded it."""
    fields = {name: value for name, value in node.span.attributes.items() if not name.startswith(_OF_OUTCOMES)}
    if "reenact.boundary" not in fields:
        fields |= {**request_to_attributes(node.call.request), "openinference.span.kind": node.kind.value}
    if fields.get(FOUND):
        fields[TOUCHED] = '["a varied answer"]'  # so that it is answered, and does not run again
    fields |= outcome_to_attributes(node.call.request, outcome)
    span = replace(node.span, name=node.call.name, attributes=fields, events=(), status=STATUS_UNSET, status_message="")
    return replace(node, span=span, outcome=outcome)


def _copy(node: Node, again: int) -> Node:
    """Give the call once more: 0 stands right before it, the others behind. Nobody waits for one that is not made."""
    name = hashlib.blake2b(f"{node.id} {again}".encode(), digest_size=8).hexdigest()
    unordered = {"reenact.order.head": 0, "reenact.order.end": 0}
    start = node.span.start_ns + (again or -1)
    span = replace(node.span, span_id=name, start_ns=start, attributes={**node.span.attributes, **unordered})
    return replace(node, id=name, span=span, head_order=0, end_order=0)


def _renamed(span: SpanRecord, renames: Iterable[tuple[str, str]]) -> SpanRecord:
    attributes: Mapping[str, Attribute] = span.attributes
    for old, new in renames:
        attributes = {
            name: value.replace(old, new) if isinstance(value, str) else value for name, value in attributes.items()
        }
    return replace(span, attributes=attributes)
