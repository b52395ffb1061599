from __future__ import annotations

import json
from typing import Any

from hypothesis import given

from reenact.encodings import parts
from reenact.values.message import Answered, Message, Reasoning, Text, ToolCall
from strategies_call import json_values

INPUTS = [
    {"role": "user", "parts": [{"type": "text", "content": "Where?"}], "name": "Ann"},
    {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "hm"},
            {"type": "tool_call", "id": "c1", "name": "find", "arguments": {"n": 1}},
            {"type": "tool_call", "id": "c2", "name": "find", "arguments": '{"n": 2}'},
        ],
    },
    {
        "role": "tool",
        "parts": [
            {"type": "tool_call_response", "id": "c1", "response": "here"},
            {"type": "tool_call_response", "id": "c2", "result": {"n": 2}},
        ],
    },
]
SAID = (
    Message(role="user", parts=(Text("Where?"),), name="Ann"),
    Message(
        role="assistant",
        parts=(
            Reasoning(text="hm"),
            ToolCall(id="c1", name="find", arguments='{"n":1}'),
            ToolCall(id="c2", name="find", arguments='{"n": 2}'),
        ),
    ),
    Message(role="tool", parts=(Text("here"),), tool_call_id="c1"),
    Message(role="tool", parts=(Text('{"n":2}'),), tool_call_id="c2"),
)


def test_messages_are_the_same_as_text_and_as_structure() -> None:
    assert parts.messages(INPUTS) == parts.messages(json.dumps(INPUTS)) == SAID


def test_instructions_are_the_systems_first_words() -> None:
    said = parts.parts_request(
        INPUTS, json.dumps([{"type": "text", "content": "Be brief."}]), '[{"type": "function", "name": "f"}]'
    )
    assert said is not None
    assert said.messages == (Message(role="system", parts=(Text("Be brief."),)), *SAID)
    assert said.tools == ({"type": "function", "function": {"name": "f"}},)
    assert parts.instructions("Be brief.") == (Message(role="system", parts=(Text("Be brief."),)),)


def test_answers_have_their_reasons() -> None:
    outputs = [{"role": "assistant", "parts": [{"type": "text", "content": "Here."}], "finish_reason": "stop"}]
    assert parts.answered(json.dumps(outputs)) == Answered(
        messages=(Message(role="assistant", parts=(Text("Here."),)),), finish_reasons=("stop",)
    )
    assert parts.answered("Here.") == Answered(messages=(Message(role="assistant", parts=(Text("Here."),)),))


def test_nothing_is_nothing() -> None:
    assert parts.parts_exchange({}) == (None, None)
    assert parts.parts_request(None) is None
    assert parts.answered("[]") is None


@given(json_values, json_values)
def test_no_attributes_are_too_strange(one: Any, other: Any) -> None:
    names = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions")
    parts.parts_exchange(dict.fromkeys(names, one))
    parts.parts_exchange(
        {key: [{"role": one, "parts": [other, {"type": "tool_call", "arguments": one}]}] for key in names}
    )
