from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from reenact.encodings import native
from reenact.values.message import Message, Text, ToolCall, Usage
from strategies_call import json_values

SYSTEM = Message(role="system", parts=(Text("Be brief."),))
USER = Message(role="user", parts=(Text("Where?"),))
CALL = ToolCall(id="c1", name="find", arguments='{"n":1}')
SCHEMA: dict[str, Any] = {"type": "object"}
TOOL = {"type": "function", "function": {"name": "find", "parameters": SCHEMA}}
LANGCHAIN = ["langchain", "schema", "messages"]


def plainly(value: Any) -> Any:
    return value


def twice(value: Any) -> str:
    return json.dumps(json.dumps(value))


REQUESTS: dict[str, Any] = {
    "openai chat": {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where?"}],
        "tools": [TOOL],
        "temperature": 0.5,
    },
    "openai responses": {
        "model": "m",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "Where?"}]}],
        "tools": [{"type": "function", "name": "find", "parameters": SCHEMA}],
        "temperature": 0.5,
    },
    "anthropic": {
        "model": "m",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Where?"}]}],
        "tools": [{"name": "find", "input_schema": SCHEMA}],
        "temperature": 0.5,
    },
    "gemini": {
        "model": "m",
        "contents": [{"role": "user", "parts": [{"text": "Where?"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{"name": "find", "parameters": SCHEMA}]}],
        "generationConfig": {"temperature": 0.5},
    },
    "adk": {
        "model": "m",
        "config": {
            "system_instruction": "Be brief.",
            "tools": [{"function_declarations": [{"name": "find", "parameters": SCHEMA}]}],
            "temperature": 0.5,
        },
        "contents": [{"role": "user", "parts": [{"text": "Where?"}]}],
    },
    "bedrock": {
        "modelId": "m",
        "system": [{"text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"text": "Where?"}]}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "find", "inputSchema": {"json": SCHEMA}}}]},
        "inferenceConfig": {"temperature": 0.5},
    },
    "langchain": {
        "model": "m",
        "messages": [
            [
                {
                    "lc": 1,
                    "type": "constructor",
                    "id": [*LANGCHAIN, "SystemMessage"],
                    "kwargs": {"content": "Be brief."},
                },
                {"lc": 1, "type": "constructor", "id": [*LANGCHAIN, "HumanMessage"], "kwargs": {"content": "Where?"}},
            ]
        ],
        "tools": [TOOL],
        "temperature": 0.5,
    },
    "ai sdk": {
        "model": "m",
        "system": "Be brief.",
        "prompt": "Where?",
        "tools": [{"type": "function", "name": "find", "inputSchema": SCHEMA}],
        "temperature": 0.5,
    },
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("spell", [plainly, json.dumps, twice])
def test_a_request_says_the_same_in_every_spelling(request_: Any, spell: Any) -> None:
    asked = native.native_request(spell(request_))
    assert asked is not None
    assert (asked.model, asked.messages, asked.tools, asked.parameters) == (
        "m",
        (SYSTEM, USER),
        (TOOL,),
        {"temperature": 0.5},
    )


REPLIES: dict[str, Any] = {
    "openai chat": {
        "id": "r",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "So.",
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n":1}'}}
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    },
    "anthropic": {
        "id": "r",
        "model": "m",
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "text", "text": "So."},
            {"type": "tool_use", "id": "c1", "name": "find", "input": {"n": 1}},
        ],
        "stop_reason": "tool_calls",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    },
    "gemini": {
        "responseId": "r",
        "modelVersion": "m",
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": "So."}, {"functionCall": {"id": "c1", "name": "find", "args": {"n": 1}}}],
                },
                "finishReason": "tool_calls",
            }
        ],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2},
    },
    "adk": {
        "response_id": "r",
        "model_version": "m",
        "content": {
            "role": "model",
            "parts": [{"text": "So."}, {"function_call": {"id": "c1", "name": "find", "args": {"n": 1}}}],
        },
        "finish_reason": "tool_calls",
        "usage_metadata": {"prompt_token_count": 3, "candidates_token_count": 2},
    },
    "bedrock": {
        "id": "r",
        "model": "m",
        "output": {
            "message": {
                "role": "assistant",
                "content": [{"text": "So."}, {"toolUse": {"toolUseId": "c1", "name": "find", "input": {"n": 1}}}],
            }
        },
        "stopReason": "tool_calls",
        "usage": {"inputTokens": 3, "outputTokens": 2},
    },
    "langchain": {
        "id": "r",
        "generations": [
            [
                {
                    "text": "So.",
                    "generation_info": {"finish_reason": "tool_calls"},
                    "message": {
                        "lc": 1,
                        "type": "constructor",
                        "id": [*LANGCHAIN, "AIMessage"],
                        "kwargs": {"content": "So.", "tool_calls": [{"id": "c1", "name": "find", "args": {"n": 1}}]},
                    },
                }
            ]
        ],
        "llm_output": {"model_name": "m", "token_usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    },
    "ai sdk": {
        "id": "r",
        "model": "m",
        "text": "So.",
        "toolCalls": [{"toolCallId": "c1", "toolName": "find", "input": {"n": 1}}],
        "finishReason": "tool_calls",
        "usage": {"inputTokens": 3, "outputTokens": 2},
    },
    "ollama": {
        "id": "r",
        "model": "m",
        "message": {
            "role": "assistant",
            "content": "So.",
            "tool_calls": [{"id": "c1", "function": {"name": "find", "arguments": {"n": 1}}}],
        },
        "done_reason": "tool_calls",
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    },
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_a_reply_says_the_same_in_every_spelling(reply: Any) -> None:
    answered = native.answered(json.dumps(reply))
    assert answered is not None
    assert answered.messages == (Message(role="assistant", parts=(Text("So."), CALL)),)
    assert (answered.id, answered.model, answered.finish_reasons) == ("r", "m", ("tool_calls",))
    assert answered.usage == Usage(prompt=3, completion=2)


def test_items_of_responses_keep_their_order() -> None:
    answered = native.answered(
        {
            "id": "r",
            "status": "completed",
            "output": [
                {"type": "reasoning", "id": "rs", "summary": []},
                {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"n":1}'},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]},
            ],
        }
    )
    assert answered is not None
    assert answered.finish_reasons == ("completed",)
    assert [part for message in answered.messages for part in message.parts][1:] == [CALL, Text("So.")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("So.", "So."),
        (["So."], "So."),
        ([{"role": "assistant", "content": "So."}], "So."),
        ({"role": "assistant", "content": "So."}, "So."),
        ({"messages": [{"role": "assistant", "content": "So."}]}, "So."),
        ([{"message": {"role": "assistant", "content": "So."}}], "So."),
        ({"replies": [{"role": "assistant", "content": "So."}]}, "So."),
        ({"object": {"a": 1}}, '{"a":1}'),
        ([{"type": "text", "text": "So."}], "So."),
    ],
)
def test_shorter_replies_are_read_as_well(value: Any, text: str) -> None:
    answered = native.answered(value)
    assert answered is not None
    assert answered.messages == (Message(role="assistant", parts=(Text(text),)),)


@pytest.mark.parametrize("value", [None, "", [], {}, {"a": 1}, 7])
def test_what_says_nothing_is_nothing(value: Any) -> None:
    assert native.native_request(value) is None or value == 7
    assert native.answered(value) is None


def test_a_request_in_a_wrapper_is_found() -> None:
    asked = native.native_request({"args": [], "kwargs": REQUESTS["openai chat"]})
    assert asked is not None
    assert asked.messages == (SYSTEM, USER)
    nested = native.native_request({"inputs": {"messages": [{"role": "user", "content": "Where?"}]}, "tags": []})
    assert nested is not None
    assert nested.messages == (USER,)


def test_depth_has_a_bound() -> None:
    deep: Any = {"messages": [{"role": "user", "content": "x"}]}
    for _ in range(200):
        deep = {"kwargs": deep}
    native.native_request(deep)
    for _ in range(200):
        deep = {"output": [deep]}
    native.answered(deep)


@given(json_values)
def test_no_json_is_too_strange(value: Any) -> None:
    for wrapped in (value, [value], {"messages": value, "tools": value, "system": value}, {"contents": [value]}):
        native.native_request(wrapped)
    for wrapped in (value, [value], {"choices": value}, {"choices": [value]}, {"output": value, "usage": value}):
        native.answered(wrapped)
    for key in ("content", "candidates", "generations", "message", "replies", "toolCalls", "object"):
        native.answered({key: value})
        native.answered({key: [value]})
