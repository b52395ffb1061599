"""Which message of a later request answers which tool call that a model asked for.

A request repeats the conversation before it: calls, and what came of them. Within it a message answers the call of its
id, or, where it carries none, the first open call of the reply before it. A call in a request is then the one that a
model asked for: by its id; where an id is given twice or none is kept, by its place behind the very messages that the
model was asked with; where these are not repeated either, by name and arguments, counted from the end. So a call that
is repeated with equal arguments keeps each of its answers.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from reenact.boundary.reading import asked
from reenact.values.json import Json, canonical, parsed_or_none
from reenact.values.message import Message, Opaque, Text, ToolCall
from reenact.values.run import Node

_ANSWERS = frozenset({"tool", "function"})


@dataclass(slots=True, eq=False)
class ToolAnswer:
    """A tool call that a model asked for, and what a later request says came of it."""

    node: Node
    call: ToolCall
    result: Message | None = None
    by: Node | None = None


@dataclass(slots=True, eq=False)
class _Seen:
    """A tool call as a request repeats it."""

    call: ToolCall
    at: int
    """Where its message stands in the request."""
    turn: int
    """Where the reply begins that it belongs to."""
    answer: Message | None = None


@dataclass(slots=True)
class _Request:
    """What a request repeats."""

    node: Node
    depth: int
    whole: bytes = b""
    """A digest of all of its messages."""
    begins: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """Digests of how it begins, to how many messages each covers."""
    seen: list[_Seen] = field(default_factory=list[_Seen])
    loose: list[Message] = field(default_factory=list[Message])
    """Answers to calls that the request does not repeat."""


@dataclass(slots=True)
class _Before:
    """What models asked for before a request, in causal order."""

    requests: dict[str, _Request] = field(default_factory=dict[str, _Request])
    by_id: dict[str, list[ToolAnswer]] = field(default_factory=dict[str, list[ToolAnswer]])
    by_question: dict[tuple[str, bytes], list[ToolAnswer]] = field(
        default_factory=dict[tuple[str, bytes], list[ToolAnswer]]
    )

    def add(self, each: ToolAnswer) -> None:
        """Take in a call."""
        self.by_question.setdefault(question(each.call), []).append(each)
        if each.call.id:
            self.by_id.setdefault(each.call.id, []).append(each)

    def of(self, call: ToolCall) -> list[ToolAnswer]:
        """Give the calls that one in a request may be: of its id, else of what it asks where one has no id."""
        if call.id and (calls := self.by_id.get(call.id)) is not None:
            return calls
        return [each for each in self.by_question.get(question(call), ()) if not (call.id and each.call.id)]

    def goes_on(self, request: _Request, each: ToolAnswer) -> bool:
        """Tell whether a request begins with all that the model was asked with that asked for a call."""
        was = self.requests[each.node.id]
        return request.begins.get(was.whole) == was.depth < request.depth


def hear(asked_calls: Sequence[ToolAnswer], models: Sequence[Node]) -> None:
    """Find what came of each call: the first later request that holds it. Nodes come in causal order."""
    by_node: dict[str, list[ToolAnswer]] = defaultdict(list)
    for each in asked_calls:
        by_node[each.node.id].append(each)
    before = _Before()
    for node in models:
        request = before.requests[node.id] = _request(node)
        if before.by_question and (request.seen or request.loose):
            _match(request, before)
        for each in by_node.get(node.id, ()):
            before.add(each)


def question(call: ToolCall) -> tuple[str, bytes]:
    """Give what a call asks, apart from its id."""
    read = parsed_or_none(call.arguments or "{}")
    return call.name, canonical(call.arguments if read is None else read)


def _request(node: Node) -> _Request:
    conversation = asked(node)
    messages = conversation.messages if conversation is not None else ()
    request = _Request(node, len(messages))
    digest = hashlib.blake2b(digest_size=16)
    request.begins[digest.digest()] = 0
    turn, speaks = 0, False
    for at, message in enumerate(messages):
        digest.update(_spelled(message))
        request.begins[digest.digest()] = at + 1
        if message.role == "assistant":
            turn, speaks = (turn, True) if speaks else (at, True)
            request.seen += [_Seen(part, at, turn) for part in message.parts if isinstance(part, ToolCall)]
            continue
        speaks = False
        if message.role in _ANSWERS or message.tool_call_id:
            _answer(request, message)
    request.whole = digest.digest()
    return request


def _spelled(message: Message) -> bytes:
    """Spell what a message says, for comparison; ids and how it is cut into parts are not what it says."""
    content: list[Json] = [message.role]
    content.append("".join(part.text for part in message.parts if isinstance(part, Text)).strip())
    content += [part.name + str(question(part)[1]) for part in message.parts if isinstance(part, ToolCall)]
    content += [part.json for part in message.parts if isinstance(part, Opaque)]
    return canonical(content) + b"\n"


def _answer(request: _Request, message: Message) -> None:
    """Give a message to the call in the request that it answers: of its id, else the last reply's first open one."""
    if message.tool_call_id:
        mentions = [each for each in request.seen if each.call.id == message.tool_call_id]
        if mentions:
            waiting = next((each for each in reversed(mentions) if each.answer is None), None)
            if waiting is not None:
                waiting.answer = message
            return
        if any(each.call.id for each in request.seen) or not request.seen:
            request.loose.append(message)
            return
    last = request.seen[-1].turn if request.seen else -1
    for each in request.seen:
        if each.turn == last and each.answer is None and message.name in (None, "", each.call.name):
            if not (message.tool_call_id and each.call.id):
                each.answer = message
            return


def _match(request: _Request, before: _Before) -> None:
    """Give the answers in a request to the calls that models asked for before it, the last first."""
    taken_ids: set[int] = set()
    for message in request.loose:
        calls = before.by_id.get(message.tool_call_id or "")
        if calls and id(calls[-1]) not in taken_ids:
            taken_ids.add(id(calls[-1]))
            _give(calls[-1], message, request.node)
    left: list[tuple[_Seen, list[ToolAnswer]]] = []
    for mention in reversed(request.seen):
        candidates = before.of(mention.call)
        call = _in_place(request, mention, [each for each in candidates if id(each) not in taken_ids], before)
        if call is None:
            left.append((mention, candidates))
        else:
            taken_ids.add(id(call))
            _give(call, mention.answer, request.node)
    for mention, candidates in left:
        free = [each for each in candidates if id(each) not in taken_ids and not before.goes_on(request, each)]
        near = [each for each in free if each.node.parent == request.node.parent] or free
        if near:
            taken_ids.add(id(near[-1]))
            _give(near[-1], mention.answer, request.node)


def _in_place(
    request: _Request, mention: _Seen, candidates: Sequence[ToolAnswer], before: _Before
) -> ToolAnswer | None:
    """Find the only call of an id, else the latest that was asked for by a reply in the place of this one's."""
    once = sum(each.call.id == mention.call.id for each in request.seen) == 1
    if len(candidates) == 1 and once and mention.call.id and candidates[0].call.id:
        return candidates[0]
    for each in reversed(candidates):
        if before.requests[each.node.id].depth == mention.turn and before.goes_on(request, each):
            return each
    return None


def _give(each: ToolAnswer, answer: Message | None, by: Node) -> None:
    if answer is not None and each.result is None:
        each.result, each.by = answer, by
