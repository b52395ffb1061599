"""A trace that kept messages and no bodies replays through the provider's own SDK, whole and in pieces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import reenact
from foreign import told
from foreign.told import ANSWER, QUESTION
from reenact.errors import Diverged, Miss
from reenact.values.span import Scope, SpanRecord

USER: Any = [{"role": "user", "content": QUESTION}]
TOOLS: Any = [{"type": "function", "function": {"name": "look", "description": "d", "parameters": {"type": "object"}}}]


def rain(provider: str = "openai", **more: Any) -> SpanRecord:
    asked = [told.said("system", told.text("Be brief.")), told.said("user", told.text(QUESTION))]
    return told.chat(
        1, asked, [{**told.said("assistant", told.text(ANSWER)), "finish_reason": "stop"}], provider=provider, **more
    )


CHAT: Any = {"model": "small", "messages": [{"role": "system", "content": "Be brief."}, *USER]}
RESPONSE: Any = {"model": "small", "instructions": "Be brief.", "input": QUESTION}
MESSAGE: Any = {"model": "small", "system": "Be brief.", "messages": USER, "max_tokens": 10}


def chat() -> str | None:
    said = openai.OpenAI().chat.completions.create(**CHAT)
    assert (said.id, said.model) == ("r-1", "small-2026-01-01")
    assert said.usage is not None
    assert (said.usage.prompt_tokens, said.choices[0].finish_reason) == (7, "stop")
    return said.choices[0].message.content


def chat_in_pieces() -> str:
    pieces = openai.OpenAI().chat.completions.create(**CHAT, stream=True)
    return "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices)


def chat_streamed_by_the_helper() -> str | None:
    with openai.OpenAI().chat.completions.stream(**CHAT) as stream:
        return stream.get_final_completion().choices[0].message.content


async def _chat_async() -> str | None:
    return (await openai.AsyncOpenAI().chat.completions.create(**CHAT)).choices[0].message.content


async def _pieces_async() -> str:
    pieces = await openai.AsyncOpenAI().chat.completions.create(**CHAT, stream=True)
    return "".join([piece.choices[0].delta.content or "" async for piece in pieces if piece.choices])


def response() -> str:
    said = openai.OpenAI().responses.create(**RESPONSE)
    assert (said.id, said.status, said.model) == ("r-1", "completed", "small-2026-01-01")
    return said.output_text


def response_in_pieces() -> str:
    events = openai.OpenAI().responses.create(**RESPONSE, stream=True)
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def response_streamed_by_the_helper() -> str:
    with openai.OpenAI().responses.stream(**RESPONSE) as stream:
        return stream.get_final_response().output_text


def message() -> str:
    said = anthropic.Anthropic().messages.create(**MESSAGE)
    assert (said.id, said.stop_reason, said.usage.input_tokens) == ("r-1", "end_turn", 7)
    return said.content[0].text  # type: ignore[union-attr]


def message_in_pieces() -> str:
    with anthropic.Anthropic().messages.stream(**MESSAGE) as stream:
        return "".join(stream.text_stream)


WAYS: list[tuple[str, dict[str, Any], Callable[[], str | None]]] = [
    ("openai", {}, chat),
    ("openai", {}, chat_in_pieces),
    ("openai", {}, chat_streamed_by_the_helper),
    ("azure.ai.openai", {}, lambda: asyncio.run(_chat_async())),
    ("groq", {}, lambda: asyncio.run(_pieces_async())),
    ("openai", {"openai.api.type": "responses"}, response),
    ("openai", {"openai.api.type": "responses"}, response_in_pieces),
    ("openai", {"openai.api.type": "responses"}, response_streamed_by_the_helper),
    ("anthropic", {}, message),
    ("anthropic", {}, message_in_pieces),
]


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "inert")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "inert")


@pytest.mark.sample(3)
@pytest.mark.parametrize(("provider", "more", "ask"), WAYS, ids=[f"{way[0]}-{way[2].__name__}" for way in WAYS])
def test_the_sdk_takes_what_was_rebuilt(
    provider: str, more: dict[str, Any], ask: Callable[[], str | None], tmp_path: Path
) -> None:
    path = told.written(tmp_path, rain(provider, **more))
    with reenact.replay(path, store=tmp_path / "store") as replay:
        assert ask() == ANSWER
    assert replay.result is not None
    assert (replay.result.result, replay.result.answered) == ("same", {"llm": 1})


@pytest.mark.parametrize(
    ("ask", "now"), [(response, "openai.responses"), (message, "anthropic.messages")], ids=["responses", "anthropic"]
)
def test_another_api_is_a_miss_that_says_so(ask: Callable[[], str], now: str, tmp_path: Path) -> None:
    path = told.written(tmp_path, rain())
    with reenact.replay(path, store=tmp_path / "store", strict=False) as replay, pytest.raises(Miss) as miss:
        ask()
    assert f'api: recorded "openai.chat", replay "{now}"' in str(miss.value)
    assert replay.result is not None
    assert [(each["field"], each["b"]) for each in replay.result.divergences] == [("api", now)]


def refused(error: tuple[str, str], **more: Any) -> SpanRecord:
    asked = [told.said("system", told.text("Be brief.")), told.said("user", told.text(QUESTION))]
    return told.chat(1, asked, error=error, **more)


ERRORS = [
    (("openai.RateLimitError", "Error code: 429 - {'error': {'message': 'slow', 'code': 'x'}}"), openai.RateLimitError),
    (("openai.BadRequestError", "Error code: 400 - no such thing"), openai.BadRequestError),
    (("openai.InternalServerError", "broken"), openai.InternalServerError),
    (("openai.APITimeoutError", "Request timed out."), openai.APITimeoutError),
    (("openai.APIConnectionError", "Connection error."), openai.APIConnectionError),
]


@pytest.mark.parametrize(("error", "expected"), ERRORS, ids=[each[1].__name__ for each in ERRORS])
def test_an_error_is_raised_again_by_the_sdk_itself(
    error: tuple[str, str], expected: type[Exception], tmp_path: Path
) -> None:
    path = told.written(tmp_path, refused(error))
    with reenact.replay(path, store=tmp_path / "store") as replay, pytest.raises(expected) as raised:
        openai.OpenAI(max_retries=1).chat.completions.create(**CHAT)
    assert replay.result is not None
    assert (replay.result.result, replay.result.answered) == ("same", {"llm": 1}), replay.result
    if isinstance(raised.value, openai.APIStatusError):
        assert raised.value.response.status_code in (400, 429, 500)
    if expected is openai.RateLimitError:
        assert raised.value.code == "x"  # type: ignore[attr-defined]


def test_what_was_not_kept_is_ignored_and_said(tmp_path: Path) -> None:
    path = told.written(tmp_path, rain())
    with reenact.replay(path, store=tmp_path / "store") as replay:
        openai.OpenAI().chat.completions.create(**CHAT, temperature=0.3, tools=TOOLS, tool_choice="required")
    assert replay.result is not None
    ignored = {entry["field"]: entry["reason"] for entry in replay.result.ignored if "reason" in entry}
    assert ignored == dict.fromkeys(("body.temperature", "body.tools", "body.tool_choice"), "the trace did not keep it")


def test_what_was_kept_is_compared(tmp_path: Path) -> None:
    path = told.written(tmp_path, rain(**{"gen_ai.request.temperature": 0.5}))
    with (
        pytest.raises(Diverged, match=r"temperature: recorded 0\.5, replay 0\.3"),
        reenact.replay(path, store=tmp_path / "store"),
    ):
        openai.OpenAI().chat.completions.create(**CHAT, temperature=0.3)


def test_equal_questions_are_told_apart_by_order_and_that_is_said(tmp_path: Path) -> None:
    asked = [told.said("user", told.text(QUESTION))]
    spans = [told.chat(n, asked, [told.said("assistant", told.text(answer))]) for n, answer in ((1, "no"), (2, "yes"))]
    root = told.span(0, "agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"})
    path = told.written(tmp_path, root, *(_below(span, root) for span in spans))
    client = openai.OpenAI()
    with reenact.replay(path, store=tmp_path / "store") as replay:
        said = [
            client.chat.completions.create(model="small", messages=USER).choices[0].message.content for _ in range(2)
        ]
    assert said == ["no", "yes"]
    assert replay.result is not None
    assert [(each["field"], each["recorded"]) for each in replay.result.ignored if each["field"] == "place"] == [
        ("place", 2)
    ]


def _below(span: SpanRecord, root: SpanRecord) -> SpanRecord:
    return replace(span, parent_id=root.span_id)


def test_parameters_that_are_the_reply_s_own_are_not_what_was_asked(tmp_path: Path) -> None:
    reply = {"id": "resp_1", "created_at": 1.0, "model": "small-2026-01-01", "temperature": 1.0, "tool_choice": "auto"}
    said = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.system": "openai",
        "llm.model_name": reply["model"],
        "llm.invocation_parameters": json.dumps(reply),
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "Be brief.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": QUESTION,
        "output.value": json.dumps({**reply, "object": "response", "status": "completed", "output": [said]}),
        "output.mime_type": "application/json",
    }
    path = told.written(tmp_path, told.span(1, "response", attributes))
    with reenact.replay(path, store=tmp_path / "store") as replay:
        assert openai.OpenAI().responses.create(**RESPONSE).output_text == ANSWER
    assert replay.result is not None
    assert (replay.result.result, replay.result.divergences) == ("same", [])
    ignored = {entry["field"] for entry in replay.result.ignored if "reason" in entry}
    assert "body.model" in ignored


def test_logfire_keeps_the_reply_of_an_agent_of_openai_s_whole(tmp_path: Path) -> None:
    said = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]}
    reply = {"id": "resp_1", "object": "response", "model": "small-2026-01-01", "status": "completed", "output": [said]}
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.system": "openai",
        "gen_ai.request.model": "small",
        "raw_input": json.dumps(USER),
        "response": json.dumps({**reply, "instructions": "Be brief.", "temperature": 1.0}),
        "logfire.msg_template": "Responses API with {gen_ai.request.model!r}",
    }
    span = replace(told.span(1, "Responses API", attributes), scope=Scope(name="logfire.openai_agents"))
    with reenact.replay(told.written(tmp_path, span), store=tmp_path / "store") as replay:
        assert openai.OpenAI().responses.create(**RESPONSE).output_text == ANSWER
    assert replay.result is not None
    assert (replay.result.result, replay.result.divergences) == ("same", [])
