from __future__ import annotations

from typing import Any

import pytest

from made import NS, START, Made
from reenact.boundary.lanes import Lane
from reenact.boundary.place import Place
from reenact.boundary.tape import Site, Source
from reenact.graph.build import build
from reenact.replay.draws import Draws, taped
from reenact.replay.guard import allowed
from reenact.replay.ledger import Ledger
from reenact.values.json import Json, compact
from reenact.values.run import Run
from reenact.values.span import SpanRecord

NUMBER = Source(name="n", read=lambda value: int(str(value)), moment=float)
SITE, OTHER = Site(key="a:f n", source=NUMBER), Site(key="a:g n", source=NUMBER)
REAL = -1


def drawn(*values: Json, call: str = "", site: Site = SITE) -> Json:
    return [call, [[site.key, [*values]]]]


def before(*pages: Json) -> dict[str, str]:
    return {"reenact.draws": compact([*pages])}


def run_of(made: Made, *rest: Json, tape: str | None = "{}", **facts: Any) -> Run:
    attributes: dict[str, Any] = {
        "openinference.span.kind": "CHAIN",
        "reenact.schema_version": "1",
        "reenact.run.root": True,
        "reenact.lane": "main",
        "reenact.order.start": 0,
        **facts,
    }
    if tape is not None:
        attributes["reenact.tape"] = tape
    if rest:
        attributes["reenact.draws.rest"] = compact([*rest])
    root = SpanRecord(
        trace_id=made.trace_id,
        span_id=made.root,
        parent_id=None,
        name="agent.py",
        start_ns=START,
        end_ns=START + 100 * NS,
        attributes=attributes,
    )
    (run,) = build([root, *made.spans])
    return run


class Replay:
    """Draws of one run, taken by hand."""

    def __init__(self, run: Run, *siblings: Run, is_closed: bool = True) -> None:
        self.ledger = Ledger()
        self.draws = Draws((run, *siblings), run, self.ledger, lambda: "", is_closed=is_closed)
        self.nodes = {node.id: node for each in (run, *siblings) for node in each.nodes}

    def take(self, lane: Lane, *, inside: str | None = None, site: Site = SITE) -> int:
        here = Place(1, 2, inside, 3) if inside else None
        return self.draws.take(lane, here, site, lambda: REAL, None)

    def made(self, lane: Lane, call: str) -> None:
        self.draws.crossed(lane.path, self.nodes[call])

    @property
    def told(self) -> list[str]:
        return [entry["site"] for entry in self.ledger.entries if entry["t"] == "volatile"]


def test_draws_come_in_order_by_site_and_what_is_missing_is_real_and_told() -> None:
    made = Made()
    call = made.tool("x", more=before(drawn(1, 2), drawn(10, site=OTHER)))
    replay, lane = Replay(run_of(made, ["main", [drawn(3)]])), Lane("main")
    assert [replay.take(lane), replay.take(lane, site=OTHER), replay.take(lane)] == [1, 10, 2]
    assert replay.told == []
    replay.made(lane, call)
    assert [replay.take(lane), replay.take(lane)] == [3, REAL]
    assert replay.told == ["a:f n"]


def test_a_call_that_is_made_again_ends_the_segment_before_it() -> None:
    made = Made()
    first = made.tool("x", {"n": 1}, more=before(drawn(1, 2, 3)))
    second = made.tool("x", {"n": 2}, more=before(drawn(4, 5)))
    replay, lane = Replay(run_of(made, ["main", [drawn(6)]])), Lane("main")
    assert replay.take(lane) == 1
    replay.made(lane, first)  # it polled less often
    assert [replay.take(lane), replay.take(lane), replay.take(lane)] == [4, 5, REAL]  # and more often
    replay.made(lane, second)
    assert replay.take(lane) == 6


def test_what_was_drawn_inside_an_answered_call_is_passed_over() -> None:
    made = Made()
    tool = made.tool("outer", more=before(drawn(1)))
    made.tool("inner", parent=tool, more=before(drawn(100)))
    after = made.tool("after", more=before(drawn(200, call=tool), drawn(2)))
    replay, lane = Replay(run_of(made)), Lane("main")
    assert replay.take(lane) == 1
    replay.made(lane, tool)
    assert replay.take(lane) == 2
    replay.made(lane, after)
    assert replay.take(lane) == REAL


def test_a_call_that_runs_again_draws_what_it_drew() -> None:
    made = Made()
    tool = made.tool("outer", more=before(drawn(1)))
    inner = made.tool("inner", parent=tool, more=before(drawn(100, 101)))
    made.tool("after", more=before(drawn(200, call=tool), drawn(2)))
    replay, lane = Replay(run_of(made)), Lane("main")
    assert replay.take(lane) == 1
    replay.made(lane, tool)
    assert [replay.take(lane, inside=tool), replay.take(lane, inside=tool)] == [100, 101]
    replay.made(lane, inner)
    assert [replay.take(lane, inside=tool), replay.take(lane)] == [200, 2]


def test_lanes_do_not_meet() -> None:
    made = Made()
    one = made.tool("x", {"n": 1}, lane="main/a#0", more=before(drawn(1, 2)))
    made.tool("x", {"n": 2}, lane="main/b#0", more=before(drawn(11, 12)))
    replay, main = Replay(run_of(made)), Lane("main")
    a, b = main.spawn("a"), main.spawn("b")
    assert [replay.take(b), replay.take(a), replay.take(b)] == [11, 1, 12]
    replay.made(b, one)  # the same question from another lane moves neither
    assert [replay.take(a), replay.take(main)] == [2, REAL]


def test_what_was_too_much_is_a_gap_of_its_length() -> None:
    made = Made()
    made.tool("x", more=before(drawn(1, {"lost": 2}, 4)))
    replay, lane = Replay(run_of(made)), Lane("main")
    assert [replay.take(lane) for _ in range(5)] == [1, REAL, REAL, 4, REAL]


@pytest.mark.parametrize("value", ["REDACTED_x", None, [], {"a": 1}, "1.5"])
def test_a_value_that_is_none_is_not_given(value: Json) -> None:
    made = Made()
    made.tool("x", more=before(drawn(value)))
    replay = Replay(run_of(made))
    assert replay.take(Lane("main")) == REAL
    assert replay.told == ["a:f n"]


@pytest.mark.parametrize(
    "said", ["", "{", "{}", "[1]", '[["",{}]]', '[["",[["k"]]]]', '[["",[[1,[2]]]]]', '[[1,[["a:f n",[2]]]]]', "null"]
)
def test_a_damaged_tape_is_an_empty_one(said: str) -> None:
    made = Made()
    made.tool("x", more={"reenact.draws": said})
    replay = Replay(run_of(made, 3, ["main"], [1, 2]))
    assert replay.take(Lane("main")) == REAL


def test_a_recording_without_a_tape_says_so() -> None:
    made = Made()
    made.tool("x")
    run = run_of(made, tape=None)
    assert taped(run) is None
    assert not Draws((run,), run, Ledger(), lambda: "").is_taped
    assert Draws((run,), run, Ledger(), lambda: "").generators == {}
    told = run_of(made, tape='{"generators":{"random":"unknown"}}')
    assert Draws((told,), told, Ledger(), lambda: "").generators == {"random": "unknown"}


def test_a_call_that_goes_live_sees_the_real_world() -> None:
    made = Made()
    made.tool("x", more=before(drawn(1)))
    replay, lane = Replay(run_of(made)), Lane("main")
    with allowed():
        assert replay.take(lane) == REAL
    assert (replay.take(lane), replay.told) == (1, [])


def test_the_clock_runs_on_from_what_was_given_back() -> None:
    made = Made()
    made.tool("x", more=before(drawn(5000)))
    replay, lane = Replay(run_of(made)), Lane("main")

    def now() -> float:
        return replay.draws.take(lane, None, OTHER, lambda: REAL, lambda seconds: seconds)

    assert START / NS <= now() < START / NS + 60, "before the first draw, from where the run began"
    assert replay.take(lane) == 5000
    assert 5000 <= now() < 5060


def test_units_that_begin_on_one_lane_are_told_apart() -> None:
    runs: list[Run] = []
    for number in range(3):
        made = Made(number + 1)
        made.tool("x", more={**before(drawn(10 * number)), "reenact.order.start": 100 * number + 2})
        facts = {
            "openinference.span.kind": "AGENT",
            "reenact.order.start": 100 * number + 1,
            "reenact.draws.before": compact([drawn(10 * number + 1)]),
        }
        runs.append(run_of(made, **facts))
    replay, lane = Replay(runs[0], *runs[1:]), Lane("main")
    outer = lane.reel
    seen: list[int] = []
    for _ in range(3):
        seen.append(replay.take(lane))
        lane.reel = outer.begin_unit("main")
        seen.append(replay.take(lane))
        lane.reel = outer
    assert seen == [1, 0, 11, 10, 21, 20]


def test_a_unit_that_came_in_has_what_its_process_drew_before() -> None:
    made = Made()
    made.tool("x", lane="unit", more=before(drawn(1)))
    told = compact([[OTHER.key, [7, 8]]])
    facts = {"openinference.span.kind": "AGENT", "reenact.lane": "unit", "reenact.draws.process": told}
    replay = Replay(run_of(made, **facts))
    assert replay.take(Lane("main"), site=OTHER) == 7
    assert replay.take(Lane("main/lifespan#0"), site=OTHER) == 8
    assert replay.take(Lane("unit")) == 1


WATCH = Source(name="watch", read=lambda value: float(str(value)), elapses=True, measures=True)
OF_LIBRARY, OF_OWN = Site(key="lib:f watch", source=WATCH, of_library=True), Site(key="a:f watch", source=WATCH)


def clocked() -> Run:
    made = Made()
    page: Json = ["", [[OF_LIBRARY.key, [1007.5, 1010.0], "clock"]]]
    made.tool("x", more=before(drawn(1000.0, site=OF_OWN), page))
    return run_of(made)


def test_a_library_measures_by_the_clock_of_the_recording_which_goes_on_past_the_tape() -> None:
    draws, lane, real = Replay(clocked()).draws, Lane("main"), iter([50.0, 50.0, 52.0, 60.0])
    read = [draws.take_for_library(lane, None, OF_LIBRARY, lambda: next(real), None) for _ in range(3)]
    assert read == [1007.5, 1010.0, 1012.0]
    another = Site(key="lib:g watch", source=WATCH, of_library=True)
    assert draws.take_for_library(lane, None, another, lambda: next(real), None) == 1020.0


def test_a_clock_of_which_nothing_was_given_back_begins_with_its_first_recorded_moment() -> None:
    draws, lane, real = Replay(clocked()).draws, Lane("main"), iter([50.0, 53.0])
    another = Site(key="lib:g watch", source=WATCH, of_library=True)
    read = [draws.take_for_library(lane, None, another, lambda: next(real), None) for _ in range(2)]
    assert read == [1000.0, 1003.0]


def test_where_a_call_may_go_live_a_library_measures_by_the_real_clock() -> None:
    draws, lane = Replay(clocked(), is_closed=False).draws, Lane("main")
    assert draws.take_for_library(lane, None, OF_LIBRARY, lambda: 50.0, None) == 50.0
