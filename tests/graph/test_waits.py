"""A loop that waits by the clock for what others compute has no recorded number of rounds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from made import Made
from reenact.graph.verdict import judge
from reenact.values.run import PAUSES, UNPAUSED

ANSWER = (3, 4)
"""When the one call of these runs began and ended, on the main lane."""


def lanes_named(**lanes: list[list[int | str]]) -> list[str]:
    """Give the lanes of which a verdict says that they wait by the clock."""
    return [lost.split()[2] for lost in said(lanes)]


def said(lanes: dict[str, list[list[int | str]]], more: int = 0) -> list[str]:
    """Give what a verdict says of pauses, of which `more` were not kept."""
    made = Made()
    made.tool("fetch", {"item": "tea"})
    run = made.run()
    assert run.root is not None
    (call,) = (node for node in run.nodes if node is not run.root)
    attributes = {**run.root.span.attributes, PAUSES: json.dumps(lanes)}
    attributes |= {UNPAUSED: more} if more else {}
    root = replace(run.root, span=replace(run.root.span, attributes=attributes))
    nodes = tuple(
        root if node is run.root else replace(node, start_order=ANSWER[0], end_order=ANSWER[1], lane="main")
        for node in run.nodes
    )
    assert call.id in {node.id for node in nodes}
    found = judge(replace(run, root=root, nodes=nodes))
    return [reason.lost for reason in found.reasons if reason.field == "pauses"]


def test_turns_of_several_threads_that_were_not_kept_make_a_recording_partial() -> None:
    assert said({"one": [[1, 2, 10]], "two": [[5, 6, 20]]}, 7) == [
        "who went on first, 7 times: threads waited for each other more often than is kept"
    ]
    assert said({"one": [[1, 2, 10]]}, 7) == []


def test_a_loop_whose_last_round_met_no_answer_beside_code_that_computes_is_named() -> None:
    assert lanes_named(beat=[[1, 2, 10, 1], [5, 6, 20, 1]]) == ["beat"]
    assert lanes_named(beat=[[1, 2, 10, "00000000000000aa", 1], [5, 6, 20, "00000000000000aa", 1]]) == ["beat"]


def test_a_round_in_which_nobody_computed_counts_with_those_before_it() -> None:
    assert lanes_named(beat=[[1, 2, 10, 1], [5, 6, 20, 1], [7, 8, 30, -1]]) == ["beat"]
    assert lanes_named(beat=[[1, 2, 10, -1], [5, 6, 20, -1]]) == []


def test_what_others_computed_before_the_loop_looked_twice_did_not_end_it() -> None:
    assert lanes_named(beat=[[5, 6, 20, 1], [7, 8, 30, -1], [9, 10, 40, -1]]) == []


@pytest.mark.parametrize(
    "beat",
    [
        pytest.param([[1, 2, 10, 1], [2, 6, 20, 1]], id="an answer came in its last round"),
        pytest.param([[1, 2, 10, 1], [5, 0, 20, 1]], id="it was woken"),
        pytest.param([[1, 2, 10], [5, 6, 20]], id="it is in no loop that waits for others"),
    ],
)
def test_a_loop_is_not_named_where_it_is_known_what_ended_it(beat: list[list[int | str]]) -> None:
    assert lanes_named(beat=beat) == []


def test_one_round_is_enough_on_a_lane_that_calls_nobody() -> None:
    assert lanes_named(beat=[[5, 6, 10, 1]]) == ["beat"]


def test_a_lane_that_calls_in_each_round_goes_by_its_calls() -> None:
    assert lanes_named(main=[[1, 2, 5, 1], [5, 6, 10, 1]]) == []
    assert lanes_named(main=[[5, 6, 10, 1], [7, 8, 20, 2]]) == []
    assert lanes_named(main=[[5, 6, 10, 1], [7, 8, 20, 1]]) == ["main"]
