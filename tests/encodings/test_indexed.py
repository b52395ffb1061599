from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reenact.encodings import indexed
from reenact.values.message import Answered, Message, Text, ToolCall
from strategies_call import json_values


def test_messages_are_gathered_by_their_number() -> None:
    said = {
        "gen_ai.prompt.10.role": "tool",
        "gen_ai.prompt.10.content": "yes",
        "gen_ai.prompt.10.tool_call_id": "c1",
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "Be brief.",
        "gen_ai.prompt.2.role": "assistant",
        "gen_ai.prompt.2.tool_calls.1.id": "c2",
        "gen_ai.prompt.2.tool_calls.1.name": "b",
        "gen_ai.prompt.2.tool_calls.1.arguments": "{}",
        "gen_ai.prompt.2.tool_calls.0.id": "c1",
        "gen_ai.prompt.2.tool_calls.0.name": "a",
        "gen_ai.prompt.2.tool_calls.0.arguments": '{"n": 1}',
        "llm.request.functions.0.name": "a",
        "llm.request.functions.0.parameters": '{"type": "object"}',
    }
    asked = indexed.indexed_request(said)
    assert asked is not None
    assert asked.messages == (
        Message(role="system", parts=(Text("Be brief."),)),
        Message(
            role="assistant",
            parts=(ToolCall(id="c1", name="a", arguments='{"n": 1}'), ToolCall(id="c2", name="b", arguments="{}")),
        ),
        Message(role="tool", parts=(Text("yes"),), tool_call_id="c1"),
    )
    assert asked.tools == ({"type": "function", "function": {"name": "a", "parameters": {"type": "object"}}},)


def test_a_completion_has_its_reason() -> None:
    said = {
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Yes.",
        "gen_ai.completion.0.finish_reason": "stop",
    }
    assert indexed.answered(said) == Answered(
        messages=(Message(role="assistant", parts=(Text("Yes."),)),), finish_reasons=("stop",)
    )


def test_numbers_of_function_calls_alone_count_calls_of_one_message() -> None:
    said = {
        "gen_ai.completion.0.function_call.name": "a",
        "gen_ai.completion.0.function_call.arguments": "{}",
        "gen_ai.completion.1.function_call.name": "b",
        "gen_ai.completion.1.function_call.arguments": "{}",
    }
    answered = indexed.answered(said)
    assert answered is not None
    [message] = answered.messages
    assert [part.name for part in message.parts if isinstance(part, ToolCall)] == ["a", "b"]


def test_a_role_may_be_the_name_of_the_words() -> None:
    assert indexed.messages({"gen_ai.prompt.0.user": "robots"}, "gen_ai.prompt") == (
        Message(role="user", parts=(Text("robots"),)),
    )


def test_content_in_blocks_is_read_and_other_json_stays_text() -> None:
    said = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": '[{"type": "text", "text": "hi"}]',
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": '{"order": 1}',
        "gen_ai.prompt.2.role": "user",
        "gen_ai.prompt.2.content": "[1, 2]",
    }
    texts = [message.parts for message in indexed.messages(said, "gen_ai.prompt")]
    assert texts == [(Text("hi"),), (Text('{"order": 1}'),), (Text("[1, 2]"),)]


def test_a_gap_costs_nothing_and_a_name_is_no_number() -> None:
    said: dict[str, Any] = {
        "gen_ai.prompt.1000000000.content": "far",
        "gen_ai.prompt.0.content": "near",
        "gen_ai.prompt.__proto__.content": "no",
        "gen_ai.prompt.-1.content": "no",
        "gen_ai.prompt.²": "no",
        "gen_ai.prompt.²5.content": "no",
        f"gen_ai.prompt.{'9' * 4000}.content": "no",
        "gen_ai.prompt.0.tool_calls.99999999.name": "f",
        "gen_ai.prompt.0.tool_calls.constructor.name": "no",
    }
    read = indexed.messages(said, "gen_ai.prompt")
    assert [message.parts[0] for message in read] == [Text("near"), Text("far")]


rests = ("role", "content", "tool_calls.0.name", "tool_calls.x", "function_call", "finish_reason", "tool_call_id", "")
names = st.builds(
    "{}.{}.{}".format, st.sampled_from(["gen_ai.prompt", "gen_ai.completion"]), st.text(), st.sampled_from(rests)
)


@given(st.dictionaries(names | names.map(lambda name: name.replace("..", ".0.")), json_values))
def test_no_attributes_are_too_strange(said: dict[str, Any]) -> None:
    asked, answered = indexed.indexed_exchange(said)
    assert asked is None or asked.messages
    assert answered is None or answered.messages
