from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.encodings import openinference as flat
from reenact.values.message import Media, Message, Reasoning, Text, ToolCall

CALL = ToolCall(id="call_1", name="tide", arguments='{"port":"Husum"}')


def asked(**said: Any) -> tuple[Message, ...]:
    return flat.openinference_request(
        flat.tree({name.replace("__", "."): value for name, value in said.items()})
    ).messages


FLAT = {
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "High water?",
    "llm.input_messages.1.message.role": "assistant",
    "llm.input_messages.1.message.tool_calls.0.tool_call.id": "call_1",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "tide",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": '{"port":"Husum"}',
}
INNER = {"id": "call_1", "function": {"name": "tide", "arguments": '{"port":"Husum"}'}}


@pytest.mark.parametrize(
    "spelled",
    [
        FLAT,
        dict(reversed(FLAT.items())),
        {name.replace("messages.1.", "messages.233."): value for name, value in FLAT.items()},
        {
            "llm.input_messages": [
                {"message.role": "user", "message.content": "High water?"},
                {"message.role": "assistant", "message.tool_calls": [{"tool_call.id": "call_1",
                 "tool_call.function.name": "tide", "tool_call.function.arguments": '{"port":"Husum"}'}]},
            ]
        },
        {
            "llm.input_messages": [
                {"message": {"role": "user", "content": "High water?"}},
                {"message": {"role": "assistant", "tool_calls": [{"tool_call": INNER}]}},
            ]
        },
        {
            "llm.input_messages": '[{"message.role":"user","message.content":"High water?"},'
            '{"message.role":"assistant","message.tool_calls":[{"tool_call":{"id":"call_1","function":'
            '{"name":"tide","arguments":"{\\"port\\":\\"Husum\\"}"}}}]}]'
        },
    ],
    ids=["flat", "backwards", "with gaps", "dotted again", "nested again", "as text"],
)  # fmt: skip
def test_messages_are_read_however_a_backend_keeps_them(spelled: dict[str, Any]) -> None:
    assert flat.openinference_request(flat.tree(spelled)).messages == (
        Message(role="user", parts=(Text("High water?"),)),
        Message(role="assistant", parts=(CALL,)),
    )


def one(**said: Any) -> Message:
    (message,) = asked(**{f"llm__input_messages__0__{name}": value for name, value in said.items()})
    return message


def test_calls_told_twice_are_one() -> None:
    said = (("id", "call_1"), ("function__name", "tide"), ("function__arguments", CALL.arguments))
    places = ("contents__1__tool_call", "tool_calls__0__tool_call")
    told = {f"{place}__{name}": value for place in places for name, value in said}
    message = one(
        message__role="assistant",
        message__contents__0__message_content__type="text",
        message__contents__0__message_content__text="One moment.",
        message__contents__1__message_content__type="tool_use",
        **{f"message__{name}": value for name, value in told.items()},
    )
    assert message.parts == (Text("One moment."), CALL)


def test_pieces_of_content_are_told_by_their_type() -> None:
    message = one(
        message__role="user",
        message__contents__0__message_content__type="reasoning",
        message__contents__0__message_content__text="Hm.",
        message__contents__0__message_content__signature="sig",
        message__contents__1__message_content__image__image__url="data:image/png;base64,AA",
        message__content__0="not read where contents are",
    )
    assert message.parts == (
        Reasoning(text="Hm.", encrypted="sig"),
        Media(modality="image", url="data:image/png;base64,AA", mime_type="image/png"),
    )


@pytest.mark.parametrize("role", ["user", "tool", "function", "model"])
def test_what_answers_a_call_is_a_tool_s_message_whatever_it_is_called(role: str) -> None:
    message = one(message__role=role, message__content="14:07", message__tool_call_id="call_1")
    assert message == Message(role="tool", parts=(Text("14:07"),), tool_call_id="call_1")


def test_results_beside_a_message_without_words_are_messages() -> None:
    result = '{"name":"tide","content":"14:07","call_id":"call_1","is_error":false}'
    message = one(message__role="function", function__0=result)
    assert message == Message(role="tool", parts=(Text("14:07"),), tool_call_id="call_1", name="tide")


def test_prompts_and_completions_of_text_models_are_messages() -> None:
    grown = flat.tree({"llm.prompts": ["One?"], "llm.output_messages": "Two."})
    assert flat.openinference_request(grown).messages == (Message(role="user", parts=(Text("One?"),)),)
    assert flat.answered(grown).messages == (Message(role="assistant", parts=(Text("Two."),)),)
    grown = flat.tree({"llm.prompts.0.prompt.text": "One?", "llm.choices.0.completion.text": "Two."})
    assert flat.openinference_request(grown).messages == (Message(role="user", parts=(Text("One?"),)),)
    assert flat.answered(grown).messages == (Message(role="assistant", parts=(Text("Two."),)),)


def test_an_answer_of_which_only_the_role_was_kept_is_none() -> None:
    assert flat.answered(flat.tree({"llm.output_messages.0.message.role": "assistant"})).messages == ()


def test_pieces_of_a_stream_that_were_written_as_messages_are_one_answer() -> None:
    said = {f"llm.output_messages.{at}.message.content": text for at, text in ((0, "At "), (1, "14"), (233, ":07"))}
    assert flat.answered(flat.tree(said), "At 14:07").messages == (
        Message(role="assistant", parts=(Text("At 14:07"),)),
    )
    assert len(flat.answered(flat.tree(said), "something else").messages) == 3


def test_settings_of_frameworks_are_no_parameters() -> None:
    settings = '{"model":"m-0","temperature":0.5,"stop":null,"_type":"x","context_window":9,"tool_choice":"auto"}'
    read = flat.openinference_request(flat.tree({"llm.invocation_parameters": settings, "llm.model_name": "m-1"}))
    assert (read.model, read.parameters) == ("m-0", {"temperature": 0.5, "tool_choice": "auto"})
    assert flat.names_the_asked_model(flat.tree({"llm.invocation_parameters": settings}))
    assert not flat.names_the_asked_model(flat.tree({"llm.model_name": "m-1"}))


keys = st.lists(
    st.sampled_from(
        ["llm", "input_messages", "output_messages", "message", "contents", "message_content", "0", "7", "99999999999",
         "tool_calls", "tool_call", "function", "role", "text", "token_count", "prompts", "tools", "json_schema", "",
         "retrieval", "documents", "document", "embedding", "embeddings", "vector", "reranker", "__proto__"]
    ),
    min_size=1,
    max_size=9,
).map(".".join)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=4)
    | st.sampled_from(["[{}]", '{"a":1}', "[[", "null"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.dictionaries(keys, values, max_size=8))
def test_nothing_is_too_strange_to_read(said: dict[str, Any]) -> None:
    grown = flat.tree(said)
    for message in (*flat.openinference_request(grown).messages, *flat.answered(grown).messages):
        assert message.role
    assert isinstance(flat.embedded(grown), tuple)
    assert isinstance(flat.to_rank(grown), dict)
    for place in (("retrieval", "documents"), ("reranker", "output_documents")):
        assert isinstance(flat.documents(grown, *place), list)
    assert isinstance(flat.model_named(grown, "llm"), str)


@pytest.mark.parametrize("level", ["list", "object"])
def test_what_is_nested_without_end_is_carried_without_harm(level: str) -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep] if level == "list" else {"a": deep}
    assert flat.json_of({"0": deep}) is not None
    assert flat.json_of({"0": {"1": "b", "0": "a"}}) == [["a", "b"]]
