from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reenact.encodings import events
from reenact.values.message import Answered, Message, Text, ToolCall
from reenact.values.span import SpanEvent
from strategies_call import json_values

SYSTEM = Message(role="system", parts=(Text("Be brief."),))
USER = Message(role="user", parts=(Text("Where?"),))
CALL = Message(role="assistant", parts=(ToolCall(id="c1", name="find", arguments='{"n":1}'),))
TOLD = Message(role="tool", parts=(Text("here"),), tool_call_id="c1")
FOUND = Message(role="assistant", parts=(Text("Here."),))


def event(name: str, **attributes: Any) -> SpanEvent:
    return SpanEvent(name=name, time_ns=1, attributes=attributes)


def logged(name: str, body: Any, **attributes: Any) -> SpanEvent:
    return event(name, body=json.dumps(body), **{"reenact.log": True, **attributes})


def test_one_log_event_a_message() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n":1}'}}]
    told = [
        logged("gen_ai.system.message", {"content": "Be brief."}, **{"gen_ai.system": "openai"}),
        logged("gen_ai.user.message", {"content": "Where?"}),
        logged("gen_ai.assistant.message", {"tool_calls": calls}),
        logged("gen_ai.tool.message", {"content": "here", "id": "c1"}),
        logged("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"content": "Here."}}),
    ]
    asked, answered = events.exchange_of_events(told)
    assert asked is not None
    assert asked.messages == (SYSTEM, USER, CALL, TOLD)
    assert answered == Answered(messages=(FOUND,), finish_reasons=("stop",))


def test_names_in_an_attribute_and_bodies_as_text_in_the_order_of_their_index() -> None:
    told = [
        event(
            "",
            body='{"role": "user", "content": "Where?"}',
            **{"event.name": "gen_ai.user.message", "CHAT_MESSAGE_INDEX": 1},
        ),
        event(
            "",
            body='{"role": "system", "content": "Be brief."}',
            **{"event.name": "gen_ai.system.message", "CHAT_MESSAGE_INDEX": 0},
        ),
        event(
            "",
            body='{"index": 0, "message": {"role": "assistant", "content": "Here."}}',
            **{"event.name": "gen_ai.choice"},
        ),
    ]
    asked, answered = events.exchange_of_events(told)
    assert asked is not None
    assert asked.messages == (SYSTEM, USER)
    assert answered == Answered(messages=(FOUND,))


def test_blocks_of_bedrock_in_span_events() -> None:
    told = [
        event("gen_ai.user.message", content='[{"text": "Where?"}]'),
        event(
            "gen_ai.assistant.message", content='[{"toolUse": {"toolUseId": "c1", "name": "find", "input": {"n": 1}}}]'
        ),
        event("gen_ai.tool.message", content='[{"toolResult": {"toolUseId": "c1", "content": [{"text": "here"}]}}]'),
        event("gen_ai.choice", finish_reason="end_turn", message='[{"text": "Here."}]'),
    ]
    asked, answered = events.exchange_of_events(told)
    assert asked is not None
    assert asked.messages == (USER, CALL, TOLD)
    assert answered == Answered(messages=(FOUND,), finish_reasons=("end_turn",))


def test_events_as_a_list_in_an_attribute() -> None:
    listed = [
        {"event.name": "gen_ai.user.message", "content": "Where?", "role": "user", "gen_ai.message.index": 1},
        {"event.name": "gen_ai.system.message", "content": "Be brief.", "role": "system", "gen_ai.message.index": 0},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Here."}},
    ]
    asked, answered = events.exchange_of_events(events.listed(json.dumps(listed)))
    assert asked is not None
    assert asked.messages == (SYSTEM, USER)
    assert answered == Answered(messages=(FOUND,))


def test_details_in_one_event_or_in_several() -> None:
    system = [{"type": "text", "content": "Be brief."}]
    inputs = [{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}]
    outputs = [{"role": "assistant", "parts": [{"type": "text", "content": "Here."}], "finish_reason": "stop"}]
    name = "gen_ai.client.inference.operation.details"
    one = {
        "gen_ai.system_instructions": system,
        "gen_ai.input.messages": inputs,
        "gen_ai.output.messages": outputs,
        "gen_ai.request.model": "m",
    }
    for told in ([event(name, **one)], [event(name, **{key: value}) for key, value in one.items()]):
        asked, answered = events.exchange_of_events(told)
        assert asked is not None
        assert asked.messages == (SYSTEM, USER)
        assert answered == Answered(messages=(FOUND,), finish_reasons=("stop",))
        assert events.facts(told) == {"gen_ai.request.model": "m"}


def test_the_oldest_tell_all_in_two_events() -> None:
    told = [
        event("gen_ai.content.prompt", **{"gen_ai.prompt": '[{"role": "user", "content": "Where?"}]'}),
        event("gen_ai.content.completion", **{"gen_ai.completion": "Here."}),
    ]
    asked, answered = events.exchange_of_events(told)
    assert asked is not None
    assert asked.messages == (USER,)
    assert answered == Answered(messages=(FOUND,))


def test_a_text_that_happens_to_be_json_stays_text() -> None:
    asked, answered = events.exchange_of_events(
        [
            logged("gen_ai.user.message", {"content": '{"order": 1}'}),
            logged("gen_ai.choice", {"message": {"role": "assistant", "content": "[1, 2]"}}),
        ]
    )
    assert asked is not None
    assert asked.messages == (Message(role="user", parts=(Text('{"order": 1}'),)),)
    assert answered == Answered(messages=(Message(role="assistant", parts=(Text("[1, 2]"),)),))


def test_an_event_without_content_says_who_spoke_and_no_more() -> None:
    asked, answered = events.exchange_of_events(
        [event("gen_ai.user.message"), logged("gen_ai.choice", {"message": {}, "finish_reason": "stop"})]
    )
    assert asked is not None
    assert asked.messages == (Message(role="user"),)
    assert answered == Answered(finish_reasons=("stop",))


def test_a_tool_tells_what_it_was_given_and_what_it_said() -> None:
    told = [
        event("gen_ai.tool.message", role="tool", content='{"n": 1}', id="c1"),
        event("gen_ai.choice", message='[{"text": "he"}, {"text": "re"}]', id="c1"),
    ]
    assert events.tool(told) == ({"n": 1}, "here")
    assert events.tool([]) == (None, None)


def test_events_of_several_calls_are_told_from_those_of_one() -> None:
    one = [event("gen_ai.user.message"), event("gen_ai.choice"), event("gen_ai.choice")]
    assert not events.several(one)
    assert events.several([*one, event("gen_ai.user.message")])


names = st.sampled_from(
    ["gen_ai.user.message", "gen_ai.tool.message", "gen_ai.choice", "gen_ai.content.prompt", *events.DETAILS, ""]
)
keys = st.sampled_from(
    [
        *("body", "content", "message", "id", "tool_calls", "finish_reason", "gen_ai.prompt", "CHAT_MESSAGE_INDEX"),
        *("gen_ai.input.messages", "gen_ai.output.messages", "event.name", "role", "gen_ai.tool.definitions"),
    ]
)


@given(st.lists(st.tuples(names, st.dictionaries(keys, json_values | json_values.map(json.dumps))), max_size=4))
def test_no_events_are_too_strange(given: list[tuple[str, dict[str, Any]]]) -> None:
    told = [SpanEvent(name=name, time_ns=1, attributes=attributes) for name, attributes in given]
    events.exchange_of_events(told)
    events.tool(told)
    events.facts(told)
    events.several(told)
    events.listed([attributes for _, attributes in given])
