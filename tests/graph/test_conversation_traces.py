from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from foreign import told
from reenact.errors import UsageError
from reenact.find.sources import find
from reenact.graph.build import build
from reenact.graph.conversation_traces import go_on
from reenact.stores.directory import DirectoryStore
from reenact.values.span import Resource, SpanRecord

USER = told.said("user", told.text(told.QUESTION))
CALLED = told.said("assistant", told.called("look", {}))
FIRST = told.chat(1, [USER], [CALLED], trace="a" * 32)
LAST = told.chat(3, [USER, CALLED, told.said("tool", told.came("wet"))], [], trace="b" * 32)
BETWEEN = told.tool(2, "look", {}, "wet", trace="c" * 32)
OTHER = told.chat(3, [told.said("user", told.text("Something else?"))], [], trace="b" * 32)


def one(folder: Path, *spans: SpanRecord, wanted: str = "") -> list[str]:
    run = find(str(told.written(folder, *spans)) + wanted, DirectoryStore(folder / "store")).run
    return [node.kind.value for node in run.nodes]


def test_traces_that_go_on_with_a_conversation_are_one_run(tmp_path: Path) -> None:
    assert go_on(build([FIRST, LAST]))
    assert one(tmp_path, FIRST, LAST) == ["LLM", "TOOL", "LLM"]  # the tool's span is told by the second request
    assert one(tmp_path, FIRST, BETWEEN, LAST) == ["LLM", "TOOL", "LLM"]


@pytest.mark.parametrize("other", [OTHER, replace(LAST, resource=Resource(attributes={"service.name": "else"}))])
def test_others_stay_apart_until_they_are_asked_for(other: SpanRecord, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds 2 runs") as refused:
        one(tmp_path, FIRST, other)
    assert "#all" in str(refused.value.hint)
    assert one(tmp_path, FIRST, other, wanted="#all").count("LLM") == 2


def test_a_tool_that_ran_elsewhen_belongs_to_nobody() -> None:
    assert not go_on(build([FIRST, LAST, told.tool(7, "look", {}, "wet", trace="c" * 32)]))
    assert not go_on(build([FIRST]))


def test_traces_that_hold_no_call_are_passed_over(tmp_path: Path) -> None:
    probe = told.span(5, "probe", {"gen_ai.operation.name": "invoke_workflow"}, trace="d" * 32)
    assert one(tmp_path, FIRST, probe) == ["LLM"]
