from __future__ import annotations

import copy
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from golden_cases import case_name, cases, expected, plain, streamed
from reenact.contracts.shape import Shape
from reenact.discover import members
from reenact.shapes.openai_chat import write_reply, write_request
from reenact.values import sse
from reenact.values.call import CallKind
from reenact.values.json import compact, parse
from reenact.values.message import Answered, Asked, Media, Message, Opaque, Reasoning, Said, Text, ToolCall, Usage
from strategies_call import json_objects, json_values

SHAPES = {shape.name: shape for shape in members("shapes", Shape)}
CASES = cases("shapes")
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def shape_of(case: Path) -> Shape:
    return next(shape for name, shape in SHAPES.items() if name.replace(".", "_") == case.parent.name)


def loaded(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_every_shape_has_cases() -> None:
    assert {case.parent.name for case in CASES} == {name.replace(".", "_") for name in SHAPES}


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_a_recorded_case_reads_as_it_did(case: Path) -> None:
    shape = shape_of(case)
    request = loaded(case / "request.json")
    read = {"asked": plain(shape.read_request(request))}
    if (data := streamed(case)) is not None:
        assert shape.is_stream(request)
        reply = shape.fold(shape.framing.events(data))
        read["folded"] = reply
    else:
        reply = loaded(case / "reply.json")
    read["answered"] = plain(shape.read_reply(reply))
    assert read == expected(case / "read.json", read)


@every_shape
def test_a_shape_declares_what_it_is_found_by(shape: Shape) -> None:
    assert all(shape.name.split("."))
    assert all(path.startswith(("/", ":")) for path in shape.paths)
    found_by = {
        (other.paths, other.before, other.needs, other.fields) for other in SHAPES.values() if other is not shape
    }
    assert (shape.paths, shape.before, shape.needs, shape.fields) not in found_by
    assert not shape.api or SHAPES[shape.api].read_reply is shape.read_reply
    assert not shape.noise & {"model", "messages", "input", "tools"}
    assert (shape.kind is CallKind.EMBEDDING) == (shape.operation == "embeddings")


FIELDS = [
    *("model", "messages", "tools", "functions", "input", "instructions", "stream", "role", "content", "parts", "type"),
    *("choices", "delta", "message", "index", "tool_calls", "function", "function_call", "arguments", "usage", "error"),
    *("text", "image_url", "input_audio", "file", "refusal", "reasoning_details", "thinking", "output", "response"),
    *("item", "output_index", "content_index", "summary_index", "part", "summary", "data", "embedding", "logprobs"),
    *("call_id", "prompt_tokens", "prompt_tokens_details", "incomplete_details", "status", "id", "object", "created"),
    *("system", "content_block", "partial_json", "citations", "citation", "source", "name", "params", "requests"),
    *(
        "contents",
        "candidates",
        "functionCall",
        "functionResponse",
        "inlineData",
        "thought",
        "thoughtSignature",
        "args",
    ),
    *("thoughtSignature", "images", "response", "done", "prompt", "embeddings", "values", "predictions", "instances"),
]
WORDS = [
    *("user", "message", "function_call", "function_call_output", "reasoning", "text", "input_text", "input_image"),
    *("response.created", "response.completed", "response.output_item.added", "response.output_item.done", "error"),
    *("response.content_part.added", "response.output_text.delta", "response.function_call_arguments.delta"),
    *("response.reasoning_summary_text.done", "response.reasoning_summary_part.done", "image_url", "file", "thinking"),
    *("message_start", "content_block_start", "content_block_delta", "message_delta", "text_delta", "thinking_delta"),
    *("input_json_delta", "citations_delta", "signature_delta", "tool_use", "tool_result", "image", "base64"),
]
crooked = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(WORDS)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inner, max_size=5),
    max_leaves=25,
)
crooked_objects = st.dictionaries(st.sampled_from(FIELDS), crooked, max_size=6)


@every_shape
@given(body=crooked_objects | json_objects | crooked)
def test_no_body_is_too_strange_to_read(shape: Shape, body: Any) -> None:
    before = copy.deepcopy(body)
    assert isinstance(shape.read_request(body), Asked)
    assert isinstance(shape.read_reply(body), Answered)
    assert isinstance(shape.is_stream(body), bool)
    assert body == before


@pytest.mark.sample(3)
@every_shape
@given(events=st.lists(crooked_objects | crooked, max_size=6))
def test_no_stream_is_too_strange_to_fold(shape: Shape, events: list[Any]) -> None:
    before = copy.deepcopy(events)
    folded = shape.fold(events)
    assert isinstance(folded, dict)
    assert isinstance(shape.read_reply(folded), Answered)
    assert events == before
    assert parse(compact(folded)) == folded


def bent(value: Any) -> Iterator[Any]:
    """Give a JSON value with each place in it, one after the other, holding what nobody would put there."""
    yield from (["text"], {"a": 1}, None, 3, "odd")
    if isinstance(value, dict | list):
        for key in value.keys() if isinstance(value, dict) else range(len(value)):
            for inner in bent(value[key]):
                copied = copy.copy(value)
                copied[key] = inner
                yield copied


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_no_place_of_a_body_is_too_strange_to_read_nor_to_write_again(case: Path) -> None:
    shape = shape_of(case)
    for body in bent(loaded(case / "request.json")):
        asked = shape.read_request(body)
        if shape.write_request is not None:
            assert isinstance(shape.write_request(asked), dict)
    if (case / "reply.json").exists():
        for body in bent(loaded(case / "reply.json")):
            answered = shape.read_reply(body)
            if shape.write_reply is not None:
                assert isinstance(shape.write_reply(answered), dict)


@every_shape
@pytest.mark.parametrize("depth", [10, 900])
def test_depth_is_no_trouble(shape: Shape, depth: int) -> None:
    deep: Any = "x"
    for _ in range(depth):
        deep = {"content": deep}
    event = {"choices": [{"index": 0, "delta": deep}], "model": "m", "messages": [deep], "input": [deep]}
    assert isinstance(shape.fold([event, event]), dict)
    model = shape.read_request({"model": "m"}).model  # an API may have another word for it
    assert shape.read_request(event).model == model


json_lines = st.lists(json_values.filter(lambda value: value != sse.DONE), max_size=5)


@given(json_lines, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.booleans())
def test_events_come_back_from_any_spelling_of_a_stream(events: list[Any], end: str, named: bool, whole: bool) -> None:  # noqa: FBT001
    body = "\ufeff" if named else ""
    for event in events:
        body += f": a comment{end}"
        body += f"event: thing{end}id: 1{end}" if named else ""
        lines = json.dumps(event, indent=1).split("\n") if named else [compact(event)]
        body += "".join(f"data:{' ' if named else ''}{line}{end}" for line in lines) + end
    body += f"data: [DONE]{end}{end}"
    encoded = body.encode()
    assert sse.json_events(encoded if whole else encoded[: -len(end) * 2]) == events


def test_a_cut_off_event_is_left_out_and_other_text_is_kept() -> None:
    assert sse.json_events(b'data: {"a": 1}\n\ndata: hello\n\ndata: {"b": [1, 2') == [{"a": 1}, "hello"]
    assert sse.json_events(b"") == []
    assert sse.split(b"event: ping\n\nevent: e\ndata\ndata: x\n\n") == [sse.ServerSentEvent(name="e", data="\nx")]


@pytest.fixture
def provider() -> Iterator[Any]:
    """A stand-in on the loopback that answers every request with one recorded stream."""
    import openai

    said: dict[str, bytes] = {}

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(len(said["body"])))
            self.end_headers()
            self.wfile.write(said["body"])

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base_url = f"http://127.0.0.1:{server.server_port}/v1"
    with openai.OpenAI(api_key="none", base_url=base_url, max_retries=0) as client:
        yield lambda body: said.update(body=body) or client
    server.shutdown()
    server.server_close()


def without_nulls(value: Any) -> Any:
    """Drop what the SDK adds by itself: nulls, the parsed forms, and the chunks' `index` of tool calls."""
    if isinstance(value, dict):
        calls = [{**call, "index": None} for call in value.get("tool_calls") or ()]
        value = {**value, **({"tool_calls": calls} if calls else {}), "parsed": None, "parsed_arguments": None}
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def sdk_chat(client: Any, request: dict[str, Any]) -> Any:
    asked = {key: value for key, value in request.items() if key != "stream"}
    with client.chat.completions.stream(**asked) as stream:
        return stream.get_final_completion().to_dict(mode="json")


CHAT_STREAMS = [case for case in CASES if case.parent.name == "openai_chat" and (case / "stream.txt").exists()]
BEYOND_THE_SDK = {
    "stream_reasoning_unindexed_tool": "the SDK cannot join tool calls without an index",
    "stream_azure_filters_cut_off": "the SDK keeps the empty id and model of Azure's first chunk",
    "stream_error_event": "the SDK raises",
}


@pytest.mark.parametrize("case", [case for case in CHAT_STREAMS if case.name not in BEYOND_THE_SDK], ids=case_name)
def test_a_folded_chat_is_what_the_sdk_makes_of_it(case: Path, provider: Any) -> None:
    body = (case / "stream.txt").read_bytes()
    final = sdk_chat(provider(body), loaded(case / "request.json"))
    assert without_nulls(shape_of(case).fold(sse.json_events(body))) == without_nulls(final)


RESPONSE_STREAMS = ["stream_completed", "stream_completed_without_output"]


@pytest.mark.parametrize("name", RESPONSE_STREAMS)
def test_a_folded_response_is_what_the_sdk_makes_of_it(name: str, provider: Any) -> None:
    case = next(case for case in CASES if case.name == name)
    body = (case / "stream.txt").read_bytes()
    client: Any = provider(body)
    with client.responses.stream(model="small", input="x") as stream:
        final = stream.get_final_response().to_dict(mode="json")
    assert without_nulls(shape_of(case).fold(sse.json_events(body))) == without_nulls(final)


def test_a_stream_cut_off_anywhere_folds_to_a_beginning_of_the_whole() -> None:
    case = next(case for case in CASES if case.name == "stream_two_tools")
    events = sse.json_events((case / "stream.txt").read_bytes())
    shape = shape_of(case)
    before = ""
    for count in range(len(events) + 1):
        answered = shape.read_reply(shape.fold(events[:count]))
        calls = [part for message in answered.messages for part in message.parts if isinstance(part, ToolCall)]
        text = "".join(call.arguments for call in calls[:1])
        assert text.startswith(before)
        before = text
    assert before == '{"order": "A-1"}'


UNFOLDED = [case for case in CASES if shape_of(case).unfold is not None and (case / "reply.json").exists()]


@pytest.mark.parametrize("case", UNFOLDED, ids=case_name)
def test_a_stream_made_of_a_reply_folds_into_that_reply(case: Path) -> None:
    shape, reply = shape_of(case), loaded(case / "reply.json")
    if reply.get("error"):
        pytest.skip("an error is sent whole, whatever was asked for")
    assert shape.unfold is not None
    stream = shape.unfold(reply)
    if shape.stream_ends and shape.name != "openai.responses":  # whose last event is as long as the response
        assert any(last in stream for last in shape.stream_ends)
    assert shape.read_reply(shape.fold(shape.framing.events(stream))) == shape.read_reply(reply)


@pytest.mark.sample(3)
@every_shape
@given(reply=crooked_objects)
def test_no_reply_is_too_strange_to_unfold(shape: Shape, reply: Any) -> None:
    if shape.unfold is not None:
        assert isinstance(shape.fold(shape.framing.events(shape.unfold(reply))), dict)


WORDED = {shape.name: shape for shape in SHAPES.values() if shape.wording is not None}
SPOKEN = [case for case in CASES if shape_of(case).wording is not None]
in_words = pytest.mark.parametrize("shape", WORDED.values(), ids=WORDED)
sayings = st.builds(
    Said,
    text=st.none() | st.text(),
    calls=st.lists(
        st.builds(ToolCall, id=st.text(min_size=1), name=st.text(), arguments=json_objects.map(compact)), max_size=3
    ).map(tuple),
    finish=st.none() | st.sampled_from(["stop", "end_turn", "completed", "tool_calls", "length"]),
)


def reply_of(case: Path) -> Any:
    if (data := streamed(case)) is not None:
        return shape_of(case).fold(shape_of(case).framing.events(data))
    return loaded(case / "reply.json")


@pytest.mark.parametrize("case", SPOKEN, ids=case_name)
def test_a_reply_that_says_what_it_said_is_the_reply(case: Path) -> None:
    wording, reply = shape_of(case).wording, reply_of(case)
    assert wording is not None
    assert wording.write(reply, wording.read(reply)) == reply


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", SPOKEN, ids=case_name)
@given(said=sayings)
def test_a_reworded_reply_says_what_it_was_given_and_keeps_the_rest(case: Path, said: Said) -> None:
    shape, reply = shape_of(case), reply_of(case)
    before = copy.deepcopy(reply)
    assert shape.wording is not None
    reworded = shape.wording.write(reply, said)
    assert reply == before
    assert shape.wording.read(reworded) == said
    was, now = shape.read_reply(reply), shape.read_reply(reworded)
    assert (now.id, now.model, now.usage) == (was.id, was.model, was.usage)
    assert thoughts(now)[: len(thoughts(was))] == thoughts(was)
    assert shape.unfold is not None
    assert shape.wording.read(shape.fold(shape.framing.events(shape.unfold(reworded)))).calls == said.calls


def thoughts(answered: Answered) -> list[Reasoning]:
    return [part for message in answered.messages for part in message.parts if isinstance(part, Reasoning)]


@in_words
@given(reply=crooked_objects, said=sayings)
def test_no_reply_is_too_strange_to_reword(shape: Shape, reply: Any, said: Said) -> None:
    wording = shape.wording
    assert wording is not None
    assert wording.write(reply, wording.read(reply)) == reply
    assert wording.read(wording.write(reply, said)) == said


messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "tool", "system"]),
    parts=st.tuples(
        st.lists(st.builds(Reasoning, text=st.text(min_size=1)), max_size=1),
        st.lists(st.builds(Text, st.text()), max_size=1) | st.lists(st.builds(Text, st.text()), min_size=2, max_size=3),
        st.lists(st.builds(ToolCall, id=st.text(), name=st.text(), arguments=st.text()), max_size=2),
    ).map(lambda groups: tuple(part for group in groups for part in group)),
    name=st.none() | st.text(),
    tool_call_id=st.none() | st.text(),
)


@given(
    st.lists(messages, max_size=4), st.none() | st.text(), st.dictionaries(st.sampled_from(["n", "seed"]), json_values)
)
def test_a_chat_that_was_written_reads_the_same(said: list[Message], model: str | None, parameters: Any) -> None:
    tools = ({"type": "function", "function": {"name": "f"}},)
    body = write_request(Asked(model=model, messages=tuple(said), tools=tools, parameters=parameters))
    named = {} if model is None else {"model": model}
    asked = Asked(model=model, messages=tuple(said), tools=tools, parameters={**named, **parameters})
    assert SHAPES["openai.chat"].read_request(parse(compact(body))) == asked
    answered = Answered(
        model=model,
        id="r",
        messages=tuple(said),
        finish_reasons=("stop",) * len(said),
        usage=Usage(prompt=1, completion=2, total=3, cache_read=4, reasoning=5),
    )
    assert SHAPES["openai.chat"].read_reply(parse(compact(write_reply(answered)))) == answered


@pytest.mark.parametrize("modality", ["image", "audio", "document", "video"])
def test_media_that_was_written_reads_the_same(modality: str) -> None:
    kind = {"audio": "audio/wav", "document": "application/pdf"}.get(modality, f"{modality}/x")
    part = Media(modality=modality, url=f"data:{kind};base64,AAAA", mime_type=kind)
    asked = Asked(messages=(Message(role="user", parts=(part,)),))
    assert SHAPES["openai.chat"].read_request(write_request(asked)) == asked


def exchanges(folder: Path) -> Iterator[tuple[str, Shape, Any, bytes]]:
    for path in sorted((folder / "cassettes").rglob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        for exchange in document.get("interactions") or ():
            url = urlsplit(exchange["request"]["uri"]).path
            shape = next(
                (each for each in SHAPES.values() if each.system == "openai" and url.endswith(each.paths)), None
            )
            said = exchange["response"].get("body") or exchange["response"].get("content")
            said = said.get("string") if isinstance(said, dict) else said
            if shape and said:
                asked = parse(exchange["request"]["body"])
                yield str(path.relative_to(folder)), shape, asked, said.encode() if isinstance(said, str) else said


def test_every_real_exchange_is_read(shared_data: Path) -> None:
    count = 0
    for path, shape, asked, said in exchanges(shared_data):
        read = shape.read_request(asked)
        assert read.model == asked["model"], path
        assert read.messages or read.inputs, path
        if not shape.is_stream(asked):
            reply = parse(said)
            answered = shape.read_reply(reply)
            assert answered.messages or answered.vectors or "error" in (reply if isinstance(reply, dict) else {}), path
        count += 1
    assert count >= 60


def test_real_streams_fold_to_what_the_sdk_makes_of_them(shared_data: Path, provider: Any) -> None:
    equal, refused, other = 0, 0, list[str]()
    for path, shape, asked, said in exchanges(shared_data):
        if not shape.is_stream(asked):
            continue
        folded = shape.fold(sse.json_events(said))
        assert shape.read_reply(folded).messages, path
        try:
            final = sdk_chat(provider(said), {"model": "m", "messages": []})
        except TypeError:  # its accumulator asks every streamed tool call for an index, and Mistral sends none
            refused += 1
            continue
        if without_nulls(folded) == without_nulls(final):
            equal += 1
        else:
            other.append(path)
    assert (equal, refused, other) == (7, 2, [])


ONE_TEXT = frozenset({"ollama.chat"})
"""Shapes whose messages hold one text."""
UNSIGNED = frozenset({*ONE_TEXT, "cohere.chat"})
"""Shapes whose thoughts have no signature."""


def turns_in(shape: Shape) -> st.SearchStrategy[tuple[Message, ...]]:
    """Conversations that a shape can say in full: with one system message in front, and no name where it has none."""
    words = st.builds(Text, st.text(min_size=1))
    picture = st.just(Media(modality="image", url="data:image/png;base64,iVBORAAA", mime_type="image/png"))
    arguments = json_objects.map(compact)
    call = st.builds(ToolCall, id=st.text(min_size=1), name=st.text(min_size=1), arguments=arguments)
    user = st.lists(words | picture, min_size=1, max_size=3).map(lambda parts: Message(role="user", parts=tuple(parts)))
    if shape.name in ONE_TEXT:
        user = st.tuples(words, *([picture] if shape.name == "ollama.chat" else [])).map(
            lambda parts: Message(role="user", parts=tuple(parts))
        )
    texts = st.lists(words, min_size=1, max_size=1 if shape.name in ONE_TEXT else 2)
    spoken = texts.map(lambda parts: Message(role="assistant", parts=tuple(parts)))
    calling = st.lists(call, min_size=1, max_size=1 if shape.name == "openai.responses" else 3).map(
        lambda calls: Message(role="assistant", parts=tuple(calls))
    )
    thought = st.builds(Reasoning, text=st.text(min_size=1), encrypted=st.none() | st.text(min_size=1))
    if shape.name == "openai.responses":
        thought = st.builds(
            Reasoning, text=st.text(min_size=1), id=st.text(), encrypted=st.none() | st.text(min_size=1)
        )
    elif shape.name in UNSIGNED:
        thought = st.builds(Reasoning, text=st.text(min_size=1))
    thinking = thought.map(lambda part: Message(role="assistant", parts=(part,)))
    answer = st.builds(
        lambda text, call_id: Message(role="tool", parts=(Text(text),), tool_call_id=call_id),
        st.text(min_size=1),
        st.text(min_size=1),
    )
    system = st.text(min_size=1).map(lambda text: (Message(role="system", parts=(Text(text),)),))
    turns = st.lists(user | spoken | calling | thinking | answer, max_size=5).map(tuple)
    return st.builds(lambda head, rest: (*head, *rest), st.just(()) | system, turns)


TOOL: Any = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
WRITTEN = [shape for shape in SHAPES.values() if shape.write_request is not None]
parameters_of_all = st.dictionaries(st.sampled_from(["temperature", "top_p", "seed"]), st.integers(0, 5))


@pytest.mark.parametrize("shape", WRITTEN, ids=lambda shape: shape.name)
@given(data=st.data())
def test_a_request_that_was_written_reads_the_same(shape: Shape, data: st.DataObject) -> None:
    assert shape.write_request is not None
    parameters = data.draw(parameters_of_all)
    embeds = shape.kind is CallKind.EMBEDDING
    said = Asked(
        model="m",
        messages=() if embeds else data.draw(turns_in(shape)),
        parameters={"model": "m", **parameters},
        inputs=tuple(data.draw(st.lists(st.text(), min_size=1, max_size=3))) if embeds else (),
    )
    body = shape.write_request(said)
    assert shape.read_request(parse(compact(body))) == replace(said, stream=shape.is_stream(body))  # some by default
    if not embeds:
        read = shape.read_request(shape.write_request(replace(said, tools=(TOOL,))))
        assert offered(read.tools[0]) == offered(TOOL)  # in the provider's own spelling
        assert shape.read_request(shape.write_request(read)) == read


def offered(tool: Any) -> tuple[Any, ...]:
    held = tool.get("function", tool)
    held = held.get("toolSpec", held)
    schema = held.get("parameters", held.get("input_schema", held.get("inputSchema")))
    return held["name"], held["description"], schema.get("json", schema)


@pytest.mark.parametrize("shape", WRITTEN, ids=lambda shape: shape.name)
@given(data=st.data())
def test_a_reply_that_was_written_reads_the_same(shape: Shape, data: st.DataObject) -> None:
    assert shape.write_reply is not None
    counts = Usage(prompt=9, completion=2)
    if shape.kind is CallKind.EMBEDDING:
        vectors = ((0.5, 1.0), (0.25, 0.0))
        told = Answered(model="m", vectors=vectors, usage=Usage(prompt=9, total=9))
        assert shape.read_reply(parse(compact(shape.write_reply(told)))) == told
        return
    [wording] = [shape.wording]
    assert wording is not None
    said = [turn for turn in data.draw(turns_in(shape)) if turn.role == "assistant"]
    if shape.name != "openai.responses":
        said = said[:1] or [Message(role="assistant", parts=(Text("yes"),))]
    reason = data.draw(st.sampled_from([*wording.finishes]))
    total = 11 if shape.name.startswith("anthropic.") else None  # which sums up itself
    told = Answered(
        model="m", id="r", messages=tuple(said), finish_reasons=(reason,), usage=replace(counts, total=total)
    )
    body = shape.write_reply(told)
    assert shape.read_reply(parse(compact(body))) == told
    assert shape.unfold is not None
    streamed = shape.read_reply(shape.fold(shape.framing.events(shape.unfold(body))))
    assert [flat(message) for message in streamed.messages] == [flat(message) for message in told.messages]
    assert (streamed.id, streamed.finish_reasons) == (told.id, told.finish_reasons)


def flat(message: Message) -> tuple[Any, ...]:
    """What a message says, wherever a stream cuts its text."""
    calls = [(part.id, part.name, parse(part.arguments)) for part in message.parts if isinstance(part, ToolCall)]
    return message.role, "".join(part.text for part in message.parts if isinstance(part, Text)), calls


@pytest.mark.parametrize("shape", WRITTEN, ids=lambda shape: shape.name)
def test_what_a_shape_does_not_know_goes_through(shape: Shape) -> None:
    if shape.kind is CallKind.EMBEDDING:
        pytest.skip("texts are all that embeddings are asked with")
    part = Opaque({"type": "hologram", "of": [1]})
    asked = Asked(messages=(Message(role="user", parts=(Text("see"), part)),), tools=({"type": "web_search"},))
    assert shape.write_request is not None
    body = shape.write_request(asked)
    assert compact(part.json) in compact(body)
    assert shape.read_request(body).tools == asked.tools
