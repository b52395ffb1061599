from __future__ import annotations

import json
from typing import Any

import pytest

from made import Made, user
from reenact.boundary.reading import answered, reply_body
from reenact.errors import UsageError
from reenact.replay.changes import apply, describe_changes, requests
from reenact.replay.stubs import Stubs
from reenact.values import typed
from reenact.values.call import (
    CallKind,
    Chunk,
    FunctionCall,
    HttpReply,
    Outcome,
    Raised,
    Returned,
    Streamed,
    StreamEnd,
    Value,
)
from reenact.values.change import Change
from reenact.values.difference import ABSENT
from reenact.values.json import Json
from reenact.values.message import Text
from reenact.values.run import Node, Run


def changed(made: Made, call: str, *sets: tuple[str, Json]) -> Node:
    run = made.run()
    after = apply(run, [Change(call=call, path=path, value=value) for path, value in sets])
    assert [node.id for node in after.nodes] == [node.id for node in run.nodes]
    differ = [node for node, before in zip(after.nodes, run.nodes, strict=True) if node != before]
    assert [node.id for node in differ] == [call]
    assert all(node.call == before.call for node, before in zip(after.nodes, run.nodes, strict=True))
    return differ[0]


def said(node: Node) -> str:
    reply = answered(node)
    assert reply is not None
    return "".join(part.text for message in reply.messages for part in message.parts if isinstance(part, Text))


def tool(result: Json = None, **more: Any) -> tuple[Made, str]:
    made = Made()
    made.llm([user("x")], "y")
    return made, made.tool("fetch", {"item": "tea"}, result, **more)


def value(node: Node) -> Json:
    assert isinstance(node.outcome, Returned)
    assert isinstance(node.outcome.payload, Value)
    return node.outcome.payload.json


# functions


def test_a_result_is_set_as_a_whole_or_in_a_place() -> None:
    made, call = tool({"total": 1, "lines": [{"n": 1}]})
    assert value(changed(made, call, ("result", {"total": 2}))) == {"total": 2}
    assert value(changed(made, call, ("result.lines[0].n", 5))) == {"total": 1, "lines": [{"n": 5}]}
    assert value(changed(made, call, ("lines[0].n", 5))) == {"total": 1, "lines": [{"n": 5}]}
    assert value(changed(made, call, ("total", 3), ("new", True))) == {"total": 3, "lines": [{"n": 1}], "new": True}


def test_a_result_that_is_json_text_stays_text() -> None:
    made, call = tool(json.dumps({"price": 5, "sku": "K"}))
    assert value(changed(made, call, ("price", None))) == json.dumps({"price": None, "sku": "K"})


@pytest.mark.parametrize(
    "spelled", ['TimeoutError:"too slow"', "TimeoutError: too slow", {"type": "TimeoutError", "message": "too slow"}]
)
def test_a_tool_raises_instead(spelled: Json) -> None:
    made, call = tool(1)
    outcome = changed(made, call, ("raised", spelled)).outcome
    assert isinstance(outcome, Raised)
    error = typed.decode_exception(outcome.exception)
    assert type(error) is TimeoutError
    assert str(error) == "too slow"


@pytest.mark.parametrize(("spelled", "cls", "text"), [("KeyError:x", KeyError, "'x'"), ("ValueError", ValueError, "")])
def test_exceptions_of_python_s_own_are_its_own(spelled: str, cls: type[BaseException], text: str) -> None:
    made, call = tool(1)
    outcome = changed(made, call, ("raised", spelled)).outcome
    assert isinstance(outcome, Raised)
    error = typed.decode_exception(outcome.exception)
    assert (type(error), str(error)) == (cls, text)


def test_a_library_s_exception_is_its_own_where_it_is_loaded() -> None:
    import httpx

    made, call = tool(1)
    outcome = changed(made, call, ("raised", "httpx.ReadTimeout:late")).outcome
    assert isinstance(outcome, Raised)
    error = typed.decode_exception(outcome.exception)
    assert isinstance(error, httpx.ReadTimeout)
    assert str(error) == "late"


def test_a_tool_that_raised_or_never_ended_gets_a_result() -> None:
    for more in ({"raised": OSError("gone")}, {"unfinished": True}):
        made, call = tool(**more)
        assert value(changed(made, call, ("result", [1]))) == [1]
        with pytest.raises(UsageError, match="set `result` as a whole"):
            changed(made, call, ("result.x", 1))


def test_what_a_generator_yields_is_set() -> None:
    made = Made()
    chunks = tuple(Chunk(offset_us=n, order=10 + n, value=n) for n in range(3))
    request = FunctionCall(function="agent:count", arguments={})
    call = made.add(CallKind.TOOL, "count", request, Streamed(chunks=chunks, result="end"))
    outcome = changed(made, call, ("yielded[1]", "one")).outcome
    assert isinstance(outcome, Streamed)
    assert [(chunk.order, chunk.value) for chunk in outcome.chunks] == [(10, 0), (11, "one"), (12, 2)]
    assert outcome.result == "end"
    raised = changed(made, call, ("raised", "OSError:gone")).outcome
    assert isinstance(raised, Streamed)
    assert (raised.end, raised.chunks) == (StreamEnd.RAISED, ())


def test_a_found_tool_whose_result_is_set_does_not_run_again() -> None:
    made = Made()
    found = {
        "reenact.tool.found": True,
        "reenact.tool.reaches": "[]",
        "reenact.tool.state": '["m:x"]',
        "reenact.tool.changed": '["m:x"]',
    }
    first, second = (made.tool(name, {}, 1, more=found) for name in ("one", "two"))
    run = made.run()
    assert Stubs([run], sealed=True).again == {first, second}
    assert Stubs([run]).again == frozenset()
    assert Stubs([apply(run, [Change(call=first, path="result", value=2)])], sealed=True).again == frozenset()


# models


def model(**more: Any) -> tuple[Made, str]:
    made = Made()
    return made, made.llm([user("how?")], "as it was", **more)


@pytest.mark.parametrize("stream", [False, True])
def test_a_text_is_set(stream: bool) -> None:  # noqa: FBT001
    made, call = model(stream=stream)
    node = changed(made, call, ("text", "another\nway, süß"))
    assert said(node) == "another\nway, süß"
    assert isinstance(node.outcome, Streamed) is stream
    assert as_body(node)["id"].startswith("chatcmpl-")
    assert said(changed(made, call, ("text", 5))) == "5"


def as_body(node: Node) -> Any:
    return reply_body(node)


def test_a_tool_call_is_set_in_its_place_and_spelled_as_the_model_did() -> None:
    made, call = model(tools=[("fetch", {"item": "tea", "n": 1}), ("fetch", {"item": "milk"})])
    node = changed(made, call, ("tool_calls[0].arguments.item", "rum"), ("tool_calls[1].name", "order"))
    calls = as_body(node)["choices"][0]["message"]["tool_calls"]
    assert [each["function"] for each in calls] == [
        {"name": "fetch", "arguments": '{"item":"rum","n":1}'},
        {"name": "order", "arguments": '{"item":"milk"}'},
    ]
    assert as_body(node)["choices"][0]["finish_reason"] == "tool_calls"


def test_why_an_answer_ended_goes_along_with_its_tool_calls() -> None:
    made, call = model(tools=[("fetch", {})])
    for value_of in ([], None):
        assert as_body(changed(made, call, ("tool_calls", value_of)))["choices"][0]["finish_reason"] == "stop"
    kept = changed(made, call, ("tool_calls", []), ("finish_reason", "length"))
    assert as_body(kept)["choices"][0]["finish_reason"] == "length"
    made, call = model()
    asks = changed(made, call, ("tool_calls[0]", {"name": "fetch", "arguments": {"item": "tea"}}))
    assert as_body(asks)["choices"][0]["finish_reason"] == "tool_calls"


def test_any_field_of_a_reply_is_set() -> None:
    made, call = model()
    for path in ("usage.prompt_tokens", "reply.usage.prompt_tokens", "body.usage.prompt_tokens"):
        assert as_body(changed(made, call, (path, 5)))["usage"]["prompt_tokens"] == 5
    assert as_body(changed(made, call, ("reply", {"choices": []}))) == {"choices": []}


def test_a_stream_keeps_its_places_however_many_pieces_it_has_now() -> None:
    made, call = model(stream=True)
    recorded = next(node for node in made.run().nodes if node.id == call).outcome
    assert isinstance(recorded, Streamed)
    outcome = changed(made, call, ("text", "long " * 200)).outcome
    assert isinstance(outcome, Streamed)
    assert {chunk.order for chunk in outcome.chunks} <= {chunk.order for chunk in recorded.chunks}
    assert [chunk.order for chunk in outcome.chunks] == sorted({chunk.order for chunk in outcome.chunks})
    assert b"".join(chunk.data or b"" for chunk in outcome.chunks).endswith(b"data: [DONE]\n\n")


def streamed(*pieces: bytes, end: StreamEnd = StreamEnd.FINISHED) -> tuple[Made, str]:
    made, call = model(stream=True)
    (span,) = (span for span in made.spans if span.span_id == call)
    chunks = [[at, 100 + at, piece.decode()] for at, piece in enumerate(pieces)]
    span.attributes["reenact.stream.chunks"] = json.dumps(chunks)  # type: ignore[index]
    span.attributes["reenact.stream.end"] = end.value  # type: ignore[index]
    return made, call


PIECES = (b'data: {"n": 1}\n\nda', b'ta: {"n"', b": 2}\n\n", b'event: e\ndata: {"n": 3}\n\ndata: [DONE]\n\n')


def pieces(node: Node) -> list[tuple[int, bytes | None]]:
    assert isinstance(node.outcome, Streamed)
    return [(chunk.order, chunk.data) for chunk in node.outcome.chunks]


def test_one_event_is_set_wherever_it_lies() -> None:
    made, call = streamed(*PIECES)
    first = changed(made, call, ("events[0].n", 7))
    assert pieces(first)[0] == (100, b'data: {"n":7}\n\nda')
    assert pieces(first)[1:] == [(101, PIECES[1]), (102, PIECES[2]), (103, PIECES[3])]
    second = changed(made, call, ("events[1].n", 7))
    assert pieces(second) == [(100, b'data: {"n": 1}\n\ndata: {"n":7}\n\n'), (103, PIECES[3])]
    last = changed(made, call, ("events[-1].n", 7))
    assert pieces(last)[-1] == (103, b'event: e\ndata: {"n":7}\n\ndata: [DONE]\n\n')


def test_one_piece_is_set() -> None:
    made, call = streamed(*PIECES)
    assert pieces(changed(made, call, ("chunks[1]", "x")))[1] == (101, b"x")
    assert len(pieces(changed(made, call, ("chunks", ["a", "b"])))) == 2
    inside = changed(made, call, ("chunks[0].n", 9))
    assert pieces(inside)[0] == (100, b'data: {"n":9}\n\nda')
    with pytest.raises(UsageError, match=r"chunks\[1\] holds 0 whole events; name one as events\[n\]"):
        changed(made, call, ("chunks[1].n", 9))
    with pytest.raises(UsageError, match="it has 3 events"):
        changed(made, call, ("events[3].n", 9))


def test_a_stream_that_was_left_or_broke_is_whole_once_it_says_something_else() -> None:
    for end in (StreamEnd.ABANDONED, StreamEnd.UNFINISHED):
        made, call = streamed(b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n', end=end)
        outcome = changed(made, call, ("text", "b")).outcome
        assert isinstance(outcome, Streamed)
        assert outcome.end is StreamEnd.FINISHED


def test_a_whole_reply_that_was_read_in_pieces_stays_one() -> None:
    made, call = streamed(b'{"choices": [{"index": 0, ', b'"message": {"content": "a"}}]}')
    node = changed(made, call, ("text", "b"))
    (piece,) = pieces(node)
    assert json.loads(piece[1] or b"")["choices"][0]["message"]["content"] == "b"


def reply(outcome: Outcome) -> HttpReply:
    assert isinstance(outcome, Returned)
    assert isinstance(outcome.payload, HttpReply)
    return outcome.payload


@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_refuses(stream: bool) -> None:  # noqa: FBT001
    made, call = model(stream=stream)
    refused = reply(changed(made, call, ("status", 429)).outcome)
    assert refused.status == 429
    assert json.loads(refused.body.data)["error"]["message"] == "429 Too Many Requests"
    sets: tuple[tuple[str, Json], ...] = (("status", 503), ("body", "<html>"), ("headers.retry-after", 1))
    other = reply(changed(made, call, *sets).outcome)
    assert (other.status, other.body.data, dict(other.headers)["retry-after"]) == (503, b"<html>", "1")


def test_a_refusal_becomes_an_answer() -> None:
    made, call = model(status=429)
    good = reply(changed(made, call, ("status", 200), ("body", {"choices": []})).outcome)
    assert (good.status, good.body.data) == (200, b'{"choices":[]}')


def test_what_was_there_before_is_told() -> None:
    made, call = model(tools=[("fetch", {"item": "tea"})])
    changes = [
        Change(call=call, path="tool_calls[0].arguments.item", value="rum"),
        Change(call=call, path="tool_calls[0].arguments.item", value="gin"),
        Change(call=call, path="raised", value="OSError"),
        Change(call=call, path="request.model", value="m"),
    ]
    told = describe_changes(made.run(), changes)
    assert [each.before for each in told] == ["tea", "rum", ABSENT, "gpt-4o"]
    assert [each.after for each in told] == ["rum", "gin", "OSError", "m"]


def test_a_request_that_is_set_is_no_answer() -> None:
    made, call = model()
    run = made.run()
    change = Change(call=call, path="request.messages[0].content", value="what?")
    assert apply(run, [change]) is run
    assert json.loads(requests(run, [change])[call])["messages"][0]["content"] == "what?"


# refusals


@pytest.mark.parametrize(
    ("path", "value_of", "said_so"),
    [
        ("nothing", 1, "its reply has no nothing"),
        ("tool_calls[3].name", "x", r"tool_calls has no \[3\]; it is a list of 0"),
        ("tool_calls[0]", {"arguments": {}}, r"tool_calls\[0\] has no name"),
        ("status", "fine", "a status is a number from 100 to 599"),
        ("chunks[0]", "x", "it did not stream"),
        ("raised", 5, "an exception is spelled"),
        ("raised", "Nonsense:x", "no exception of Python's own"),
        ("text.x", 1, "nothing inside"),
        ("a..b", 1, "makes no sense"),
        ("request.messages[7].content", 1, r"messages has no \[7\]"),
    ],
)
def test_what_has_no_place_is_refused(path: str, value_of: Json, said_so: str) -> None:
    made, call = model()
    change = Change(call=call, path=path, value=value_of)
    with pytest.raises(UsageError, match=said_so):
        (apply if not path.startswith("request") else requests)(made.run(), [change])


def test_a_call_that_another_one_answers_for_is_not_changed() -> None:
    made = Made()
    outer = made.tool("gather", {}, 1)
    inner = made.tool("fetch", {}, 1, parent=outer)
    frame = made.tool("ask", {}, "y", kind=CallKind.LLM)
    asked = made.llm([user("x")], "y", parent=frame)
    chain = made.tool("turn", {}, 1, kind=CallKind.CHAIN)
    run = made.run()
    for call, said_so in (
        (inner, r"lies inside tool gather #2, which is answered as a whole"),
        (frame, r"is answered by llm ChatCompletion #\d inside it"),
        (chain, "runs again: it has no answer to change"),
    ):
        with pytest.raises(UsageError, match=said_so):
            apply(run, [Change(call=call, path="result", value=2)])
    assert said(next(node for node in _run(run, asked).nodes if node.id == asked)) == "z"


def _run(run: Run, call: str) -> Run:
    return apply(run, [Change(call=call, path="text", value="z")])


def test_the_question_of_a_tool_is_not_its_own() -> None:
    made, call = tool(1)
    with pytest.raises(UsageError, match="is no call of a model"):
        requests(made.run(), [Change(call=call, path="request.item", value="rum")])
