from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counting import growth
from made import NS, Made, called, reported, user
from reenact.compare.align import compare
from reenact.values.call import CallKind
from reenact.values.difference import ABSENT
from reenact.values.run import Run

ASK = [user("Clean up staging")]


def cleaned(
    seed: int,
    *,
    prompt: str = "Clean up staging",
    target: str = "staging",
    returned: str = "12 deleted",
    says: str = "Done.",
    model: str = "gpt-4o",
    check: bool = False,
    exit_code: int = 0,
) -> Run:
    """An agent that asks, deletes and reports, as it is when it runs for the `seed`-th time."""
    made = Made(seed)
    made.llm([user(prompt)], tools=[("delete_accounts", {"target": target})], body={"model": model})
    if check:
        made.tool("check", {"target": target}, True)
    made.tool("delete_accounts", {"target": target}, returned)
    call = f"call_{seed}"
    made.llm(
        [user(prompt), called(call, "delete_accounts", {"target": target}), reported(call, returned)],
        says,
        body={"model": model},
    )
    return made.run(exit_code=exit_code)


def test_times_ids_and_token_counts_are_no_difference() -> None:
    found = compare(cleaned(1), cleaned(2))
    assert (found.same, found.same_path, found.divergences, found.calls_a) == (True, True, (), 3)


def test_other_words_of_a_model_leave_the_path_the_same() -> None:
    found = compare(cleaned(1), cleaned(2, says="All gone."))
    assert (found.same, found.same_path) == (False, True)
    (only,) = found.divergences
    assert (only.call, only.field) == ("llm ChatCompletion #4", "reply.messages[0].content")
    assert (only.a, only.b, only.kind, only.structural) == ("Done.", "All gone.", "changed", False)


def test_another_prompt_is_wording_in_every_call_that_holds_it() -> None:
    found = compare(cleaned(1), cleaned(2, prompt="Tidy staging"))
    assert [each.field for each in found.divergences] == ["body.messages[0].content"] * 2
    assert found.same_path


def test_another_argument_is_found_where_the_model_first_gave_it() -> None:
    found = compare(cleaned(1), cleaned(2, target="production"))
    first, second, third = found.divergences
    assert (first.call, first.field) == (
        "llm ChatCompletion #2",
        "reply.messages[0].tool_calls[0].arguments.target",
    )
    assert (first.a, first.b, first.structural) == ("staging", "production", True)
    assert (second.call, second.field) == ("tool delete_accounts #3", "arguments.target")
    assert third.field == "body.messages[1].tool_calls[0].function.arguments.target"
    assert not found.same_path


def test_another_result_of_a_tool_is_structural_and_its_echo_in_the_conversation_is_not() -> None:
    found = compare(cleaned(1), cleaned(2, returned="13 deleted"))
    assert [(each.field, each.structural) for each in found.divergences] == [
        ("returned", True),
        ("body.messages[2].content", False),
    ]


def test_another_model_is_structural() -> None:
    found = compare(cleaned(1), cleaned(2, model="gpt-5"))
    assert {(each.field, each.structural) for each in found.divergences} == {("body.model", True)}


def test_a_call_that_only_one_side_has_is_missing_or_extra() -> None:
    a, b = cleaned(1), cleaned(2, check=True)
    (extra,) = compare(a, b).divergences
    assert (extra.kind, extra.call, extra.a, extra.b) == ("extra", "tool check #3", ABSENT, {"target": "staging"})
    (missing,) = compare(b, a).divergences
    assert (missing.kind, missing.call, missing.a, missing.b) == (
        "missing",
        "tool check #3",
        {"target": "staging"},
        ABSENT,
    )


def test_an_extra_call_comes_before_the_change_behind_it() -> None:
    found = compare(cleaned(1), cleaned(2, check=True, says="All gone."))
    assert [each.kind for each in found.divergences] == ["extra", "changed"]


def test_how_the_runs_ended_comes_last() -> None:
    found = compare(cleaned(1), cleaned(2, says="All gone.", exit_code=3))
    assert [(each.call, each.field) for each in found.divergences][-1] == ("run", "exit code")


def test_a_message_put_in_does_not_shift_those_behind_it() -> None:
    turns = [user(f"turn {n}") for n in range(100)]
    a, b = Made(1), Made(2)
    a.llm(turns, "ok")
    b.llm([*turns[:40], user("by the way"), *turns[40:]], "ok")
    found = compare(a.run(), b.run())
    assert [(each.field, each.structural) for each in found.divergences] == [("body.messages[40]", True)]
    assert found.more == {}


def test_further_fields_of_a_changed_call_are_kept_and_the_first_structural_one_leads() -> None:
    a, b = Made(1), Made(2)
    a.llm([user("one")], "ok", body={"temperature": 0, "seed": 1})
    b.llm([user("two")], "ok", body={"temperature": 1, "seed": 1})
    found = compare(a.run(), b.run())
    (first,) = found.divergences
    assert (first.field, first.structural) == ("body.temperature", True)
    assert first.node_a is not None
    assert [each.field for each in found.more[first.node_a]] == ["body.messages[0].content"]


def test_a_result_tied_to_the_other_tool_call_shows() -> None:
    def asked(first: str, second: str) -> list[object]:
        calls = called("x1", "get", {"n": 1})
        assert isinstance(calls, dict)
        both = [*calls["tool_calls"], *called("x2", "get", {"n": 2})["tool_calls"]]
        return [user("go"), {**calls, "tool_calls": both}, reported(first, "same"), reported(second, "same")]

    a, b = Made(1), Made(2)
    a.llm(asked("x1", "x2"), "ok")
    b.llm(asked("x2", "x1"), "ok")
    found = compare(a.run(), b.run())
    assert found.divergences[0].field == "body.messages[2].tool_call_id"


@pytest.mark.parametrize(
    ("a", "b", "field"),
    [
        ({"returned": 1}, {"raised": ValueError("no")}, "outcome"),
        ({"raised": KeyError("no")}, {"raised": ValueError("no")}, "raised.type"),
        ({"raised": ValueError("no")}, {"raised": ValueError("yes")}, "raised.message"),
        ({"returned": {"rows": [1, 2]}}, {"returned": {"rows": [1, 3]}}, "returned.rows[1]"),
        ({"returned": 1}, {"returned": True}, "returned"),
    ],
)
def test_what_came_of_a_tool_is_compared_to_the_leaf(a: dict[str, object], b: dict[str, object], field: str) -> None:
    left, right = Made(1), Made(2)
    left.tool("read", {}, **a)
    right.tool("read", {}, **b)
    (only,) = compare(left.run(), right.run()).divergences
    assert (only.field, only.structural) == (field, True)


def test_a_memory_address_in_an_error_is_no_difference() -> None:
    a, b = Made(1), Made(2)
    a.tool("read", {}, raised=ValueError("<Client at 0x7f12ab34cd56> is closed"))
    b.tool("read", {}, raised=ValueError("<Client at 0x7f99ab34cd00> is closed"))
    assert compare(a.run(), b.run()).same


def test_a_rate_limit_is_a_call_like_any_other() -> None:
    a, b = Made(1), Made(2)
    a.llm(ASK, "slow down", status=429)
    a.llm(ASK, "ok")
    b.llm(ASK, "ok")
    assert [each.kind for each in compare(a.run(), b.run()).divergences] == ["missing"]


def test_a_stream_says_what_a_whole_reply_says() -> None:
    a, b, c = Made(1), Made(2), Made(3)
    a.llm(ASK, "Done and dusted.", stream=True)
    b.llm(ASK, "Done and dusted.")
    c.llm(ASK, "Done and lusted.", stream=True)
    assert compare(a.run(), b.run()).same
    (only,) = compare(a.run(), c.run()).divergences
    assert (only.a, only.b, only.structural) == ("Done and dusted.", "Done and lusted.", False)


def in_parallel(seed: int, order: str, *, lanes: bool) -> Run:
    """Four workers, each of which looks something up twice, interleaved in `order`."""
    made = Made(seed, lanes=lanes)
    made.llm(ASK, "go")
    seen = dict.fromkeys(order, 0)
    for worker in order:
        seen[worker] += 1
        arguments = {"worker": worker, "step": seen[worker]}
        made.tool("look_up", arguments, seen[worker], lane=f"main/work#{worker}", took=5 * NS)
    return made.run()


@given(st.permutations("AABBCCDD"), st.permutations("AABBCCDD"))
def test_how_lanes_interleave_is_no_difference(first: list[str], second: list[str]) -> None:
    assert compare(in_parallel(1, "".join(first), lanes=True), in_parallel(2, "".join(second), lanes=True)).same


def test_without_lanes_calls_that_overlap_in_time_may_change_places() -> None:
    assert compare(in_parallel(1, "ABAB", lanes=False), in_parallel(2, "BBAA", lanes=False)).same


@pytest.mark.parametrize("lanes", [True, False])
def test_another_order_in_one_lane_is_a_difference(lanes: bool) -> None:  # noqa: FBT001 - a parameter of the test
    a, b = Made(1, lanes=lanes), Made(2, lanes=lanes)
    for name in ("read", "write", "close"):
        a.tool(name)
    for name in ("write", "read", "close"):
        b.tool(name)
    (only,) = compare(a.run(), b.run()).divergences
    assert (only.kind, only.field, only.structural) == ("reordered", "order", True)
    assert only.call in {"tool read #2", "tool write #3"}


def test_a_call_that_moved_to_another_lane_is_the_same_call() -> None:
    a, b = Made(1), Made(2)
    a.tool("look_up", {"n": 1}, 1, lane="main")
    b.tool("look_up", {"n": 1}, 1, lane="main/look_up#0")
    assert compare(a.run(), b.run()).same


def test_a_lane_that_was_renamed_still_pairs_with_its_like() -> None:
    a, b = Made(1), Made(2)
    a.tool("look_up", {"n": 1}, 1, lane="main/old#0")
    b.tool("look_up", {"n": 2}, 1, lane="main/new#0")
    (only,) = compare(a.run(), b.run()).divergences
    assert (only.kind, only.field) == ("changed", "arguments.n")


def test_structure_is_compared_only_where_every_call_is_the_same() -> None:
    a, b, c = Made(1), Made(2), Made(3)
    a.tool("plan", {}, None, kind=CallKind.CHAIN)
    a.tool("read", {}, 1)
    b.tool("read", {}, 1)
    c.tool("read", {}, 2)
    (only,) = compare(a.run(), b.run()).divergences
    assert (only.kind, only.call) == ("missing", "chain plan #2")
    assert [each.field for each in compare(a.run(), c.run()).divergences] == ["returned"]


def test_a_function_that_only_frames_a_recorded_model_call_is_not_compared() -> None:
    a, b = Made(1), Made(2)
    frame = a.tool("ask", {"prompt": "x"}, "ok", kind=CallKind.LLM)
    a.llm(ASK, "ok", parent=frame)
    b.llm(ASK, "ok")
    found = compare(a.run(), b.run())
    assert (found.same, found.calls_a) == (True, 1)


def test_what_a_replay_had_no_need_to_make_is_not_missing() -> None:
    recorded = Made(1)
    outer = recorded.tool("research", {}, "found")
    recorded.llm(ASK, "inside", parent=outer)
    replay = Made(2)
    replay.tool("research", {}, "found", more={"reenact.replay.answered_by": outer})
    assert compare(recorded.run(), replay.run()).same
    live = Made(3)
    live.tool("research", {}, "found")
    assert [each.kind for each in compare(recorded.run(), live.run()).divergences] == ["missing"]


def test_tokens_of_two_salts_are_compared_by_what_they_stand_for() -> None:
    def of(seed: int, salt: str, digit: str, name: str = "api_key") -> Run:
        made = Made(seed, salt=salt)
        made.llm([user(f"my key is REDACTED_{name}_{digit * 20}")], "ok")
        return made.run()

    assert compare(of(1, "aa", "1"), of(2, "bb", "2")).same
    assert not compare(of(1, "aa", "1"), of(2, "aa", "2")).same
    assert not compare(of(1, "aa", "1"), of(2, "bb", "2", "password")).same


def test_a_run_compared_with_itself_is_the_same_and_the_other_way_round_mirrors() -> None:
    a, b = cleaned(1), cleaned(2, target="production", says="All gone.")
    assert compare(a, a).same
    there, back = compare(a, b), compare(b, a)
    assert [(each.field, each.a, each.b) for each in there.divergences] == [
        (each.field, each.b, each.a) for each in back.divergences
    ]


def test_without_a_root_two_runs_still_compare() -> None:
    a, b = (replace(cleaned(seed), root=None) for seed in (1, 2))
    assert compare(a, b).same


def test_twice_as_many_calls_are_twice_the_work() -> None:
    def long(size: int, seed: int, odd: int) -> Run:
        made = Made(seed)
        for n in range(size):
            made.llm([user(f"step {n} " + "x" * 400)], tools=[("step", {"n": n})])
            made.tool("step", {"n": n if n != odd else -1}, n)
        return made.run()

    def work(size: int) -> Callable[[], object]:
        a, b = long(size, 1, -1), long(size, 2, size // 2)
        found = compare(a, b)
        assert [(each.call, each.field) for each in found.divergences] == [(f"tool step #{size + 3}", "arguments.n")]
        return lambda: compare(a, b)

    assert growth(work, 100) < 3


def test_the_call_that_stands_for_the_whole_run_is_not_compared_as_a_call() -> None:
    plain, named = Made(1), Made(2)
    for made in (plain, named):
        made.llm(ASK, "Done.")
    named.tool("main", {"at": 1}, "whatever", more={"reenact.run.root": True})
    assert compare(plain.run(), named.run()).divergences == ()
