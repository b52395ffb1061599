from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from made import Made, user
from reenact.find.sources import RunSource, find
from reenact.graph.build import build
from reenact.pipeline.appending import append
from reenact.replay.stubs import Stubs
from reenact.stores.directory import DirectoryStore
from reenact.values.call import CallKind, Streamed
from reenact.values.run import Node, Run


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    made = DirectoryStore(tmp_path)
    made.prepare()
    return made


def recorded(store: DirectoryStore) -> tuple[RunSource, str]:
    made = Made(seed=1)
    made.llm([user("hello")], "yes")
    chain = made.tool("branch", kind=CallKind.CHAIN)
    made.tool("fetch", {"n": 1}, parent=chain)
    run = made.run()
    store.append([node.span for node in run.nodes])
    return find_again(store, run.id), chain


def find_again(store: DirectoryStore, trace_id: str) -> RunSource:
    return find(trace_id, store)


def fetched(chain: str) -> tuple[Run, list[Node]]:
    """What a replay had to ask for: a tool in a chain that was recorded, a model in that tool, a stream."""
    made = Made(seed=2)
    again = made.tool("branch", kind=CallKind.CHAIN)
    live = {"reenact.replay.live": True}
    tool = made.tool("fetch", {"n": 2}, parent=again, more={**live, "reenact.replay.parent": chain})
    made.llm([user("inside")], "yes", parent=tool, more=live)
    made.llm([user("tell")], "a longer answer", stream=True, more={**live, "reenact.order.head": 4})
    run = made.run()
    return run, [node for node in run.nodes if node.span.attributes.get("reenact.replay.live")]


def test_calls_are_added_below_what_they_were_made_in_and_answer_from_then_on(store: DirectoryStore) -> None:
    found, chain = recorded(store)
    before = {node.id for node in found.run.nodes}
    replay, new = fetched(chain)
    assert append(found, new, store) == 3
    run = find_again(store, found.run.id).run
    added = {node.call.name + str(number): node for number, node in enumerate(run.nodes) if node.id not in before}
    assert len(added) == 3
    assert not any(node.orphan for node in run.nodes)
    tool, inside, stream = added.values()
    assert (tool.parent, inside.parent, stream.parent) == (chain, tool.id, run.root.id if run.root else None)
    assert all(node.span.attributes["reenact.appended_by"] == replay.id for node in added.values())
    assert all("reenact.replay.live" not in node.span.attributes for node in added.values())
    assert [entry.id for entry in store.find()] == [run.id]


def test_added_calls_come_after_everything_and_are_released_at_once(store: DirectoryStore) -> None:
    found, chain = recorded(store)
    _, new = fetched(chain)
    expected = Stubs([found.run]).expected()
    append(found, new, store)
    run = find_again(store, found.run.id).run
    assert Stubs([run]).expected() == expected
    last = max(node.start_order for node in found.run.nodes)
    added = [node for node in run.nodes if "reenact.appended_by" in node.span.attributes]
    assert min(node.start_order for node in added) > last
    assert len({node.start_order for node in added}) == 3
    (stream,) = [node for node in added if isinstance(node.outcome, Streamed)]
    assert isinstance(stream.outcome, Streamed)
    assert stream.head_order is None
    assert {chunk.order for chunk in stream.outcome.chunks} == {0}
    assert b"".join(chunk.data or b"" for chunk in stream.outcome.chunks).count(b"data: ") > 3


def test_a_recording_that_came_from_a_file_is_kept_whole_first(store: DirectoryStore) -> None:
    made = Made(seed=1)
    made.llm([user("hello")], "yes")
    run = made.run()
    _, new = fetched("0" * 16)
    append(RunSource(run=run, siblings=(), source="some/file.jsonl"), new, store)
    (again,) = build(store.spans(run.id))
    assert len(again.nodes) == len(run.nodes) + 3
    assert again.notes == ()


def test_a_second_time_adds_to_the_first(store: DirectoryStore) -> None:
    found, chain = recorded(store)
    _, new = fetched(chain)
    append(found, new[:1], store)
    again = find_again(store, found.run.id)
    append(again, [replace(new[2], trace_id="f" * 32)], store)
    run = find_again(store, found.run.id).run
    assert len(run.nodes) == len(found.run.nodes) + 2
    assert len({node.start_order for node in run.nodes}) == len(run.nodes)
