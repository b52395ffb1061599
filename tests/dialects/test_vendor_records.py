"""Real records of vendors: each file reads, each empty call says why, and one exchange reads alike from all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reenact.boundary.reading import answered, asked
from reenact.graph.build import build
from reenact.read.open import open_spans
from reenact.values.call import CallKind, FunctionCall, Returned, Unfinished, Value
from reenact.values.json import Json
from reenact.values.message import Message, Text, ToolCall
from reenact.values.run import Node, Run

FAMILIES = (
    "langfuse-api-export/*.json",
    "agent-prism/langfuse-*.json",
    "langsmith-runs/*.json",
    "braintrust-snapshots/*.json",
    "agentops/*",
    "rosetta/langfuse.otlp.jsonl",
    "rosetta/langsmith.*",
    "rosetta/mlflow.*",
    "rosetta/braintrust.*",
    "rosetta/datadog-*",
    "rosetta/openai-agents.*",
)


def real_files(shared_data: Path) -> list[Path]:
    return sorted({path for kind in FAMILIES for path in (shared_data / "traces").glob(kind)})


def runs_of(path: Path) -> list[Run]:
    return build(open_spans(path))


def test_every_file_reads_and_every_empty_call_says_why(
    shared_data: Path, record_property: Callable[[str, object], None]
) -> None:
    for path in real_files(shared_data):
        nodes = [node for run in runs_of(path) for node in run.nodes]
        models = [node for node in nodes if node.kind is CallKind.LLM]
        told = [node for node in models if (question := asked(node)) and question.messages]
        tools = [node for node in nodes if node.kind is CallKind.TOOL]
        silent = [node for node in models if node not in told]
        assert all(node.call.attributes.get("reenact.lost") for node in silent), path.name
        messages = sum(len(question.messages) for node in told if (question := asked(node)))
        why = sorted({reason for node in silent for reason in reasons(node)})
        name = f"{path.parent.name}/{path.name}"
        record_property(
            "figure",
            f"{name}: {len(nodes)} calls, {len(models)} of models, {messages} messages asked, {len(tools)} tools"
            + (f"; {len(silent)} without messages: {'; '.join(why)}" if silent else "")
            + ("; log lines alone, of no call" if not (models or tools) else ""),
        )


def reasons(node: Node) -> Iterator[str]:
    lost = node.call.attributes.get("reenact.lost")
    for each in lost if isinstance(lost, list) else []:
        if isinstance(each, dict):
            yield str(each.get("lost"))


# ------------------------------------------------------------------------------------------------------------- rosetta

SYSTEM = "You're a helpful assistant."
QUESTION = "What's the weather in Seattle and San Francisco today?"
ANSWER = "Today, the weather in Seattle is 50 degrees and raining, while in San Francisco, it's 70 degrees and sunny."
CALLS = {
    "call_JpNb8OiAkbIbHzDggfpdDHpi": ("Seattle, WA", "50 degrees and raining"),
    "call_vaFQc3zK6hHTRZKXRI5Eo2cJ": ("San Francisco, CA", "70 degrees and sunny"),
}
EVERYTHING = frozenset(
    {"tools", "tool_choice", "request model", "response model", "response id", "session", "user"},
)  # fmt: skip
KEPT = {
    "langfuse.otlp.jsonl": EVERYTHING - {"tool_choice", "request model", "response id"},
    "langsmith.otlp.jsonl": EVERYTHING,
    "langsmith.runs.jsonl": EVERYTHING,
    "mlflow.trace.json": EVERYTHING,
    "braintrust.rows.jsonl": EVERYTHING - {"response model", "response id"},
    "datadog-llmobs.events.jsonl": EVERYTHING - {"request model", "response id"},
    "openai-agents.tracing.jsonl": EVERYTHING - {"tools", "tool_choice", "response model", "response id"},
}
"""What each emitter keeps of the exchange beside messages, arguments, results and ids of calls, which all of them do.

The trace of the OpenAI Agents SDK names `tool_choice` and says null: the agent set none.
"""


def text_of(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def calls_of(message: Message) -> dict[str, tuple[str, Json]]:
    return {part.id: (part.name, json.loads(part.arguments)) for part in message.parts if isinstance(part, ToolCall)}


@pytest.mark.parametrize("name", KEPT)
def test_one_exchange_reads_alike_from_every_vendor(name: str, shared_data: Path) -> None:
    path = shared_data / "traces" / "rosetta" / name
    if not path.exists():
        pytest.skip(f"no {name} in ../shared/data")
    (run,) = runs_of(path)
    first, second = [node for node in run.nodes if node.kind is CallKind.LLM]
    assert_messages(first, second)
    assert_tools([node for node in run.nodes if node.kind is CallKind.TOOL])
    assert kept(run, first) == KEPT[name]
    missing = {"request model": "model", "response id": "reply", "tools": "tools"}
    lost = json.dumps(first.call.attributes.get("reenact.lost", []))
    for field in missing.keys() - KEPT[name]:
        assert f'"field": "{missing[field]}' in lost, field


def assert_messages(first: Node, second: Node) -> None:
    question, again = asked(first), asked(second)
    reply, final = answered(first), answered(second)
    assert question
    assert again
    assert reply
    assert final
    assert [(message.role, text_of(message)) for message in question.messages] == [
        ("system", SYSTEM),
        ("user", QUESTION),
    ]
    wanted: dict[str, tuple[str, Json]] = {
        known: ("get_current_weather", {"location": place}) for known, (place, _) in CALLS.items()
    }
    assert calls_of(reply.messages[0]) == wanted
    assert reply.finish_reasons == ("tool_calls",)
    assert calls_of(again.messages[2]) == wanted
    assert [(message.tool_call_id, text_of(message)) for message in again.messages[3:]] == [
        (known, result) for known, (_, result) in CALLS.items()
    ]
    assert [text_of(message) for message in final.messages] == [ANSWER]
    assert (reply.usage.prompt, reply.usage.completion) == (75, 51)
    assert (final.usage.prompt, final.usage.completion) == (99, 25)


def assert_tools(tools: list[Node]) -> None:
    found: list[tuple[Json, Json]] = []
    for node in tools:
        assert isinstance(node.call.request, FunctionCall)
        assert isinstance(node.outcome, Returned)
        assert isinstance(node.outcome.payload, Value)
        assert node.call.name == "get_current_weather"
        found.append((node.call.request.arguments, node.outcome.payload.json))
    assert found == [({"location": place}, result) for place, result in CALLS.values()]


def kept(run: Run, first: Node) -> frozenset[str]:
    """Which fields the canonical run has."""
    question, reply = asked(first), answered(first)
    assert question
    assert reply
    parameters = question.parameters
    found = {
        "tools": bool(question.tools) and "Get the current weather" in json.dumps(question.tools),
        "tool_choice": parameters.get("tool_choice") == "auto",
        "request model": question.model == "gpt-4o-mini",
        "response model": reply.model == "gpt-4o-mini-2024-07-18",
        "response id": reply.id == "chatcmpl-ASYMU9Ntix7ePttk0MSuerJstef6U",
        "session": run.session == "sess-rosetta",
        "user": run.user == "user-rosetta",
    }
    assert not isinstance(first.outcome, Unfinished)
    return frozenset(name for name, is_there in found.items() if is_there)
