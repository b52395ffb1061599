"""Which of the runs that a replay made stands for the recorded one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reenact.find.sources import RunSource
from reenact.values import unit
from reenact.values.run import Run

BEFORE = "reenact.replay.before"
"""The attribute of an earlier unit's run in a replay that names the unit before which it was delivered."""


def counterpart(runs: Sequence[Run], recording: RunSource) -> Run | None:
    """Pick the run that stands for the recorded one: it came in as that did, met most of its calls, has its name.

    Where several do alike, or none met any, it is the one with most calls.
    """
    recorded = recording.run
    if recording.history.units:  # others came in as it did
        runs = [run for run in runs if not done_again(run)]
    calls = {node.id for node in recorded.nodes}
    came_in = unit.inbound(recorded) is not None

    def likeness(run: Run) -> tuple[bool, int, bool, int]:
        met = sum(_met(node.span.attributes) in calls for node in run.nodes)
        return came_in and unit.inbound(run) is not None, met, run.name == recorded.name, len(run.nodes)

    return max(runs, key=likeness, default=None)


def done_again(run: Run) -> str:
    """Give the recorded unit that a run did again before the one that was asked for; empty where it is no such."""
    if run.root is None or BEFORE not in run.root.span.attributes:
        return ""
    return str(run.root.span.attributes.get("reenact.replay.of") or "")


def _met(attributes: Mapping[str, object]) -> object:
    return attributes.get("reenact.replay.answered_by") or attributes.get("reenact.replay.ran_again")
