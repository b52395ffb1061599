"""The view for other vendors' screens, made when spans leave: in OpenInference's names, in OTel GenAI's, or in both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reenact.boundary.reading import asked
from reenact.contracts.dialect import Around, View
from reenact.dialects.openinference import DIALECT as OPENINFERENCE
from reenact.dialects.openinference import WRITING
from reenact.graph.build import interpret
from reenact.values import tool_schema
from reenact.values.call import Call, CallKind, Outcome
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_list, as_object, as_text, at
from reenact.values.run import OURS, OUTPUT, RECORDED_KIND, Node, Run
from reenact.values.semconv import Semconv, as_recorded, shown
from reenact.values.span import Attribute, SpanEvent, SpanRecord

_ALONE: Final = Around()
_OUR_GRAPH: Final = frozenset({CallKind.AGENT, CallKind.CHAIN, CallKind.TOOL})
"""Kinds of calls that are nodes of the graph of agents."""


def flattened(span: SpanRecord, semconv: Semconv = Semconv.OPENINFERENCE, around: Around = _ALONE) -> SpanRecord:
    """Add the derived, view-only attributes (messages, token counts) that other vendors' screens read.

    Where OTel's names are among them, the span has the name and the kind that these conventions have for it.
    """
    if OURS not in span.attributes:
        return span
    if "reenact.boundary" not in span.attributes:
        return _root(span, semconv) if span.attributes.get("reenact.run.root") is True else span
    span = as_recorded(span)
    call, outcome = interpret(span)
    if semconv is not Semconv.GENAI:
        span = replace(span, attributes={**WRITING.flatten(call, outcome), **span.attributes})
    return _shown(span, call, outcome, semconv, around)


def view_of(call: Call, outcome: Outcome, semconv: Semconv) -> View:
    """Give what is derived of a call for a span that is written elsewhere, with no run around it."""
    seen = SpanRecord(trace_id="", span_id="", parent_id=None, name=call.name, start_ns=0, end_ns=0)
    if semconv is not Semconv.GENAI:
        seen = replace(seen, attributes=WRITING.flatten(call, outcome))
    complete = _shown(seen, call, outcome, semconv, _ALONE)
    attributes = {
        name: value for name, value in complete.attributes.items() if name != RECORDED_KIND
    }  # it is open already
    return View(attributes=attributes, name=complete.name if complete.name != call.name else "")


def _shown(span: SpanRecord, call: Call, outcome: Outcome, semconv: Semconv, around: Around) -> SpanRecord:
    derived: dict[str, Attribute] = {}
    view = View(attributes={})
    if semconv is not Semconv.GENAI and OPENINFERENCE.view is not None:
        derived.update(OPENINFERENCE.view(call, outcome, around).attributes)
    if semconv.is_genai:
        from reenact.dialects.genai import DIALECT as GENAI  # what shows nothing in these names need not load them

        if GENAI.view is not None:
            view = GENAI.view(call, outcome, around)
            derived.update(view.attributes)
    events = tuple(SpanEvent(name=name, time_ns=span.end_ns, attributes=facts) for name, facts in view.events)
    return shown(span, name=view.name, kind=view.kind, derived=derived, events=events)


def _root(span: SpanRecord, semconv: Semconv) -> SpanRecord:
    """Show what a run was asked and gave out, where its root does not say it: a script's words, and what it printed."""
    span = as_recorded(span)
    told = {**_given(span), **_given_out(span)}
    inner = replace(span, attributes={**span.attributes, **told})
    call, outcome = interpret(inner)
    if "reenact.inbound" in span.attributes:  # its name is the request's
        call = replace(call, kind=CallKind.CHAIN)
    if semconv is Semconv.GENAI:
        return _shown(span, call, outcome, semconv, _ALONE)
    name: dict[str, Attribute] = {"agent.name": call.name} if call.kind is CallKind.AGENT else {}
    complete = _shown(span, call, outcome, semconv, _ALONE)
    return shown(complete, derived={**told, **name}, events=())


def _given(span: SpanRecord) -> dict[str, Attribute]:
    if "input.value" in span.attributes or span.attributes.get("reenact.process.root") is not True:
        return {}
    entry = span.attributes.get("reenact.entry")
    words = as_list(at(parsed_or_none(entry) if isinstance(entry, str) else None, "argv"))
    main = next((place for place, word in enumerate(words) if as_text(word).endswith(span.name)), -1)
    given = words[main + 1 :] if main >= 0 else []
    return {"input.value": compact(given), "input.mime_type": "application/json"} if given else {}


def _given_out(span: SpanRecord) -> dict[str, Attribute]:
    if "output.value" in span.attributes:
        return {}
    output = span.attributes.get(OUTPUT)
    pieces = as_list(at(parsed_or_none(output) if isinstance(output, str) else None, "streams", "stdout", "pieces"))
    text = "".join(as_text(item) for piece in pieces for item in as_list(piece)[1:2])
    return {"output.value": text, "output.mime_type": "text/plain"} if text else {}


def surroundings(run: Run) -> dict[str, Around]:
    """Give what a run tells of its calls, by the ids of their spans."""
    nodes = {node.id: node for node in run.nodes}
    return {node.id: _around(node, nodes) for node in run.nodes}


def _around(node: Node, nodes: Mapping[str, Node]) -> Around:
    asking = nodes.get(node.caused_by or "")
    graph_node = node.call.name if node.kind in _OUR_GRAPH else ""
    above = nodes.get(node.parent or "")
    while graph_node and above is not None and above.kind not in _OUR_GRAPH:
        above = nodes.get(above.parent or "")
    return Around(
        tool_call_id=node.tool_call_id or "",
        tool=_definition(asking, node.call.name) if asking is not None else None,
        graph_node=graph_node,
        graph_parent=above.call.name if graph_node and above is not None else "",
    )


def _definition(asking: Node, name: str) -> Json:
    request = asked(asking)
    defined = tool_schema.tools([*request.tools]) if request is not None else ()
    return next((tool for tool in defined if as_object(as_object(tool).get("function")).get("name") == name), None)
