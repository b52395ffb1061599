"""Which model call asked for which tool call: by the call id where it is known, else by name and arguments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from reenact.boundary.reading import answered
from reenact.values.call import CallKind, FunctionCall
from reenact.values.json import Json, canonical, parsed_or_none
from reenact.values.message import ToolCall
from reenact.values.run import Node


@dataclass(slots=True, eq=False)
class _Wish:
    """A tool call that a model asked for and that no tool call has answered yet."""

    node: Node
    call: ToolCall
    arguments: bytes | None


def joined(nodes: Iterable[Node]) -> list[Node]:
    """Tie each tool call to the model call that asked for it. Nodes come and go in causal order."""
    wishes: list[_Wish] = []
    result: list[Node] = []
    for node in nodes:
        if node.kind is CallKind.LLM:
            wishes += _wishes(node)
        elif node.kind is CallKind.TOOL:
            result.append(_tied(node, wishes))
            continue
        result.append(node)
    return result


def _wishes(node: Node) -> list[_Wish]:
    reply = answered(node)
    calls = [
        part for message in (reply.messages if reply else ()) for part in message.parts if isinstance(part, ToolCall)
    ]
    return [_Wish(node, call, _spelled(parsed_or_none(call.arguments or "null"))) for call in calls]


def _spelled(value: Json) -> bytes | None:
    return canonical(value) if value is not None else None


def _tied(node: Node, wishes: list[_Wish]) -> Node:
    wish = _find(node, wishes)
    if wish is None:
        return node
    wishes.remove(wish)
    return replace(node, caused_by=wish.node.id, tool_call_id=wish.call.id or None)


def _find(node: Node, wishes: list[_Wish]) -> _Wish | None:
    call_id = node.span.attributes.get("tool.id") or node.span.attributes.get("gen_ai.tool.call.id")
    if call_id:
        return _nearest(node, [wish for wish in wishes if wish.call.id == call_id])
    namesakes = [wish for wish in wishes if wish.call.name == node.call.name]
    request = node.call.request
    spelled = _spelled(request.arguments) if isinstance(request, FunctionCall) else None
    exact = [wish for wish in namesakes if wish.arguments == spelled]
    return _nearest(node, exact or [wish for wish in namesakes if _within(wish.call, request)])


def _nearest(node: Node, wishes: Iterable[_Wish]) -> _Wish | None:
    """Choose among equal wishes: the one in the same place, of the latest reply there, the first in that reply.

    An earlier reply's may never have been granted; another branch's was asked for by another model call.
    """

    def nearness(wish: _Wish) -> tuple[bool, int, int]:
        lane = wish.node.lane
        above = len(lane) if f"{node.lane}/".startswith(f"{lane}/") else 0
        return wish.node.parent == node.parent, above, wish.node.number

    return max(wishes, key=nearness, default=None)


def _within(call: ToolCall, request: object) -> bool:
    """Tell whether the model's arguments all reached the function, which may have added defaults."""
    asked_for = parsed_or_none(call.arguments or "{}")
    got = request.arguments if isinstance(request, FunctionCall) else None
    if not isinstance(asked_for, dict) or not isinstance(got, dict):
        return False
    if len(got) == 1 and asked_for in (next(iter(got.values())), _read(next(iter(got.values())))):
        return True  # the function takes them all as one
    if all(got.get(name) == value for name, value in asked_for.items()):
        return True
    return sorted(map(canonical, got.values())) == sorted(map(canonical, asked_for.values()))  # by other names


def _read(value: Json) -> Json:
    return parsed_or_none(value) if isinstance(value, str) else None
