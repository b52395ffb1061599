"""Calls of tools that an emitter left out of the requests that it wrote down, put back where their ids prove them.

Some write the answers of tools with their ids into a request, and not the message of the model that they answer. Where
an earlier reply asked for the call of that id, that reply's message stood before its answer: no API takes one without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reenact.boundary.reading import answered, asked, shape_of
from reenact.foreign.partial_question import rebuilt_parts
from reenact.values.call import Body, HttpRequest
from reenact.values.json import compact
from reenact.values.message import Message, Text, ToolCall
from reenact.values.run import Node


def put_back(models: Sequence[Node]) -> dict[str, Node]:
    """Give the model calls whose requests lack calls that they hold answers to, completed, by id.

    Nodes come in causal order. Only requests that were built again of messages are changed.
    """
    replies: dict[str, Message] = {}
    nodes: dict[str, Node] = {}
    for node in models:
        if "request" in rebuilt_parts(node) and (whole := _whole(node, replies)) is not None:
            nodes[node.id] = whole
        reply = answered(node)
        for message in reply.messages if reply is not None else ():
            replies |= {part.id: message for part in message.parts if isinstance(part, ToolCall) and part.id}
    return nodes


def _whole(node: Node, replies: dict[str, Message]) -> Node | None:
    question, shape, request = asked(node), shape_of(node), node.call.request
    if question is None or shape is None or shape.write_request is None or not isinstance(request, HttpRequest):
        return None
    call_ids = {part.id for message in question.messages for part in message.parts if isinstance(part, ToolCall)}
    messages: list[Message] = []
    for message in question.messages:
        reply = replies.get(message.tool_call_id or "")
        if message.tool_call_id and message.tool_call_id not in call_ids and reply is not None:
            calls = [part for part in reply.parts if isinstance(part, ToolCall)]
            call_ids |= {part.id for part in calls}
            if messages and _is_bare(messages[-1]):
                last = messages.pop()
                messages.append(replace(last, parts=(*last.parts, *calls)))
            else:
                messages.append(replace(reply, role="assistant"))
        messages.append(message)
    if len(messages) == len(question.messages) and messages == [*question.messages]:
        return None
    body = shape.write_request(replace(question, messages=tuple(messages)))
    whole = replace(request, body=Body(compact(body).encode("utf-8", "surrogatepass")))
    return replace(node, call=replace(node.call, request=whole))


def _is_bare(message: Message) -> bool:
    """Tell a message of the model that says words at most, and calls nothing."""
    return message.role == "assistant" and all(isinstance(part, Text) for part in message.parts)
