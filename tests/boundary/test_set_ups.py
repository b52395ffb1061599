"""What a library asks while it connects is told from what a program asks, and is known to the units behind it."""

from __future__ import annotations

import sys
import sysconfig
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from reenact.boundary import lanes, set_ups
from reenact.boundary.lanes import Reel
from reenact.values.query import Query

DRIVER = """
def connect(ask, *words):
    return ask(*words)

def connection_for_bind(ask, *words):
    return ask(*words)

def do_ping(ask, *words):
    return ask(*words)

def execute(ask, *words):
    return ask(*words)
"""
SERVER = ("postgresql", "10.0.0.7:5432", "shop")
FIRST, SECOND = Reel("unit", 1), Reel("unit", 2)


def query(text: str) -> Query:
    return Query(system="postgresql", operation="set_up", text=text)


@pytest.fixture
def driver() -> dict[str, Any]:
    """A library that connects, pings and asks, and calls back whoever asks."""
    file = f"{sysconfig.get_path('purelib')}/some_driver/pools.py"
    names: dict[str, Any] = {"__name__": "some_driver.pools", "__file__": file}
    exec(compile(DRIVER, file, "exec"), names)
    return names


@pytest.fixture
def _restarted() -> None:
    lanes.restart()


@pytest.mark.parametrize(
    ("function", "connects"),
    [("connect", True), ("connection_for_bind", False), ("do_ping", False), ("execute", False)],
)
def test_what_is_asked_below_a_library_s_connect_sets_up(
    function: str, *, connects: bool, driver: dict[str, Any]
) -> None:
    def listener() -> bool:
        return set_ups.is_connecting()

    assert driver[function](set_ups.is_connecting) is connects
    assert not driver[function](listener)  # a library that calls the agent when somebody connects
    driver["__name__"] = "psycopg_pool.pool"
    assert driver[function](listener) is connects  # one that has the agent set its connection up
    assert not set_ups.is_connecting()


def test_a_greenlet_that_connects_and_stands_still_is_looked_through(driver: dict[str, Any]) -> None:
    def greenlet_spawn(context: object) -> bool:
        assert context is not None
        return set_ups.is_connecting()

    def connect() -> FrameType:
        return sys._getframe().f_back or pytest.fail("nobody called")

    driver["__name__"] = "sqlalchemy.pool"
    waiting = SimpleNamespace(gr_frame=driver["connect"](connect))
    assert greenlet_spawn(waiting)
    assert not greenlet_spawn(SimpleNamespace(gr_frame=None))


@pytest.mark.parametrize(
    ("function", "text", "pings"),
    [
        ("do_ping", "SELECT 1", True),
        ("do_ping", " ; ", True),
        ("do_ping", "BEGIN;", True),
        ("do_ping", "SELECT 2", False),
        ("execute", "SELECT 1", False),
    ],
)
def test_a_pool_that_asks_whether_a_connection_is_alive_pings(
    function: str, text: str, *, pings: bool, driver: dict[str, Any]
) -> None:
    def check_health() -> bool:
        return set_ups.is_ping(text)

    assert driver[function](set_ups.is_ping, text) is pings
    assert not driver[function](check_health)  # the agent's own, whatever its name


@pytest.mark.usefixtures("_restarted")
def test_others_are_told_once_the_answer_is_there() -> None:
    passage = object()
    set_ups.begin(query("SHOW a"), SERVER, FIRST, passage, is_kept=True)
    assert set_ups.version(SERVER) == 0
    set_ups.end(passage, {"results": []})
    assert set_ups.version(SERVER) == 1
    asked = '{"system":"postgresql","operation":"set_up","text":"SHOW a"}'
    told = f'[{{"name":"SHOW postgresql","asked":{asked},"answer":{{"results":[]}}}}]'
    assert (set_ups.text(SERVER, FIRST), set_ups.text(SERVER, SECOND)) == ("", told)
    assert set_ups.version(("postgresql", "10.0.0.8:5432", "shop")) == 0


@pytest.mark.usefixtures("_restarted")
def test_what_failed_may_be_answered_to_the_next_who_asks() -> None:
    failing, answered = object(), object()
    set_ups.begin(query("SHOW a"), SERVER, FIRST, failing, is_kept=True)
    set_ups.fail(failing)
    set_ups.begin(query("SHOW a"), SERVER, SECOND, answered, is_kept=True)
    set_ups.end(answered, {})
    assert "SHOW a" in set_ups.text(SERVER, FIRST)


@pytest.mark.usefixtures("_restarted")
@pytest.mark.parametrize(("answer", "is_kept"), [("a" * 20_000, True), ("a", False)])
def test_an_answer_that_nobody_can_use_is_not_kept(answer: str, *, is_kept: bool) -> None:
    passage = object()
    set_ups.begin(query("SHOW a"), SERVER, FIRST, passage, is_kept=is_kept)
    set_ups.end(passage, answer)
    assert "SHOW a" in set_ups.text(SERVER, SECOND)
    assert "answer" not in set_ups.text(SERVER, SECOND)


def test_another_recording_knows_of_nothing() -> None:
    passage = object()
    lanes.restart()
    set_ups.begin(query("SHOW a"), SERVER, FIRST, passage, is_kept=True)
    set_ups.end(passage, {})
    lanes.restart("main/worker#0")  # a fork of the process
    assert set_ups.version(SERVER) == 1
    lanes.restart()
    assert set_ups.version(SERVER) == 0
