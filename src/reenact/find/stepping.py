"""Walking a run without its code: its calls in causal order, each with the conversation before and after it.

The state of an agent between two calls is what it will tell the model next. A model call's request says it; a tool's
result becomes part of it when the next request does. Agents that run side by side have conversations of their own: a
request continues the one whose messages it begins with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from reenact.boundary.reading import answered, asked, frames
from reenact.values.call import CallKind, Returned, Streamed, Value
from reenact.values.json import Json, compact, parsed_or_none
from reenact.values.lenient import as_object, as_text, at
from reenact.values.message import Message, Text, ToolCall
from reenact.values.run import Node, Run
from reenact.values.step import Lineage, Step, Talk, length


class _Conversations:
    """Every conversation that was seen, as a tree: what two of them begin with is there once."""

    def __init__(self) -> None:
        self._talks: dict[tuple[int, bytes], Talk] = {}
        """A conversation and what is said next, by its exact message, to the conversation that this makes."""
        self._gists: dict[tuple[int, bytes], int] = {}
        """The same by what messages come to: spelled otherwise they are no news."""
        self._gist_of: dict[int, int] = {}

    def grown(self, talk: Talk | None, message: Message) -> Talk:
        """Give a conversation with one more message."""
        key = (id(talk), _mark(repr(message)))
        longer_talk = self._talks.get(key)
        if longer_talk is None:
            longer_talk = self._talks[key] = Talk(message, talk, length(talk) + 1)
            gist = (self._gist_of.get(id(talk), 0), _mark(repr(_gist(message))))
            self._gist_of[id(longer_talk)] = self._gists.setdefault(gist, len(self._gists) + 1)
        return longer_talk

    def shared(self, messages: Sequence[Message]) -> int:
        """Count the messages that this conversation and an earlier one both begin with, told by what they say."""
        at = 0
        for place, message in enumerate(messages):
            following = self._gists.get((at, _mark(repr(_gist(message)))))
            if following is None:
                return place
            at = following
        return len(messages)

    def of(self, messages: Sequence[Message], talk: Talk | None = None) -> Talk | None:
        """Give a conversation that goes on from `talk` with these messages."""
        for message in messages:
            talk = self.grown(talk, message)
        return talk


def _mark(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def steps(run: Run) -> list[Step]:
    """List the steps of a run. Structure and the frames around model calls are none; they stand in `lineage`."""
    outer = frames(run.nodes)
    by_id = {node.id: node for node in run.nodes}
    calls = [node for node in run.nodes if not node.call.is_structure and node.id not in outer and node is not run.root]
    talks, lineages = _Conversations(), dict[str, Lineage | None]()
    last: Talk | None = None
    after_call: dict[str, Talk | None] = {}
    step_list: list[Step] = []
    for number, node in enumerate(calls, 1):
        before, new, added, tools = _around(node, talks, after_call, last)
        cause = by_id.get(node.caused_by or "")
        step_list.append(
            Step(
                number=number,
                node=node,
                lineage=_lineage(node.parent, by_id, run, lineages),
                caused_by=cause.label if cause is not None else "",
                talk=before,
                new=new,
                added=added,
                tools=tools,
            )
        )
        last = after_call[node.id] = talks.of(added, before)
        if node.caused_by:
            after_call[node.caused_by] = last  # the next tool of the same reply goes on from here
    return step_list


def _around(
    node: Node, talks: _Conversations, after_call: dict[str, Talk | None], last: Talk | None
) -> tuple[Talk | None, int, tuple[Message, ...], tuple[str, ...]]:
    request = asked(node) if node.kind in {CallKind.LLM, CallKind.EMBEDDING} else None
    if request is not None:
        reply = answered(node)
        shared_count = talks.shared(request.messages)
        tools = tuple(name for tool in request.tools if (name := _tool_name(tool)))
        new = len(request.messages) - shared_count
        return talks.of(request.messages), new, reply.messages if reply is not None else (), tools
    before = after_call.get(node.caused_by or "", last)
    if node.kind is not CallKind.TOOL:
        return before, 0, (), ()
    result = _result(node)
    if result is None:
        return before, 0, (), ()
    return before, 0, (Message(role="tool", parts=(Text(result),), tool_call_id=node.tool_call_id),), ()


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


def _lineage(above: str | None, by_id: dict[str, Node], run: Run, cache: dict[str, Lineage | None]) -> Lineage | None:
    """Give the labels of what is above, the run's root left out; each node's is made once."""
    way: list[Node] = []
    climbed: set[str] = set()
    while above is not None and above in by_id and above not in cache and above not in climbed:
        climbed.add(above)
        way.append(by_id[above])
        above = by_id[above].parent
    at = cache.get(above or "")
    for node in reversed(way):
        if node is not run.root:
            at = Lineage(node.label, at, at.depth + 1 if at is not None else 1)
        cache[node.id] = at
    return at
