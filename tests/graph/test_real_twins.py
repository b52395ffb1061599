"""One exchange recorded by many vendors' emitters: whatever an emitter doubles, as many calls remain as there were."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from reenact.boundary.reading import answered, asked
from reenact.graph.build import build
from reenact.read.open import open_spans
from reenact.values.call import CallKind, Unfinished
from reenact.values.message import ToolCall
from reenact.values.run import Node, Run
from reenact.values.span import SpanRecord


def runs_of(path: Path) -> list[Run]:
    return build(list(open_spans(path)))


def models(runs: list[Run]) -> list[Node]:
    return [node for run in runs for node in run.nodes if node.kind is CallKind.LLM]


def calls(runs: list[Run]) -> set[str]:
    said = [reply for node in models(runs) if (reply := answered(node)) is not None]
    parts = [part for reply in said for message in reply.messages for part in message.parts]
    return {part.id for part in parts if isinstance(part, ToolCall)}


def answers_of_tools(runs: list[Run]) -> set[str]:
    """The ids of calls whose results are known: of a tool's own record, or out of the next question."""
    told = {
        str(node.tool_call_id or node.call.attributes.get("gen_ai.tool.call.id"))
        for run in runs
        for node in run.nodes
        if node.kind is CallKind.TOOL and not isinstance(node.outcome, Unfinished)
    }
    questions = [request for node in models(runs) if (request := asked(node)) is not None]
    return told | {
        str(message.tool_call_id) for request in questions for message in request.messages if message.role == "tool"
    }


def test_every_emitter_s_record_of_one_exchange_holds_two_calls_of_the_model(
    shared_data: Path, record_property: Callable[[str, object], None]
) -> None:
    read = 0
    for path in sorted((shared_data / "traces" / "rosetta").iterdir()):
        if ".logs." in path.name and path.with_name(path.name.replace(".logs", "")).exists():
            continue  # half of a record: the spans are in the other file
        runs = runs_of(path)
        assert len(models(runs)) == 2, path.name
        assert len(calls(runs)) == 2, path.name
        assert answers_of_tools(runs) >= calls(runs), path.name
        read += 1
    record_property("counted", f"{read} emitters' records of one exchange: 2 model calls, 2 tool calls, 2 results each")
    assert read >= 20


TRACES = "agent-prism/test_data_1.json", "agentevals-adk-jaeger/helm_3.json", "agentevals-tempo-batches/*.json"


@pytest.mark.parametrize(("name", "count", "gone"), [*zip(TRACES, (3, 2, 2), (3, 2, 4), strict=True)])
def test_layers_of_frameworks_over_a_provider_are_one_call(shared_data: Path, name: str, count: int, gone: int) -> None:
    (path,) = (shared_data / "traces").glob(name)
    runs = runs_of(path)
    assert len(models(runs)) == count
    assert sum(len(node.twins) for run in runs for node in run.nodes) == gone
    assert all(answered(node) is not None for node in models(runs))


def test_the_order_of_a_file_changes_nothing(shared_data: Path) -> None:
    paths = [*sorted((shared_data / "traces" / "rosetta").glob("*.otlp.jsonl"))]
    paths += [path for name in TRACES for path in (shared_data / "traces").glob(name)]
    compared = 0
    for path in paths:
        records = list(open_spans(path))
        if not all(isinstance(record, SpanRecord) for record in records):
            continue  # log events of one instant follow each other as the file has them
        before = [told(run) for run in build(records)]
        random.Random(path.name).shuffle(records)
        assert [told(run) for run in build(records)] == before, path.name
        compared += 1
    assert compared >= 15


def told(run: Run) -> list[tuple[object, ...]]:
    return [(node.id, node.parent, node.number, node.call, node.outcome, node.twins) for node in run.nodes]


FAMILIES = (
    "vercel-ai-sdk/*",
    "langwatch-codingagents/*",
    "openinference-replay/*",
    "agent-prism/test_data*",
    "smoltrace/*",
    "langfuse-otel-inline/*",
    "strands-evals-live-spans/openinference*",
    "strands-evals-live-spans/claude*",
)
AGENTS_ALONE = {"oi-claude-agent-sdk.otlp.jsonl", "claude_live_spans.json"}
"""Of these emitters no file holds a model's call: the Claude Agent SDK reports a whole query as an agent."""


def test_every_file_of_these_emitters_holds_calls_that_say_something(
    shared_data: Path, record_property: Callable[[str, object], None]
) -> None:
    read: list[str] = []
    total = [0, 0, 0, 0]
    for path in [path for pattern in FAMILIES for path in sorted((shared_data / "traces").glob(pattern))]:
        runs = runs_of(path)
        nodes = [node for run in runs for node in run.nodes]
        told_of = [node for node in models(runs) if (request := asked(node)) is not None and request.messages]
        tools = [node for node in nodes if node.kind is CallKind.TOOL]
        kept = [node for node in tools if not isinstance(node.outcome, Unfinished)]
        others = [node for node in nodes if node.kind in (CallKind.EMBEDDING, CallKind.RETRIEVER, CallKind.RERANKER)]
        twins = sum(len(node.twins) for node in nodes)
        assert len(told_of) == len(models(runs)), path.name
        assert told_of or others or (path.name in AGENTS_ALONE and kept), path.name
        read.append(path.name)
        total = [sum(pair) for pair in zip(total, (len(told_of), len(kept), len(others), twins), strict=True)]
    counts = "{} model calls, {} tools' results, {} searches and embeddings, {} twins".format(*total)
    record_property("counted", f"{len(read)} files of other emitters: {counts}")
    assert len(read) >= 16
