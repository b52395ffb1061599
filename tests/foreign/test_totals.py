"""The tokens that are shown of a trace are those that the raw file counts, read here by nothing of ours."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reenact.boundary.reading import answered
from reenact.errors import InputError
from reenact.graph.build import build
from reenact.graph.logs import joined
from reenact.read.open import open_spans
from reenact.values.call import CallKind


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _inspect(path: Path) -> Iterator[tuple[int, int]]:
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as held:
            samples: list[Any] = [
                json.loads(held.read(name)) for name in held.namelist() if name.startswith("samples/")
            ]
    else:
        samples = json.loads(path.read_text(encoding="utf-8")).get("samples") or []
    events: list[Any] = [event for sample in samples for event in sample.get("events") or []]
    for event in events:
        if event["event"] == "model" and event["output"].get("usage"):
            yield event["output"]["usage"]["input_tokens"], event["output"]["usage"]["output_tokens"]


def _openhands(path: Path) -> Iterator[tuple[int, int]]:
    replies = {
        event["tool_call_metadata"]["model_response"]["id"]: event["tool_call_metadata"]["model_response"]["usage"]
        for event in json.loads(path.read_text(encoding="utf-8"))
        if event.get("tool_call_metadata")
    }
    yield from ((usage["prompt_tokens"], usage["completion_tokens"]) for usage in replies.values())


def _codex_exec(path: Path) -> Iterator[tuple[int, int]]:
    for line in lines(path):
        if line["type"] == "turn.completed":
            yield line["usage"]["input_tokens"], line["usage"]["output_tokens"]


def _codex_rollout(path: Path) -> Iterator[tuple[int, int]]:
    for line in lines(path):
        if line["type"] == "event_msg" and line["payload"]["type"] == "token_count" and line["payload"].get("info"):
            usage = line["payload"]["info"]["last_token_usage"]
            yield usage["input_tokens"], usage["output_tokens"]


def _claude(path: Path) -> Iterator[tuple[int, int]]:
    replies: dict[str, dict[str, int]] = {}
    for line in lines(path):
        message: dict[str, Any] = line.get("message") or {}
        if line.get("type") == "assistant" and not line.get("isSidechain") and message.get("usage"):
            replies[message["id"]] = message["usage"]
    for usage in replies.values():
        cached = (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
        yield usage["input_tokens"] + cached, usage["output_tokens"]


def _langfuse(path: Path) -> Iterator[tuple[int, int]]:
    held = json.loads(path.read_text(encoding="utf-8"))["observations"]
    calls: list[Any] = [each for each in held if each["type"] == "GENERATION"]
    for each in calls:
        if not any(other["parentObservationId"] == each["id"] for other in calls):  # else the one below is the call
            usage: dict[str, int] = each["usageDetails"]
            sides = [sum(n for name, n in usage.items() if name.startswith(side)) for side in ("input", "output")]
            yield sides[0], sides[1]


def _langsmith(path: Path) -> Iterator[tuple[int, int]]:
    held = json.loads(path.read_text(encoding="utf-8"))
    for each in held["patch"]:
        usage: dict[str, int] = (each.get("outputs") or {}).get("usage_metadata") or {}
        yield usage.get("input_tokens") or 0, usage.get("output_tokens") or 0


READERS: dict[str, tuple[Callable[[Path], Iterator[tuple[int, int]]], int]] = {
    "inspect-ai/*": (_inspect, 9),
    "openhands/*.json": (_openhands, 3),
    "codex-rollouts/stream-output-*.jsonl": (_codex_exec, 2),
    "codex-rollouts/rollout-*.jsonl": (_codex_rollout, 2),
    "claude-code-sessions/*.jsonl": (_claude, 4),
    "langfuse-api-export/*.json": (_langfuse, 7),
    "langsmith-runs/*.json": (_langsmith, 4),
}


@pytest.mark.parametrize("pattern", READERS)
def test_the_tokens_of_a_run_are_those_of_the_raw_file(pattern: str, shared_data: Path) -> None:
    reader, least = READERS[pattern]
    compared = 0
    for path in sorted((shared_data / "traces").glob(pattern)):
        try:
            runs = build(joined(open_spans(path)))
        except InputError:
            continue
        replies = [
            reply.usage
            for run in runs
            for node in run.nodes
            if node.kind is CallKind.LLM and (reply := answered(node)) is not None
        ]
        raw = list(reader(path))
        read = sum(usage.prompt or 0 for usage in replies), sum(usage.completion or 0 for usage in replies)
        assert read == (sum(each for each, _ in raw), sum(each for _, each in raw)), path.name
        compared += 1
    assert compared >= least


def test_codex_may_count_before_the_reply_is_written_down_and_says_a_count_again(tmp_path: Path) -> None:
    def item(**payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-03-01T10:00:00.000Z", "type": "response_item", "payload": payload}

    def count(given: int, total: int) -> dict[str, Any]:
        usage = {"last_token_usage": {"input_tokens": given, "output_tokens": 1}, "total_token_usage": total}
        return {"type": "event_msg", "payload": {"type": "token_count", "info": usage}}

    asked = item(type="message", role="user", content=[{"type": "input_text", "text": "Does it rain?"}])
    thought = item(type="reasoning", summary=[{"type": "summary_text", "text": "Let me look."}])
    call = item(type="function_call", name="look", arguments="{}", call_id="c1")
    came = item(type="function_call_output", call_id="c1", output="yes")
    said = item(type="message", role="assistant", content=[{"type": "output_text", "text": "It does."}])
    ahead = [asked, count(10, 11), thought, call, came, count(20, 32), count(20, 32), said]
    behind = [asked, thought, call, count(10, 11), came, count(10, 11), said, count(20, 32)]
    for number, told in enumerate((ahead, behind)):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(f"{json.dumps(each)}\n" for each in told))
        [run] = build(joined(open_spans(path)))
        replies = [reply.usage.prompt for node in run.nodes if (reply := answered(node)) is not None]
        assert replies == [10, 20]
