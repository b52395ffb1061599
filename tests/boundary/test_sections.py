"""Sections say where calls hang, and nothing else goes by them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import reenact
from held import Did, Held
from reenact.boundary import place, sections
from reenact.boundary.patching import Patches
from reenact.graph.build import build
from reenact.graph.verdict import judge
from reenact.report.documents import show_document
from reenact.report.tree import tree
from reenact.values.call import CallKind
from reenact.values.run import spans_of

ticket = itertools.count(1)


@reenact.tool
def book(city: str) -> str:
    return f"{city} {next(ticket)}"


def node(name: str, work: Callable[[], object], *, bare: bool = False) -> object:
    """Run `work` as a node of a framework's."""
    section = sections.begin("graphs", CallKind.CHAIN, name, inputs={"asked": name}, bare=bare)
    with sections.inside(section):
        result = work()
    sections.end(section, {"told": str(result)})
    return result


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    patches = Patches()
    sections.use(patches)
    yield Held(tmp_path)
    patches.undo()
    assert place.hangers == []


def drawn(did: Did) -> list[str]:
    """Give the tree without what differs from run to run."""
    return [line.split("  ")[0] if "─" not in line else line[: line.rindex("─")] + _name(line) for line in _lines(did)]


def _lines(did: Did) -> list[str]:
    return [line for line in tree(did.runs[0])[1:] if "─ " in line]


def _name(line: str) -> str:
    return "─ " + line[line.rindex("─ ") + 2 :].split("  ", maxsplit=1)[0]


def flight() -> list[object]:
    def inner() -> list[object]:
        with ThreadPoolExecutor(1) as pool:
            there = pool.submit(book, "Oslo").result()
        return [there, node("nothing", lambda: 0), node("plain", lambda: 0, bare=True)]

    before = node("early", lambda: 0)
    return [before, *node("graph", lambda: [node("first", lambda: 0), *node("second", inner)]), book("Bergen")]  # type: ignore[misc]


def test_calls_hang_in_the_sections_they_are_made_in(held: Held) -> None:
    did = held.record(flight)
    assert [line.lstrip("│ ├└─") for line in drawn(did)] == [
        "chain graph",
        "chain first",
        "chain second",
        "tool book #2",
        "chain nothing",
        "tool book #3",
    ]
    assert drawn(did)[3] == "│     ├─ tool book #2"


def test_no_part_of_the_graph_knows_of_sections(held: Held) -> None:
    did = held.record(flight)
    run = did.runs[0]
    assert run.root is not None
    assert [(each.call.name, each.parent) for each in did.calls] == [("book", run.root.id)] * 2
    assert judge(run).reasons == ()
    assert judge(run).grade == "exact"
    assert [each["number"] for each in show_document(run, {}, judge(run))["calls"]] == [1, 2, 3]  # type: ignore[index,union-attr,call-overload]


def test_a_replay_goes_by_no_section(held: Held) -> None:
    did = held.record(flight)
    again = held.replay(did, lambda: [0, 0, book("Oslo"), 0, 0, book("Bergen")])
    assert again.result is not None
    assert (again.result.result, again.value) == ("same", did.value)
    flat = held.record(lambda: [book("Oslo"), book("Bergen")])
    again = held.replay(flat, lambda: [node("Oslo", lambda: book("Oslo")), node("Bergen", lambda: book("Bergen"))])
    assert again.result is not None
    assert (again.result.result, again.value) == ("same", flat.value)


def test_calls_of_one_question_are_told_apart_as_without_sections(held: Held) -> None:
    """Nodes side by side may begin in another order: the lane of a call says whose it is, and no section."""
    did = held.record(lambda: [node("a", lambda: book("Oslo")), node("b", lambda: book("Oslo"))])
    again = held.replay(did, lambda: [node("b", lambda: book("Oslo")), node("a", lambda: book("Oslo"))])
    assert again.value == did.value


def test_without_a_call_there_is_no_run(held: Held) -> None:
    did = held.record(lambda: node("graph", lambda: node("first", lambda: 0)))
    assert did.runs == ()


def test_a_section_keeps_what_it_was_given_and_gave_within_bounds(held: Held) -> None:
    def work() -> None:
        node("small", lambda: book("Oslo"))
        big = sections.begin("graphs", CallKind.AGENT, "big", inputs={"text": "x" * 100_000})
        with sections.inside(big):
            book("Bergen")
        sections.end(big, error=ValueError("sk-ant-api03-" + "a" * 93 + "AA"))

    small, big = held.record(work).runs[0].sections
    assert small.span.attributes["input.value"] == '{"asked":"small"}'
    assert str(small.span.attributes["output.value"]).startswith('{"told":"Oslo ')
    assert big.span.attributes["input.value"] == "null"
    assert "characters of the state" in str(big.span.attributes["reenact.lost"])
    assert big.span.attributes["agent.name"] == "big"
    assert "sk-ant-api03-a" not in str(big.span)


def test_an_export_holds_the_sections_in_their_places(held: Held) -> None:
    run = held.record(flight).runs[0]
    (again,) = build(spans_of([run]))
    assert tree(again) == tree(run)


def test_a_failure_of_ours_is_no_failure_of_the_agent(held: Held) -> None:
    def fail() -> sections.Section | None:
        raise RuntimeError("ours")

    patches = Patches()
    sections.use(patches, fail)
    did = held.record(flight)
    patches.undo()
    assert did.error is None
    assert [each.call.name for each in did.calls] == ["book", "book"]
    assert did.runs[0].sections == ()
