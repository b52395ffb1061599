"""Units that stand on earlier ones of their process: said before anybody replays; stateless ones stay exact."""

from __future__ import annotations

import decimal
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

import reenact
from held import Held
from reenact.boundary import inbound, reads, unit_dependencies
from reenact.graph.history import NONE, history
from reenact.graph.verdict import judge
from reenact.values.run import Grade, Run

pytestmark = pytest.mark.sample(6)


@pytest.fixture(autouse=True)
def _this_module_is_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the modules of other tests, which are loaded here, be no part of it."""
    monkeypatch.setattr(reads, "own_modules", lambda: [sys.modules[__name__]])
    monkeypatch.setattr(unit_dependencies, "_MOST_MODULES", 1_000_000)


HISTORY: dict[str, list[str]] = {}
SERVED = 0
BY_NAME: dict[str, int] = {}
NUMBER = 0
STARTED: Any = None
CLIENTS: dict[str, httpx.Client] = {}
BOOKS: dict[str, list[str]] = {}
CATALOG = {str(n): {"price": n} for n in range(2000)}


@reenact.tool
def answer(text: str) -> str:
    return text.upper()


class Desk:
    open: ClassVar[list[str]] = []


class Book:
    def __init__(self) -> None:
        self.pages: list[str] = []


BOOK = Book()


@functools.lru_cache
def told(text: str) -> str:
    return answer(text)


@functools.lru_cache
def settings() -> dict[str, int]:
    return {"n": 1}


def counted() -> Callable[[], int]:
    n = 0

    def count() -> int:
        nonlocal n
        n += 1
        return n

    return count


NEXT = counted()


@reenact.unit
def chat(text: str) -> str:
    HISTORY.setdefault("a", []).append(text)
    return answer(" ".join(HISTORY["a"]))


@reenact.unit
def cached(text: str) -> str:
    return told(text)


@reenact.unit
def numbered(text: str) -> str:
    global NUMBER  # noqa: PLW0603 - the state of a worker
    NUMBER += 1
    return answer(f"{NUMBER} {text}")


@reenact.unit
def closed(text: str) -> str:
    return answer(f"{NEXT()} {text}")


@reenact.unit
def listed(text: str) -> str:
    Desk.open.append(text)
    return answer(str(Desk.open))


@reenact.unit
def paged(text: str) -> str:
    BOOK.pages.append(text)
    return answer(str(BOOK.pages))


@reenact.unit
def booked(text: str) -> str:
    if "a" not in BOOKS:
        BOOKS["a"] = []
    BOOKS["a"].append(text)
    return answer(str(BOOKS["a"]))


@reenact.unit
def replaced(text: str) -> str:
    CLIENTS["of all"] = httpx.Client(params={"last": text})
    return answer(str(CLIENTS["of all"].params))


@reenact.unit
def stateless(text: str) -> str:
    global SERVED, STARTED  # noqa: PLW0603 - the state of a worker
    SERVED += 1
    BY_NAME[text] = 1
    if STARTED is None:
        STARTED = decimal.Context()
    if (name := f"api {int(text) % 2}") not in CLIENTS:
        CLIENTS[name] = httpx.Client()
    return answer(f"{text} {CATALOG['7']['price']} {settings()['n']}")


def _grades(runs: tuple[Run, ...]) -> list[Grade]:
    return [judge(run).grade for run in sorted(runs, key=lambda run: run.started_ns)]


@pytest.mark.parametrize("work", [chat, cached, numbered, closed, listed, paged, booked, replaced])
def test_a_unit_that_reads_what_an_earlier_one_left_is_not_exact(tmp_path: Path, work: Callable[[str], str]) -> None:
    did = Held(tmp_path).record(lambda: [work("a"), work("b")])
    assert did.error is None
    first, second = sorted(did.runs, key=lambda run: run.started_ns)
    assert [reason.field for reason in judge(first).reasons if reason.field == "state"] == []
    (reason,) = [reason for reason in judge(second).reasons if reason.field == "state"]
    assert f"stands on unit {first.id[:12]}: " in reason.lost


def test_units_that_share_nothing_stay_exact(tmp_path: Path) -> None:
    did = Held(tmp_path).record(lambda: [stateless(str(n)) for n in range(30)])
    assert did.error is None
    assert [reason.lost for run in did.runs for reason in judge(run).reasons if reason.field == "state"] == []


def test_a_unit_of_an_agent_that_is_too_large_to_be_looked_at_is_not_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_dependencies, "_MOST_MODULES", 0)
    did = Held(tmp_path).record(lambda: [stateless("1"), stateless("2")])
    assert did.error is None
    first, second = sorted(did.runs, key=lambda run: run.started_ns)
    for known in (None, history(second, NONE)):
        (reason,) = [reason for reason in judge(second, known).reasons if reason.field == "state"]
        assert reason.lost.startswith("stands on state of an agent of ")
    assert [reason for reason in judge(first).reasons if reason.field == "state"] == []


def _change(standing: unit_dependencies.Standing, at: int) -> None:
    HISTORY["of"] = [str(at)]
    standing.known(at, f"run {at}")


def test_a_unit_that_has_answered_stands_on_later_ones_only_behind_its_answer() -> None:
    standing = unit_dependencies.Standing()
    first = standing.begin()
    _change(standing, first)
    standing.reply(first)
    second = standing.begin()
    _change(standing, second)
    told_of_first = standing.end(first)
    standing.reply(second)
    told_of_second = standing.end(second)
    assert "units" not in told_of_first
    assert told_of_first["behind"]["units"] == ["run 2"]
    assert told_of_first["goes_on"] is False
    assert told_of_second["units"] == ["run 1"]
    assert "behind" not in told_of_second


def test_a_change_between_an_answer_and_the_next_request_is_of_who_answered() -> None:
    standing = unit_dependencies.Standing()
    first = standing.begin()
    standing.reply(first)
    _change(standing, first)
    second = standing.begin()
    told_of_first = standing.end(first)
    assert told_of_first["goes_on"] is True
    assert standing.end(second)["units"] == ["run 1"]


def test_a_unit_that_ends_as_the_recording_does_says_on_what_it_stands() -> None:
    stop = inbound.watch()
    try:
        first = inbound.Inbound(str, dict)
        HISTORY["of"] = ["first"]
        first.end(dict)
        second = inbound.Inbound(str, dict)
    finally:
        stop()
    second.end(dict)
    assert second.stands_on["without_run"] == 1
    assert inbound.Inbound(str, dict).stands_on == {}
