from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from reenact.foreign.blocks import is_block, parts, pieces
from reenact.foreign.spelled_messages import role_word, turns
from reenact.values.message import Media, Message, Opaque, Reasoning, Text, ToolCall
from strategies_call import json_values

CALL = ToolCall(id="c1", name="find", arguments='{"n":1}')

ONE_CALL: dict[str, Any] = {
    "openai": {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n":1}'}},
    "openai responses": {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"n":1}', "id": "fc"},
    "anthropic": {"type": "tool_use", "id": "c1", "name": "find", "input": {"n": 1}},
    "gemini": {"functionCall": {"id": "c1", "name": "find", "args": {"n": 1}}},
    "gemini in python": {"function_call": {"id": "c1", "name": "find", "args": {"n": 1}}, "thought": None},
    "bedrock": {"toolUse": {"toolUseId": "c1", "name": "find", "input": {"n": 1}}},
    "ai sdk": {"type": "tool-call", "toolCallId": "c1", "toolName": "find", "input": {"n": 1}},
    "ai sdk 4": {"type": "tool-call", "toolCallId": "c1", "toolName": "find", "args": {"n": 1}},
    "genai": {"type": "tool_call", "id": "c1", "name": "find", "arguments": {"n": 1}},
    "langchain": {"type": "tool_call", "id": "c1", "name": "find", "args": {"n": 1}},
    "llama-index": {"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "find", "tool_kwargs": {"n": 1}},
    "pydantic-ai": {"part_kind": "tool-call", "tool_call_id": "c1", "tool_name": "find", "args": '{"n":1}'},
}


@pytest.mark.parametrize("block", ONE_CALL.values(), ids=ONE_CALL)
def test_a_call_is_told_in_every_spelling(block: dict[str, Any]) -> None:
    assert pieces(block) == (CALL,)
    assert is_block(block)
    assert turns([{"role": "assistant", "content": [block]}]) == (Message(role="assistant", parts=(CALL,)),)


ONE_ANSWER: dict[str, Any] = {
    "openai": {"role": "tool", "tool_call_id": "c1", "content": "yes"},
    "openai responses": {"type": "function_call_output", "call_id": "c1", "output": "yes"},
    "anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "yes"}]},
    "anthropic blocks": {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "yes"}]}],
    },
    "bedrock": {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": "yes"}]}}]},
    "ai sdk": {
        "role": "tool",
        "content": [{"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "yes"}}],
    },
    "genai": {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "yes"}]},
    "genai of pydantic-ai": {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": "yes"}]},
    "langchain": {"type": "tool", "content": "yes", "tool_call_id": "c1"},
    "langchain data": {"type": "tool", "data": {"content": "yes", "tool_call_id": "c1"}},
    "langchain constructor": {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "ToolMessage"],
        "kwargs": {"content": "yes", "tool_call_id": "c1", "type": "tool"},
    },
}


@pytest.mark.parametrize("message", ONE_ANSWER.values(), ids=ONE_ANSWER)
def test_an_answer_of_a_tool_is_a_message_of_its_own(message: dict[str, Any]) -> None:
    assert turns(message) == (Message(role="tool", parts=(Text("yes"),), tool_call_id="c1"),)


def test_gemini_names_the_tool_that_answers() -> None:
    said = turns({"role": "user", "parts": [{"functionResponse": {"name": "find", "response": {"n": 1}}}]})
    assert said == (Message(role="tool", parts=(Text('{"n":1}'),), name="find"),)


@pytest.mark.parametrize(
    ("message", "role"),
    [
        ({"role": "user", "content": "hi"}, "user"),
        ({"role": "MessageRole.USER", "blocks": [{"block_type": "text", "text": "hi"}]}, "user"),
        ({"role": "model", "parts": [{"text": "hi"}]}, "assistant"),
        ({"role": "CHATBOT", "message": "hi"}, "assistant"),
        ({"role": "developer", "content": [{"type": "input_text", "text": "hi"}]}, "developer"),
        ({"type": "human", "content": "hi"}, "user"),
        ({"type": "ai", "data": {"content": "hi", "type": "ai"}}, "assistant"),
        ({"lc": 1, "type": "constructor", "id": ["SystemMessage"], "kwargs": {"content": "hi"}}, "system"),
        ({"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}, "assistant"),
        ({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}, "assistant"),
        (["human", "hi"], "user"),
        ([[{"role": "user", "content": "hi"}]], "user"),
        ("hi", "user"),
    ],
)
def test_words_have_the_role_of_who_said_them(message: Any, role: str) -> None:
    assert turns(message) == (Message(role=role, parts=(Text("hi"),)),)


def test_an_answer_between_words_stays_in_its_place() -> None:
    said = turns(
        {"role": "user", "content": ["a", {"type": "tool_result", "tool_use_id": "t", "content": 1}, {"text": "b"}]}
    )
    assert [(each.role, each.parts, each.tool_call_id) for each in said] == [
        ("user", (Text("a"),), None),
        ("tool", (Text("1"),), "t"),
        ("user", (Text("b"),), None),
    ]


def test_calls_that_are_told_twice_are_read_once() -> None:
    said = turns(
        {
            "type": "ai",
            "content": [{"type": "text", "text": "so"}, ONE_CALL["anthropic"]],
            "tool_calls": [{"name": "find", "args": {"n": 1}, "id": "c1", "type": "tool_call"}],
            "additional_kwargs": {"tool_calls": [ONE_CALL["openai"]]},
        }
    )
    assert said == (Message(role="assistant", parts=(Text("so"), CALL)),)


def test_blocks_in_a_row_are_one_message() -> None:
    assert turns([{"text": "a"}, {"text": "b"}], "assistant") == (
        Message(role="assistant", parts=(Text("a"), Text("b"))),
    )


def test_no_text_beside_a_call_is_no_part() -> None:
    message = {"role": "assistant", "parts": [{"type": "text", "content": ""}], "tool_calls": [ONE_CALL["openai"]]}
    assert turns(message) == (Message(role="assistant", parts=(CALL,)),)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "thinking", "thinking": "hm", "signature": "s"}, Reasoning(text="hm", encrypted="s")),
        ({"type": "redacted_thinking", "data": "x"}, Reasoning(encrypted="x")),
        ({"type": "reasoning", "content": "hm"}, Reasoning(text="hm")),
        ({"type": "reasoning", "id": "r", "summary": [{"text": "hm"}]}, Reasoning(text="hm", id="r")),
        ({"text": "hm", "thought": True}, Reasoning(text="hm")),
        (
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
            Reasoning(text="hm", encrypted="s"),
        ),
        ({"type": "image_url", "image_url": {"url": "http://i"}}, Media(modality="image", url="http://i")),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            Media(modality="image", url="data:image/png;base64,AA==", mime_type="image/png"),
        ),
        (
            {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}},
            Media(modality="audio", url="data:audio/wav;base64,AA==", mime_type="audio/wav"),
        ),
        (
            {"type": "blob", "modality": "video", "mime_type": "video/mp4", "content": "AA=="},
            Media(modality="video", url="data:video/mp4;base64,AA==", mime_type="video/mp4"),
        ),
        ({"type": "uri", "modality": "image", "uri": "gs://i"}, Media(modality="image", url="gs://i")),
        (
            {"type": "file", "mediaType": "application/pdf", "data": "AA==", "filename": "a.pdf"},
            Media(
                modality="document",
                url="data:application/pdf;base64,AA==",
                mime_type="application/pdf",
                name="a.pdf",
            ),
        ),
        (
            {"image": {"format": "png", "source": {"bytes": "AA=="}}},
            Media(modality="image", url="data:image/png;base64,AA==", mime_type="image/png"),
        ),
        ({"type": "file", "modality": "image", "file_id": "f"}, None),
        ({"type": "server_tool_call", "id": "s", "name": "web"}, None),
        ({"cachePoint": {"type": "default"}}, None),
    ],
)
def test_a_block_is_read_or_kept_as_it_came(block: dict[str, Any], expected: Any) -> None:
    assert parts(block) == (expected or Opaque(block),)


@pytest.mark.parametrize(
    ("word", "role"), [("user", "user"), ("Role.ASSISTANT", "assistant"), ("ai", "assistant"), ("", "user")]
)
def test_roles_have_one_word_each(word: str, role: str) -> None:
    assert role_word(word) == role


def test_depth_has_a_bound() -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    assert turns(deep)
    assert turns({"role": "user", "content": deep})
    wrapped: Any = {"role": "user", "content": "x"}
    for _ in range(300):
        wrapped = {"message": wrapped}
    assert turns(wrapped)


@given(json_values)
def test_no_json_is_too_strange(value: Any) -> None:
    for message in (turns(value), turns([value]), turns({"role": "user", "content": value, "tool_calls": [value]})):
        assert all(isinstance(each, Message) for each in message)
    assert isinstance(parts(value), tuple)


@pytest.mark.parametrize("strange", [["text"], {"a": 1}, 3, None], ids=repr)
@pytest.mark.parametrize(
    "said", [*ONE_CALL.values(), *ONE_ANSWER.values()], ids=[*ONE_CALL, *(f"{name} answer" for name in ONE_ANSWER)]
)
def test_a_field_of_another_kind_costs_no_more_than_itself(said: dict[str, Any], strange: Any) -> None:
    for name in said:
        crooked = {**said, name: strange}
        for value in (crooked, [crooked], {"content": [crooked]}):
            assert all(isinstance(each, Message) for each in turns(value))
