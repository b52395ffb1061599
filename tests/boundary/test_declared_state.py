"""What an answered tool that was declared changed in the process: put back, or named before anybody replays."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar

import pytest

import reenact
from held import Held
from reenact.graph.verdict import judge
from reenact.values.discovered_tools import AFTER, UNSPELLED
from reenact.values.run import Grade, Run

CART: list[Any] = []
TOTALS: dict[str, int] = {}
COUNT = 0
SEEN: ContextVar[tuple[str, ...]] = ContextVar("SEEN", default=())
IDS = itertools.count(1)
TURNS = itertools.cycle("ab")
BASE = sqlite3.connect(":memory:", check_same_thread=False)
BASE.execute("create table t (n)")


@functools.lru_cache
def doubled(n: int) -> int:
    return n * 2


class Shop:
    made: ClassVar[int] = 0
    names: ClassVar[list[str]] = []

    def __init__(self) -> None:
        self.items: dict[str, int] = {}
        self.last: str | None = None

    @reenact.tool
    def put(self, name: str) -> str:
        Shop.made += 1
        self.items[name] = self.items.get(name, 0) + 1
        self.last = name
        return "put"

    @classmethod
    @reenact.tool
    def note(cls, name: str) -> None:
        cls.names.append(name)

    @staticmethod
    @reenact.tool
    def bare(name: str) -> None:
        Shop.names.append(name.upper())


@reenact.tool
def add(name: str) -> str:
    global COUNT  # noqa: PLW0603 - the state of a program
    COUNT += 1
    CART.append({"name": name, "id": next(IDS)})
    TOTALS[name] = TOTALS.get(name, 0) + 1
    SEEN.set((*SEEN.get(), name))
    sys.stdout.write(f"added {name}\n")
    return "ok"


@reenact.tool
async def add_later(name: str) -> str:
    await asyncio.sleep(0)
    CART.append(name)
    return "ok"


@reenact.tool
def refuse(name: str) -> str:
    CART.append(name)
    raise ValueError(name)


@reenact.retriever
def look_up(name: str) -> list[str]:
    TOTALS["looked"] = TOTALS.get("looked", 0) + 1
    return [name]


@reenact.tool
def steps(n: int) -> Iterator[int]:
    for at in range(n):
        TOTALS["steps"] = at
        yield at


@reenact.tool
async def later_steps(n: int) -> AsyncGenerator[int]:
    for at in range(n):
        TOTALS["steps"] = at
        yield at


@reenact.tool
def turn() -> str:
    return next(TURNS)


@reenact.tool
def insert(n: int) -> int:
    BASE.execute("insert into t values (?)", (n,))
    return n


@reenact.tool
def remember(n: int) -> int:
    return doubled(n)


def rows() -> int:
    return int(BASE.execute("select count(*) from t").fetchone()[0])


def counter() -> tuple[Callable[[], int], Callable[[], int]]:
    n = 0

    @reenact.tool
    def bump() -> int:
        nonlocal n
        n += 1
        return n

    return bump, lambda: n


def fresh() -> None:
    global COUNT, IDS
    CART.clear()
    TOTALS.clear()
    COUNT, IDS = 0, itertools.count(1)
    SEEN.set(())
    Shop.made = 0
    Shop.names.clear()
    doubled.cache_clear()
    BASE.execute("delete from t")


def shopping() -> str:
    fresh()
    shop, alias = Shop(), CART
    add("tea")
    add("milk")
    shop.put("tea")
    Shop.note("a")
    Shop.bare("b")
    asyncio.run(add_later("soon"))
    look_up("x")
    with pytest.raises(ValueError, match="no"):
        refuse("no")
    bump, value = counter()
    bump()
    bump()
    return json.dumps([alias, TOTALS, COUNT, SEEN.get(), vars(shop), Shop.made, Shop.names, value(), next(IDS)])


def test_carts_counters_and_the_like_are_as_the_tool_left_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = Held(tmp_path)
    did = held.record(shopping)
    printed = capsys.readouterr().out
    assert did.error is None
    assert _state(did.runs[0]) == []
    again = held.replay(did, shopping)
    assert again.result is not None
    assert again.value == did.value
    assert printed == capsys.readouterr().out == "added tea\nadded milk\n"
    assert (again.result.result, again.result.unrestored, again.result.answered) == (
        "same",
        [],
        {"tool": 9, "retriever": 1},
    )


def between() -> list[int]:
    fresh()
    return [TOTALS["steps"] for _ in steps(3)]


async def between_later() -> list[int]:
    fresh()
    return [TOTALS["steps"] async for _ in later_steps(3)]


def turned() -> str:
    return turn() + next(TURNS)


def inserted() -> int:
    fresh()
    insert(3)
    return rows()


def remembered() -> Any:
    fresh()
    remember(3)
    return doubled.cache_info()


@pytest.mark.parametrize(
    ("work", "name"),
    [
        (between, "TOTALS"),
        (lambda: asyncio.run(between_later()), "TOTALS"),
        (turned, "TURNS"),
        (inserted, "BASE"),
        (remembered, "doubled"),
    ],
)
def test_what_cannot_be_put_back_is_named_before_anybody_replays(
    tmp_path: Path, work: Callable[[], Any], name: str
) -> None:
    did = Held(tmp_path).record(work)
    assert did.error is None
    (told,) = _state(did.runs[0])
    assert f":{name})" in told
    assert judge(did.runs[0]).grade is Grade.PARTIAL


PROGRAM = """
import itertools, sys, threading
import reenact

turns, notes = itertools.cycle("ab"), {"n": 0}
next(turns)

@reenact.tool
def hidden():
    notes["n"] += 1
    next(turns)
    return 1

thread = threading.Thread(target=hidden)
thread.start()
thread.join()
hidden()
"""


@pytest.mark.parametrize(("more", "verdict"), [("", "exact"), ("print(next(turns))\n", "partial")])
def test_what_only_tools_read_lowers_nothing(tmp_path: Path, more: str, verdict: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM + more)
    command = [sys.executable, "-m", "reenact", "run", "--", sys.executable, "program.py"]
    environ = {**os.environ, "REENACT_STORE": str(tmp_path / "store")}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True)
    assert f"(2 tool); replayable: {verdict}" in done.stderr
    assert ("state: what it changed in memory (__main__:turns)" in done.stderr) is bool(more)


def test_a_tool_that_changes_nothing_tells_nothing(tmp_path: Path) -> None:
    @reenact.tool
    def idle(n: int) -> int:
        return len(CART) + n

    did = Held(tmp_path).record(lambda: idle(1))
    assert not {AFTER, UNSPELLED}.intersection(did.call("idle").span.attributes)


@reenact.tool
def ends_opaque() -> Any:
    yield 1
    return iter(int, 1)


@reenact.tool
def raises_opaque() -> None:
    raise LookupError(iter(int, 1))


def test_what_cannot_be_made_anew_reaches_the_verdict_wherever_it_stands(tmp_path: Path) -> None:
    def work() -> None:
        list(ends_opaque())
        with pytest.raises(LookupError):
            raises_opaque()

    did = Held(tmp_path).record(work)
    fields = [reason.field for reason in judge(did.runs[0]).reasons]
    assert [each for each in fields if each.startswith(("result", "exception"))] == [
        "result$",
        "exception.args$[0]",
    ]


def _state(run: Run) -> list[str]:
    return [reason.lost for reason in judge(run).reasons if reason.field == "state"]
