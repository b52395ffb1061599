from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.encodings import native, python_repr, worded
from reenact.values.json import Json
from reenact.values.message import Message, Text, ToolCall
from strategies_call import json_values

CALL = ToolCall(id="c1", name="find_order", arguments='{"order":"A-1"}')
HAYSTACK: Json = {"tool_name": "find_order", "arguments": {"order": "A-1"}, "id": "c1"}
FUNCTION: Json = {"id": "c1", "type": "function", "function": {"name": "find_order", "arguments": '{"order":"A-1"}'}}


def read(value: Json) -> list[tuple[str, object, str | None]]:
    found = native.native_request(worded.opened(value, python_repr.read))
    assert found is not None
    return [(message.role, [*message.parts], message.tool_call_id) for message in found.messages]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(
            {"messages": [f"role='assistant' content=None name=None tool_calls=[{FUNCTION!r}] at=<a.b object at 0x1>"]},
            id="pydantic's str",
        ),
        pytest.param([{"role": "tool", "content": json.dumps([FUNCTION])}], id="calls as a text"),
        pytest.param(
            "[AIMessage(content='', tool_calls=[{'name': 'find_order', 'args': {'order': 'A-1'}, 'id': 'c1',"
            " 'type': 'tool_call'}])]",
            id="repr of LangChain's",
        ),
        pytest.param(
            [
                {
                    "content": [{"id": "c1", "name": "find_order", "arguments": '{"order":"A-1"}'}],
                    "type": "AssistantMessage",
                }
            ],
            id="AutoGen's",
        ),
        pytest.param(
            [
                {
                    "role": "assistant",
                    "content": '[{"toolUse":{"toolUseId":"c1","name":"find_order","input":{"order":"A-1"}}}]',
                }
            ],
            id="Bedrock's blocks as a text",
        ),
        pytest.param(
            {"messages": [{"role": "assistant", "content": [{"tool_call": HAYSTACK}]}]},
            id="Haystack's",
        ),
        pytest.param({"args": [[{"role": "assistant", "tool_calls": [FUNCTION]}]], "kwargs": {}}, id="a function's"),
    ],
)
def test_a_call_that_became_text_is_a_call_again(value: Json) -> None:
    assert read(value) == [("assistant", [CALL], None)]


def test_messages_that_became_text_are_messages_again() -> None:
    spelled = "ChatMessage(role=<MessageRole.USER: 'user'>, blocks=[TextBlock(block_type='text', text='Hi')])"
    assert read({"messages": [spelled]}) == [("user", [Text("Hi")], None)]
    assert read("{'messages': [{'role': 'user', 'content': 'it\\'s'}]}") == [("user", [Text("it's")], None)]
    two = "role='user' content='two\\nlines, role=\\'x\\'' name=None tool_call_id='c9'"
    assert worded.fields(two) == {
        "role": "user",
        "content": "two\nlines, role='x'",
        "name": None,
        "tool_call_id": "c9",
    }


def test_answers_of_several_tools_in_one_message_are_parted() -> None:
    told = [{"content": "r1", "name": "f", "call_id": "c1"}, {"content": "r2", "name": "g", "call_id": "c2"}]
    value: Json = [{"type": "FunctionExecutionResultMessage", "content": [*told]}]
    assert read(value) == [("tool", [Text("r1")], "c1"), ("tool", [Text("r2")], "c2")]


def test_definitions_of_tools_among_messages_are_no_messages() -> None:
    tool: Json = {"type": "function", "function": {"name": "find_order", "description": "Find an order."}}
    answer: Json = {"role": "tool", "content": "shipped", "tool_call_id": "c1"}
    messages, tools = worded.tools_among([answer, {"role": "tool", "content": tool}])
    assert (messages, tools) == ([answer], [tool])
    assert worded.tools_among([answer]) == ([answer], [])


def test_lines_that_begin_with_roles() -> None:
    told = worded.lines("system: Be kind.\nuser: Two\nlines\nassistant: None\ntool: 5: five")
    assert [(message.role, [*message.parts]) for message in told] == [
        ("system", [Text("Be kind.")]),
        ("user", [Text("Two\nlines")]),
        ("assistant", []),
        ("tool", [Text("5: five")]),
    ]
    assert worded.lines("A text\nuser: not at its beginning") == ()
    assert worded.lines("") == ()
    listed: Json = {"messages": ["system: Be kind.", "user: Hi"]}
    assert [message.role for message in worded.lines_of(listed)] == ["system", "user"]
    assert worded.lines_of({"messages": ["user: Hi", "and this"]}) == ()
    assert [message.role for message in worded.lines_of("user: Hi")] == ["user"]


def test_an_answer_is_tied_to_the_only_call_that_it_can_answer() -> None:
    asks = Message(role="assistant", parts=(CALL,))
    other = ToolCall(id="c2", name="refund", arguments="{}")
    nameless = Message(role="tool", parts=(Text("shipped"),))
    named = Message(role="find_order", parts=(Text("shipped"),))
    assert [each.tool_call_id for each in worded.with_roles((asks, nameless))] == [None, "c1"]
    tied = worded.with_roles((Message(role="assistant", parts=(CALL, other)), named))[1]
    assert (tied.role, tied.name, tied.tool_call_id) == ("tool", "find_order", "c1")
    several = worded.with_roles((Message(role="assistant", parts=(CALL, other)), nameless))
    assert several[1].tool_call_id is None
    unknown = Message(role="narrator", parts=(Text("x"),))
    assert worded.with_roles((asks, unknown)) == (asks, unknown)


@given(json_values | st.text())
def test_nothing_is_too_strange_to_open(value: Json) -> None:
    messages, _ = worded.tools_among(worded.opened(value, python_repr.read))
    found = native.native_request(messages)
    worded.with_roles(found.messages if found else ())
    assert isinstance(worded.lines(value if isinstance(value, str) else ""), tuple)


@given(st.lists(st.sampled_from(["role='user'", "content=", "'", '"', "\\", " ", "[", "]", "x", "None", "<a b>"])))
def test_any_text_of_fields_is_read_to_its_end(pieces: list[str]) -> None:
    assert isinstance(worded.fields("".join(pieces)), dict)
