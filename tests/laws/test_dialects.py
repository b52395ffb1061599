from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from openinference.semconv import trace as semconv

from golden_cases import case_name, cases, expected, plain
from golden_spans import span_of
from reenact.contracts.dialect import Dialect, Writing
from reenact.contracts.shape import Shape
from reenact.dialects.genai import DIALECT as GENAI
from reenact.dialects.openinference import DIALECT, WRITING
from reenact.discover import members
from reenact.formats.otlp_json import FORMAT
from reenact.shapes.openai_chat import SHAPE
from reenact.values.call import (
    Body,
    Call,
    CallKind,
    Chunk,
    FunctionCall,
    HttpReply,
    HttpRequest,
    Outcome,
    Raised,
    Returned,
    Streamed,
    Unfinished,
    Value,
)
from reenact.values.json import compact, parse
from reenact.values.message import Answered, Asked, Message, ToolCall
from reenact.values.span import STATUS_ERROR, Attribute, SpanEvent, SpanRecord
from strategies_call import crossings, json_values

DIALECTS = members("dialects", Dialect)
RECORDED_WITH = [dialect for dialect in DIALECTS if dialect.writing is not None]
assert DIALECT in RECORDED_WITH


def writing_of(dialect: Dialect) -> Writing:
    assert dialect.writing is not None
    return dialect.writing


def span_with(attributes: dict[str, Any], name: str = "span", **more: Any) -> SpanRecord:
    return SpanRecord(
        trace_id="1" * 32,
        span_id="2" * 16,
        parent_id=None,
        name=name,
        start_ns=1,
        end_ns=2,
        attributes=attributes,
        **more,
    )


WITH_EVERYTHING = HttpRequest(shape="openai.chat", method="POST", url="http://h/", body=Body(b"\xff"), attempt=1)
HEADERS = ((), (("content-type", "application/json"), ("x-request-id", "r")))


def is_attribute(value: Attribute) -> bool:
    """Tell what an OpenTelemetry SDK takes as an attribute's value, and OTLP can carry."""
    if isinstance(value, list):
        return all(type(item) is type(value[0]) and is_attribute(item) for item in value)
    if isinstance(value, str):
        value.encode()
    return isinstance(value, str | bool | float) or (isinstance(value, int) and -(2**63) <= value < 2**63)


@pytest.mark.parametrize("dialect", RECORDED_WITH, ids=lambda dialect: dialect.name)
@given(crossing=crossings())
def test_what_was_encoded_is_decoded_exactly(dialect: Dialect, crossing: tuple[Call, Outcome]) -> None:
    call, outcome = crossing
    exact = {**writing_of(dialect).encode_call(call), **writing_of(dialect).encode_outcome(call, outcome)}
    assert [name for name, value in exact.items() if not is_attribute(value)] == []
    span = span_with(exact, call.name)
    assert dialect.decode(span) == (call, outcome)
    assert dialect.recognises(span) == max(other.recognises(span) for other in DIALECTS)


@pytest.mark.parametrize("dialect", RECORDED_WITH, ids=lambda dialect: dialect.name)
@given(status=st.integers(100, 599), body=st.binary() | st.text().map(str.encode), headers=st.sampled_from(HEADERS))
def test_a_reply_that_is_told_in_parts_is_spelled_the_same(
    dialect: Dialect, status: int, headers: tuple[tuple[str, str], ...], body: bytes
) -> None:
    call = Call(kind=CallKind.LLM, name="n", request=WITH_EVERYTHING)
    whole = Returned(payload=HttpReply(status=status, headers=headers, body=Body(body)))
    assert writing_of(dialect).encode_reply(call, status, headers, body) == writing_of(dialect).encode_outcome(
        call, whole
    )


@pytest.mark.parametrize("dialect", RECORDED_WITH, ids=lambda dialect: dialect.name)
@given(crossing=crossings())
def test_the_flattened_view_changes_nothing_that_is_decoded(dialect: Dialect, crossing: tuple[Call, Outcome]) -> None:
    call, outcome = crossing
    flat = writing_of(dialect).flatten(call, outcome)
    assert [name for name, value in flat.items() if not is_attribute(value)] == []
    exact = {**writing_of(dialect).encode_call(call), **writing_of(dialect).encode_outcome(call, outcome)}
    assert dialect.decode(span_with({**flat, **exact}, call.name)) == (call, outcome)


attribute_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KNOWN_NAMES = [
    *WRITING.encode_call(Call(kind=CallKind.TOOL, name="n", request=WITH_EVERYTHING)),
    *("reenact.outcome", "reenact.exception", "reenact.stream.chunks", "reenact.attributes.json", "output.value"),
    *("http.response.status_code", "reenact.http.response.headers", "reenact.function", "input.value"),
    *("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.definitions", "gen_ai.tool.call.arguments"),
    *(
        "gen_ai.system_instructions",
        "gen_ai.operation.name",
        "gen_ai.tool.call.result",
        "gen_ai.request.stop_sequences",
    ),
]
known_names = st.sampled_from(KNOWN_NAMES)
telling_values = st.sampled_from(
    [
        "http",
        "function",
        "returned",
        "streamed",
        "raised",
        "LLM",
        "TOOL",
        "chat",
        "execute_tool",
        "200",
        "__REDACTED__",
    ],
)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(
    st.dictionaries(known_names | st.text(), attribute_values | telling_values | json_values.map(compact), max_size=8),
    st.lists(st.dictionaries(st.sampled_from(["exception.type", "exception.message"]), attribute_values), max_size=1),
    st.sampled_from([0, STATUS_ERROR]),
)
def test_no_span_is_too_strange_to_decode(
    dialect: Dialect,
    attributes: dict[str, Any],
    events: list[dict[str, Any]],
    status: int,
) -> None:
    told = tuple(SpanEvent(name="exception", time_ns=1, attributes=each) for each in events)
    span = span_with(attributes, events=told, status=status)
    call, outcome = dialect.decode(span)
    assert isinstance(call, Call)
    assert isinstance(outcome, Outcome)
    assert 0 <= dialect.recognises(span) <= 1


@pytest.mark.parametrize("dialect", RECORDED_WITH, ids=lambda dialect: dialect.name)
@given(asked=json_values, said=json_values, shape=st.sampled_from(members("shapes", Shape)))
def test_no_body_is_too_strange_to_flatten(dialect: Dialect, asked: Any, said: Any, shape: Shape) -> None:
    request = HttpRequest(shape=shape.name, method="POST", url="", body=Body(compact(asked).encode()))
    call = Call(kind=shape.kind, name="n", request=request)
    reply = HttpReply(status=200, headers=(), body=Body(compact(said).encode()))
    event = Chunk(offset_us=0, order=0, data=f"data: {compact(said)}\n\n".encode())
    for outcome in (Returned(payload=reply), Streamed(chunks=(event,))):
        assert (
            "gen_ai.request.model" in writing_of(dialect).flatten(call, outcome)
            or not isinstance(asked, dict)
            or not (isinstance(asked.get("model"), str) and asked["model"])
        )


def openai_cassettes(folder: Path) -> Iterator[tuple[str, Shape, bytes, bytes]]:
    """Give request and response body of every recorded exchange that speaks a shape we know."""
    for path in sorted((folder / "cassettes").rglob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        for exchange in document.get("interactions") or ():
            url = urlsplit(exchange["request"]["uri"]).path
            shape = next((each for each in members("shapes", Shape) if url.endswith(each.paths)), None)
            said = exchange["response"].get("body") or exchange["response"].get("content")
            said = said.get("string") if isinstance(said, dict) else said
            asked = exchange["request"].get("body")
            if shape and shape.system == "openai" and said and asked:
                yield str(path.relative_to(folder)), shape, encoded(asked), encoded(said)


def encoded(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else body


def test_real_bodies_flatten_to_messages_and_usage(shared_data: Path) -> None:
    count = 0
    for path, shape, asked, said in openai_cassettes(shared_data):
        count += 1
        request = HttpRequest(shape=shape.name, method="POST", url="https://api.openai.com/v1/x", body=Body(asked))
        call = Call(kind=shape.kind, name=shape.span_name, request=request)
        outcome: Outcome = Returned(payload=HttpReply(status=200, headers=(), body=Body(said)))
        if said.startswith(b"data:"):
            pieces = [said[at : at + 100] for at in range(0, len(said), 100)]
            chunks = [Chunk(offset_us=at, order=at, data=piece) for at, piece in enumerate(pieces)]
            outcome = Streamed(chunks=tuple(chunks))
        flat = WRITING.flatten(call, outcome)
        if b'"error": {' in said:
            continue
        assert flat["gen_ai.request.model"], path
        if shape.kind is CallKind.EMBEDDING:
            assert flat["embedding.embeddings.0.embedding.vector"], path
            continue
        shown = ("llm.input_messages.0.message.role", "llm.output_messages.0.message.role", "llm.finish_reason")
        assert [name for name in shown if not flat.get(name)] == [], path
        exact = {**WRITING.encode_call(call), **WRITING.encode_outcome(call, outcome)}
        assert DIALECT.decode(span_with({**flat, **exact}, call.name)) == (call, outcome)
    assert count >= 60


CHAT: dict[str, Any] = {
    "model": "small",
    "temperature": 0,
    "stop": ["."],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": "http://i"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
    ],
    "tools": [{"type": "function", "function": {"name": "add"}}],
}


def chat(outcome: Outcome) -> tuple[Call, Outcome]:
    url = "https://api.openai.com/v1/chat/completions"
    request = HttpRequest(shape="openai.chat", method="POST", url=url, body=Body(json.dumps(CHAT).encode()))
    return Call(kind=CallKind.LLM, name="ChatCompletion", request=request, attributes={"session.id": "s"}), outcome


def test_every_name_of_openinference_is_one_of_its_own() -> None:
    said = {
        "id": "r",
        "model": "small-1",
        "choices": [{"message": {"content": "4"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 1,
            "total_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 1, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 1, "audio_tokens": 0},
        },
    }
    reply = HttpReply(status=200, headers=(), body=Body(json.dumps(said).encode()))
    call, outcome = chat(Returned(payload=reply))
    flat = {**WRITING.encode_call(call), **WRITING.encode_outcome(call, outcome), **WRITING.flatten(call, outcome)}
    assert flat["llm.provider"] == flat["llm.system"] == flat["gen_ai.provider.name"] == "openai"
    assert (flat["server.address"], flat["server.port"]) == ("api.openai.com", 443)
    assert flat["llm.input_messages.1.message.contents.1.message_content.image.image.url"] == "http://i"
    assert flat["llm.output_messages.0.message.content"] == "4"
    assert flat["llm.token_count.completion_details.reasoning"] == 1
    assert flat["gen_ai.response.finish_reasons"] == ["stop"]
    assert flat["gen_ai.request.stop_sequences"] == ["."]
    assert flat["gen_ai.conversation.id"] == "s"
    spelled = {
        value
        for group in vars(semconv).values()
        if isinstance(group, type)
        for value in vars(group).values()
        if isinstance(value, str)
    }
    ours = ("gen_ai.", "reenact.", "http.", "url.", "server.", "error.")
    names = ["." + name for name in flat if not name.startswith(ours)]
    unknown = []
    for name in names:
        words = [word for word in name.removeprefix(".").split(".") if not word.isdigit()]
        joined = ".".join(words)
        if not any(
            joined == one or (joined.startswith(one + ".") and covered(joined[len(one) + 1 :], spelled))
            for one in spelled
        ):
            unknown.append(joined)
    assert unknown == []


def covered(rest: str, spelled: set[str]) -> bool:
    """Tell whether `rest` is a chain of names from the conventions, as flattening makes it."""
    return not rest or any(
        rest == one or (rest.startswith(one + ".") and covered(rest[len(one) + 1 :], spelled)) for one in spelled
    )


def test_functions_are_shown_with_name_and_documents() -> None:
    request = FunctionCall(function="m:f", arguments={"b": 1, "a": "x"})
    tool = WRITING.encode_call(Call(kind=CallKind.TOOL, name="find", request=request))
    assert (tool["tool.name"], tool["gen_ai.tool.name"], tool["input.value"]) == ("find", "find", '{"a":"x","b":1}')
    agent = WRITING.encode_call(Call(kind=CallKind.AGENT, name="boss", request=request))
    assert (agent["agent.name"], agent["gen_ai.operation.name"]) == ("boss", "invoke_agent")
    found = [
        {"page_content": "one", "metadata": {"k": 1}},
        {"$tuple": [{"$model": "m:D", "fields": {"id": 7, "page_content": "two"}}, 0.5]},
        "three",
    ]
    retriever = Call(kind=CallKind.RETRIEVER, name="r", request=request)
    flat = WRITING.flatten(retriever, Returned(payload=Value(json=found)))
    assert flat == {
        "retrieval.documents.0.document.content": "one",
        "retrieval.documents.0.document.metadata": '{"k":1}',
        "retrieval.documents.1.document.content": "two",
        "retrieval.documents.1.document.score": 0.5,
        "retrieval.documents.1.document.id": "7",
        "retrieval.documents.2.document.content": "three",
    }


def test_a_model_call_of_another_emitter_becomes_a_request() -> None:
    said = {"id": "r", "choices": []}
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.system": "openai",
        "input.value": json.dumps(CHAT),
        "output.value": json.dumps(said),
        "llm.model_name": "small-1",
    }
    call, outcome = DIALECT.decode(span_with(attributes, "ChatCompletion"))
    assert isinstance(call.request, HttpRequest)
    assert (call.request.shape, call.request.url, parse(call.request.body.data)) == ("openai.chat", "", CHAT)
    told = {"llm.system": "openai", "llm.model_name": "small-1", "reenact.dialect": "openinference"}
    assert call.attributes == told
    assert outcome == Returned(
        payload=HttpReply(
            status=200, headers=(("content-type", "application/json"),), body=Body(json.dumps(said).encode())
        ),
    )


@pytest.mark.parametrize(
    ("kind", "asked", "shape"),
    [
        ("LLM", {"model": "m", "input": "hi"}, "openai.responses"),
        ("EMBEDDING", {"model": "m", "input": ["hi"]}, "openai.embeddings"),
        ("LLM", {"messages": [[{"lc": 1}]]}, None),
        ("CHAIN", CHAT, None),
    ],
)
def test_only_a_providers_body_is_taken_for_a_request(kind: str, asked: Any, shape: str | None) -> None:
    call, _ = DIALECT.decode(span_with({"openinference.span.kind": kind, "input.value": json.dumps(asked)}))
    assert (call.request.shape if isinstance(call.request, HttpRequest) else None) == shape


def test_a_tool_of_another_emitter_keeps_arguments_and_result() -> None:
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "add",
        "input.value": '{"a": 1, "$int": 2}',
        "input.mime_type": "application/json",
        "output.value": "3",
        "output.mime_type": "text/plain",
    }
    call, outcome = DIALECT.decode(span_with(attributes, "wrapper"))
    assert (call.name, call.request) == ("add", FunctionCall(function="", arguments={"$dict": [["a", 1], ["$int", 2]]}))
    assert outcome == Returned(payload=Value(json="3"))
    assert DIALECT.decode(span_with({**attributes, "output.mime_type": "application/json"}))[1] == Returned(
        payload=Value(json=3)
    )
    assert DIALECT.decode(span_with({**attributes, "output.value": "__REDACTED__"}))[1] == Unfinished()


def test_an_error_of_another_emitter_is_an_exception() -> None:
    told = {"exception.type": "openai.BadRequestError", "exception.message": "Error code: 400"}
    event = SpanEvent(name="exception", time_ns=1, attributes=told)
    _, outcome = DIALECT.decode(span_with({"openinference.span.kind": "LLM"}, status=STATUS_ERROR, events=(event,)))
    assert isinstance(outcome, Raised)
    assert (outcome.exception.module, outcome.exception.qualname) == ("openai", "BadRequestError")
    assert outcome.exception.message == "Error code: 400"


def test_ours_is_read_leniently_where_a_store_changed_it() -> None:
    call, outcome = chat(Returned(payload=HttpReply(status=201, headers=(("a", "b"),), body=Body(b"{}"))))
    attributes = {
        **WRITING.encode_call(call),
        **WRITING.encode_outcome(call, outcome),
        "http.response.status_code": "201",
    }
    assert DIALECT.decode(span_with(attributes, call.name)) == (call, outcome)
    attributes = {**attributes, "reenact.outcome": "streamed", "reenact.stream.chunks": "__REDACTED__"}
    assert DIALECT.decode(span_with(attributes, call.name))[1] == Unfinished()


def read_otlp(path: Path) -> list[SpanRecord]:
    with path.open("rb") as stream:
        return [record for record in FORMAT.decode(stream, path) if isinstance(record, SpanRecord)]


def model_calls(dialect: Dialect, path: Path) -> list[tuple[Asked, Answered]]:
    """What was asked of the model and answered, in the shape of OpenAI's chat."""
    found: list[tuple[Asked, Answered]] = []
    for span in sorted(read_otlp(path), key=lambda span: span.start_ns):
        call, outcome = dialect.decode(span)
        if isinstance(call.request, HttpRequest):
            assert isinstance(outcome, Returned)
            assert isinstance(outcome.payload, HttpReply)
            reply = SHAPE.read_reply(parse(outcome.payload.body.data))
            found.append((SHAPE.read_request(parse(call.request.body.data)), reply))
    return found


def test_one_run_reads_the_same_from_both_dialects(shared_data: Path) -> None:
    folder = shared_data / "traces" / "rosetta"
    exact = model_calls(DIALECT, folder / "openinference.otlp.jsonl")
    rebuilt = model_calls(GENAI, folder / "otel-genai-new.otlp.jsonl")
    assert len(exact) == len(rebuilt) == 2
    for (asked, answered), (asked_again, answered_again) in zip(exact, rebuilt, strict=True):
        assert [spoken(message) for message in asked.messages] == [spoken(message) for message in asked_again.messages]
        assert [spoken(message) for message in answered.messages] == [
            spoken(message) for message in answered_again.messages
        ]
        assert (asked.model, asked.tools) == (asked_again.model, asked_again.tools)
        assert (answered.id, answered.model, answered.finish_reasons) == (
            answered_again.id,
            answered_again.model,
            answered_again.finish_reasons,
        )
        assert answered.usage.prompt == answered_again.usage.prompt


def spoken(message: Message) -> Message:
    """A message with its tool calls' arguments as one spelling: GenAI keeps them as JSON, not as the model's text."""
    parts = [
        replace(part, arguments=compact(parse(part.arguments))) if isinstance(part, ToolCall) else part
        for part in message.parts
    ]
    return replace(message, parts=tuple(parts))


def test_tools_and_agents_read_the_same_from_both_dialects(shared_data: Path) -> None:
    folder = shared_data / "traces" / "rosetta"

    def tools(dialect: Dialect, name: str) -> list[Any]:
        read = [dialect.decode(span) for span in sorted(read_otlp(folder / name), key=lambda span: span.start_ns)]
        return [(call.name, call.request, outcome) for call, outcome in read if call.kind is CallKind.TOOL]

    exact = tools(DIALECT, "openinference.otlp.jsonl")
    assert len(exact) == 2
    assert exact == tools(GENAI, "otel-genai-new.otlp.jsonl")


def test_every_real_span_is_read_by_every_dialect(shared_data: Path) -> None:
    count = 0
    for path in sorted((shared_data / "traces").rglob("*.otlp.jsonl")):
        for span in read_otlp(path):
            for dialect in DIALECTS:
                call, outcome = dialect.decode(span)
                assert isinstance(WRITING.flatten(call, outcome), dict)
            count += 1
    assert count > 200


CASES = cases("dialects")


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_a_recorded_span_is_read_as_it_was(case: Path) -> None:
    dialect = next(dialect for dialect in DIALECTS if dialect.name.replace("-", "_") == case.parent.name)
    written = json.loads((case / "span.json").read_text(encoding="utf-8"))
    call, outcome = dialect.decode(span_of(written))
    read = {"call": plain(call), "outcome": plain(outcome)}
    assert read == expected(case / "read.json", read)
    if "reenact.schema_version" in written["attributes"]:
        again = {**writing_of(dialect).encode_call(call), **writing_of(dialect).encode_outcome(call, outcome)}
        assert {**written["attributes"], **again} == written["attributes"]


def test_every_dialect_has_cases() -> None:
    assert {case.parent.name for case in CASES} == {dialect.name.replace("-", "_") for dialect in DIALECTS}


def test_a_root_whose_process_ended_is_unfinished_not_failed() -> None:
    attributes = {
        "openinference.span.kind": "CHAIN",
        "reenact.schema_version": "1",
        "reenact.run.root": True,
        "reenact.incomplete": True,
        "reenact.outcome": "unfinished",
    }
    call, outcome = DIALECT.decode(span_with(attributes, "agent.py", status=STATUS_ERROR))
    assert (call.kind, call.name, outcome) == (CallKind.CHAIN, "agent.py", Unfinished())
