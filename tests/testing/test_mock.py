"""A model made up on the spot, asked by the real SDKs."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from reenact.testing.cases import TestFailed
from reenact.testing.mock import MockModel, UnexpectedCall

ASKED = [{"role": "user", "content": "Where is A-1?"}]
CALL = {"name": "find_order", "arguments": {"order": "A-1"}}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def chat(client: Any = None, **further: Any) -> Any:
    return (client or openai.OpenAI()).chat.completions.create(model="gpt-5", messages=ASKED, **further)


def test_a_chat_says_what_the_test_says(mock_llm: MockModel) -> None:
    mock_llm.add_response("It is on its way.", usage=(7, 5))
    reply = chat(tools=[{"type": "function", "function": {"name": "find_order", "parameters": {}}}])
    assert type(reply) is openai.types.chat.ChatCompletion
    assert reply.choices[0].message.content == "It is on its way."
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.total_tokens == 12
    assert mock_llm.call_count == 1
    (call,) = mock_llm.calls
    assert (call.api, call.model, call.text, call.stream) == ("openai.chat", "gpt-5", "Where is A-1?", False)
    assert call.messages == ASKED
    assert call.tools[0]["function"]["name"] == "find_order"


def test_a_chat_asks_for_tools(mock_llm: MockModel) -> None:
    mock_llm.add_response(tool_calls=[CALL, ("stop", {})])
    choice = chat().choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert [each.function.name for each in choice.message.tool_calls] == ["find_order", "stop"]
    assert choice.message.tool_calls[0].function.arguments == '{"order":"A-1"}'
    assert len({each.id for each in choice.message.tool_calls}) == 2


def test_a_chat_streams(mock_llm: MockModel) -> None:
    mock_llm.add_response("Soon.").add_response(tool_calls=[CALL])
    text = "".join(each.choices[0].delta.content or "" for each in chat(stream=True) if each.choices)
    assert text == "Soon."
    with openai.OpenAI().chat.completions.stream(model="gpt-5", messages=ASKED) as stream:
        message = stream.get_final_completion().choices[0].message
    assert message.tool_calls[0].function.arguments == '{"order":"A-1"}'
    assert mock_llm.calls[0].stream


def test_responses_whole_and_streamed(mock_llm: MockModel) -> None:
    mock_llm.add_response("Soon.").add_response(tool_calls=[CALL]).add_response("Soon.")
    client = openai.OpenAI()
    assert client.responses.create(model="gpt-5", input="Where is A-1?").output_text == "Soon."
    (item,) = client.responses.create(model="gpt-5", input="Where is A-1?").output
    assert (item.name, item.arguments) == ("find_order", '{"order":"A-1"}')
    with client.responses.stream(model="gpt-5", input="Where is A-1?") as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == final.output_text == "Soon."
    assert mock_llm.calls[0].messages == ["Where is A-1?"]


def test_messages_whole_and_streamed(mock_llm: MockModel) -> None:
    mock_llm.add_response("Soon.").add_response(tool_calls=[CALL]).add_response("So").add_response(tool_calls=[CALL])
    client = anthropic.Anthropic()
    asked: Any = {"model": "claude-x", "max_tokens": 9, "messages": ASKED}
    reply = client.messages.create(**asked)
    assert type(reply) is anthropic.types.Message
    assert (reply.content[0].text, reply.stop_reason) == ("Soon.", "end_turn")
    reply = client.messages.create(**asked)
    assert (reply.content[0].name, reply.content[0].input, reply.stop_reason) == (
        "find_order",
        {"order": "A-1"},
        "tool_use",
    )
    with client.messages.stream(**asked) as stream:
        assert "".join(stream.text_stream) == "So"
    with client.messages.stream(**asked) as stream:
        assert stream.get_final_message().content[0].input == {"order": "A-1"}
    assert mock_llm.call_count == 4


def test_both_colours(mock_llm: MockModel) -> None:
    mock_llm.add_response("one").add_response("two").add_response("three")

    async def go() -> list[str]:
        said = [(await chat(openai.AsyncOpenAI())).choices[0].message.content]
        async for each in await chat(openai.AsyncOpenAI(), stream=True):
            said += [choice.delta.content for choice in each.choices if choice.delta.content]
        client = anthropic.AsyncAnthropic()
        reply = await client.messages.create(model="claude-x", max_tokens=9, messages=ASKED)
        return [*said, reply.content[0].text]

    assert asyncio.run(go()) == ["one", "two", "three"]


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_plain_clients_of_either_library(mock_llm: MockModel, library: Any) -> None:
    mock_llm.add_response("hi")
    reply = library.post("https://api.example.com/v1/chat/completions", json={"model": "m", "messages": ASKED})
    assert reply.json()["choices"][0]["message"]["content"] == "hi"


def test_errors_are_the_providers_and_are_tried_again(mock_llm: MockModel) -> None:
    mock_llm.add_response(status=429, message="slow down").add_response("now")
    assert chat().choices[0].message.content == "now"
    assert mock_llm.call_count == 2
    mock_llm.add_response(status=429, message="slow down", times=3)
    with pytest.raises(openai.RateLimitError, match="slow down"):
        chat()
    mock_llm.add_response(status=400, message="too long")
    with pytest.raises(anthropic.BadRequestError, match="too long"):
        anthropic.Anthropic().messages.create(model="claude-x", max_tokens=9, messages=ASKED)


def test_a_connection_is_lost(mock_llm: MockModel) -> None:
    mock_llm.add_response(raises=httpx2.ConnectError("gone"))
    with pytest.raises(openai.APIConnectionError):
        chat(openai.OpenAI(max_retries=0))


def test_embeddings_and_whole_bodies_and_functions(mock_llm: MockModel) -> None:
    mock_llm.add_response(vectors=[[0.5, 0.25]])
    assert openai.OpenAI().embeddings.create(model="e", input="x").data[0].embedding == [0.5, 0.25]
    mock_llm.add_response(body={"id": "x", "choices": [], "created": 1, "model": "m", "object": "chat.completion"})
    assert chat().id == "x"
    mock_llm.add_response(lambda call: f"you said {call.text}")
    assert chat().choices[0].message.content == "you said Where is A-1?"


def test_an_unexpected_call_fails_the_test_even_if_the_agent_swallows_it() -> None:
    with MockModel() as model:
        model.add_response("one")
        chat()
        with pytest.raises(UnexpectedCall):
            chat()
    with pytest.raises(
        TestFailed, match=r"call 2 of openai\.chat to gpt-5, and only 1 response was added.*Where is A-1"
    ):
        model.finish(None)


def test_nothing_is_left_behind() -> None:
    before = httpx2.Client.send, httpx2.AsyncClient.send
    with MockModel() as model:
        assert httpx2.Client.send is not before[0]
        model.add_response("one")
    assert (httpx2.Client.send, httpx2.AsyncClient.send) == before
    with pytest.raises(openai.OpenAIError):
        openai.OpenAI()
    assert model.responses_left == 1


def test_declared_tools_run(mock_llm: MockModel) -> None:
    import reenact

    @reenact.tool
    def find_order(order: str) -> str:
        return f"{order}: {chat().choices[0].message.content}"

    mock_llm.add_response("lost")
    assert find_order("A-1") == "A-1: lost"
