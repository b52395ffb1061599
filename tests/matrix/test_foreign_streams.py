"""Streams of which another emitter kept no more than the reply that they came to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from golden_cases import GOLDEN
from matrix.asking import fields
from matrix.passing import client, replay
from reenact.errors import Miss
from reenact.graph.build import build
from reenact.values.run import Run
from reenact.values.span import Scope, SpanRecord

pytestmark = pytest.mark.older


def foreign(asked: dict[str, Any], reply: Any, system: str) -> Run:
    """A run of one call, as OpenInference shows it."""
    said = {
        "openinference.span.kind": "LLM",
        "llm.system": system,
        "input.value": json.dumps(asked),
        "output.value": json.dumps(reply),
    }
    span = SpanRecord(
        trace_id="a" * 32,
        span_id="b" * 16,
        parent_id=None,
        name="call",
        start_ns=1,
        end_ns=2,
        attributes=said,
        scope=Scope(name="openinference.instrumentation"),
    )
    (run,) = build([span])
    return run


def told(ledger: list[dict[str, Any]]) -> list[str]:
    """Give what was noted, but for the address, which such spans do not hold."""
    return [entry["t"] for entry in ledger if entry["t"] != "ignored"]


def loaded(case: str, name: str) -> dict[str, Any]:
    return json.loads((GOLDEN / "shapes" / case / name).read_text(encoding="utf-8"))


def test_a_chat_comes_as_the_chunks_that_say_it(tmp_path: Path) -> None:
    asked = {"model": "small-1", "messages": [{"role": "user", "content": "?"}], "stream": True}
    call = {"id": "call_1", "type": "function", "function": {"name": "locate", "arguments": '{"parcel": 4711}'}}
    said = {"role": "assistant", "content": "Looking.", "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": said}
    reply = {"id": "c1", "object": "chat.completion", "created": 1, "model": "small-1", "choices": [choice]}

    def program() -> Any:
        helped: Any = {key: value for key, value in asked.items() if key != "stream"}
        with client("http://127.0.0.1:9/v1").chat.completions.stream(**helped) as stream:
            return stream.get_final_completion().choices[0]

    final, ledger, unconsumed = replay(program, foreign(asked, reply, "openai"), tmp_path)
    assert (final.message.content, final.finish_reason) == ("Looking.", "tool_calls")
    assert final.message.tool_calls[0].function.arguments == '{"parcel": 4711}'
    assert (told(ledger), unconsumed) == (["answered"], [])


@pytest.mark.sample(3)
@pytest.mark.parametrize("case", ["tool_round", "thinking", "documents_and_server_tools"])
def test_a_message_comes_as_the_events_that_say_it(tmp_path: Path, case: str) -> None:
    asked = {**loaded(f"anthropic_messages/{case}", "request.json"), "stream": True}
    reply = loaded(f"anthropic_messages/{case}", "reply.json")

    def program() -> Any:
        helped: Any = {key: value for key, value in asked.items() if key != "stream"}
        with client("http://127.0.0.1:9/v1", sdk="anthropic").messages.stream(**helped) as stream:
            final = stream.get_final_message()
        return final.to_dict(mode="json", exclude_unset=True), fields(final.content)

    (final, _), ledger, unconsumed = replay(program, foreign(asked, reply, "anthropic"), tmp_path)
    assert {name: final[name] for name in ("content", "stop_reason")} == {
        name: reply[name] for name in ("content", "stop_reason")
    }
    assert (told(ledger), unconsumed) == (["answered"], [])


def test_a_response_comes_as_the_events_that_say_it(tmp_path: Path) -> None:
    asked = {"model": "small-1", "input": "?", "stream": True}
    reply = loaded("openai_responses/tool_round", "reply.json")

    def program() -> Any:
        helped: Any = {key: value for key, value in asked.items() if key != "stream"}
        with client("http://127.0.0.1:9/v1").responses.stream(**helped) as stream:
            return stream.get_final_response().to_dict(mode="json", exclude_unset=True)

    final, ledger, unconsumed = replay(program, foreign(asked, reply, "openai"), tmp_path)
    assert [item["type"] for item in final["output"]] == [item["type"] for item in reply["output"]]
    assert final["status"] == reply["status"]
    assert (told(ledger), unconsumed) == (["answered"], [])


def test_a_stream_that_cannot_be_made_is_a_miss_and_not_an_empty_stream(tmp_path: Path) -> None:
    asked = {"model": "small-1", "messages": [{"role": "user", "content": "?"}], "stream": True}
    misses: list[str] = []

    def program() -> None:
        try:
            list(client("http://127.0.0.1:9/v1").chat.completions.create(**asked))
        except Miss as miss:
            misses.append(str(miss))

    _, ledger, _ = replay(program, foreign(asked, [1, 2], "openai"), tmp_path)
    assert told(ledger) == ["miss"]
    assert "holds no reply for this call" in misses[0]
