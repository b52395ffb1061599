"""Errors that are given back: what Python prints of them, and of those that they came from, is what it printed."""

from __future__ import annotations

import pytest

from desk import Desk

FAILING = """
import logging
import requests

try:
    requests.get("http://127.0.0.1:9/")
except requests.ConnectionError:
    logging.exception("no answer")
requests.get("http://127.0.0.1:9/")
"""


def test_a_traceback_of_a_recorded_error_has_all_its_parts(desk: Desk) -> None:
    pytest.importorskip("requests")
    desk.write("agent.py", FAILING)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert live.returncode == 1
    replay = desk.reenact("replay", "last", environ=desk.bare())
    assert "same: " in replay.stderr, replay.stderr
    assert replay.stderr.count("Traceback (most recent call last)") == live.stderr.count("Traceback (most recent call")


CAME_FROM = """
import traceback
import reenact

@reenact.tool
def caused(number):
    try:
        return {}["key"]
    except KeyError as error:
        raise ValueError(number) from error

@reenact.tool
def met(number):
    try:
        return {}["key"]
    except KeyError:
        raise RuntimeError(number)

@reenact.tool
def hidden(number):
    try:
        return {}["key"]
    except KeyError:
        raise LookupError(number) from None

for tool in (caused, met, hidden):
    try:
        tool(1)
    except Exception as error:
        print(repr(error), repr(error.__cause__), repr(error.__context__) if tool is not hidden else "")
        traceback.print_exc()
met(2)
"""


def test_an_error_comes_with_what_it_came_from(desk: Desk) -> None:
    desk.write("agent.py", CAME_FROM)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert "RuntimeError(1) None KeyError('key')" in live.stdout
    replay = desk.reenact("replay", "last", environ=desk.bare())
    assert replay.stdout == live.stdout
    assert "same: " in replay.stderr, replay.stderr
    printed, again = (each.stderr.count("Traceback (most recent call last)") for each in (live, replay))
    assert printed == again
