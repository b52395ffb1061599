from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from made import Made, user
from reenact.graph.build import build
from reenact.values.call import CallKind, Unfinished
from reenact.values.run import Run
from reenact.values.span import Resource, SpanRecord

TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(number: int, parent: int | None = None, *, at: int | None = None, **attributes: Any) -> SpanRecord:
    return SpanRecord(
        trace_id=TRACE,
        span_id=f"{number:016x}",
        parent_id=None if parent is None else f"{parent:016x}",
        name=f"span {number}",
        start_ns=number if at is None else at,
        end_ns=1000,
        attributes={name.replace("__", "."): value for name, value in attributes.items()},
    )


def only(spans: list[SpanRecord]) -> Run:
    (run,) = build(spans)
    return run


def numbers(run: Run) -> list[int]:
    return [int(node.id, 16) for node in run.nodes]


def test_a_tree_is_rebuilt_from_spans_of_any_order() -> None:
    spans = [span(1), span(2, 1), span(3, 2), span(4, 1), span(5, 4)]
    expected = only(spans)
    for seed in range(10):
        random.Random(seed).shuffle(spans)
        assert only(spans) == expected
    assert numbers(expected) == [1, 2, 3, 4, 5]
    assert [node.number for node in expected.nodes] == [1, 2, 3, 4, 5]
    assert [int(node.parent or "0", 16) for node in expected.nodes] == [0, 1, 2, 1, 4]
    assert expected.notes == ()


def test_nothing_is_nothing() -> None:
    assert build([]) == []


def test_a_span_whose_parent_is_missing_is_kept_and_marked() -> None:
    run = only([span(1), span(2, 99), span(3, 2)])
    assert [node.orphan for node in run.nodes] == [False, True, False]
    assert run.root is not None
    assert run.root.id == span(1).span_id
    assert run.notes == ("1 spans name a parent that is not in the recording",)


def test_a_run_without_any_root_is_named_by_its_first_span() -> None:
    run = only([span(2, 99), span(3, 2)])
    assert (run.root, run.name) == (None, "span 2")


def test_a_root_below_a_span_of_the_application_s_is_no_orphan() -> None:
    run = only([span(1, 99, reenact__run__root=True), span(2, 1)])
    assert not any(node.orphan for node in run.nodes)
    assert run.root is not None
    assert run.root.id == span(1).span_id


def test_a_root_stands_on_top_though_a_span_of_the_application_s_was_first() -> None:
    ours = [
        span(3, 2, reenact__run__root=True, reenact__order__start=1, reenact__entry='{"main": "agent.py"}'),
        span(4, 3, reenact__order__start=2),
    ]
    without = only(ours)
    run = only([span(1), span(2, 1), *ours])
    assert run.root is not None
    assert (run.root.id, run.entry) == (span(3).span_id, {"main": "agent.py"})
    assert not any(node.orphan for node in run.nodes)
    hangs = {int(node.id, 16): int(node.parent or "0", 16) for node in run.nodes}
    assert hangs == {1: 0, 2: 1, 3: 0, 4: 3}
    assert (without.root.id if without.root else "", without.entry) == (run.root.id, run.entry)


def test_the_root_of_a_child_process_hangs_below_the_call_that_started_it_past_any_other_span() -> None:
    ours = [
        span(1, reenact__run__root=True, reenact__order__start=1),
        span(2, 1, reenact__order__start=2),
        span(3, 2),  # an application's own
        span(4, 3, reenact__run__root=True, reenact__order__start=1),
    ]
    run = only(ours)
    assert {int(node.id, 16): int(node.parent or "0", 16) for node in run.nodes} == {1: 0, 2: 1, 3: 2, 4: 3}


def test_duplicates_are_folded_into_the_one_that_says_more() -> None:
    begun = span(2, 1, reenact__incomplete=True, a=1, b=2, c=3)
    ended, noted = span(2, 1, a=1), span(2, 1, a=1, process__exit__code=0)
    for order in ([begun, ended, noted], [noted, ended, begun], [ended, begun, noted]):
        run = only([span(1), *order])
        assert run.nodes[1].span == noted
        assert run.notes == ("1 duplicate spans folded",)  # that it was told again, with its exit code, is no news


def test_equal_ids_in_two_traces_are_two_spans() -> None:
    other = replace(span(1), trace_id="f" * 32)
    assert [run.id for run in build([other, span(1)])] == ["f" * 32, TRACE]


def test_runs_come_oldest_first_with_the_session_they_share() -> None:
    late = replace(span(1, at=50, session__id="s"), trace_id="a" * 32)
    early = replace(span(1, at=5, gen_ai__conversation__id="s"), trace_id="b" * 32)
    runs = build([late, early])
    assert [(run.id[0], run.session) for run in runs] == [("b", "s"), ("a", "s")]


def test_start_order_beats_the_clock_where_one_process_numbered_all() -> None:
    spans = [span(n, 1 if n > 1 else None, at=100 - n, reenact__order__start=n) for n in range(1, 6)]
    run = only(spans)
    assert numbers(run) == [1, 2, 3, 4, 5]
    assert run.notes == ("4 spans begin before the span they hang below (clock skew)",)


def test_numbers_of_several_processes_are_not_compared() -> None:
    one, two = (Resource(attributes={"reenact.process.id": name}) for name in ("one", "two"))
    parent = [replace(span(n, 1 if n > 1 else None, at=n, reenact__order__start=n), resource=one) for n in (1, 2, 9)]
    child = [replace(span(n, 2, at=n, reenact__order__start=n - 4), resource=two) for n in (5, 6)]
    assert numbers(only(parent + child)) == [1, 2, 5, 6, 9]


def test_spans_of_others_stand_where_they_happened() -> None:
    ours = [span(n, 1 if n > 1 else None, reenact__order__start=n) for n in (1, 2, 4)]
    assert numbers(only([*ours, span(3, 1)])) == [1, 2, 3, 4]


def test_a_child_never_comes_before_its_parent_whatever_the_clocks_say() -> None:
    run = only([span(1, at=100), span(2, 1, at=50), span(3, 2, at=10), span(4, at=60)])
    assert numbers(run) == [1, 2, 3, 4]
    assert "2 spans begin before" in run.notes[0]


def test_cycles_of_parents_are_cut_and_kept() -> None:
    for spans in (
        [span(1, 1)],
        [span(1, 2), span(2, 1)],
        [span(1, 2), span(2, 3), span(3, 1), span(4, 3)],
        [span(1), span(2, 3), span(3, 2), span(4, 1)],
    ):
        run = only(spans)
        assert sorted(numbers(run)) == sorted(int(each.span_id, 16) for each in spans)
        for node in run.nodes:
            seen, at = set[str](), node.id
            while (parent := {each.id: each.parent for each in run.nodes}[at]) is not None:
                assert parent not in seen
                seen.add(parent)
                at = parent


def test_a_chain_of_any_depth_is_quick() -> None:
    count = 5000
    spans = [span(number, number - 1 or None, at=count - number) for number in range(1, count + 1)]
    assert numbers(only(spans)) == list(range(1, count + 1))


@given(st.lists(st.tuples(st.integers(1, 9), st.none() | st.integers(1, 9), st.integers(0, 5)), max_size=15))
def test_whatever_the_parents_every_span_is_there_once_and_after_its_parent(
    made: list[tuple[int, int | None, int]],
) -> None:
    spans = [span(number, parent, at=at) for number, parent, at in made]
    runs = build(spans)
    assert sum(len(run.nodes) for run in runs) == len({each.span_id for each in spans})
    for run in runs:
        place = {node.id: node.number for node in run.nodes}
        assert all(node.parent is None or place[node.parent] < node.number for node in run.nodes)


# projections


def test_projections_are_folded_into_the_calls_they_show() -> None:
    ours = [span(1), span(2, 1), span(3, 2)]
    of = [span(number).span_id for number in (2, 3)]
    shown = [span(12, 1, reenact__projection__of=of[0]), span(13, 12, reenact__projection__of=of[1])]
    application = span(20, 12)
    run = only([*ours, *shown, application])
    assert numbers(run) == [1, 2, 3, 20]
    assert run.nodes[3].parent == span(2).span_id, "it hangs below the call, not below its projection"
    assert run.notes == ("2 projections folded into the calls they show",)


def test_a_projection_without_its_call_stands_for_it() -> None:
    run = only([span(1), span(12, 1, reenact__projection__of="0" * 15 + "9")])
    assert numbers(run) == [1, 12]


def test_projections_of_one_another_are_all_kept() -> None:
    itself = span(5, 1, reenact__projection__of=span(5).span_id)
    pair = [span(6, 1, reenact__projection__of=span(7).span_id), span(7, 1, reenact__projection__of=span(6).span_id)]
    assert numbers(only([span(1), itself, *pair])) == [1, 5, 6, 7]


# what a run says of itself


def test_facts_of_a_run_come_from_its_root() -> None:
    root = replace(
        span(
            1,
            reenact__run__root=True,
            reenact__entry='{"argv":["python","agent.py"]}',
            reenact__surroundings='{"python":"3.13"}',
            reenact__redaction__salt="ab",
            reenact__tenant="acme",
        ),
        resource=Resource(attributes={"reenact.recording.id": "r"}),
    )
    run = only([root, span(2, 1, user__id="u")])
    assert (run.user, run.tenant, run.recording, run.salt) == ("u", "acme", "r", "ab")
    assert run.entry == {"argv": ["python", "agent.py"]}
    assert run.surroundings == {"python": "3.13"}


def test_facts_that_are_spoiled_are_left_out() -> None:
    run = only(
        [
            span(
                1, reenact__run__root=True, reenact__entry="{", reenact__surroundings="[1]", reenact__order__start="x"
            ),
            span(2, 1, reenact__order__start=float("inf"), reenact__order__end=[1], reenact__order__head=float("nan")),
        ]
    )
    assert (run.entry, run.surroundings) == ({}, {})
    assert (run.nodes[1].start_order, run.nodes[1].end_order, run.nodes[1].head_order) == (0, 0, 0)


def test_a_span_that_nobody_understands_is_an_unknown_call() -> None:
    (node,) = only([span(1)]).nodes
    assert node.kind is CallKind.UNKNOWN
    assert isinstance(node.outcome, Unfinished)
    assert node.call.name == "span 1"


def test_a_recorded_run_is_rebuilt_as_it_was_made() -> None:
    made = Made()
    llm = made.llm([user("hello")], "yes")
    tool = made.tool("fetch", {"item": "tea"}, "there", parent=llm)
    run = made.run()
    assert [(node.id, node.parent, node.kind) for node in run.nodes] == [
        (made.root, None, CallKind.CHAIN),
        (llm, made.root, CallKind.LLM),
        (tool, llm, CallKind.TOOL),
    ]
    assert [node.label for node in run.nodes[1:]] == ["llm ChatCompletion #2", "tool fetch #3"]


def test_a_span_that_was_exported_again_lasts_from_its_first_beginning_to_its_last_end() -> None:
    """Some emitters export a span of a turn once more as the turn goes on: no clock is wrong."""
    turn = SpanRecord(
        trace_id="9" * 32,
        span_id="1" * 16,
        parent_id=None,
        name="turn",
        start_ns=1_000,
        end_ns=2_000,
        attributes={"orchard.row": 3},
    )
    below = replace(turn, span_id="2" * 16, parent_id=turn.span_id, name="look", start_ns=1_100, end_ns=1_900)
    later = replace(turn, start_ns=5_000, end_ns=6_000, attributes={"orchard.row": 3, "orchard.done": True})
    for records in ([turn, below, later], [later, below, turn]):
        (run,) = build(records)
        assert run.root is not None
        assert (run.root.span.start_ns, run.root.span.end_ns) == (1_000, 6_000)
        assert run.root.span.attributes["orchard.done"] is True
        assert run.notes == ("1 duplicate spans folded; 1 of them say other things, and the fuller stands",)
    open_ = replace(later, end_ns=0)
    assert build([turn, below, open_])[0].nodes[0].span.end_ns == 2_000  # what ended stands over what did not
