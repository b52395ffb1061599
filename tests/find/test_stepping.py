"""A walk through a long run: what it takes grows with the run."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from inside import Inside
from made import Made
from reenact.find.stepping import steps
from reenact.formats import otlp_json
from reenact.graph.verdict import judge
from reenact.report.step import step, step_document
from reenact.values.call import CallKind


def of_tools(many: int) -> Made:
    made = Made()
    for number in range(many):
        made.tool("fetch", {"n": number}, f"{number}")
    return made


def peak(many: int) -> int:
    """Give the most bytes that walking a run of so many calls holds, its own aside."""
    run = of_tools(many).run()
    tracemalloc.start()
    try:
        walked = steps(run)
        for each in walked:
            step(each, many)
        step_document(run, judge(run), walked, many)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_grows_with_the_run_and_not_with_its_square() -> None:
    assert peak(1600) < 8 * peak(400)  # sixteen times were it the square


def test_a_deep_run_names_the_innermost_of_what_is_above() -> None:
    made, parent = Made(), None
    for number in range(500):
        parent = made.tool(f"level {number}", {}, None, kind=CallKind.AGENT, parent=parent)
    made.tool("fetch", {}, "x", parent=parent)
    (only,) = steps(made.run())
    assert len(only.under()) == 101
    assert only.under()[0].endswith("more")
    assert "level 499" in only.under()[-1]


@pytest.fixture
def long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inside:
    assert otlp_json.FORMAT.encode is not None
    (tmp_path / "long.jsonl").write_bytes(otlp_json.FORMAT.encode([node.span for node in of_tools(450).run().nodes]))
    return Inside(tmp_path, monkeypatch)


def test_steps_come_in_pages(long: Inside) -> None:
    first = long.reenact("step", "long.jsonl")
    assert first.stdout.count("\nstep ") == 200
    assert "step 200 of 450" in first.stdout
    assert "250 steps more: --skip 200" in first.stderr
    last = long.reenact("step", "long.jsonl", "--skip", "400")
    assert last.stdout.count("\nstep ") == 50
    assert "steps more" not in last.stderr
    assert long.reenact("step", "long.jsonl", "--limit", "0").stdout.count("\nstep ") == 450


def test_the_document_of_a_page_is_bounded_and_says_what_it_leaves_out(long: Inside) -> None:
    said = json.loads(long.reenact("step", "long.jsonl", "--limit", "0", "--json").stdout)
    assert said["many"] == len(said["steps"]) == 450
    assert sum(len(each[side]["messages"]) for each in said["steps"] for side in ("before", "after")) <= 50_000
    last = said["steps"][-1]
    assert len(last["before"]["messages"]) + last["before"]["left_out"] == 449
    alone = json.loads(long.reenact("step", "long.jsonl", "--at", "#450", "--json").stdout)
    (one,) = alone["steps"]
    assert len(one["before"]["messages"]) == one["step"] - 1
    assert "left_out" not in one["before"]
