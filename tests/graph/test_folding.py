"""Twins that one emitter wrote, what the record that stays takes over, and calls that are never folded."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.boundary.reading import answered, asked
from reenact.graph.build import build
from reenact.graph.merging import FRAME, MERGED
from reenact.graph.twins import folded
from reenact.values.call import CallKind, FunctionCall, Returned
from reenact.values.json import compact
from reenact.values.run import Node, Run
from reenact.values.span import STATUS_ERROR, Scope, SpanRecord

TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(
    number: int, start: int, end: int, *, parent: int | None = None, scope: str = "ai", name: str = "call", **said: Any
) -> SpanRecord:
    return SpanRecord(
        trace_id=TRACE,
        span_id=f"{number:016x}",
        parent_id=None if parent is None else f"{parent:016x}",
        name=name,
        start_ns=start,
        end_ns=end,
        attributes={key.replace("__", "."): value for key, value in said.items() if value is not None},
        scope=Scope(name=scope),
    )


def genai(
    number: int, start: int, end: int, question: str = "Hello?", answer: str | None = "Hi.", **more: Any
) -> SpanRecord:
    """A call of a model in OTel GenAI's words."""
    said: dict[str, Any] = {
        "gen_ai__operation__name": "chat",
        "gen_ai__provider__name": "openai",
        "gen_ai__request__model": "m-1",
        "gen_ai__input__messages": compact([{"role": "user", "parts": [{"type": "text", "content": question}]}]),
    }
    if answer is not None:
        parts: Any = [{"type": "text", "content": answer}]
        said["gen_ai__output__messages"] = compact([{"role": "assistant", "parts": parts, "finish_reason": "stop"}])
    every: dict[str, Any] = {"scope": "gen", "name": "chat m-1", **said, **more}
    return span(number, start, end, **every)


def outer(number: int, start: int, end: int, question: str, answer: str, **more: Any) -> SpanRecord:
    """What the AI SDK writes around its steps."""
    said: dict[str, Any] = {
        "ai__operationId": "ai.generateText",
        "ai__model__id": "m-1",
        "ai__model__provider": "openai.chat",
        "ai__prompt": compact({"prompt": question}),
        "ai__response__text": answer,
    }
    every: dict[str, Any] = {"name": "ai.generateText", **said, **more}
    return span(number, start, end, **every)


def step(number: int, start: int, end: int, parent: int, question: str, answer: str, **more: Any) -> SpanRecord:
    """One step inside, which is the call."""
    said: dict[str, Any] = {
        "ai__operationId": "ai.generateText.doGenerate",
        "ai__model__id": "m-1",
        "ai__model__provider": "openai.chat",
        "ai__prompt__messages": compact([{"role": "user", "content": [{"type": "text", "text": question}]}]),
        "ai__response__text": answer,
    }
    every: dict[str, Any] = {"name": "ai.generateText.doGenerate", **said, **more}
    return span(number, start, end, parent=parent, **every)


def only(*spans: SpanRecord) -> Run:
    (run,) = build(spans)
    return run


def models(run: Run) -> list[Node]:
    return [node for node in run.nodes if node.kind is CallKind.LLM]


def numbers(nodes: list[Node]) -> list[int]:
    return [int(node.id, 16) for node in nodes]


# one emitter, one call, two spans


def test_the_outer_and_the_inner_span_of_one_step_are_one_call() -> None:
    run = only(outer(1, 0, 100, "Hello?", "Hi."), step(2, 10, 90, 1, "Hello?", "Hi."))
    assert numbers(models(run)) == [2]
    assert [twin.name for twin in models(run)[0].twins] == ["ai.generateText"]


def test_a_span_around_several_steps_is_structure() -> None:
    run = only(
        outer(1, 0, 100, "Hello?", "Bye."), step(2, 10, 30, 1, "Hello?", "Hm."), step(3, 40, 90, 1, "And?", "Bye.")
    )
    assert numbers(models(run)) == [2, 3]
    frame = run.nodes[0]
    assert (frame.kind, frame.call.attributes[FRAME], frame.call.is_structure) == (CallKind.CHAIN, True, True)
    assert isinstance(frame.outcome, Returned)
    assert [node.parent for node in models(run)] == [frame.id, frame.id]


def test_two_spans_of_one_name_are_one_where_the_outer_says_no_answer() -> None:
    run = only(genai(1, 0, 100, answer=None), genai(2, 10, 90, parent=1))
    assert numbers(models(run)) == [2]


def test_a_call_inside_a_call_that_asked_something_else_is_another() -> None:
    assert len(models(only(genai(1, 0, 100), genai(2, 10, 90, "Something else?", "Other.", parent=1)))) == 2


def test_steps_that_keep_no_content_are_known_by_their_tokens() -> None:
    counted: dict[str, Any] = {"gen_ai__usage__input_tokens": 7, "gen_ai__usage__output_tokens": 3}
    bare: dict[str, Any] = {"ai__prompt": None, "ai__response__text": None, "ai__prompt__messages": None, **counted}
    run = only(outer(1, 0, 100, "", "", **bare), step(2, 10, 90, 1, "", "", **bare))
    assert len(models(run)) == 1
    other: dict[str, Any] = {**bare, "gen_ai__usage__input_tokens": 8}
    assert len(models(only(outer(1, 0, 100, "", "", **bare), step(2, 10, 90, 1, "", "", **other)))) == 2


def test_layers_beside_each_other_in_a_trace_without_scopes_are_one_by_the_reply_s_id() -> None:
    top = span(9, 0, 1000, scope="", name="main")
    called = compact(
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "call_1", "name": "f", "arguments": {}}]}]
    )
    framework = genai(1, 0, 100, parent=9, scope="", name="ChatOpenAI", gen_ai__output__messages=called)
    provider = genai(2, 10, 90, parent=9, scope="", name="ChatCompletion", gen_ai__output__messages=called)
    assert len(models(only(top, framework, provider))) == 1
    told = genai(3, 200, 300, "More?", parent=9, scope="", name="ChatOpenAI")
    same = genai(4, 210, 290, "More?", parent=9, scope="", name="ChatCompletion", gen_ai__response__id="chatcmpl-1")
    assert len(models(only(top, framework, provider, told, same))) == 2


# what is never folded


@pytest.mark.parametrize("scope", ["gen", ""])
def test_equal_calls_at_once_by_one_emitter_are_as_many_calls(scope: str) -> None:
    top = span(99, 0, 1000, scope="app", name="main")
    equal = [genai(number, number, 500 - number, parent=99, scope=scope) for number in range(1, 9)]
    assert len(models(only(top, *equal))) == 8
    named = [
        replace(each, name=f"{'messages.create' if place % 2 else 'messages.stream'} m-1")
        for place, each in enumerate(equal)
    ]
    assert len(models(only(top, *named))) == 8


def test_equal_calls_at_once_by_two_emitters_are_half_as_many() -> None:
    top = span(99, 0, 1000, scope="app", name="main")
    inner = [genai(number, number * 3, 900 + number, parent=99) for number in range(1, 9)]
    around = [genai(20 + number, number * 3 - 1, 901 + number, parent=99, scope="framework") for number in range(1, 9)]
    assert len(models(only(top, *inner, *around))) == 8


def test_a_loop_of_equal_calls_is_as_many_calls() -> None:
    top = span(99, 0, 10_000, scope="app", name="main")
    loop = [genai(number, number * 100, number * 100 + 90, parent=99) for number in range(1, 21)]
    framework = [
        genai(100 + number, number * 100 - 2, number * 100 + 95, parent=99, scope="framework")
        for number in range(1, 21)
    ]
    assert len(models(only(top, *loop))) == 20
    assert len(models(only(top, *loop, *framework))) == 20
    touching = [genai(number, number * 100, number * 100 + 100, parent=99) for number in range(1, 21)]
    assert len(models(only(top, *touching, *framework))) == 20


def test_a_retry_is_a_call_of_its_own() -> None:
    failed = replace(genai(2, 10, 20, parent=1, answer=None), status=STATUS_ERROR, status_message="overloaded")
    again = genai(3, 30, 90, parent=1)
    assert numbers(models(only(failed, again))) == [2, 3]
    around = genai(1, 0, 100, scope="framework")
    assert numbers(models(only(around, failed, again))) == [2, 3], "the frame is the try that succeeded"


def test_replies_of_other_ids_are_other_calls() -> None:
    one = genai(1, 0, 100, gen_ai__response__id="chatcmpl-1")
    other = genai(2, 10, 90, scope="framework", gen_ai__response__id="chatcmpl-2")
    assert len(models(only(one, other))) == 2
    assert len(models(only(one, replace(other, parent_id=one.span_id)))) == 2
    framework_s_own = genai(2, 10, 90, scope="framework", gen_ai__response__id="run-2")
    assert len(models(only(one, framework_s_own))) == 1


def test_other_answers_are_other_calls() -> None:
    top = span(9, 0, 1000, scope="app", name="main")
    assert len(models(only(top, genai(1, 0, 100, parent=9), genai(2, 10, 90, answer="No.", parent=9, scope="x")))) == 2


# what is merged


def test_tools_parameters_and_usage_are_taken_from_the_twin_that_has_them() -> None:
    tools = compact([{"type": "function", "name": "f", "parameters": {"type": "object"}}])
    rich: dict[str, Any] = {
        "gen_ai__tool__definitions": tools,
        "gen_ai__request__temperature": 0.5,
        "gen_ai__usage__input_tokens": 7,
        "session__id": "s",
    }
    around = genai(1, 0, 100, scope="framework", answer=None, **rich)
    run = only(around, genai(2, 10, 90, parent=1, gen_ai__response__id="chatcmpl-1"))
    (node,) = models(run)
    request, reply = asked(node), answered(node)
    assert request is not None
    assert reply is not None
    assert [tool["function"]["name"] for tool in request.tools if isinstance(tool, dict)] == ["f"]  # type: ignore[index,call-overload]
    assert (request.parameters["temperature"], reply.id) == (0.5, "chatcmpl-1")
    merged = node.call.attributes[MERGED]
    assert isinstance(merged, dict)
    around_is_kept = int(node.id, 16) == 1
    assert merged.keys() >= ({"reply"} if around_is_kept else {"tools", "parameters"})
    assert run.session == "s"


def test_a_reply_that_only_the_outer_span_holds_is_not_lost() -> None:
    (node,) = models(only(genai(1, 0, 100, scope="framework"), genai(2, 10, 90, parent=1, answer=None)))
    reply = answered(node)
    assert reply is not None
    assert reply.messages


def test_our_own_record_is_left_as_it_is() -> None:
    body = compact({"model": "m-1", "messages": [{"role": "user", "content": "Hello?"}]})
    said: dict[str, Any] = {
        "reenact__schema_version": "1",
        "reenact__boundary": "http",
        "reenact__shape": "openai.chat",
        "openinference__span__kind": "LLM",
        "http__request__method": "POST",
        "url__full": "https://api.openai.com/v1/chat/completions",
        "reenact__outcome": "returned",
        "http__response__status_code": 200,
        "output__value": "{}",
        "input__value": body,
    }
    own = span(2, 10, 90, parent=1, scope="reenact", name="ChatCompletion", **said)
    (alone,) = build([replace(own, parent_id=None)])
    (node,) = models(only(genai(1, 0, 100, gen_ai__request__temperature=0.5), own))
    assert (node.call, node.outcome) == (alone.nodes[0].call, alone.nodes[0].outcome)
    assert [twin.name for twin in node.twins] == ["chat m-1"]


def test_two_vendors_on_one_span_are_read_by_the_one_that_kept_the_messages() -> None:
    both = genai(1, 0, 100, openinference__span__kind="LLM", llm__model_name="m-1")
    (node,) = models(only(both))
    request = asked(node)
    assert request is not None
    assert request.messages
    assert not isinstance(node.call.request, FunctionCall)


# laws


def traces() -> st.SearchStrategy[list[SpanRecord]]:
    drawn = st.tuples(
        st.sampled_from(["gen", "framework", "ai.outer", "ai.inner", "app", ""]),
        st.none() | st.integers(1, 10),
        st.integers(0, 12),
        st.integers(0, 12),
        st.sampled_from(["a?", "b?"]),
        st.sampled_from(["x.", "y.", None]),
        st.sampled_from([None, None, "chatcmpl-1", "chatcmpl-2"]),
    )
    return st.lists(drawn, min_size=1, max_size=10).map(lambda each: [made(n, one) for n, one in enumerate(each, 1)])


Drawn = tuple[str, int | None, int, int, str, str | None, str | None]


def made(number: int, drawn: Drawn) -> SpanRecord:
    who, parent, start, took, question, answer, known = drawn
    end = start + took
    if who == "app":
        return span(number, start, end, parent=parent, scope="app", name="main")
    if who == "ai.outer":
        return outer(number, start, end, question, answer or "", parent=parent)
    if who == "ai.inner":
        return step(number, start, end, parent or 0, question, answer or "", ai__response__id=known)
    return genai(number, start, end, question, answer, parent=parent, scope=who, gen_ai__response__id=known)


def told(run: Run) -> list[Any]:
    return [
        (node.id, node.parent, node.number, node.call, node.outcome, {t.span_id for t in node.twins})
        for node in run.nodes
    ]


@given(traces(), st.randoms(use_true_random=False))
def test_the_order_of_the_spans_changes_nothing(spans: list[SpanRecord], chance: random.Random) -> None:
    before = [told(run) for run in build(spans)]
    shuffled = [*spans]
    chance.shuffle(shuffled)
    assert [told(run) for run in build(shuffled)] == before


@given(traces())
def test_what_was_folded_is_not_folded_again(spans: list[SpanRecord]) -> None:
    for run in build(spans):
        again, gone = folded(list(run.nodes))
        assert gone == 0
        assert [(node.id, node.kind, node.outcome) for node in again] == [
            (node.id, node.kind, node.outcome) for node in run.nodes
        ]


@given(traces())
def test_every_span_is_a_node_or_the_twin_of_one(spans: list[SpanRecord]) -> None:
    for run in build(spans):
        there = [node.id for node in run.nodes if "reenact.recovered" not in node.call.attributes]
        assert sorted([*there, *(twin.span_id for node in run.nodes for twin in node.twins)]) == sorted(
            each.span_id for each in spans
        )


@given(traces())
def test_two_spans_of_one_name_beside_each_other_are_never_one(spans: list[SpanRecord]) -> None:
    flat = [replace(each, parent_id=None) for each in spans if each.scope.name != "app"]
    counts: dict[tuple[str, str], int] = {}
    for each in flat:
        key = each.scope.name, each.name
        counts[key] = counts.get(key, 0) + 1
    kept = sum(len(models(run)) for run in build(flat))
    assert kept >= max(counts.values(), default=0)
