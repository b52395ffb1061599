from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from made import Made, user
from reenact.compare.judge import judge_replay, one_line
from reenact.values.call import CallKind
from reenact.values.effects import COPIED_IN, Seal, seals
from reenact.values.judgement import ReplayResult
from reenact.values.run import Node, Run

SEALED = seals(Seal.COPIED, Seal.ENFORCED, Seal.ENFORCED)
IN_A_CELL = {**seals(Seal.ENFORCED, Seal.ENFORCED, Seal.ENFORCED), COPIED_IN: "/home/me/project"}
EMPTY_NETWORK = seals(Seal.WATCHED, Seal.ENFORCED, Seal.WATCHED)
JOINED: list[dict[str, Any]] = [
    {"t": "guard", "world": SEALED},
    {"t": "joined", "pid": 1},
]


def judged(
    recorded: Run,
    *entries: dict[str, Any],
    code: int | None = 0,
    replay: Run | None = None,
    siblings: tuple[Run, ...] = (),
    recorded_exit: int | None = 0,
) -> ReplayResult:
    ledger = [*JOINED, *entries]
    return judge_replay(recorded, siblings, replay, ledger, exit_code=code, recorded_exit=recorded_exit)


def answered(*nodes: Node) -> list[dict[str, Any]]:
    return [{"t": "answered", "id": node.id, "kind": node.kind.value} for node in nodes]


def missed(nearest: Node | None, **facts: Any) -> dict[str, Any]:
    entry = {
        "t": "miss",
        "call": nearest.label if nearest else "tool new",
        "field": "call",
        "first": True,
        "reason": "",
    }
    return entry | ({"nearest": nearest.id} if nearest else {}) | facts


def changed(nearest: Node, field: str, recorded: Any, replay: Any) -> dict[str, Any]:
    sides = {"field": field, "recorded": recorded, "replay": replay}
    return missed(nearest, **sides, absent=[], differences=[sides])


def worker(**ending: Any) -> Run:
    """One model call, three tools, one more model call: nodes 2 to 6."""
    made = Made(1)
    made.llm([user("go")], tools=[("a", {})])
    for name in ("a", "b", "c"):
        made.tool(name, {"target": name}, 1)
    made.llm([user("go"), user("and?")], "done")
    return made.run(**ending)


def calls(run: Run) -> list[Node]:
    return [node for node in run.nodes if node is not run.root]


def test_a_replay_that_asked_for_everything_is_the_same() -> None:
    run = worker()
    found = judged(run, *answered(*calls(run)), replay=worker())
    assert (found.result, found.answered, found.divergences) == ("same", {"llm": 2, "tool": 3}, [])
    assert (found.world, found.replay) == (SEALED, run.id)


def test_a_recorded_crash_that_happens_again_is_the_same() -> None:
    died = ("KeyError", "'a' <object at 0x7f1234567890>")
    run = worker(exit_code=1, died=died)
    again = worker(exit_code=1, died=(died[0], "'a' <object at 0x7fffffffffff>"))
    assert judged(run, *answered(*calls(run)), code=1, recorded_exit=1, replay=again).result == "same"


def test_another_ending_is_a_divergence() -> None:
    run = worker(exit_code=1, died=("KeyError", "'a'"))
    found = judged(run, *answered(*calls(run)), code=0, recorded_exit=1, replay=worker())
    assert found.result == "diverged"
    assert [one_line(each) for each in found.divergences] == [
        'run: outcome: recorded "KeyError: \'a\'", replay "ended"',
        "run: exit code: recorded 1, replay 0",
    ]


def test_an_exit_code_that_is_not_known_is_not_judged() -> None:
    run = worker()
    assert judged(run, *answered(*calls(run)), code=9, recorded_exit=None).result == "same"
    assert judged(run, *answered(*calls(run)), code=None, recorded_exit=3).result == "same"


def test_a_miss_is_the_first_divergence_and_what_follows_was_not_reached() -> None:
    run = worker()
    llm, a, b, *_ = calls(run)
    found = judged(run, *answered(llm, a), changed(b, "arguments.target", "staging", "production"), code=1)
    assert found.result == "diverged"
    assert [one_line(each) for each in found.divergences] == [
        'tool b #4: arguments.target: recorded "staging", replay "production"'
    ]
    assert found.divergences[0]["structural"] is True
    assert (found.unconsumed, found.not_reached) == ([], 2)
    assert found.misses[0]["nearest"] == b.id


def test_a_call_that_was_left_out_before_the_miss_comes_first() -> None:
    run = worker()
    llm, a, b, c, _ = calls(run)
    found = judged(run, *answered(llm, a), changed(c, "arguments.target", "c", "d"), code=1)
    assert [(each["kind"], each["call"]) for each in found.divergences] == [("missing", b.label), ("changed", c.label)]
    assert one_line(found.divergences[0]) == 'tool b #4: call: recorded {"target":"b"}, replay absent'
    assert [each["call"] for each in found.unconsumed] == ["tool b #4"]
    assert found.not_reached == 1


def test_a_call_that_nobody_asked_for_is_a_divergence_though_the_program_ended_well() -> None:
    run = worker()
    llm, a, _, c, last = calls(run)
    found = judged(run, *answered(llm, a, c, last))
    assert [each["call"] for each in found.divergences] == ["tool b #4"]
    assert found.result == "diverged"


def test_a_miss_without_anything_near_lies_behind_what_was_answered_before() -> None:
    run = worker()
    llm, a, *_ = calls(run)
    entry = missed(None, recorded=None, replay="tool new", reason="no tool new was recorded")
    found = judged(run, *answered(llm, a), entry, code=1)
    (only,) = found.divergences
    assert (only["kind"], only["absent"], found.not_reached) == ("extra", ["a"], 3)
    assert one_line(only) == "tool new: no tool new was recorded"


def test_calls_of_a_lane_in_another_order_are_a_divergence_and_of_two_lanes_none() -> None:
    run = worker()
    first, a, b, *rest = calls(run)
    found = judged(run, *answered(first, b, a, *rest), replay=worker())
    assert (found.result, len(found.divergences)) == ("diverged", 1)
    assert one_line(found.divergences[0]) == f'{a.label}: order: recorded "before {b.label}", replay "behind it"'
    elsewhere = {**answered(b)[0], "moved": True}
    assert judged(run, *answered(first), elsewhere, *answered(a, *rest), replay=worker()).result == "same"


def test_calls_that_overlapped_on_a_lane_have_no_order() -> None:
    run = worker()
    first, a, b, *rest = calls(run)
    beside = [replace(node, end_order=node.end_order + 3) if node is a else node for node in run.nodes]
    assert judged(replace(run, nodes=tuple(beside)), *answered(first, b, a, *rest), replay=worker()).result == "same"


def test_a_call_asked_once_more_lies_behind_what_was_answered_before() -> None:
    run = worker()
    llm, a, *_ = calls(run)
    entry = missed(a, recorded=1, replay=2, reason="asked once more than the 1 times it was recorded")
    found = judged(run, *answered(llm, a), entry, code=1)
    assert [(each["kind"], each["call"]) for each in found.divergences] == [("extra", "tool a #3")]
    assert found.not_reached == 3


def test_other_words_in_a_request_are_a_divergence_of_wording() -> None:
    run = worker()
    llm = calls(run)[0]
    found = judged(run, changed(llm, "body.messages[0].content", "go", "go!"), code=1)
    assert [each["structural"] for each in found.divergences] == [False]


def test_a_side_effect_is_a_divergence_and_after_a_miss_its_aftermath() -> None:
    run = worker()
    llm, a, b, *_ = calls(run)
    refused = {"t": "refused", "what": "connect to ('10.0.0.1', 80)", "where": "agent.py:3", "hint": "declare it"}
    found = judged(run, *answered(llm), refused, code=1)
    assert [one_line(each) for each in found.divergences] == [
        "run: connect to ('10.0.0.1', 80) at agent.py:3 was refused"
    ]
    assert (found.not_reached, len(found.refused)) == (4, 1)
    found = judged(run, *answered(llm, a), changed(b, "arguments.target", 1, 2), refused, code=1)
    assert [each["call"] for each in found.divergences] == ["tool b #4"]


def ran_again(*nodes: Node) -> list[dict[str, Any]]:
    return [{"t": "ran_again", "id": node.id, "kind": node.kind.value} for node in nodes]


def test_a_tool_that_ran_again_was_made_and_is_counted_apart() -> None:
    run = worker()
    first, a, b, c, last = calls(run)
    found = judged(run, *answered(first), *ran_again(a, b, c), *answered(last))
    assert (found.result, found.answered, found.ran_again) == ("same", {"llm": 2}, {"tool": 3})


def test_another_result_of_a_tool_that_ran_again_comes_before_the_miss_it_led_to() -> None:
    run = worker()
    first, a, b, c, last = calls(run)
    came = {"t": "changed", "id": b.id, "call": b.label, "field": "result", "recorded": 1, "replay": 2, "absent": []}
    miss = changed(last, "body.messages[1].content", "1", "2")
    found = judged(run, *answered(first), *ran_again(a, b), came, *ran_again(c), miss, code=1)
    assert [one_line(each) for each in found.divergences] == [
        "tool b #4: result: recorded 1, replay 2",
        'llm ChatCompletion #6: body.messages[1].content: recorded "1", replay "2"',
    ]
    assert judged(run, *answered(first), *ran_again(a, b, c), came, *answered(last)).result == "diverged"


def test_calls_below_a_tool_that_ran_again_are_owed() -> None:
    made = Made(1)
    outer = made.tool("research", {}, "found")
    made.llm([user("inside")], "inside", parent=outer)
    run = made.run()
    research, inside = calls(run)
    assert judged(run, *ran_again(research)).result == "diverged"
    assert judged(run, *ran_again(research), *answered(inside)).result == "same"


def test_calls_below_an_answered_one_are_not_owed() -> None:
    made = Made(1)
    outer = made.tool("research", {}, "found")
    made.llm([user("inside")], "inside", parent=outer)
    run = made.run()
    research, _ = calls(run)
    assert judged(run, *answered(research)).result == "same"


def test_of_a_function_around_a_model_call_only_the_call_inside_is_owed_and_counted() -> None:
    made = Made(1)
    frame = made.tool("ask", {}, "ok", kind=CallKind.LLM)
    made.llm([user("inside")], "ok", parent=frame)
    run = made.run()
    outer, inner = calls(run)
    found = judged(run, *answered(outer, inner))
    assert (found.result, found.answered) == ("same", {"llm": 1})
    assert [each["call"] for each in judged(run, *answered(outer)).divergences] == [inner.label]
    assert judged(run, *answered(inner)).result == "same"


def test_another_lane_that_was_not_so_far_yet_is_not_reached() -> None:
    made = Made(1)
    made.tool("a", {"n": 1}, 1, lane="main/w#0")
    made.tool("b", {"n": 1}, 1, lane="main/w#1")
    made.tool("c", {"n": 1}, 1, lane="main/w#1")
    run = made.run()
    a, b, c = calls(run)
    found = judged(run, changed(b, "arguments.n", 1, 2), code=1)
    assert [each["call"] for each in found.divergences] == [b.label]
    assert found.not_reached == 2
    found = judged(run, *answered(a), changed(c, "arguments.n", 1, 2), code=1)
    assert [each["call"] for each in found.divergences] == [b.label, c.label]


def test_a_lane_that_the_main_lane_waited_for_was_passed() -> None:
    made = Made(1)
    made.tool("a", {}, 1, lane="main/w#0")
    made.tool("b", {}, 1, lane="main/w#1")
    made.llm([user("and now?")], "ok", lane="main")
    run = made.run()
    a, b, llm = calls(run)
    found = judged(run, *answered(a), changed(llm, "body.messages[0].content", "and now?", "and?"), code=1)
    assert [each["call"] for each in found.divergences] == [b.label, llm.label]


def test_a_call_in_flight_when_the_run_was_killed_ends_the_replay_well() -> None:
    made = Made(1)
    made.llm([user("go")], tools=[("a", {})])
    made.tool("a", unfinished=True)
    run = made.run(exit_code=None, cut_off=True)
    llm, a = calls(run)
    reason = f"{a.label} was in flight when the recorded run ended"
    entry = missed(None, call="tool a", field="outcome", reason=reason)
    found = judged(run, *answered(llm), entry, code=1, recorded_exit=None)
    assert (found.result, found.ended_with, found.divergences) == ("same", a.label, [])


def test_a_result_that_cannot_be_given_back_fails_the_replay() -> None:
    run = worker()
    llm, a, *_ = calls(run)
    entry = missed(
        None, call="tool a", field="outcome", reason=f"{a.label}: its recorded result cannot be rebuilt: $.x"
    )
    found = judged(run, *answered(llm, a), entry, code=1)
    assert (found.result, found.divergences, found.answered) == ("failed", [], {"llm": 1})
    assert "cannot be rebuilt" in found.why


def test_a_program_that_never_joined_is_not_judged() -> None:
    found = judge_replay(worker(), (), None, [], exit_code=0, recorded_exit=0)
    assert (found.result, found.divergences) == ("unjudged", [])
    assert "never joined" in found.why


def test_a_replay_whose_ledger_was_spoilt_is_not_judged_and_says_why() -> None:
    ledger = [{"t": "joined"}, {"t": "damaged", "why": "line 2: no"}]
    found = judge_replay(worker(), (), None, ledger, exit_code=0, recorded_exit=0)
    assert found.result == "unjudged"
    assert found.why == "the program changed what the replay took down about it (its ledger): line 2: no"


def test_nothing_recorded_and_nothing_asked_is_not_judged() -> None:
    assert judged(Made(1).run()).result == "unjudged"


def test_what_the_policy_let_go_live_is_counted_and_not_owed() -> None:
    run = worker()
    tools = [node for node in calls(run) if node.kind is CallKind.TOOL]
    live = {"t": "live", "kind": "LLM", "call": "llm ChatCompletion"}
    found = judged(run, *answered(*tools), live, live)
    assert (found.result, found.live, found.answered) == ("same", 2, {"tool": 3})


def test_siblings_are_owed_by_a_whole_program_and_not_by_a_block_of_code() -> None:
    run = worker()
    other = Made(2)
    other.tool("elsewhere", {}, 1)
    sibling = other.run()
    entries = answered(*calls(run))
    assert judged(run, *entries, siblings=(sibling,)).divergences[0]["call"] == "tool elsewhere #2"
    assert judged(run, *entries, siblings=(sibling,), code=None).result == "same"


@pytest.mark.parametrize(
    ("worlds", "said"),
    [
        ([SEALED, SEALED], SEALED),
        ([SEALED, EMPTY_NETWORK], EMPTY_NETWORK),
        ([EMPTY_NETWORK, {**SEALED, "network": "open"}], {**EMPTY_NETWORK, "network": "open"}),
        ([SEALED, {**SEALED, "files": "of no known word"}], {**SEALED, "files": "of no known word"}),
        ([], {}),
    ],
)
def test_the_guard_is_as_strong_as_that_of_its_weakest_process(
    worlds: list[dict[str, str]], said: dict[str, str]
) -> None:
    ledger = [*({"t": "guard", "world": each} for each in worlds), {"t": "joined", "pid": 1}]
    found = judge_replay(worker(), (), None, ledger, exit_code=0, recorded_exit=0)
    assert found.world == said


def test_what_else_the_ledger_says_is_passed_on() -> None:
    run = worker()
    ignored = {"t": "ignored", "id": "x", "call": "llm", "field": "url", "recorded": "a", "replay": "b"}
    released = {"t": "released_out_of_order", "granted": 5, "passed": [3], "count": 1}
    found = judged(run, *answered(*calls(run)), ignored, released, {"t": "left", "id": "x", "call": "llm"})
    assert (found.result, found.left) == ("same", 1)
    assert found.ignored == [{key: value for key, value in ignored.items() if key != "t"}]
    assert found.released_out_of_order[0]["granted"] == 5


@pytest.mark.parametrize(
    ("world", "error", "result"),
    [
        (SEALED, "[Errno 18] Invalid cross-device link: 'a' -> '/srv/a'", "unjudged"),
        (SEALED, "[Errno 13] Permission denied: 'a'", "diverged"),
        (IN_A_CELL, "[Errno 13] Permission denied", "unjudged"),
        (IN_A_CELL, "IO Error: Cannot open file: Permission denied", "unjudged"),
        (IN_A_CELL, "[Errno 2] No such file or directory: 'a'", "diverged"),
        (EMPTY_NETWORK, "[Errno 13] Permission denied", "diverged"),
    ],
)
def test_an_error_that_the_sealed_world_makes_says_nothing_of_the_program(
    world: dict[str, str], error: str, result: str
) -> None:
    run, again = worker(exit_code=0), worker(exit_code=1, died=("OSError", error))
    entries = [{"t": "guard", "world": world}, {"t": "joined", "pid": 1}, *answered(*calls(run)[:2])]
    found = judge_replay(run, (), again, entries, exit_code=1, recorded_exit=0)
    assert (found.result, bool(found.divergences)) == (result, result == "diverged")
    assert (error in found.why) == (result == "unjudged")


def test_an_error_of_the_world_that_the_recorded_run_met_too_is_no_excuse() -> None:
    run = worker(exit_code=1, died=("OSError", "[Errno 13] Permission denied: 'a'"))
    again = worker(exit_code=1, died=("OSError", "[Errno 13] Permission denied: 'b'"))
    entries = [{"t": "guard", "world": IN_A_CELL}, {"t": "joined", "pid": 1}, *answered(*calls(run))]
    assert judge_replay(run, (), again, entries, exit_code=1, recorded_exit=1).result == "diverged"


def test_what_comes_behind_a_socket_that_the_world_does_not_make_is_unjudged_if_it_differs() -> None:
    run = worker()
    made = {"t": "prevented", "what": "make a socket of the network", "where": "agent.py:4", "event": "socket.__new__"}
    entries = [{"t": "guard", "world": IN_A_CELL}, {"t": "joined", "pid": 1}, made]
    found = judge_replay(run, (), worker(), [*entries, *answered(*calls(run)[:2])], exit_code=0, recorded_exit=0)
    assert (found.result, "make a socket of the network at agent.py:4" in found.why) == ("unjudged", True)
    whole = judge_replay(run, (), worker(), [*entries, *answered(*calls(run))], exit_code=0, recorded_exit=0)
    assert whole.result == "same"
