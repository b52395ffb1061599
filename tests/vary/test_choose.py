"""The list of cases: seeded, varied, and without calls whose answer is never given."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from made import Made, user
from reenact.values.call import CallKind
from reenact.values.run import Run
from reenact.values.variation import Group
from reenact.vary.choose import cases, subjects

ALL = frozenset(Group) - {Group.KEYS}


def desk() -> Run:
    made = Made(3)
    made.llm([user("hello")], tools=[("lookup", {"q": "x"})])
    made.tool("lookup", {"q": "x"}, [{"order_id": "1", "total": 2.5}, {"order_id": "2", "total": 4.0}])
    made.tool("docs", {"q": "x"}, [{"id": "d", "text": "30 days"}], kind=CallKind.RETRIEVER)
    made.llm([user("again")], "done")
    return made.run()


def test_the_same_seed_gives_the_same_list_and_another_seed_another() -> None:
    first = [*cases(desk(), 1, ALL)]
    assert first == [*cases(desk(), 1, ALL)]
    assert first != [*cases(desk(), 2, ALL)]
    assert [case.number for case in first] == [*range(1, len(first) + 1)]


def test_fewer_cases_are_the_beginning_of_more() -> None:
    assert [*islice(cases(desk(), 5, ALL), 7)] == [*cases(desk(), 5, ALL)][:7]


def test_the_first_cases_touch_every_call_and_many_ways() -> None:
    begun = [*islice(cases(desk(), 0, ALL), 60)]
    touched = {variation.node for case in begun for variation in case.variations}
    assert touched >= {node.id for node in desk().nodes if node.kind in {CallKind.LLM, CallKind.TOOL}}
    assert len({variation.kind for case in begun for variation in case.variations}) > 10


def test_some_cases_have_two_variations_and_never_of_one_call() -> None:
    several = [case for case in cases(desk(), 0, ALL) if len(case.variations) > 1]
    assert several
    for case in several:
        assert len({variation.node for variation in case.variations}) == len(case.variations)


def test_only_the_chosen_groups_are_varied() -> None:
    for group in ALL - {Group.PROMPTS, Group.TIMING}:
        assert {each.group for case in cases(desk(), 0, {group}) for each in case.variations} == {group}


def test_calls_below_a_tool_are_not_varied_since_nobody_makes_them_again() -> None:
    made = Made(1)
    outer = made.tool("outer", {}, {"a": 1})
    made.tool("inner", {}, {"b": 2}, parent=outer)
    made.llm([user("inside")], "hm", parent=outer)
    assert [subject.node.call.name for subject in subjects(made.run())] == ["outer"]


def test_an_unfinished_call_has_no_answer_to_vary() -> None:
    made = Made(1)
    made.tool("cut", {}, unfinished=True)
    assert Counter(subject.node.call.name for subject in subjects(made.run())) == Counter()
