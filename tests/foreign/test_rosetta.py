"""Every emitter's file of one exchange: nothing lost by us, and the agent itself runs offline against each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from foreign import rosetta
from foreign.replaying import replayed
from reenact.boundary.reading import asked
from reenact.graph.verdict import judge
from reenact.values.message import Text

AGENT = Path(__file__).with_name("agent.py")
FILES = rosetta.files() if rosetta.FOLDER.is_dir() else []
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
some = [
    pytest.param(path, id=path.name, marks=[] if at % 16 == 3 else pytest.mark.slow) for at, path in enumerate(FILES)
]
in_turn = pytest.mark.parametrize("path", some)
"""A program is run against every file; all but a few of those where slow tests are."""

if not FILES:
    pytest.skip("no real data here: these tests read ../shared/data, beside the repository", allow_module_level=True)


@pytest.fixture(scope="module")
def truth() -> rosetta.Exchange:
    return rosetta.exchange()


@every_file
def test_nothing_that_an_emitter_kept_is_lost_by_us(path: Path, truth: rosetta.Exchange) -> None:
    reading, raw = rosetta.read(path), rosetta.leaves(path)
    cells = {name: rosetta.cell(reading, raw, truth, *how) for name, how in rosetta.FIELDS.items()}
    assert [name for name, cell in cells.items() if cell == rosetta.BY_US] == []
    assert cells["parameters"] == rosetta.EQUAL  # nothing was invented


def script(path: Path, truth: rosetta.Exchange, **more: Any) -> dict[str, Any]:
    """What the traced program said, from its trace where that kept it: frameworks word their own requests."""
    questions = rosetta.read(path).asked
    first, last = questions[0], questions[-1]
    model = first.model if first.model and first.model != truth.resolved else truth.model
    function: dict[str, Any] = {"name": truth.tool, "description": truth.description, "parameters": truth.schema}
    told = first.tools[0] if first.tools else {"type": "function", "function": function}
    system = "\n".join(
        part.text
        for message in first.messages
        if message.role == "system"
        for part in message.parts
        if hasattr(part, "text")
    )
    parameters = {
        name: value
        for name, value in first.parameters.items()
        if name in ("temperature", "top_p", "max_tokens", "seed") and value is not None
    }
    return {
        "model": model,
        "system": system,
        "question": truth.question,
        "tools": [told],
        "tool_choice": first.parameters.get("tool_choice"),
        "offers_again": bool(last.tools),
        "parameters": parameters,
        "stream": False,
        "altered": {},
        **more,
    }


def answer(path: Path, truth: rosetta.Exchange) -> str:
    """What the traced program ended with: one of the emitters was given another last reply."""
    if rosetta.leaves(path).holds(truth.answer):
        return truth.answer
    said = rosetta.read(path).answered[-1].messages[-1]
    return "".join(part.text for part in said.parts if isinstance(part, Text))


def replay(path: Path, folder: Path, said: dict[str, Any]) -> tuple[dict[str, Any], str, bool]:
    """Run the agent against a file: what the command says, what the agent printed, whether its tool ran."""
    shutil.copy(AGENT, folder / "agent.py")
    (folder / "script.json").write_text(json.dumps(said))
    result, printed = replayed(path, folder, "agent.py", "script.json")
    return result, printed.strip(), (folder / "executed").exists()


@in_turn
def test_the_agent_is_replayed_offline(path: Path, truth: rosetta.Exchange, tmp_path: Path) -> None:
    result, printed, executed = replay(path, tmp_path, script(path, truth))
    assert result["result"] == "same", result
    assert answer(path, truth) in printed.splitlines()
    assert not executed
    assert result["answered"] == {"llm": 2, "tool": 2}
    assert (result["live"], result["misses"], result["unconsumed"], result["refused"]) == (0, [], [], [])


@every_file
def test_the_verdict_names_what_the_emitter_lost(path: Path, truth: rosetta.Exchange) -> None:
    reading, raw = rosetta.read(path), rosetta.leaves(path)
    lost = {
        name
        for name, how in rosetta.FIELDS.items()
        if rosetta.cell(reading, raw, truth, *how) == rosetta.AT_EMITTER and name in NAMED
    }
    named = {reason.field for run in reading.runs for reason in judge(run).reasons}
    assert {NAMED[name] for name in lost} <= named, (lost, named)
    assert all(reason.fix for run in reading.runs for reason in judge(run).reasons)


NAMED = {"tool_choice": "tool_choice", "asked model": "model", "tool schema": "tools", "tool description": "tools"}
"""Field of the table to the field of the verdict's reason."""


STREAMED = [path for path in FILES if path.name.startswith(("openinference", "traceloop", "pydantic", "langsmith.r"))]


@pytest.mark.slow
@pytest.mark.parametrize("path", STREAMED, ids=lambda path: path.name)
def test_the_agent_may_read_its_answer_in_pieces(path: Path, truth: rosetta.Exchange, tmp_path: Path) -> None:
    result, printed, executed = replay(path, tmp_path, script(path, truth, stream=True))
    assert (result["result"], executed) == ("same", False), result
    assert answer(path, truth) in printed.splitlines()


@pytest.mark.slow
@in_turn
def test_another_argument_is_a_divergence(path: Path, truth: rosetta.Exchange, tmp_path: Path) -> None:
    result, _, executed = replay(path, tmp_path, script(path, truth, altered={"location": "Oslo, Norway"}))
    assert (result["result"], executed) == ("diverged", False)
    first = result["divergences"][0]
    assert "Oslo" in json.dumps(first), first


@pytest.mark.slow
def test_another_question_is_a_divergence(truth: rosetta.Exchange, tmp_path: Path) -> None:
    path = FILES[0]
    result, _, _ = replay(path, tmp_path, script(path, truth, question="And tomorrow?"))
    assert result["result"] == "diverged"
    assert result["divergences"][0]["field"].endswith("content")
    assert asked(rosetta.read(path).models[0]) is not None
