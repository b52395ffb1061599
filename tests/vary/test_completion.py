"""Calls side by side: only those, and each answer at the place of another's."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from made import Made
from reenact.values.run import Run
from reenact.values.variation import Variation
from reenact.vary.completion import COMPLETION
from reenact.vary.edits import applied


def orders(run: Run) -> list[Variation]:
    assert COMPLETION.of_run is not None
    return [*COMPLETION.of_run(run, Random(1))]


def placed(*spans: tuple[int, int]) -> Run:
    """Make a run of tools that were asked and answered at these places in its sequence."""
    made = Made(1)
    for number, _ in enumerate(spans):
        made.tool(f"t{number}", {}, number, lane=f"main/job#{number}")
    run = made.run()
    root, *tools = run.nodes
    moved = [
        replace(
            node,
            start_order=start,
            end_order=end,
            span=replace(
                node.span,
                attributes={**node.span.attributes, "reenact.order.start": start, "reenact.order.end": end},
            ),
        )
        for node, (start, end) in zip(tools, spans, strict=True)
    ]
    return replace(run, nodes=(root, *moved), root=root)


def test_calls_one_after_the_other_are_left_in_their_order() -> None:
    assert orders(placed((1, 2), (3, 4), (5, 6))) == []


def test_two_side_by_side_change_places() -> None:
    run = placed((1, 5), (2, 4))
    (swap,) = orders(run)
    assert {node.call.name: node.end_order for node in applied(run, [swap]).nodes[1:]} == {"t0": 4, "t1": 5}


def test_three_side_by_side_come_in_reverse_and_shrink_to_neighbours() -> None:
    reverse, *_ = orders(placed((1, 4), (2, 5), (3, 6)))
    assert [edit.end_order for edit in reverse.edits] == [4, 5, 6]
    assert [lesser.size for lesser in reverse.smaller] == [2, 2]


@pytest.mark.parametrize("lane", ["main", "main/job#0"])
def test_the_end_of_a_pool_s_job_goes_with_the_call_that_it_ended_with(lane: str) -> None:
    """A run that begins with a call has its root on the lane of that call."""
    run = placed((1, 3), (2, 5))
    assert run.root is not None
    ends = json.dumps({"main/job#0": [4, 40], "main/job#1": [6, 60]})
    span = replace(run.root.span, attributes={"reenact.lane.ends": ends})
    root = replace(run.root, span=span, lane=lane, start_order=1, end_order=9)
    run = replace(run, nodes=(root, *run.nodes[1:]), root=root)
    (swap,) = orders(run)
    changed = applied(run, [swap])
    assert {node.call.name: node.end_order for node in changed.nodes[1:]} == {"t0": 5, "t1": 3}
    assert changed.root is not None
    told = json.loads(str(changed.root.span.attributes["reenact.lane.ends"]))
    assert told == {"main/job#0": [6, 60], "main/job#1": [4, 40]}
