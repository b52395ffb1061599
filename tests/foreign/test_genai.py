from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.foreign import genai
from reenact.values.call import CallKind
from reenact.values.message import Answered, Asked, Message, Text, Usage
from strategies_call import json_values


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": "4"}, Usage(prompt=3, completion=4)),
        ({"gen_ai.usage.prompt_tokens": 3.0, "llm.usage.total_tokens": 9}, Usage(prompt=3, total=9)),
        (
            {"gen_ai.usage.cache_read_input_tokens": 1, "gen_ai.usage.reasoning_tokens": 2},
            Usage(cache_read=1, reasoning=2),
        ),
        ({"gen_ai.usage.cache_creation.input_tokens": 5}, Usage(cache_write=5)),
        ({"gen_ai.usage.input_tokens": "many", "gen_ai.usage.output_tokens": True}, Usage()),
        ({"gen_ai.usage.input_tokens": -1}, Usage()),
    ],
)
def test_counts_are_found_under_every_name(said: dict[str, Any], expected: Usage) -> None:
    assert genai.usage(said) == expected


def test_parameters_are_those_that_were_given() -> None:
    said: dict[str, Any] = {
        "gen_ai.request.temperature": "0.5",
        "gen_ai.request.max_tokens": -1,
        "gen_ai.request.seed": "",
        "gen_ai.request.choice.count": 1,
        "gen_ai.request.stop_sequences": "['a', 'b']",
        "gen_ai.request.reasoning_effort": "[]",
        "gen_ai.openai.request.response_format": "json_object",
        "llm.top_k": 7,
    }
    assert genai.parameters(said) == {
        "temperature": 0.5,
        "top_k": 7,
        "stop": ["a", "b"],
        "response_format": {"type": "json_object"},
    }


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"gen_ai.response.finish_reasons": ["tool_call"]}, ("tool_calls",)),
        ({"gen_ai.response.finish_reasons": '["stop"]'}, ("stop",)),
        ({"gen_ai.response.finish_reasons": "['stop']"}, ("stop",)),
        ({"gen_ai.response.finish_reason": "FinishReason.TOOL_CALLS"}, ("TOOL_CALLS",)),
        ({"anthropic.message.stop_reason": "end_turn"}, ("end_turn",)),
        ({"gen_ai.response.finish_reasons": ["COMPLETE"]}, ("stop",)),
        ({}, ()),
    ],
)
def test_reasons_are_words_that_a_provider_says(said: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert genai.finishes(said) == expected


@pytest.mark.parametrize(
    ("said", "system"),
    [
        ({"gen_ai.system": "OpenAI"}, "OpenAI"),
        ({"gen_ai.provider.name": "groq", "gen_ai.system": "openai"}, "groq"),
        ({"gen_ai.system": "strands-agents", "server.address": "api.openai.com"}, "openai"),
        ({"gen_ai.system": "strands-agents", "gen_ai.request.model": "claude-x"}, "anthropic"),
        ({"gen_ai.system": "strands-agents", "gen_ai.request.model": "us.anthropic.claude-x"}, "strands-agents"),
        ({"gen_ai.openai.api_base": "https://api.deepseek.com/v1"}, "deepseek"),
        ({}, ""),
    ],
)
def test_a_framework_is_no_provider(said: dict[str, Any], system: str) -> None:
    assert genai.system_of(said) == system


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"gen_ai.operation.name": "chat"}, CallKind.LLM),
        ({"gen_ai.operation.name": "execute_tool"}, CallKind.TOOL),
        ({"gen_ai.operation.name": "embeddings"}, CallKind.EMBEDDING),
        ({"gen_ai.operation.name": "search_memory"}, CallKind.RETRIEVER),
        ({"gen_ai.operation.name": "delete_memory"}, CallKind.TOOL),
        ({"gen_ai.operation.name": "invoke_workflow"}, CallKind.CHAIN),
        ({"mcp.method.name": "tools/call"}, CallKind.TOOL),
        ({"mcp.method.name": "tools/list"}, CallKind.CHAIN),
        ({"llm.request.type": "rerank"}, CallKind.RERANKER),
        ({"gen_ai.operation.name": "unknown"}, CallKind.UNKNOWN),
    ],
)
def test_an_operation_says_what_a_call_is(said: dict[str, Any], kind: CallKind) -> None:
    assert genai.kind_of(said) is kind


def test_identity_goes_under_the_names_that_runs_are_found_by() -> None:
    said: dict[str, Any] = {
        "traceloop.association.properties.session_id": "s",
        "metadata.user_api_key_end_user_id": "u",
    }
    assert genai.identity(said) == {"session.id": "s", "user.id": "u"}
    assert genai.identity({"session.id": "s", "user.id": "None"}) == {}


def test_what_was_read_is_completed_and_not_overwritten() -> None:
    said: dict[str, Any] = {"gen_ai.request.model": "m", "gen_ai.response.model": "m-1", "gen_ai.is_streaming": "True"}
    first = Asked(messages=(Message(role="user", parts=(Text("hi"),)),), parameters={"temperature": 1})
    asked = genai.completed(first, {**said, "gen_ai.request.temperature": 0})
    assert asked is not None
    assert (asked.model, asked.stream, asked.parameters) == ("m", True, {"temperature": 1})
    assert genai.finished(None, said) == Answered(model="m-1")
    assert genai.finished(None, {}) is None
    assert genai.completed(None, said) is None


@given(st.dictionaries(st.sampled_from(["gen_ai.response.finish_reasons", "llm.is_streaming"]), json_values))
def test_no_value_is_too_strange(said: dict[str, Any]) -> None:
    more = {name: value for value in said.values() for name in ("gen_ai.request.seed", "gen_ai.request.temperature")}
    assert genai.completed(Asked(), {**said, **more}) is not None
    assert isinstance(genai.finishes(said), tuple)
    assert isinstance(genai.identity({"user.id": said.get("llm.is_streaming")}), dict)
