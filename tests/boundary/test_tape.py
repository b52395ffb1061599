from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from sys import _getframe
from typing import Any

import pytest
import wrapt

from held import Held
from reenact.boundary import lanes, place, tape
from reenact.boundary.lanes import Lane
from reenact.boundary.patching import Patches
from reenact.boundary.place import Place
from reenact.boundary.tape import Lost, Site, Sites, Source

CLOCK = Source(name="clock")


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


def site(key: str = "a:f clock") -> Site:
    return Site(key=key, source=CLOCK)


def test_a_site_is_module_function_and_source_and_no_line() -> None:
    sites = Sites(CLOCK)

    class Agent:
        def one(self) -> list[Site | None]:
            return [sites.of(_getframe(0)), sites.of(_getframe(0))]

    first, second = Agent().one()
    assert first is second
    assert first is not None
    where = f"{__name__}:test_a_site_is_module_function_and_source_and_no_line.<locals>.Agent.one"
    assert first.key == f"{where} clock"


@pytest.mark.parametrize(
    ("file", "module", "own"),
    [
        ("/app/agent.py", "agent", True),
        ("/app/agent.py", "__main__", True),
        (os.__file__, "os", False),
        (str(Path(wrapt.__file__)), "wrapt", False),
        (str(Path(tape.__file__)), "reenact.boundary.tape", False),
        ("<frozen importlib._bootstrap>", "importlib._bootstrap", False),
    ],
)
def test_whose_code_draws(file: str, module: str, *, own: bool) -> None:
    sites = Sites(CLOCK)
    names: dict[str, Any] = {"__name__": module, "__file__": file, "find": lambda: sites.of(_getframe(1))}
    exec(compile("found = find()", file, "exec"), names)
    assert (names["found"] is not None) is own


@pytest.mark.parametrize(
    "name", ["uuid", "email.utils", "email.generator", "mailbox", "smtplib", "gzip", "tarfile", "zipfile"]
)
def test_what_draws_for_its_caller_is_looked_through(name: str) -> None:
    file = str(importlib.import_module(name).__file__)
    sites = Sites(CLOCK)
    passing = compile("def draw(): return find()", file, "exec")
    names: dict[str, Any] = {"__name__": name, "__file__": file, "find": lambda: sites.of(_getframe(1))}
    exec(passing, names)
    found = names["draw"]()
    assert found is not None
    assert found.key.startswith(f"{__name__}:test_what_draws_for_its_caller")


@pytest.fixture
def _on() -> Any:
    lanes.restart()
    tape.install(on=True)
    yield
    tape.install(on=False)
    lanes.restart()


@pytest.mark.usefixtures("_on")
def test_draws_are_kept_by_lane_call_and_site() -> None:
    a, b = site("a"), site("b")
    assert tape.draw(a, lambda: 1) == 1
    tape.draw(b, lambda: 2)
    with place.at(Place(9, 7, root=5)):
        tape.draw(a, lambda: 3)
        with lanes.on(lanes.current().spawn("task")):
            tape.draw(a, lambda: 4)
            other = lanes.current()
    main = lanes.current()
    assert main.drawn == {0: {a: [1], b: [2]}, 7: {a: [3]}}
    assert other.drawn == {7: {a: [4]}}
    assert [*main.reel.drew.values()] == [main, other]


@pytest.mark.usefixtures("_on")
def test_what_is_too_much_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tape, "MOST", 3)
    one = site()
    assert [tape.draw(one, iter(range(9)).__next__) for _ in range(7)] == [0] * 7
    values = (lanes.current().drawn or {})[0][one]
    assert len(values) == 4
    assert isinstance(values[-1], Lost)
    assert values[-1].count == 4


@pytest.mark.usefixtures("_on")
def test_lanes_that_draw_and_never_call_are_forgotten_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_DREW", 3)
    spawned: list[Lane] = []
    for _ in range(5):
        with lanes.on(lanes.current().spawn("task")):
            tape.draw(site(), lambda: 0)
            spawned.append(lanes.current())
    reel = lanes.current().reel
    assert (len(reel.drew), reel.forgotten) == (3, 2)
    assert [lane.drawn is None for lane in spawned] == [True, True, False, False, False]


def test_nothing_is_kept_while_nobody_records() -> None:
    lanes.restart()
    assert tape.draw(site(), lambda: 1) == 1
    assert lanes.current().drawn is None
    assert tape.mode("random") == tape.SHARED


def test_the_modes_of_a_recording_begin_as_it_began(held: Held) -> None:
    import random

    made = held.start(generators={})
    state = random.getstate()
    random.setstate(state)
    assert tape.mode("random") == tape.SHARED
    assert tape.generators() == {}
    held.finish(made)
    made = held.start()
    assert tape.mode("random") == tape.UNKNOWN
    assert time.time() > 0
    held.finish(made)


def _original() -> str:
    return "original"


taken_by_name = _original


@pytest.mark.parametrize("within", [nullcontext, tape.rebound_at_once])
def test_a_name_in_the_agent_s_module_gets_the_outermost_of_several_wrappers(
    within: Callable[[], AbstractContextManager[None]],
) -> None:
    patches = Patches()
    inner, outer = (lambda: "inner"), (lambda: "outer")
    try:
        with within():
            tape.rebind(patches, {id(_original): inner})
            tape.rebind(patches, {id(inner): outer})
        assert taken_by_name() == "outer"
    finally:
        patches.undo()
    assert taken_by_name is _original
