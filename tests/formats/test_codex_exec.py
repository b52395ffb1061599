"""What a session of `codex exec` says went wrong, and what it does not say."""

from __future__ import annotations

from pathlib import Path

from reenact.graph.build import build
from reenact.graph.logs import joined
from reenact.graph.verdict import judge
from reenact.read.open import open_recording
from reenact.report.tree import tree
from reenact.values.run import Run
from reenact.values.span import STATUS_ERROR

FAILURES = Path(__file__).resolve().parent.parent / "golden" / "formats" / "codex_exec" / "failures" / "input.jsonl"


def session() -> Run:
    (run,) = build(joined(open_recording(FAILURES).records))
    return run


def test_a_command_that_ended_with_another_code_than_0_failed() -> None:
    run = session()
    tools = {node.tool_call_id: node for node in run.nodes if node.kind.value == "TOOL"}
    assert {name: node.span.status_message for name, node in tools.items()} == {
        "it_2": "no basket\n",
        "it_3": "",
        "it_4": "no such row",
    }
    assert [line.count("[error]") for line in tree(run)[1:7]] == [0, 1, 0, 0, 0, 1]
    assert run.root is not None
    assert (run.root.span.status, run.root.span.status_message) == (STATUS_ERROR, "the stream broke off")


def test_a_list_of_things_to_do_and_an_error_are_kept() -> None:
    root = session().root
    assert root is not None
    items = str(root.span.attributes["codex.items"])
    assert "count pears" in items
    assert "One setting is not known." in items


def test_what_the_file_does_not_say_is_missing() -> None:
    run = session()
    kit = {item.name: item for item in judge(run).kit}
    assert kit["resolved model"].detail.startswith("0 of ")
    assert kit["times"].detail.startswith("0 of ")
    assert not any("1970" in line or " ms" in line for line in tree(run))
