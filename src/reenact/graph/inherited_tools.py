"""What an agent's span tells of all the model calls below it: the tools that it was given.

Some emitters write the definitions of tools down once, on the span of the agent. A model call that says nothing of
tools is shown with them, and marked so: that they were offered in this very call, nobody wrote down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from reenact.boundary.reading import shape_of
from reenact.foreign.foreign_call import carried
from reenact.foreign.partial_question import rebuilt_parts
from reenact.values import tool_schema
from reenact.values.call import Body, CallKind, HttpRequest
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_object
from reenact.values.run import Node

TOOLS: Final = "tools"
"""Among the parts of `reenact.rebuilt`: the tools are those of the agent above."""
_DEFINITIONS: Final = ("gen_ai.tool.definitions", "gen_ai.agent.tools.definitions", "llm.tools")
_REBUILT: Final = "reenact.rebuilt"


def inherited(nodes: Sequence[Node]) -> list[Node]:
    """Give model calls of other emitters the tools of the agent above them, where their own spans name none."""
    by_id = {node.id: node for node in nodes}
    offers = {node.id: tools for node in nodes if (tools := _definitions(node))}
    return [_with_tools(node, by_id, offers) for node in nodes] if offers else [*nodes]


def _definitions(node: Node) -> tuple[Json, ...]:
    if node.kind not in (CallKind.AGENT, CallKind.CHAIN):
        return ()
    for name in _DEFINITIONS:
        attribute: Any = node.span.attributes.get(name)
        value: Json = parsed_or_none(attribute) if isinstance(attribute, str) else carried(attribute)
        definitions = tool_schema.tools(value) if isinstance(value, list | dict) else ()
        if any(as_object(tool) for tool in definitions):
            return definitions
    return ()


def _with_tools(node: Node, by_id: Mapping[str, Node], offers: Mapping[str, tuple[Json, ...]]) -> Node:
    request, shape, parts = node.call.request, shape_of(node), rebuilt_parts(node)
    if shape is None or shape.write_request is None or not isinstance(request, HttpRequest) or "request" not in parts:
        return node
    body = parsed_or_none(request.body.data)
    asked = shape.read_request(body) if isinstance(body, dict) else None
    if asked is None or asked.tools or node.kind is not CallKind.LLM:
        return node
    above, climbed = node.parent, set[str]()
    while above is not None and above in by_id and above not in climbed and above not in offers:
        climbed.add(above)
        above = by_id[above].parent
    if above is None or above not in offers:
        return node
    parameters = {name: value for name, value in asked.parameters.items() if name != "model"}
    body_json = shape.write_request(replace(asked, tools=offers[above], parameters=parameters))
    body_bytes = Body(compact(body_json).encode("utf-8", "surrogatepass"))
    attributes: dict[str, Json] = {**node.call.attributes, _REBUILT: [*parts, TOOLS]}
    return replace(node, call=replace(node.call, request=replace(request, body=body_bytes), attributes=attributes))
