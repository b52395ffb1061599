"""Walking a run without its code: its calls in causal order, each with the conversation before and after it.

The state of an agent between two calls is what it will tell the model next. A model call's request says it; a tool's
result becomes part of it when the next request does. Agents that run side by side have conversations of their own: a
request continues the one whose messages it begins with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reenact.boundary.reading import answered, asked, frames
from reenact.values.call import CallKind, Returned, Streamed, Value
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_object, as_text, at
from reenact.values.message import Message, Text, ToolCall
from reenact.values.run import Node, Run
from reenact.values.step import Step

_MOST_OPEN = 32
"""So many conversations are looked at, newest first, for the one that a request continues."""


def steps(run: Run) -> list[Step]:
    """List the steps of a run. Structure and the frames around model calls are none; they stand in `under`."""
    outer = frames(run.nodes)
    by_id = {node.id: node for node in run.nodes}
    calls = [node for node in run.nodes if not node.call.is_structure and node.id not in outer and node is not run.root]
    states: list[tuple[Message, ...]] = []
    after_call: dict[str, tuple[Message, ...]] = {}
    found: list[Step] = []
    for number, node in enumerate(calls, 1):
        before, new, added, tools = _around(node, states, after_call)
        cause = by_id.get(node.caused_by or "")
        found.append(
            Step(
                number=number,
                node=node,
                under=tuple(_above(node, by_id, run)),
                caused_by=cause.label if cause is not None else "",
                before=before,
                new=new,
                added=added,
                tools=tools,
            )
        )
        after_call[node.id] = before + added
        if node.caused_by:
            after_call[node.caused_by] = before + added  # the next tool of the same reply goes on from here
        states.append(before + added)
        del states[:-_MOST_OPEN]
    return found


def _around(
    node: Node, states: Sequence[tuple[Message, ...]], after_call: dict[str, tuple[Message, ...]]
) -> tuple[tuple[Message, ...], int, tuple[Message, ...], tuple[str, ...]]:
    request = asked(node) if node.kind in {CallKind.LLM, CallKind.EMBEDDING} else None
    if request is not None:
        reply = answered(node)
        known = max((_shared(request.messages, state) for state in states), default=0)
        tools = tuple(name for tool in request.tools if (name := _tool_name(tool)))
        return request.messages, len(request.messages) - known, reply.messages if reply is not None else (), tools
    last = states[-1] if states else ()
    before = after_call.get(node.caused_by or "", last)
    if node.kind is not CallKind.TOOL:
        return before, 0, (), ()
    result = _result(node)
    if result is None:
        return before, 0, (), ()
    return before, 0, (Message(role="tool", parts=(Text(result),), tool_call_id=node.tool_call_id),), ()


def _shared(messages: Sequence[Message], state: Sequence[Message]) -> int:
    """Count the messages that both begin with, told by what they say."""
    for place, (one, other) in enumerate(zip(messages, state, strict=False)):
        if one != other and _gist(one) != _gist(other):
            return place
    return min(len(messages), len(state))


def _gist(message: Message) -> tuple[str, str, tuple[str, ...]]:
    texts = "".join(part.text for part in message.parts if isinstance(part, Text)).strip()
    if texts[:1] in {"{", "["} and (read := parsed_or_none(texts)) is not None:
        texts = compact(read)  # white space is no news
    calls = tuple(part.name for part in message.parts if isinstance(part, ToolCall))
    return message.role, texts, calls


def _result(node: Node) -> str | None:
    match node.outcome:
        case Returned(payload=Value(json=value)):
            return _text(value)
        case Streamed(chunks=chunks) if all(chunk.data is None for chunk in chunks):
            return compact([chunk.value for chunk in chunks])
        case _:
            return None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


def _tool_name(tool: Json) -> str:
    return as_text(as_object(tool).get("name")) or as_text(at(tool, "function", "name"))


def _above(node: Node, by_id: dict[str, Node], run: Run) -> Iterator[str]:
    lineage: list[str] = []
    at_id, seen = node.parent, set[str]()
    while at_id is not None and at_id in by_id and at_id not in seen:
        seen.add(at_id)
        above = by_id[at_id]
        if above is not run.root:
            lineage.append(above.label)
        at_id = above.parent
    yield from reversed(lineage)
