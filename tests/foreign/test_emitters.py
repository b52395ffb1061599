"""A second run, written down by emitters that we ran ourselves: it reads as it was, and replays offline.

`tests/golden/foreign` holds what they sent, made by `emitting.py`. What is expected is the scenario's own text.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from foreign import emitting, rosetta, scenario
from foreign.replaying import replayed
from reenact.boundary.reading import answered, asked
from reenact.foreign.partial_question import rebuilt_parts
from reenact.graph.verdict import judge
from reenact.values.call import FunctionCall, HttpReply, Raised, Returned, Value
from reenact.values.json import parsed_or_none
from reenact.values.message import Asked, Message, Text, ToolCall
from reenact.values.run import Node

FOLDER = Path(__file__).parents[1] / "golden" / "foreign"
FILES = sorted(FOLDER.glob("*.jsonl"))
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
CALLS: list[dict[str, Any]] = [call["function"] for call in emitting.SAID["tool_calls"]]  # type: ignore[index,union-attr]


def text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def question(node: Node) -> Asked:
    found = asked(node)
    assert found is not None
    return found


def test_there_are_emitters() -> None:
    assert len(FILES) >= 5


@every_file
def test_what_was_asked_reads_as_it_was(path: Path) -> None:
    models = rosetta.read(path).models
    assert len(models) == 3
    for node in models:
        said = question(node)
        assert [text(message) for message in said.messages][:2] == [scenario.SYSTEM, scenario.QUESTION]
        assert [message.role for message in said.messages][:2] == ["system", "user"]
        assert [tool["function"] for tool in said.tools] == [tool["function"] for tool in scenario.TOOLS]  # type: ignore[index,call-overload]
        assert (said.parameters["temperature"], said.parameters["max_tokens"]) == (0.2, 300)
        assert said.model in ("small-2", None) or "model" in {loss["field"] for loss in lost_of(node)}
    for node in models[1:]:
        history = question(node).messages[2:]
        calls = [part for part in history[0].parts if isinstance(part, ToolCall)]
        assert [(call.id, call.name) for call in calls] == [("call_a", "find_order"), ("call_b", "check_stock")]
        assert [parsed_or_none(call.arguments) for call in calls] == [json.loads(call["arguments"]) for call in CALLS]
        assert [(message.role, message.tool_call_id) for message in history[1:]] == [
            ("tool", "call_a"),
            ("tool", "call_b"),
        ]
        assert parsed_or_none(text(history[1])) == scenario.find_order("A-17")
        assert text(history[2]).startswith("failed: no item 'desk lamp'")


def lost_of(node: Node) -> list[dict[str, Any]]:
    from reenact.foreign.partial_question import losses

    return losses(node)


@every_file
def test_what_was_answered_reads_as_it_was(path: Path) -> None:
    first, refused, last = rosetta.read(path).models
    reply = answered(first)
    assert reply is not None
    calls = [part for message in reply.messages for part in message.parts if isinstance(part, ToolCall)]
    assert [(call.id, call.name) for call in calls] == [("call_a", "find_order"), ("call_b", "check_stock")]
    assert (reply.usage.prompt, reply.usage.completion) == (91, 40)
    assert isinstance(refused.outcome, Returned)
    assert isinstance(refused.outcome.payload, HttpReply)
    assert refused.outcome.payload.status == 429
    assert "failure" in rebuilt_parts(refused)
    ended = answered(last)
    assert ended is not None
    assert [text(message) for message in ended.messages] == ["".join(emitting.ANSWER)]


@every_file
def test_tools_read_as_they_were(path: Path) -> None:
    found, failing = rosetta.read(path).tools
    assert (found.call.name, failing.call.name) == ("find_order", "check_stock")
    assert isinstance(found.call.request, FunctionCall)
    assert isinstance(failing.call.request, FunctionCall)
    assert [found.call.request.arguments, failing.call.request.arguments] == [
        json.loads(each["arguments"]) for each in CALLS
    ]
    assert isinstance(found.outcome, Returned)
    assert isinstance(found.outcome.payload, Value)
    got = found.outcome.payload.json  # where no span of the tool says it, as the text that the model was told
    is_recovered = "reenact.recovered" in found.span.attributes
    assert (parsed_or_none(str(got)) if is_recovered else got) == scenario.find_order("A-17")
    match failing.outcome:
        case Raised(exception=exception):
            kept = "LookupError" in rosetta.leaves(path).written
            assert (exception.module, exception.qualname) == ("builtins", "LookupError" if kept else "Exception")
            assert kept or "exception" in {reason.field for reason in judge(rosetta.read(path).runs[0]).reasons}
            assert exception.message == "no item 'desk lamp' in stock list, 2 wanted"
        case Returned(payload=Value(json=str(said))):
            assert "reenact.recovered" in failing.span.attributes
            assert said.startswith("failed: no item")
        case other:
            pytest.fail(f"{other} is no outcome of a tool that raised")


@every_file
def test_the_verdict_says_what_is_not_there_and_no_more(path: Path) -> None:
    reading, raw = rosetta.read(path), rosetta.leaves(path)
    named = {reason.field for reason in judge(reading.runs[0]).reasons}
    assert ("tool_choice" in named) != raw.chose("auto")
    recovered = any("reenact.recovered" in node.span.attributes for node in reading.tools)
    assert ("tool" in named) == recovered


def replay(path: Path, folder: Path, program: str) -> tuple[dict[str, Any], str]:
    (folder / "scenario.py").write_text(program, encoding="utf-8")
    return replayed(path, folder, "scenario.py", "plain")


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[] if at % 6 == 0 else pytest.mark.slow) for at, path in enumerate(FILES)],
)
def test_the_program_is_replayed_offline(path: Path, tmp_path: Path) -> None:
    result, printed = replay(path, tmp_path, Path(scenario.__file__).read_text(encoding="utf-8"))
    tools = rosetta.read(path).tools
    if any("reenact.recovered" in node.span.attributes for node in tools):
        # that the tool raised, and what the program made of it, only the message to the model tells
        assert result["result"] == "diverged"
        assert result["answered"] == {"llm": 1, "tool": 2}
        assert [each["field"] for each in result["divergences"]] == ["body.messages[4].content"]
        return
    if "LookupError" not in rosetta.leaves(path).written:  # what the program catches by its class
        assert (result["result"], result["exit_code"]["replay"]) == ("diverged", 1)
        return
    assert result["result"] == "same", result
    assert "".join(emitting.ANSWER) in printed.splitlines()
    assert result["answered"] == {"llm": 3, "tool": 2}


@pytest.mark.slow
def test_a_changed_program_is_found_out(tmp_path: Path) -> None:
    program = Path(scenario.__file__).read_text(encoding="utf-8").replace('"temperature": 0.2', '"temperature": 0.9')
    result, _ = replay(FOLDER / "langsmith.jsonl", tmp_path, program)
    assert result["result"] == "diverged"
    assert [result["divergences"][0][side] for side in ("field", "a", "b")] == ["body.temperature", 0.2, 0.9]


def test_an_emitter_can_be_run_again(tmp_path: Path) -> None:
    """The stand-in and the program agree on what is said: nothing of a vendor's is needed to see that."""
    shutil.copy(Path(scenario.__file__), tmp_path / "scenario.py")
    said = emitting.emit("plain", sys.executable, tmp_path / "out.jsonl")
    assert said.strip() == "".join(emitting.ANSWER)
