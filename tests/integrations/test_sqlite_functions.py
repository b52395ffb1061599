"""What SQLite draws by itself comes again, and is SQLite's own again once nobody records."""

from __future__ import annotations

import contextlib
import platform
import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import reenact
from held import Held
from reenact.graph.history import NOTHING
from reenact.graph.verdict import judge
from reenact.values.run import Grade

SQL = """
create table t(w, r integer default (random()), at text default current_timestamp);
create table log(r);
create trigger noted after insert on t begin insert into log values (random()); end;
insert into t(w) values ('ant'), ('bee'), ('cow'), ('dog'), ('eel'), ('fox'), ('gnu'), ('hen');
"""


@reenact.tool
def add(a: int, b: int) -> int:
    return a + b


def drawn() -> list[object]:
    database = sqlite3.connect(":memory:")
    database.executescript(SQL)
    words = [word for (word,) in database.execute("select w from t order by random()")]
    rows = database.execute("select r from t union all select r from log").fetchall()
    return [add(1, 2), words, rows, database.execute("select hex(randomblob(8)), length(randomblob(-1))").fetchall()]


def test_what_sqlite_draws_comes_again(tmp_path: Path) -> None:
    held = Held(tmp_path)
    did = held.record(drawn)
    again, other = held.replay(did, drawn), held.record(drawn)
    assert again.value == did.value
    assert other.value != did.value
    numbers = [number for (number,) in did.value[2]]  # type: ignore[index]
    assert len({*numbers}) == len(numbers)
    assert min(numbers) < 0 < max(numbers)


def test_its_clock_is_the_programs(tmp_path: Path) -> None:
    def age() -> tuple[int, float]:
        (at,) = sqlite3.connect(":memory:").execute("select current_timestamp").fetchone()
        told = datetime.fromisoformat(at).replace(tzinfo=UTC)
        return add(1, 2), abs((datetime.now(UTC) - told).total_seconds())

    held = Held(tmp_path)
    did = held.record(age)
    assert did.value is not None
    assert did.value[1] < 2
    time.sleep(3)  # the replay is later than the recording, and its clock is not
    again = held.replay(did, age)
    assert again.value is not None
    assert again.value[1] < 2


def said_of_now() -> list[object]:
    database = sqlite3.connect(":memory:")
    database.execute("create table t(at text default (strftime('%f', 'now')), day text default current_date)")
    for _ in range(3):
        database.execute("insert into t default values")
        time.sleep(0.003)
    database.execute("pragma trusted_schema = off")
    told = database.execute("select datetime('now', '+1 day'), julianday(), unixepoch('now'), current_time").fetchall()
    return [add(1, 2), told, database.execute("select at, day from t").fetchall()]


@pytest.mark.skipif(platform.system() != "Linux", reason="SQLite shows its symbols to us on Linux")
def test_what_sqlite_says_of_now_comes_again(tmp_path: Path) -> None:
    held = Held(tmp_path)
    did = held.record(said_of_now)
    time.sleep(1.1)
    assert held.replay(did, said_of_now).value == did.value
    now = int(time.time())
    (at,) = sqlite3.connect(":memory:").execute("select unixepoch('now')").fetchone()
    assert at >= now  # its clock is its own again, and not the recorded one


def test_its_functions_are_its_own_again(tmp_path: Path) -> None:
    before = sqlite3.connect
    Held(tmp_path).record(drawn)
    assert sqlite3.connect is before


def test_no_seed_of_a_connection_looks_like_a_secret(tmp_path: Path) -> None:
    def many() -> int:
        for _ in range(1000):
            with contextlib.closing(sqlite3.connect(":memory:")) as database:
                database.execute("select random()").fetchone()
        return add(1, 2)

    (run,) = Held(tmp_path).record(many).runs
    assert judge(run, NOTHING).grade is Grade.EXACT
