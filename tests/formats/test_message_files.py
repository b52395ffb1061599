"""What files of messages tell of their calls, once a run is built of them."""

from __future__ import annotations

from pathlib import Path

from reenact.boundary.reading import asked
from reenact.boundary.reading import shape_of as shape
from reenact.graph.build import build
from reenact.graph.logs import joined
from reenact.read.open import open_recording
from reenact.report.tree import tree
from reenact.values.call import CallKind
from reenact.values.message import Text
from reenact.values.run import Run
from reenact.values.span import STATUS_ERROR

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "formats" / "messages"


def runs(case: str) -> list[Run]:
    (path,) = (GOLDEN / case).glob("input.*")
    return build(joined(open_recording(path).records))


def systems(run: Run) -> list[str]:
    """The system prompt of each request."""
    prompts: list[str] = []
    for node in run.nodes:
        question = asked(node)
        for message in question.messages if question is not None else ():
            if message.role == "system":
                prompts += [part.text for part in message.parts if isinstance(part, Text)]
    return prompts


def test_a_system_prompt_beside_the_messages_is_in_every_request() -> None:
    found = {prompt for run in runs("anthropic_bodies") for prompt in systems(run)}
    assert found == {"You tend an orchard.", "Weigh before you answer.", "Be short."}
    assert sum(len(systems(run)) for run in runs("anthropic_bodies")) == 4
    assert {each.name for run in runs("anthropic_bodies") for node in run.nodes if (each := shape(node))} == {
        "anthropic.messages"
    }


def test_calls_of_tools_in_sharegpt_are_calls() -> None:
    (run,) = runs("sharegpt_tools")
    calls = [(node.kind, node.call.name) for node in run.nodes if not node.call.is_structure]
    assert calls == [
        (CallKind.LLM, "ChatCompletion"),
        (CallKind.TOOL, "soil"),
        (CallKind.LLM, "ChatCompletion"),
        (CallKind.TOOL, "tap"),
    ]
    assert systems(run) == ["You tend an orchard."] * 2


def test_no_time_is_shown_where_a_file_has_none() -> None:
    (run,) = runs("sharegpt_tools")
    drawn = "\n".join(tree(run))
    assert "1970" not in drawn
    assert " ms" not in drawn


def test_an_error_of_a_record_is_its_calls_error() -> None:
    failed = runs("failed_calls")
    assert len(failed) == 3
    for run in failed:
        assert run.root is not None
        assert run.root.span.status == STATUS_ERROR
        assert "[error]" in tree(run)[1]
    assert {tree(run)[1].rpartition(" → ")[2] for run in failed} == {
        "That did not work.",
        "rate_limit_error: too many orders",
        "Half of it",
    }
