"""Every generation of every Langfuse export says what a reading of the file by hand says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from langfuse_by_hand import Generation, Turn, frames, generations
from reenact.boundary.reading import answered, asked
from reenact.foreign.records import span_id
from reenact.graph.build import interpret
from reenact.read.open import open_spans
from reenact.values.call import FunctionCall, Returned, Value
from reenact.values.message import Message, Text, ToolCall
from reenact.values.run import Node
from reenact.values.span import SpanRecord

KINDS = ("langfuse-api-export/*.json", "agent-prism/langfuse-*.json")


def exports(shared_data: Path) -> list[Path]:
    return sorted(path for kind in KINDS for path in (shared_data / "traces").glob(kind))


def node_of(span: SpanRecord) -> Node:
    call, outcome = interpret(span)
    return Node(id=span.span_id, trace_id=span.trace_id, parent=None, number=1, call=call, outcome=outcome, span=span)


def plain(messages: Iterable[Message]) -> list[Turn]:
    found: list[Turn] = []
    for message in messages:
        text = "".join(part.text for part in message.parts if isinstance(part, Text))
        calls = [
            (part.id, part.name, json.loads(part.arguments or "null"))
            for part in message.parts
            if isinstance(part, ToolCall)
        ]
        found.append(Turn(message.role, text, calls, message.tool_call_id))
    return found


def as_one(turns: list[Turn]) -> list[Turn]:
    """A reply as one turn: OpenAI's responses have an item for its text and one for each call."""
    if not turns:
        return []
    calls = [call for turn in turns for call in turn.calls]
    return [Turn(turns[0].role, "".join(turn.text for turn in turns), calls)]


def compared(turns: list[Turn], oracle: list[Turn]) -> list[tuple[Any, ...]]:
    """What is compared of the package's turns: an id of an answer only where the file has one."""
    known = [each.answers is not None for each in oracle] + [True] * len(turns)
    return [
        (turn.role, turn.text, turn.calls, turn.answers if named else None)
        for turn, named in zip(turns, known, strict=False)
    ]


def test_message_lists_equal_those_read_by_hand(
    shared_data: Path, record_property: Callable[[str, object], None]
) -> None:
    seen: Counter[str] = Counter()
    for path in exports(shared_data):
        spans = {record.span_id: record for record in open_spans(path) if isinstance(record, SpanRecord)}
        framed = frames(path)
        for generation in generations(path):
            node = node_of(spans[span_id(generation.id)])
            if generation.id in framed:
                assert_framed(node, generation, path)
                seen["a frame around generations"] += 1
                continue
            question, reply = asked(node), answered(node)
            told = plain(question.messages) if question else []
            said = plain(reply.messages) if reply else []
            where = f"{path.name} {generation.id}"
            assert compared(told, generation.asked) == compared(generation.asked, generation.asked), where
            reply_by_hand = as_one(generation.answered)
            assert compared(as_one(said), reply_by_hand) == compared(reply_by_hand, reply_by_hand), where
            seen[generation.encoding] += 1
    if not seen:
        pytest.skip("no Langfuse exports in ../shared/data")
    assert sum(seen.values()) >= 15, seen
    record_property("figure", f"Langfuse generations equal to the reading by hand, by encoding: {dict(seen)}")


def assert_framed(node: Node, generation: Generation, path: Path) -> None:
    request, outcome = node.call.request, node.outcome
    assert isinstance(request, FunctionCall), path
    for turn in generation.asked:
        assert json.dumps(turn.text)[1:-1] in json.dumps(request.arguments), path
    if generation.answered:
        assert isinstance(outcome, Returned)
        assert isinstance(outcome.payload, Value)
        assert generation.answered[0].text in str(outcome.payload.json)
