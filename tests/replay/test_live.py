"""What comes back live is held against what was recorded: `same` over another answer is no verdict."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from openai import OpenAI

import reenact
from held import Held
from reenact.values.judgement import ReplayResult


class Provider:
    """A server that gives each request the next of its replies, and counts."""

    def __init__(self) -> None:
        self.replies: list[dict[str, Any]] = []
        self.asked: list[str] = []
        provider = self

        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                provider.asked.append(self.path)
                data = json.dumps(provider.replies.pop(0)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    threading.Thread(target=made.server.serve_forever, daemon=True).start()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


def reply(number: int, content: str | None = "Granted.", **more: Any) -> dict[str, Any]:
    """Make a chat reply; its id, time and count of tokens differ from any other's."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if "tool_calls" in more:
        message["tool_calls"] = more.pop("tool_calls")
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": number,
        "model": "gpt-5",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": number, "total_tokens": number + 1},
        **more,
    }


def call_of(name: str, arguments: str) -> list[dict[str, Any]]:
    return [{"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}]


@reenact.tool
def fetch(item: str) -> str:
    return f"{item} is there"


def ask(origin: str, *, base: str = "/v1", prompt: str = "May I?") -> str:
    with OpenAI(base_url=origin + base, api_key="x", max_retries=0) as client:
        said = client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": prompt}])
    return said.choices[0].message.content or ""


def judged(result: ReplayResult | None) -> ReplayResult:
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("then", "field", "what", "structural"),
    [
        (reply(2, "Refused."), "reply.messages[0].content", "words", False),
        (reply(2, model="gpt-5-mini"), "reply.model", "model", True),
        (reply(2, system_fingerprint="fp_2"), "reply.system_fingerprint", "fingerprint", False),
        (reply(2, tool_calls=call_of("refund", "{}")), "reply.messages[0].tool_calls", "structure", True),
    ],
)
def test_another_live_answer_diverges_and_says_how(
    held: Held, provider: Provider, then: dict[str, Any], field: str, what: str, *, structural: bool
) -> None:
    provider.replies = [reply(1), then]

    def work() -> tuple[str, str]:
        return ask(provider.origin), fetch("tea")

    did = held.record(work)
    result = judged(held.replay(did, work, models="live").result)
    assert (result.result, result.live, result.answered) == ("diverged", 1, {"tool": 1})
    first = result.divergences[0]
    assert (first["field"], first["live"], first["structural"]) == (field, what, structural)
    assert first["call"] == did.calls[0].label


def test_the_same_live_answer_is_the_same_whatever_ids_and_counts_it_has(held: Held, provider: Provider) -> None:
    provider.replies = [reply(number) for number in (1, 2, 3, 4)]

    def work() -> list[str]:
        return [ask(provider.origin), fetch("tea"), ask(provider.origin, prompt="And now?")]

    did = held.record(work)
    result = judged(held.replay(did, work, models="live").result)
    assert (result.result, result.live, result.answered) == ("same", 2, {"tool": 1})
    assert judged(held.replay(did, work, models="recorded", tools="live").result).live == 1
    assert len(provider.asked) == 4


def test_every_live_call_counts_once_with_models_and_tools_live(held: Held, provider: Provider) -> None:
    provider.replies = [reply(1), reply(2)]

    def work() -> tuple[str, str]:
        return ask(provider.origin), fetch("tea")

    did = held.record(work)
    result = judged(held.replay(did, work, models="live", tools="live").result)
    assert (result.result, result.live, result.answered) == ("same", 2, {})


def test_a_live_call_too_many_and_one_too_few_diverge(held: Held, provider: Provider) -> None:
    provider.replies = [reply(number) for number in (1, 2, 3, 4, 5)]
    did = held.record(lambda: [ask(provider.origin), ask(provider.origin, prompt="And now?")])
    more = held.replay(did, lambda: [ask(provider.origin, prompt=each) for each in ("May I?", "And now?", "Yes?")],
                       models="live")  # fmt: skip
    assert [each["kind"] for each in judged(more.result).divergences] == ["extra"]
    provider.replies = [reply(6)]
    fewer = held.replay(did, lambda: ask(provider.origin), models="live")
    assert [each["kind"] for each in judged(fewer.result).divergences] == ["missing"]


def test_another_live_question_diverges_at_it(held: Held, provider: Provider) -> None:
    provider.replies = [reply(1), reply(2)]
    did = held.record(lambda: ask(provider.origin))
    again = held.replay(did, lambda: ask(provider.origin, prompt="May I not?"), models="live")
    first = judged(again.result).divergences[0]
    assert (first["field"], first["b"]) == ("body.messages[0].content", "May I not?")


def test_a_live_answer_of_another_sdk_is_compared_too(held: Held, provider: Provider) -> None:
    def said(text: str) -> dict[str, Any]:
        usage = {"input_tokens": 1, "output_tokens": len(text)}
        content = [{"type": "text", "text": text}]
        return {"id": f"msg_{text}", "type": "message", "role": "assistant", "model": "claude-x", "content": content,
                "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}  # fmt: skip

    provider.replies = [said("Yes."), said("No.")]

    def work() -> None:
        with Anthropic(base_url=provider.origin, api_key="x", max_retries=0) as client:
            client.messages.create(model="claude-x", max_tokens=9, messages=[{"role": "user", "content": "May I?"}])

    did = held.record(work)
    first = judged(held.replay(did, work, models="live").result).divergences[0]
    assert (first["a"], first["b"], first["live"]) == ("Yes.", "No.", "words")


def test_a_run_can_be_replayed_as_it_is(held: Held, provider: Provider) -> None:
    provider.replies = [reply(1)]
    did = held.record(lambda: ask(provider.origin))
    with reenact.replay(did.runs[0], store=held.store) as replay:
        assert ask(provider.origin) == did.value
    assert judged(replay.result).result == "same"
    assert len(provider.asked) == 1
