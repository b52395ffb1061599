from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reenact
from held import Did, Held
from reenact.boundary import lanes, place, tape
from reenact.boundary.place import Place
from reenact.boundary.tape import Lost, Site, Source
from reenact.record import draws

SITE = Site(key="agent:f x", source=Source(name="x", spell=lambda value: [value]))
OTHER = Site(key="agent:make_token x", source=Source(name="x"))


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@pytest.fixture(autouse=True)
def _on() -> Iterator[None]:
    lanes.restart()
    tape.install(on=True)
    yield
    tape.install(on=False)
    lanes.restart()


@reenact.tool
def told(what: str) -> str:
    return what


def draw(site: Site, value: Any) -> None:
    tape.draw(site, lambda: value)


def of(did: Did, name: str) -> list[Any]:
    return [json.loads(str(node.span.attributes[name])) for node in did.runs[0].nodes if name in node.span.attributes]


def test_what_a_lane_drew_is_spelled_with_its_next_call_and_is_gone_from_it() -> None:
    draw(SITE, 1)
    draw(SITE, 2)
    with place.at(Place(1, 0xAB, root=5)):
        draw(OTHER, "y")
    lane = lanes.current()
    spelled = draws.take_draws(lane, Place(1, 0xAB, root=5))
    assert json.loads(spelled) == [
        ["/", [["agent:f x", [[1], [2]]]]],
        ["", [["agent:make_token x", ["y"]]]],
    ]
    assert (lane.drawn, lane.reel.drew) == (None, {})


def test_below_the_root_a_draw_outside_of_calls_hangs_where_the_call_does() -> None:
    draw(SITE, 1)
    with place.at(Place(1, 5, root=5)):
        draw(OTHER, 2)
    with place.at(Place(1, 0xCD, root=5)):
        draw(OTHER, 3)
    assert json.loads(draws.take_draws(lanes.current(), Place(1, 5, root=5))) == [
        ["", [["agent:f x", [[1]]]]],
        ["", [["agent:make_token x", [2]]]],
        ["00000000000000cd", [["agent:make_token x", [3]]]],
    ]


def test_the_rest_of_every_lane_ends_with_the_root() -> None:
    draw(SITE, 1)
    with lanes.on(lanes.current().spawn("task")):
        draw(OTHER, 2)
    facts = draws.rest(lanes.current().reel, 5)
    assert json.loads(facts["reenact.draws.rest"]) == [
        ["main", [["", [["agent:f x", [[1]]]]]]],
        ["main/task#0", [["", [["agent:make_token x", [2]]]]]],
    ]
    assert draws.rest(lanes.current().reel, 5) == {}


def test_what_was_not_kept_is_a_mark_in_its_place() -> None:
    draw(OTHER, 1)
    lost = Lost()
    lost.count = 12
    (lanes.current().drawn or {})[0][OTHER].append(lost)
    assert draws.take_draws(lanes.current(), Place(1, 5, root=5)).endswith('[1,{"lost":12}]]]]]')


def test_a_recording_holds_its_draws_and_says_that_it_is_taped(held: Held) -> None:
    def work() -> None:
        draw(OTHER, 1)
        told("")
        draw(OTHER, 2)
        thread = threading.Thread(target=draw, args=(OTHER, 3))
        thread.start()
        thread.join()

    did = held.record(work, generators={})
    assert of(did, "reenact.tape") == [{}]
    assert of(did, "reenact.draws") == [[["", [["agent:make_token x", [1]]]]]]
    assert of(did, "reenact.draws.rest") == [
        [
            ["main", [["", [["agent:make_token x", [2]]]]]],
            ["main/draw#0", [["", [["agent:make_token x", [3]]]]]],
        ]
    ]


def test_a_unit_has_its_own_and_says_what_was_drawn_before_it(held: Held) -> None:
    def work() -> None:
        draw(OTHER, 1)
        with reenact.run("unit"):
            draw(OTHER, 2)
            told("")
            draw(OTHER, 3)
        draw(OTHER, 4)
        with reenact.run("unit"):
            told("")

    did = held.record(work)
    first, second = did.runs
    assert [json.loads(str(run.nodes[0].span.attributes["reenact.draws.before"])) for run in (first, second)] == [
        [["", [["agent:make_token x", [1]]]]],
        [["", [["agent:make_token x", [4]]]]],
    ]
    assert of(did, "reenact.draws") == [[["", [["agent:make_token x", [2]]]]]]
    assert of(did, "reenact.draws.rest") == [[["main", [["", [["agent:make_token x", [3]]]]]]]]


def test_without_the_tape_nothing_is_said(held: Held) -> None:
    did = held.record(lambda: (draw(OTHER, 1), told("")), {"REENACT_TAPE": "off"})
    assert not any(
        name.startswith(("reenact.tape", "reenact.draws"))
        for node in did.runs[0].nodes
        for name in node.span.attributes
    )


def test_a_drawn_secret_is_redacted_and_the_verdict_says_so(held: Held) -> None:
    from reenact.graph.verdict import judge

    token = "ghp_" + "a1B2" * 9
    did = held.record(lambda: (draw(OTHER, token), told("")))
    said = str(did.call("told").span.attributes["reenact.draws"])
    assert token not in said
    (reason,) = judge(did.runs[0]).reasons
    assert (reason.field, reason.lost) == ("clock and chance", "1 drawn values were redacted")
