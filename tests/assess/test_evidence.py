from __future__ import annotations

import pytest

from reenact.assess.evidence import evidence
from reenact.replay.policy import After, Policy
from reenact.values.call import Returned, Unfinished
from scripted import recorded, replayed

RUN = [
    ["llm", ["go"], {"name": "a", "arguments": {}}],
    ["tool", "a", {"target": "x"}, "done"],
    ["llm", ["go", "done"], "well"],
]


def test_what_follows_on_nearest_answers_is_cut_off() -> None:
    run = recorded(RUN)
    replay = replayed(run, [1, ["tool", "a", {"target": "y"}], 3], Policy(after=After.NEAREST))
    found = evidence(run, replay.run, replay.result)
    first, asked = found.run.nodes[1:]
    assert (first.call.name, asked.call.name) == ("ChatCompletion", "a")
    assert isinstance(first.outcome, Returned), "it was over, and recorded"
    assert isinstance(asked.outcome, Unfinished), "what it was answered is another call's"
    assert found.met == {run.nodes[1].id}
    assert (found.complete, found.live) == (False, False)
    assert len(replay.run.nodes) == 4, "the replay itself is whole"


def test_a_run_without_a_miss_is_evidence_to_its_end() -> None:
    run = recorded(RUN)
    replay = replayed(run, [1, 2], Policy())
    found = evidence(run, replay.run, replay.result)
    assert (found.complete, found.run, len(found.met)) == (True, replay.run, 2)


def test_a_miss_a_refusal_and_a_cut_leave_it_open() -> None:
    run = recorded(RUN)
    for steps in ([1, ["tool", "b", {}]], [1, {"refused": "write notes.txt"}]):
        replay = replayed(run, steps, Policy())
        assert evidence(run, replay.run, replay.result).complete is False


@pytest.mark.parametrize(
    ("ending", "by"),
    [
        ({"raises": ["NameError", "name 'x' is not defined"]}, "NameError: name 'x' is not defined"),
        ({"raises": ["ModuleNotFoundError", "No module named 'x'"]}, "ModuleNotFoundError: No module named 'x'"),
        ({"exits": -11}, "signal 11"),
        ({"raises": ["PermissionError", "a person has to say yes"]}, ""),
        ({"raises": ["agent.Refused", "no"]}, ""),
        ({"raises": ["SystemExit", "1"]}, ""),
        ({"exits": 4}, ""),
    ],
)
def test_a_mistake_is_told_from_a_refusal(ending: dict[str, object], by: str) -> None:
    run = recorded(RUN)
    replay = replayed(run, [1, ending], Policy())
    found = evidence(run, replay.run, replay.result)
    assert (found.ended_by, found.complete) == (by, not by)


def test_the_recorded_death_is_no_mistake_of_the_replay() -> None:
    run = recorded(RUN, exit_code=1, died=("KeyError", "'x'"))
    replay = replayed(run, [1, 2, 3, {"raises": ["KeyError", "'x'"]}], Policy(), recorded_exit=1)
    assert replay.result.result == "same"
    assert evidence(run, replay.run, replay.result).complete is True


def test_live_answers_are_said_to_be_live() -> None:
    run = recorded(RUN)
    replay = replayed(run, [["llm", ["go on"], "well"]], Policy(after=After.LIVE_MODELS))
    found = evidence(run, replay.run, replay.result)
    assert (found.live, found.complete) == (True, True)
