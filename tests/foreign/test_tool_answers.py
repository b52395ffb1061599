"""Each answer of a tool stands at the call of its own: repeated calls, ids that come again, and whole transcripts.

What the transcripts say is read here from the raw files, by nothing of ours.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import reenact
from foreign import told
from reenact.boundary.reading import asked
from reenact.errors import InputError
from reenact.graph.build import build
from reenact.graph.logs import joined
from reenact.read.open import open_spans
from reenact.values.call import CallKind, Returned, Value
from reenact.values.json import parsed_or_none
from reenact.values.message import Message, Text
from reenact.values.run import Node, Run
from reenact.values.span import SpanRecord

USER = told.said("user", told.text(told.QUESTION))
ANSWERS = ["pending", "pending", "done"]


def polled(ids: list[str | None], *, repeats_calls: bool = True) -> list[SpanRecord]:
    """A job is asked for three times with the same words."""
    said: list[dict[str, Any]] = [USER]
    spans: list[SpanRecord] = []
    for number, (call_id, answer) in enumerate(zip(ids, ANSWERS, strict=True)):
        call = told.said("assistant", told.called("poll", {"job": 1}, call_id))
        spans.append(told.chat(2 * number + 1, list(said), [call]))
        said += [*([call] if repeats_calls else []), told.said("tool", told.came(answer, call_id))]
    return [*spans, told.chat(9, said, [told.said("assistant", told.text(told.ANSWER))])]


def tools(*runs: Run) -> list[Node]:
    return [node for run in runs for node in run.nodes if node.kind is CallKind.TOOL]


def result(node: Node) -> Any:
    assert isinstance(node.outcome, Returned)
    assert isinstance(node.outcome.payload, Value)
    return node.outcome.payload.json


@pytest.mark.parametrize("ids", [["a", "b", "c"], ["a", "a", "a"], [None, None, None]], ids=["ids", "again", "none"])
def test_a_repeated_call_keeps_each_of_its_answers(ids: list[str | None]) -> None:
    found = tools(*build(polled(ids)))
    assert [result(node) for node in found] == ANSWERS
    assert [node.caused_by for node in found] == [f"{number:016x}" for number in (1, 3, 5)]


def test_an_id_is_enough_where_the_calls_are_not_repeated() -> None:
    assert [result(node) for node in tools(*build(polled(["a", "b", "c"], repeats_calls=False)))] == ANSWERS


def test_an_answer_with_another_call_s_id_is_no_answer() -> None:
    call = told.said("assistant", told.called("poll", {"job": 1}, "a"))
    other = told.said("assistant", told.called("poll", {"job": 1}, "z"))
    spans = [told.chat(1, [USER], [call]), told.chat(3, [USER, other, told.said("tool", told.came("done", "z"))], [])]
    assert tools(*build(spans)) == []


def test_a_polled_tool_is_answered_in_its_order(tmp_path: Path) -> None:
    def poll(job: int) -> str:
        raise AssertionError(job)

    tool = reenact.tool(poll)
    path = told.written(tmp_path, *polled(["a", "b", "c"]))
    with reenact.replay(path, store=tmp_path / "store", strict=False):
        assert [tool(1) for _ in range(3)] == ANSWERS


def as_text(job: int) -> str:
    raise AssertionError(job)


def as_object(job: int) -> dict[str, Any]:
    raise AssertionError(job)


def as_list(job: int) -> list[dict[str, int]] | None:
    raise AssertionError(job)


def as_number(job: int) -> float:
    raise AssertionError(job)


def as_nothing_said(job: int) -> Any:
    raise AssertionError(job)


GIVEN: list[tuple[Callable[..., Any], str, Any]] = [
    (as_text, '{"rain": 1}', '{"rain": 1}'),
    (as_object, '{"rain": 1}', {"rain": 1}),
    (as_object, "{'rain': None}", {"rain": None}),
    (as_list, '[{"a": 1}]', [{"a": 1}]),
    (as_number, "4", 4.0),
    (as_object, "Error: no rain", "Error: no rain"),
    (as_nothing_said, '{"rain": 1}', '{"rain": 1}'),
]


@pytest.mark.parametrize(("fn", "text", "given"), GIVEN)
@pytest.mark.parametrize("has_span", [False, True], ids=["recovered", "span"])
def test_the_annotation_tells_text_from_what_it_says(
    fn: Callable[..., Any], text: str, given: Any, tmp_path: Path, *, has_span: bool
) -> None:
    call = told.said("assistant", told.called(fn.__name__, {"job": 1}, "a"))
    spans = [told.chat(1, [USER], [call]), told.chat(9, [USER, call, told.said("tool", told.came(text, "a"))], [])]
    if has_span:
        if fn is as_nothing_said or fn is as_number:
            pytest.skip("the span itself says what came")
        span = told.tool(5, fn.__name__, {"job": 1})
        said = {"gen_ai.tool.call.id": "a", "gen_ai.tool.call.result": text}
        spans.insert(1, told.span(5, span.name, {**span.attributes, **said}))
    with reenact.replay(told.written(tmp_path, *spans), store=tmp_path / "store", strict=False):
        got = reenact.tool(fn)(1)
    assert (type(got), got) == (type(given), given)


# ------------------------------------------------------------------------------------------------ whole transcripts


def _said(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks: list[dict[str, Any]] = content or []
    return "".join(block.get("text", "") for block in blocks)


def _claude(path: Path) -> Iterator[tuple[str, str]]:
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        content = cast("Any", (line.get("message") or {}).get("content"))
        if line.get("type") == "user" and not line.get("isSidechain") and isinstance(content, list):
            blocks = cast("list[dict[str, Any]]", content)
            yield from (
                (block["tool_use_id"], _said(block["content"])) for block in blocks if block["type"] == "tool_result"
            )


def _codex(path: Path) -> Iterator[tuple[str, str]]:
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        item = line.get("payload") or line
        if item.get("type") in ("function_call_output", "custom_tool_call_output"):
            yield item["call_id"], item["output"]


def _swe_agent(path: Path) -> Iterator[tuple[str, str]]:
    for message in json.loads(path.read_text(encoding="utf-8"))["history"]:
        if message.get("role") == "tool":
            yield message["tool_call_ids"][0], _said(message["content"])


def _codex_exec(path: Path) -> Iterator[tuple[str, str]]:
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if line["type"] == "item.completed" and line["item"]["type"] == "command_execution":
            yield line["item"]["id"], line["item"]["aggregated_output"]


def _openhands(path: Path) -> Iterator[tuple[str, str]]:
    for event in json.loads(path.read_text(encoding="utf-8")):
        if "observation" in event and event.get("tool_call_metadata"):
            yield event["tool_call_metadata"]["tool_call_id"], event["content"]


def _inspect(path: Path) -> Iterator[tuple[str, str]]:
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as held:
            samples: list[Any] = [
                json.loads(held.read(name)) for name in held.namelist() if name.startswith("samples/")
            ]
    else:
        samples = json.loads(path.read_text(encoding="utf-8")).get("samples", [])
    for sample in samples:
        for event in sample.get("events", []):
            if event["event"] == "tool":
                text = event["result"]
                yield event["id"], sample["attachments"].get(text.removeprefix("attachment://"), text)


READERS: dict[str, Callable[[Path], Iterator[tuple[str, str]]]] = {
    "codex-rollouts/stream-output-*.jsonl": _codex_exec,
    "inspect-ai/*": _inspect,
    "openhands/*.json": _openhands,
    "claude-code-sessions/*.jsonl": _claude,
    "codex-rollouts/rollout-*.jsonl": _codex,
    "swe-agent-traj-more/*.traj": _swe_agent,
}


LEAST = {"codex-rollouts/stream-output-*.jsonl": 2, "inspect-ai/*": 9, "openhands/*.json": 4}


@pytest.mark.parametrize("pattern", READERS)
def test_a_transcript_s_answers_are_those_of_the_raw_file(pattern: str, shared_data: Path) -> None:
    compared = 0
    for path in sorted((shared_data / "traces").glob(pattern)):
        try:
            runs = build(joined(open_spans(path)))
        except InputError:  # it holds no calls: a header, a session that ended before its first item
            continue
        raw = list(READERS[pattern](path))
        read = [(node.tool_call_id or "", result(node)) for node in tools(*runs)]
        for call_id in {call_id for call_id, _ in (*raw, *read)}:
            mine, theirs = ([text for each, text in said if each == call_id] for said in (read, raw))
            assert mine == theirs, (path.name, call_id)
        compared += len(raw)
    assert compared >= LEAST.get(pattern, 20)


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def test_what_was_recovered_is_the_message_of_its_id_in_every_trace(shared_data: Path) -> None:
    compared = 0
    for path in sorted((shared_data / "traces").rglob("*.*")):
        try:
            runs = build(joined(open_spans(path)))
        except (InputError, ImportError):
            continue
        for run in runs:
            by_id = {node.id: node for node in run.nodes}
            for node in tools(run):
                mark = node.call.attributes.get("reenact.recovered")
                told_so: dict[str, Any] = json.loads(mark) if isinstance(mark, str) else mark or {}  # type: ignore[assignment]
                if "result" not in told_so.get("parts", ()):
                    continue
                question = asked(by_id[str(told_so["told_by"])])
                assert question is not None
                here = [message for message in question.messages if message.tool_call_id == (node.tool_call_id or None)]
                here = here or [message for message in question.messages if message.role == "tool"]
                got = result(node)
                assert any(_text(message) == got or parsed_or_none(_text(message)) == got for message in here), path
                compared += 1
    assert compared > 100


def test_calls_that_the_emitter_left_out_of_requests_are_put_back_where_ids_prove_them(tmp_path: Path) -> None:
    import openai

    path = told.written(tmp_path, *polled(["a", "b", "c"], repeats_calls=False))
    messages: list[Any] = [{"role": "user", "content": told.QUESTION}]
    client = openai.OpenAI(api_key="inert")
    with reenact.replay(path, store=tmp_path / "store", strict=False) as replay:
        for answer in ANSWERS:
            messages.append(client.chat.completions.create(model="small", messages=messages).choices[0].message)
            messages.append({"role": "tool", "tool_call_id": messages[-1].tool_calls[0].id, "content": answer})
        said = client.chat.completions.create(model="small", messages=messages)
    assert said.choices[0].message.content == told.ANSWER
    assert replay.result is not None
    assert (replay.result.divergences, replay.result.answered) == ([], {"llm": 4})


def test_tokens_and_the_model_of_a_call_without_an_answer_are_shown() -> None:
    from reenact.report.call_text import model, tokens

    [run] = build([told.chat(1, [USER])])
    assert (tokens(run.nodes[0]), model(run.nodes[0])) == ("7+2 tokens", "small")
