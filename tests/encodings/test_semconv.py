from __future__ import annotations

from typing import Any

import pytest

from golden_spans import span_of
from reenact.encodings import semconv
from reenact.encodings.semconv import Reading
from reenact.foreign.foreign_call import Loss, said_of
from reenact.values.call import Call, CallKind, FunctionCall, HttpRequest, Outcome, Returned, Unfinished, Value
from reenact.values.message import Answered, Asked, Message, Text, ToolCall

USER = Message(role="user", parts=(Text("Where?"),))
FOUND = Answered(messages=(Message(role="assistant", parts=(Text("Here."),)),))
CALL = Message(role="assistant", parts=(ToolCall(id="c1", name="find", arguments="{}"),))
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m"}


def read(attributes: dict[str, Any], **reading: Any) -> tuple[Call, Outcome]:
    span = span_of({"name": "span", "attributes": attributes})
    return semconv.call(span, said_of(span), "mine", Reading(**reading))


def fields(call: Call) -> list[str]:
    lost = call.attributes.get("reenact.lost")
    return [each["field"] for each in lost if isinstance(each, dict)] if isinstance(lost, list) else []  # type: ignore[misc]


def test_a_call_of_a_model_is_a_request_again() -> None:
    call, outcome = read(CHAT, asked=Asked(messages=(USER,)), answered=FOUND)
    assert isinstance(call.request, HttpRequest)
    assert call.request.shape == "openai.chat"
    assert isinstance(outcome, Returned)
    assert call.attributes["reenact.dialect"] == "mine"
    assert fields(call) == []


def test_a_question_of_empty_messages_is_not_asked() -> None:
    call, outcome = read(CHAT, asked=Asked(messages=(Message(role="system"), Message(role="user"), CALL)))
    assert isinstance(call.request, FunctionCall)
    assert isinstance(outcome, Unfinished)
    assert fields(call) == ["messages"]


@pytest.mark.parametrize(
    ("history", "field"),
    [
        ((USER, Message(role="assistant")), "messages"),
        ((USER, CALL, Message(role="tool", parts=(Text("x"),))), "tool_call_id"),
        ((USER, Message(role="tool", parts=(Text("x"),), tool_call_id="c1")), "messages"),
        ((USER, Message(role="user")), "messages"),
    ],
)
def test_a_history_with_holes_says_so(history: tuple[Message, ...], field: str) -> None:
    call, _ = read(CHAT, asked=Asked(messages=history), answered=FOUND)
    assert isinstance(call.request, HttpRequest)
    assert fields(call) == [field]


def test_a_whole_history_has_no_holes() -> None:
    history = (USER, CALL, Message(role="tool", parts=(Text("x"),), tool_call_id="c1"))
    call, _ = read(CHAT, asked=Asked(messages=history), answered=FOUND)
    assert fields(call) == []


def test_what_the_carrier_lost_is_told_beside_what_the_dialect_knows() -> None:
    carried = '[{"field": "time", "lost": "nanoseconds", "fix": "none"}]'
    loss = Loss(field="tools", lost="all", fix="none")
    call, _ = read({**CHAT, "reenact.lost": carried}, asked=Asked(messages=(USER,)), answered=FOUND, losses=(loss,))
    assert fields(call) == ["time", "tools"]


def test_content_that_lies_elsewhere_is_named() -> None:
    call, _ = read({**CHAT, "gen_ai.input.messages_ref": "s3://bucket/x.json"})
    lost = call.attributes["reenact.lost"]
    assert isinstance(lost, list)
    assert "s3://bucket/x.json" in str(lost[0])


def test_json_that_was_cut_off_is_named() -> None:
    call, _ = read({**CHAT, "gen_ai.input.messages": '[{"role": "user", "parts": [{"ty'})
    assert "gen_ai.input.messages" in fields(call)


def test_an_embedding_asks_for_its_texts() -> None:
    call, outcome = read({**CHAT, "gen_ai.operation.name": "embeddings"}, asked=Asked(messages=(USER,)))
    assert isinstance(call.request, HttpRequest)
    assert call.kind is CallKind.EMBEDDING
    assert b"Where?" in call.request.body.data
    assert isinstance(outcome, Unfinished)
    assert fields(call) == ["vectors"]


@pytest.mark.parametrize(
    ("attributes", "kind", "arguments", "result"),
    [
        (
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.call.arguments": '{"n": 1}',
                "gen_ai.tool.call.result": "null",
            },
            CallKind.TOOL,
            {"n": 1},
            None,
        ),
        (
            {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.retrieval.query.text": "q",
                "gen_ai.retrieval.documents": '[{"id": "d"}]',
            },
            CallKind.RETRIEVER,
            {"query": "q"},
            [{"id": "d"}],
        ),
    ],
)
def test_functions_have_arguments_and_a_result(
    attributes: dict[str, Any], kind: CallKind, arguments: Any, result: Any
) -> None:
    call, outcome = read(attributes)
    assert call.kind is kind
    assert isinstance(call.request, FunctionCall)
    assert call.request.arguments == arguments
    assert outcome == Returned(payload=Value(json=result))


def test_a_tool_without_a_result_is_unfinished() -> None:
    assert read({"gen_ai.operation.name": "execute_tool"})[1] == Unfinished()
