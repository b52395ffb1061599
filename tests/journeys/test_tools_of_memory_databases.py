"""Tools that nobody declared and that change an SQLite database in memory: they run again, or the verdict says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from asking import every_tool_once
from desk import Desk
from reenact.demo.provider import StandIn

PROGRAM = """
import json
import sqlite3
from openai import OpenAI

TOOLS = [{"type": "function", "function": {"name": "take", "parameters": {
    "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}}]

def take(store, n):
    store.execute("update stock set quantity = quantity - 1")
    return store.execute("select quantity from stock").fetchone()[0]

def main():
    store = sqlite3.connect(PATH, isolation_level=None)
    store.execute("create table stock (quantity int)")
    store.execute("insert into stock values (12)")
    PREPARED
    asked = {"model": "all-tools", "messages": [{"role": "user", "content": "take one"}], "tools": TOOLS}
    message = OpenAI().chat.completions.create(**asked).choices[0].message
    for call in message.tool_calls:
        print(take(store, **json.loads(call.function.arguments)))
    print(store.execute("select * from stock").fetchall())

main()
"""
FUNCTION = 'store.create_function("double", 1, lambda n: 2 * n)'
ATTACHED = "store.execute(\"ATTACH 'stock.db' AS other\")"


@pytest.fixture
def asking() -> Iterator[StandIn]:
    with StandIn(scripts={"all-tools": every_tool_once}, max_delay_ms=1) as provider:
        yield provider


@pytest.mark.always
def test_a_tool_that_changes_a_database_in_memory_runs_again(desk: Desk, asking: StandIn) -> None:
    desk.write("agent.py", PROGRAM.replace("PATH", '":memory:"').replace("PREPARED", ""))
    live = desk.reenact("run", "--", "python", "agent.py", environ={**desk.bare(), **asking.environment})
    assert (live.stdout, "replayable: exact" in live.stderr) == ("11\n[(11,)]\n", True), live.stderr
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout, "1 tool calls run again" in done.stderr) == (0, live.stdout, True), (
        done.stderr
    )
    done = desk.reenact("replay", "last", environ={**desk.settings(), "REENACT_ENFORCE": "off"})
    assert (done.returncode, "(a database in memory) could not be put back" in done.stderr) == (125, True), done.stderr


@pytest.mark.always
@pytest.mark.parametrize(("prepared", "name"), [(FUNCTION, "create_function"), (ATTACHED, "ATTACH")])
def test_a_database_that_reaches_further_is_told_before_the_replay(
    desk: Desk, asking: StandIn, prepared: str, name: str
) -> None:
    desk.write("agent.py", PROGRAM.replace("PATH", '":memory:"').replace("PREPARED", prepared))
    live = desk.reenact("run", "--", "python", "agent.py", environ={**desk.bare(), **asking.environment})
    assert "replayable: partial" in live.stderr
    told = desk.reenact("doctor", "last").stdout
    assert "what it changed in memory (a database in memory)" in told
    assert f"reach sqlite3.Connection.{name}" in told
