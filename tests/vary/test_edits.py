"""The run that has a variation: answers, orders, repeats and renames, and nothing of what was recorded lost."""

from __future__ import annotations

from dataclasses import replace

from made import Made, called, reported, user
from reenact.graph.build import build
from reenact.replay.stubs import Stubs
from reenact.values.call import Raised, Returned, Value
from reenact.values.discovered_tools import FOUND, REACHES, run_again
from reenact.values.run import Run
from reenact.values.typed import encode_exception
from reenact.values.variation import Edit, Group, Variation
from reenact.vary.edits import applied


def varied(*edits: Edit, renames: tuple[tuple[str, str], ...] = ()) -> Variation:
    return Variation(kind="k", group=Group.TOOLS, call="c", description="s", edits=edits, renames=renames)


def read_again(run: Run) -> Run:
    (again,) = build([node.span for node in run.nodes])
    return again


def test_a_varied_answer_is_what_a_reader_of_its_spans_finds() -> None:
    made = Made(1)
    tool = made.tool("quote", {"sku": "k"}, {"price": 9})
    run = applied(made.run(), [varied(Edit(node=tool, outcome=Returned(payload=Value(json={"price": None}))))])
    node = next(node for node in read_again(run).nodes if node.id == tool)
    assert node.outcome == Returned(payload=Value(json={"price": None}))
    assert node.call == next(each for each in made.run().nodes if each.id == tool).call


def test_what_raised_may_return_and_what_returned_may_raise() -> None:
    made = Made(1)
    one, other = made.tool("a", {}, 1), made.tool("b", {}, raised=ValueError("no"))
    outcome = Raised(exception=encode_exception(TimeoutError("late")))
    edits = (Edit(node=one, outcome=outcome), Edit(node=other, outcome=Returned(payload=Value(json=2))))
    nodes = {node.id: node for node in read_again(applied(made.run(), [varied(*edits)])).nodes}
    assert nodes[one].outcome == outcome
    assert nodes[other].outcome == Returned(payload=Value(json=2))
    assert not nodes[other].span.events


def test_a_call_that_fails_every_time_answers_whoever_tries_again() -> None:
    made = Made(1)
    asked = made.llm([user("hi")], "hello")
    run = applied(made.run(), [varied(Edit(node=asked, outcome=Returned(payload=Value(json="no")), repeats=2))])
    stubs = Stubs([read_again(run)])
    question = next(stub.question for stub in stubs.stubs.values() if stub.node.id == asked)
    taken = [stubs.take(question, None, "main") for _ in range(4)]
    assert [stub.node.outcome if stub else None for stub in taken] == [Returned(payload=Value(json="no"))] * 3 + [None]


def test_a_call_that_fails_once_comes_to_what_was_recorded_when_it_is_tried_again() -> None:
    made = Made(1)
    asked = made.llm([user("hi")], "hello")
    recorded = next(node.outcome for node in made.run().nodes if node.id == asked)
    edit = Edit(node=asked, outcome=Returned(payload=Value(json="no")), before=True)
    stubs = Stubs([read_again(applied(made.run(), [varied(edit)]))])
    question = next(iter(stubs.stubs.values())).question
    first, second = stubs.take(question, None, "main"), stubs.take(question, None, "main")
    assert first is not None
    assert second is not None
    assert (first.node.outcome, second.node.outcome) == (Returned(payload=Value(json="no")), recorded)


def test_a_found_tool_that_would_run_again_is_answered_when_it_is_varied() -> None:
    made = Made(1)
    tool = made.tool("cart", {}, 1, more={FOUND: True, REACHES: "[]"})
    run = made.run()
    assert run_again(run.nodes) == {tool}
    changed = applied(run, [varied(Edit(node=tool, outcome=Returned(payload=Value(json=None))))])
    assert run_again(read_again(changed).nodes) == frozenset()


def test_a_rename_reaches_requests_and_replies_alike() -> None:
    made = Made(1)
    made.llm([user("hi")], tools=[("quote", {})])
    name = next(part for part in str(made.spans[0].attributes["output.value"]).split('"') if part.startswith("call_"))
    made.llm([user("hi"), called(name, "quote", {}), reported(name, "9")], "nine")
    run = applied(made.run(), [varied(renames=((name, "call_other"),))])
    texts = [str(value) for node in run.nodes for value in node.span.attributes.values()]
    assert not any(name in text for text in texts)
    assert sum("call_other" in text for text in texts) == 2


def test_orders_are_moved_in_the_call_and_in_its_span() -> None:
    made = Made(1)
    one, other = made.tool("a", {}, 1), made.tool("b", {}, 2)
    orders = {node.id: node.end_order for node in made.run().nodes}
    swap = varied(Edit(node=one, end_order=orders[other]), Edit(node=other, end_order=orders[one]))
    run = applied(made.run(), [swap])
    assert {node.id: node.end_order for node in run.nodes} == {**orders, one: orders[other], other: orders[one]}
    assert replace(read_again(run), root=None).nodes[1].end_order == orders[other]
