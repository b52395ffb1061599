"""What holds for every perturbation, found by looking: drawn from the seed, true to the run, and each a change."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice
from random import Random

import pytest

from made import Made
from reenact.contracts.perturbation import Perturbation
from reenact.discover import members
from reenact.graph.build import interpret
from reenact.values.call import Body, CallKind, HttpReply, HttpRequest, Returned, Unfinished
from reenact.values.json import Json, compact
from reenact.values.run import Run
from reenact.values.variation import Group, Variation
from reenact.vary.choose import subjects
from reenact.vary.edits import applied

WAYS = members("vary", Perturbation)
ORDERS: Json = [
    {"order_id": "4417", "user_id": "u-17", "total": 12.5},
    {"order_id": "4421", "user_id": "u-23", "total": 3},
]
DOCUMENTS: Json = [{"id": "d-1", "text": "Returns within 30 days."}, {"id": "d-2", "text": "No refunds on lamps."}]
ASKED: list[Json] = [{"role": "user", "content": "Where is my order?"}]


def one_of_everything() -> Run:
    """Make a run that gives every perturbation something to do."""
    made = Made(7)
    made.llm(ASKED, tools=[("lookup", {"user_id": "u-17"})])
    made.tool("lookup", {"user_id": "u-17"}, ORDERS)
    made.tool("search", {"query": "returns"}, DOCUMENTS, kind=CallKind.RETRIEVER)
    reply = Body(compact({"rates": [1, 2], "at": "2026-11-22"}).encode())
    request = HttpRequest(shape="http", method="GET", url="https://rates.example/all", body=Body(b""))
    answer = Returned(payload=HttpReply(status=200, headers=(("content-length", str(len(reply.data))),), body=reply))
    made.add(CallKind.UNKNOWN, "GET rates.example", request, answer)
    made.llm(ASKED, "Your order is on its way to Zürich.", stream=True, body={"stream": True, "user": "u-17"})
    return side_by_side(replace(made.run(), entry={"argv": ["python", "desk.py", "Where is my order?"]}, user="u-17"))


def side_by_side(run: Run) -> Run:
    """Have two tools be asked before either is answered."""
    nodes = [*run.nodes]
    tools = [at for at, node in enumerate(nodes) if node.kind in {CallKind.TOOL, CallKind.RETRIEVER}]
    first = nodes[tools[0]]
    nodes[tools[0]] = replace(first, end_order=nodes[tools[1]].end_order + 1)
    return replace(run, nodes=tuple(nodes))


def variations(way: Perturbation, run: Run, seed: int = 1, most: int = 300) -> list[Variation]:
    found: list[Variation] = []
    if way.of_run is not None:
        found += islice(way.of_run(run, Random(f"{seed} {way.name} 0")), most)
    for subject in subjects(run) if way.of_call is not None else ():
        if subject.group in way.groups or Group.TIMING in way.groups:
            found += islice(way.of_call(subject, Random(f"{seed} {way.name} {subject.node.number}")), most)  # type: ignore[misc]
    return found


def test_there_are_perturbations_of_every_group_and_none_twice() -> None:
    assert len({way.name for way in WAYS}) == len(WAYS)
    assert {group for way in WAYS for group in way.groups} == set(Group)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_it_finds_something_to_vary(way: Perturbation) -> None:
    found = variations(way, one_of_everything())
    assert found
    assert {each.group for each in found} <= way.groups | {Group.TIMING}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_the_same_seed_gives_the_same_variations(way: Perturbation) -> None:
    assert variations(way, one_of_everything(), seed=3) == variations(way, one_of_everything(), seed=3)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_it_leaves_the_global_generator_alone(way: Perturbation) -> None:
    random.seed(5)
    before = random.getstate()
    variations(way, one_of_everything())
    assert random.getstate() == before


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_a_variation_changes_what_it_names_and_nothing_else(way: Perturbation) -> None:
    run = one_of_everything()
    for each in variations(way, run):
        changed = applied(run, [each])
        touched = {edit.node for edit in each.edits}
        kept = {node.id: node for node in changed.nodes}
        assert {node.id for node in run.nodes} <= kept.keys()
        assert each.argv is not None or each.renames or touched
        if not each.renames:
            assert all(kept[node.id] == node for node in run.nodes if node.id not in touched)
        assert [node.call for node in run.nodes] == [kept[node.id].call for node in run.nodes]
        assert changed != run or each.argv is not None


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_the_span_of_a_varied_call_says_what_the_call_says(way: Perturbation) -> None:
    run = one_of_everything()
    for each in variations(way, run):
        for node in applied(run, [each]).nodes:
            if node.span.attributes.get("reenact.run.root"):
                continue
            _, outcome = interpret(node.span)
            if not each.renames:
                assert outcome == node.outcome or isinstance(node.outcome, Unfinished), each.description


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_smaller_forms_are_smaller_and_told_in_one_line(way: Perturbation) -> None:
    for each in variations(way, one_of_everything()):
        assert each.description
        assert "\n" not in each.description
        assert each.size > 0
        assert all(lesser.kind == each.kind and not lesser.smaller for lesser in each.smaller)
