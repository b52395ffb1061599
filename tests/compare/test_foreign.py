"""The same run by two emitters is the same run, as far as both kept it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from foreign import told
from reenact.compare.align import compare
from reenact.find.sources import find
from reenact.graph.build import build
from reenact.stores.directory import DirectoryStore
from reenact.values.run import Run

GOLDEN = Path(__file__).parents[1] / "golden" / "foreign"
USER = told.said("user", told.text(told.QUESTION))
YES = {**told.said("assistant", told.text("yes")), "finish_reason": "stop"}


def golden(name: str) -> Run:
    return find(str(GOLDEN / f"{name}.jsonl"), DirectoryStore(GOLDEN / "no-store")).run


def run(**more: Any) -> Run:
    [built] = build([told.chat(1, [USER], [YES], **more)])
    return built


def test_two_emitters_of_one_run_agree() -> None:
    assert compare(golden("openllmetry"), golden("genai")).same


@pytest.mark.parametrize("name", ["openinference", "langsmith", "langfuse"])
def test_they_differ_in_nothing_but_what_became_of_the_tool_that_failed(name: str) -> None:
    """OpenLLMetry has no span of it: what the program made of the error is all that it kept."""
    found = compare(golden("openllmetry"), golden(name)).divergences
    assert [(each.call, each.field) for each in found] == [("tool check_stock #4", "outcome")]


def test_what_one_of_them_did_not_keep_is_no_difference() -> None:
    assert compare(run(), run(**{"gen_ai.request.temperature": 0.5})).same
    assert compare(run(**{"gen_ai.request.temperature": 0.5}), run()).same
    assert compare(run(), run(model=None)).same


def test_what_both_kept_is_one() -> None:
    [difference] = compare(
        run(**{"gen_ai.request.temperature": 0.5}), run(**{"gen_ai.request.temperature": 0.7})
    ).divergences
    assert (difference.field, difference.a, difference.b) == ("body.temperature", 0.5, 0.7)


def test_another_question_is_one() -> None:
    [other] = build([replace(told.chat(1, [told.said("user", told.text("Is it cold?"))], [YES]))])
    [difference] = compare(run(), other).divergences
    assert difference.field == "body.messages[0].content"
    assert not difference.structural
