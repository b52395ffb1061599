"""A replay says beforehand which variables that the program reads are set here alone, or were then alone."""

from __future__ import annotations

import json
from dataclasses import replace

from made import Made
from reenact.find.sources import RunSource
from reenact.pipeline.settings import added, notes
from reenact.values.run import READ_VARIABLES


def found(*read: tuple[str, bool]) -> RunSource:
    made = Made()
    made.tool("fetch", {"item": "tea"})
    run = made.run()
    assert run.root is not None
    attributes = {**run.root.span.attributes, READ_VARIABLES: json.dumps(read)}
    root = replace(run.root, span=replace(run.root.span, attributes=attributes))
    nodes = tuple(root if node is run.root else node for node in run.nodes)
    around = {**run.surroundings, "environment": {"AGENT_MODEL": "m"}}
    return RunSource(run=replace(run, own=True, root=root, nodes=nodes, surroundings=around), siblings=(), source="x")


def test_variables_that_the_program_reads_are_told_where_they_are_set_only_then_or_only_here() -> None:
    read = (("SHOP", True), ("DEPTH", False), ("SAME", True), ("NEVER", False))
    assert notes(found(*read), {"SAME": "1", "DEPTH": "3"}) == [
        "SHOP: set when it was recorded, and not here; the program reads it",
        "DEPTH: not set when it was recorded, and set here; the program reads it",
    ]


def test_what_the_replay_sets_itself_is_not_told() -> None:
    assert notes(found(("AGENT_MODEL", True), ("OPENAI_API_KEY", True)), {"AGENT_MODEL": "m"}) == []


def test_what_the_replay_sets_and_the_recorded_program_did_not_have_is_listed() -> None:
    source = found()
    assert added(source) == ["OPENAI_API_KEY"]
    around = {"zone": {"name": "Asia/Tokyo"}, "environment": {"OPENAI_API_KEY": "[SECRET:1]"}}
    assert added(replace(source, run=replace(source.run, surroundings=around))) == ["TZ"]
    had = {"zone": {"name": "Asia/Tokyo"}, "environment": {"OPENAI_API_KEY": "[SECRET:1]", "TZ": "Asia/Tokyo"}}
    assert added(replace(source, run=replace(source.run, surroundings=had))) == []
