"""Replies that were rebuilt of a foreign trace are whole: the SDKs' own models take them, strictly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic.types
import openai
import openai.types.chat
import openai.types.create_embedding_response
import openai.types.responses
import pytest
from pydantic import BaseModel

import reenact
from foreign import told
from foreign.replaying import replayed
from reenact.boundary.reading import shape_of
from reenact.graph.build import build
from reenact.graph.logs import joined
from reenact.read.open import open_spans
from reenact.replay.partial_match import as_told
from reenact.values.call import HttpReply, Returned
from reenact.values.run import Node
from reenact.values.span import SpanRecord

USER = told.said("user", told.text(told.QUESTION))
CALLS = told.said("assistant", told.text("Let me see."), told.called("look", {"at": "sky"}, None))
MODELS: dict[str, type[BaseModel]] = {
    "openai.chat": openai.types.chat.ChatCompletion,
    "openai.responses": openai.types.responses.Response,
    "openai.embeddings": openai.types.create_embedding_response.CreateEmbeddingResponse,
    "anthropic.messages": anthropic.types.Message,
}
BARE: dict[str, Any] = {
    "gen_ai.response.id": None,
    "gen_ai.response.model": None,
    "gen_ai.usage.output_tokens": None,
}


def checked(node: Node) -> BaseModel | None:
    """Have the SDK's own model read the reply that a replay would give; None where it was not rebuilt."""
    shape, outcome = shape_of(node), as_told(node)
    match outcome:
        case Returned(payload=HttpReply(status=200, body=body)) if shape is not None and shape.name in MODELS:
            return MODELS[shape.name].model_validate(json.loads(body.data))
        case _:
            return None


def bare(answer: dict[str, Any], provider: str, **more: Any) -> SpanRecord:
    """A call of which the emitter kept as little as it may."""
    span = told.chat(1, [USER], [answer], provider=provider, **BARE, **more)
    kept = {name: value for name, value in span.attributes.items() if value is not None}
    return told.span(1, span.name, kept)


@pytest.mark.parametrize(
    ("provider", "more"),
    [("openai", {}), ("openai", {"openai.api.type": "responses"}), ("anthropic", {})],
    ids=["chat", "responses", "messages"],
)
@pytest.mark.parametrize("counts", ["prompt", "none"])
@pytest.mark.parametrize("answer", [CALLS, told.said("assistant", told.text("a"), told.text("b"))], ids=["call", "say"])
def test_a_reply_of_which_little_was_kept_is_whole(
    provider: str, more: dict[str, Any], counts: str, answer: dict[str, Any]
) -> None:
    gone = {"gen_ai.usage.input_tokens": None} if counts == "none" else {}
    [run] = build([bare(answer, provider, **more, **gone)])
    reply = checked(run.nodes[0])
    assert reply is not None
    said = reply.model_dump()
    assert said["id"]
    assert said["model"] == "small"
    if said.get("usage") and provider == "openai":
        assert said["usage"]["total_tokens"] == 7


def test_totals_are_the_sums_and_what_was_kept_is_not_changed(tmp_path: Path) -> None:
    path = told.written(tmp_path, told.chat(1, [USER], [told.said("assistant", told.text(told.ANSWER))]))
    with reenact.replay(path, store=tmp_path / "store"):
        said = openai.OpenAI(api_key="inert").chat.completions.create(
            model="small", messages=[{"role": "user", "content": told.QUESTION}]
        )
    assert said.usage is not None
    assert (said.usage.prompt_tokens, said.usage.completion_tokens, said.usage.total_tokens) == (7, 2, 9)
    assert (said.id, said.model, said.created) == ("r-1", "small-2026-01-01", told.START // told.NS + 1)


def test_an_id_that_nobody_kept_is_no_divergence(tmp_path: Path) -> None:
    """Two calls in one reply without ids get an id each, and the next request may name them."""
    two = told.said("assistant", told.called("look", {"at": "sky"}, None), told.called("look", {"at": "sea"}, None))
    back = [told.said("tool", told.came(text, None)) for text in ("wet", "calm")]
    spans = [told.chat(1, [USER], [two]), told.chat(9, [USER, two, *back], [told.said("assistant", told.text("ok"))])]
    messages: list[Any] = [{"role": "user", "content": told.QUESTION}]
    client = openai.OpenAI(api_key="inert")
    with reenact.replay(told.written(tmp_path, *spans), store=tmp_path / "store") as replay:
        said = client.chat.completions.create(model="small", messages=messages).choices[0].message
        calls = said.tool_calls or []
        assert len({call.id for call in calls} - {""}) == 2
        messages.append(said)
        for call, text in zip(calls, ("wet", "calm"), strict=True):
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        client.chat.completions.create(model="small", messages=messages)
    assert replay.result is not None
    assert (replay.result.result, replay.result.answered) == ("same", {"llm": 2})


def test_every_rebuilt_reply_of_real_traces_is_whole(shared_data: Path) -> None:
    whole: set[str] = set()
    for folder in ("rosetta", "openinference-replay", "traceloop-openllmetry-replay", "any-agent", "codex-rollouts"):
        for path in sorted((shared_data / "traces" / folder).glob("*.jsonl")):
            if ".logs." in path.name or "stream-output" in path.name:
                continue
            for run in build(joined(open_spans(path))):
                for node in run.nodes:
                    shape = shape_of(node)
                    if shape is not None and "reenact.rebuilt" in node.call.attributes and checked(node) is not None:
                        whole.add(shape.name)
    assert whole >= {"openai.chat", "openai.responses", "anthropic.messages"}


CRASHES = """
import openai

def read(reply):
    raise KeyError("no such order")

client = openai.OpenAI(api_key="inert")
read(client.chat.completions.create(model="small", messages=[{"role": "user", "content": "Is it raining?"}]))
"""


def test_a_crash_is_told_as_that_with_its_place_before_what_is_absent(tmp_path: Path) -> None:
    answer = told.said("assistant", told.text(told.ANSWER))
    path = told.written(tmp_path, told.chat(1, [USER], [answer]), told.chat(3, [USER, answer, USER], [answer]))
    (tmp_path / "scenario.py").write_text(CRASHES, encoding="utf-8")
    result, said = replayed(path, tmp_path, "scenario.py")
    assert [(each["call"], each["field"]) for each in result["divergences"]] == [
        ("run", "outcome"),
        ("llm chat small #2", "call"),
    ]
    assert result["divergences"][0]["b"] == "KeyError: 'no such order'"
    assert result["divergences"][0]["where"] == f"{tmp_path / 'scenario.py'}:5"
    assert said.splitlines()
