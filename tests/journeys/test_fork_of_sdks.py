"""Changed answers and rewritten requests, as the real SDKs see them: three APIs, whole and streamed, sync and async."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desk import Desk
from golden_cases import GOLDEN
from matrix.serving import Provider, Reply
from reenact.boundary.reading import answered as read_reply
from reenact.find.altering import Altered
from reenact.find.sources import RunSource, find
from reenact.pipeline.commands import command
from reenact.pipeline.replaying import printing, replay
from reenact.replay.policy import Policy
from reenact.stores.directory import DirectoryStore
from reenact.values.change import Change
from reenact.values.message import Answered, ToolCall
from reenact.values.run import Node

PROGRAM = Path(__file__).with_name("three_sdks_program.py")
EVENT_STREAM = "text/event-stream; charset=utf-8"
CASES = {
    "chat": ("openai_chat", "tool_round", "stream_two_tools"),
    "responses": ("openai_responses", "tool_round", "stream_completed"),
    "messages": ("anthropic_messages", "tool_round", "stream_tool_inputs"),
}
FINISHES = {
    "chat": ("tool_calls", "stop"),
    "responses": ("completed", "completed"),
    "messages": ("tool_use", "end_turn"),
}
CALLS = 12


def replies(shape: str) -> tuple[Reply, ...]:
    """Give what is answered to the four questions of a shape: whole, streamed, whole, streamed."""
    folder, whole, stream = CASES[shape]
    body = (GOLDEN / "shapes" / folder / whole / "reply.json").read_bytes()
    events = (GOLDEN / "shapes" / folder / stream / "stream.txt").read_bytes()
    return (Reply(body=body), Reply(body=events, seed=3, content_type=EVENT_STREAM)) * 2


def environment(provider: Provider, *, times: int = 1) -> dict[str, str]:
    openai = provider.answer("openai", *(replies("chat")[:2] + replies("responses")[:2]) * 2 * times)
    claude = provider.answer("claude", *replies("messages") * times)
    return {
        "OPENAI_BASE_URL": openai,
        "OPENAI_API_KEY": "sk-none",
        "ANTHROPIC_BASE_URL": claude.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": "sk-none",
    }


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    with Provider() as provider:
        desk.environ |= environment(provider)
        done = desk.reenact("run", "--", "python", str(PROGRAM))
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == CALLS
    assert sum(bool(json.loads(line)["calls"]) for line in done.stdout.splitlines()) > 2
    return desk


def calls(found: RunSource) -> list[Node]:
    return [node for node in found.run.nodes if node.kind == "LLM"]


def answered(desk: Desk, monkeypatch: pytest.MonkeyPatch, **sets: Any) -> list[dict[str, Any]]:
    """Replay with the same changes in each call, and give what the SDKs made of it."""
    monkeypatch.chdir(desk.folder)
    for name, setting in desk.environ.items():
        monkeypatch.setenv(name, setting)
    store = DirectoryStore(desk.folder / ".reenact")
    found = find("last", store)
    changes = tuple(
        Change(call=node.id, path=path, value=value) for node in calls(found) for path, value in sets.items()
    )
    assert len(changes) == CALLS * len(sets)
    argv, cwd = command(found, ())
    with (desk.folder / "printed").open("w+b") as printed:
        outcome = replay(
            replace(found, altered=Altered(changes=changes)), argv, cwd, Policy(), store, start=printing(printed)
        )
        printed.seek(0)
        lines = printed.read().decode().splitlines()
    assert outcome.result.result == "same", outcome.result.divergences
    assert outcome.result.live == 0
    assert len(lines) == CALLS
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_changed_answers_reach_every_sdk(recorded: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [{"name": "first", "arguments": {"a": ["ü", 1]}}, {"name": "second", "arguments": {}}]
    seen = answered(recorded, monkeypatch, text="Grüße,\nall done.", tool_calls=given)
    assert {each["way"] for each in seen} == {"sync", "sync stream", "async", "async stream"}
    assert [each["text"] for each in seen] == ["Grüße,\nall done."] * CALLS
    assert [each["calls"] for each in seen] == [[["first", {"a": ["ü", 1]}], ["second", {}]]] * CALLS
    assert [each["finish"] for each in seen] == [FINISHES[each["shape"]][0] for each in seen]


@pytest.mark.slow
def test_an_answer_to_a_call_that_had_none_reaches_every_sdk(recorded: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [{"name": "first", "arguments": {"a": 1}}]
    seen = answered(recorded, monkeypatch, raised="OSError", text="From nothing.", tool_calls=given)
    assert [each["text"] for each in seen] == ["From nothing."] * CALLS
    assert [each["calls"] for each in seen] == [[["first", {"a": 1}]]] * CALLS
    assert [each["finish"] for each in seen] == [FINISHES[each["shape"]][0] for each in seen]


@pytest.mark.slow
def test_tool_calls_taken_away_leave_an_answer_that_has_ended(recorded: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = answered(recorded, monkeypatch, tool_calls=[])
    assert [each["calls"] for each in seen] == [[]] * CALLS
    had = [
        each
        for each, node in zip(seen, calls(find("last", DirectoryStore(recorded.folder / ".reenact"))), strict=True)
        if any(isinstance(part, ToolCall) for message in said(node).messages for part in message.parts)
    ]
    assert len(had) > 4
    assert [each["finish"] for each in had] == [FINISHES[each["shape"]][1] for each in had]


def said(node: Node) -> Answered:
    reply = read_reply(node)
    assert reply is not None
    return reply


@pytest.mark.slow
def test_every_model_call_goes_out_rewritten(recorded: Desk) -> None:
    with Provider() as provider:
        environ = {**recorded.environ, **environment(provider)}
        words = ("fork", "last", "--model", "other-model", "--param", "metadata.fork=yes", "--json")
        done = recorded.reenact(*words, environ={"PATH": "/usr/bin:/bin", **environ})
        bodies = [json.loads(body) for asked in provider.asked.values() for body in asked]
    told = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert [body["model"] for body in bodies] == ["other-model"] * CALLS
    assert [body["metadata"] for body in bodies] == [{"fork": "yes"}] * CALLS
    assert sum(body.get("stream", False) for body in bodies) == CALLS // 2
    assert (told["result"], told["replay"]["live"], told["same_path"]) == ("forked", CALLS, True)
    assert told["consequences"] == []
    store = DirectoryStore(recorded.folder / ".reenact")
    fork = find(told["fork"], store)
    asked = [json.loads(node.call.request.body.data) for node in calls(fork)]  # type: ignore[union-attr]
    assert [body["model"] for body in asked] == ["other-model"] * CALLS
