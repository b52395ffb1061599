from __future__ import annotations

from typing import Any

import pytest

from reenact.boundary.question import shape_named
from reenact.foreign.rebuilding import failure, rebuilt, shape_for
from reenact.values.call import ExceptionRecord, HttpReply, HttpRequest, Raised, Returned, Unfinished
from reenact.values.json import parse
from reenact.values.message import Answered, Asked, Message, Text, ToolCall

ASKED = Asked(model="m", messages=(Message(role="user", parts=(Text("hi"),)),))
CALLING = Message(role="assistant", parts=(ToolCall(id="c", name="f", arguments="{}"),))


@pytest.mark.parametrize(
    ("system", "api", "shape", "known"),
    [
        ("openai", "", "openai.chat", True),
        ("openai", "responses", "openai.responses", True),
        ("OpenAI", "chat", "openai.chat", True),
        ("azure.ai.openai", "", "openai.chat", True),
        ("groq", "", "openai.chat", True),
        ("anthropic", "", "anthropic.messages", True),
        ("Anthropic", "chat", "anthropic.messages", True),
        ("aws.bedrock", "", "openai.chat", False),
        ("acme", "", "openai.chat", False),
        ("", "", "openai.chat", False),
    ],
)
def test_the_words_for_a_provider_tell_what_it_speaks(system: str, api: str, shape: str, *, known: bool) -> None:
    found, told = shape_for(system, api)
    assert (found.name, told) == (shape, known)


def test_a_model_s_name_tells_its_provider_where_nobody_else_does() -> None:
    assert shape_for("", model="claude-sonnet-4")[0].name == "anthropic.messages"
    assert shape_for("", model="gpt-4o-mini")[1] is True


def reply(outcome: Any) -> Any:
    assert isinstance(outcome, Returned)
    assert isinstance(outcome.payload, HttpReply)
    return parse(outcome.payload.body.data)


@pytest.mark.parametrize(
    ("system", "api", "reason", "word"),
    [
        ("openai", "", "tool_call", "tool_calls"),
        ("openai", "", "end_turn", "stop"),
        ("openai", "", "max_tokens", "length"),
        ("anthropic", "", "tool_calls", "tool_use"),
        ("anthropic", "", "stop", "end_turn"),
        ("anthropic", "", "length", "max_tokens"),
        ("openai", "", "content_filter", "content_filter"),
    ],
)
def test_why_it_ended_is_said_in_the_provider_s_word(system: str, api: str, reason: str, word: str) -> None:
    answered = Answered(messages=(CALLING,), finish_reasons=(reason,))
    _, outcome, names = rebuilt(ASKED, answered, system=system, api=api)
    body = reply(outcome)
    assert (body["choices"][0]["finish_reason"] if "choices" in body else body["stop_reason"]) == word
    assert "finish_reason" not in names


def test_where_nobody_said_why_the_reply_itself_tells() -> None:
    _, outcome, names = rebuilt(ASKED, Answered(messages=(CALLING,)), system="openai")
    assert reply(outcome)["choices"][0]["finish_reason"] == "tool_calls"
    assert names == ("request", "reply", "finish_reason")


def test_nothing_is_answered_where_nothing_was_kept() -> None:
    request, outcome, names = rebuilt(ASKED, None, system="openai", whole=True)
    assert isinstance(request, HttpRequest)
    assert (outcome, names) == (Unfinished(), ("spelling",))
    assert parse(request.body.data) == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_a_stream_that_was_asked_for_is_asked_for_again() -> None:
    request, _, _ = rebuilt(ASKED, None, system="openai", stream=True)
    assert isinstance(request, HttpRequest)
    assert b'"stream":true' in request.body.data


@pytest.mark.parametrize(
    ("name", "message", "status", "body"),
    [
        ("RateLimitError", "Error code: 429 - {'error': {'message': 'slow'}}", 429, {"error": {"message": "slow"}}),
        ("RateLimitError", 'Error code: 429 - {"error": {"message": "slow"}}', 429, {"error": {"message": "slow"}}),
        ("BadRequestError", "no", 400, {"error": {"message": "no", "code": None}}),
        ("503", "busy", 503, {"error": {"message": "busy", "code": None}}),
        ("Exception", "Error code: 500 - broken", 500, {"error": {"message": "broken", "code": None}}),
    ],
)
def test_an_error_is_turned_back_into_what_raised_it(name: str, message: str, status: int, body: Any) -> None:
    shape = shape_named("openai.chat")
    assert shape is not None
    outcome = failure(shape, ExceptionRecord(module="openai", qualname=name, message=message))
    assert reply(outcome) == body
    assert isinstance(outcome, Returned)
    assert isinstance(outcome.payload, HttpReply)
    assert outcome.payload.status == status
    assert ("x-should-retry", "false") in outcome.payload.headers  # the span stands for all the tries


def test_what_no_status_stands_for_is_raised() -> None:
    shape = shape_named("openai.chat")
    assert shape is not None
    lost = failure(shape, ExceptionRecord(module="openai", qualname="APIConnectionError", message="gone"))
    assert isinstance(lost, Raised)
    assert (lost.exception.module, lost.exception.qualname) == ("httpx", "ConnectError")
    odd = ExceptionRecord(module="builtins", qualname="KeyError", message="x")
    assert failure(shape, odd) == Raised(exception=odd)
