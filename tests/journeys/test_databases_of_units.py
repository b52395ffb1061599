"""A database of SQLite's that units of one process share: over a connection that stays open, and at the same time."""

from __future__ import annotations

import json
import sqlite3
import sys
from typing import Any

import pytest

from desk import Desk

SHOP = """
import sqlite3
import threading
import reenact

database = sqlite3.connect("shop.db", check_same_thread=False)
database.execute("CREATE TABLE IF NOT EXISTS orders (item, number)")
both = threading.Barrier(2)

@reenact.tool
def meet(alone):
    return alone or both.wait(30) >= 0

@reenact.unit
def order(item, alone=True):
    (number,) = database.execute("SELECT count(*) FROM orders").fetchone()
    meet(alone)
    database.execute("INSERT INTO orders VALUES (?, ?)", (item, number))
    database.commit()
    meet(alone)  # neither is over before the other has written
    return number

if __name__ == "__main__":
    for item in ("tea", "pan"):
        order(item)
    together = [threading.Thread(target=order, args=(item, False)) for item in ("cup", "jar")]
    for each in together:
        each.start()
    for each in together:
        each.join()
"""


@pytest.fixture
def shop(desk: Desk) -> list[dict[str, Any]]:
    live = desk.reenact("run", "-q", "--", "python", desk.write("shop.py", SHOP))
    assert live.returncode == 0, live.stderr
    listed = json.loads(desk.reenact("ls", "--json").stdout)["runs"]
    return [run for run in reversed(listed) if run["name"] == "order"]


@pytest.mark.always
def test_each_begins_with_the_database_as_it_found_it_or_is_answered_where_others_changed_it_meanwhile(
    desk: Desk, shop: list[dict[str, Any]]
) -> None:
    assert [run["verdict"] for run in shop] == ["exact"] * 4
    asked = [desk.reenact("show", run["id"]).stdout.count("database ") for run in shop]
    assert asked[:2] == [0, 0]
    # Those of which a copy does not tell all. Both go over one connection: one may commit what the other has inserted.
    assert {*asked[2:]} <= {2, 3}
    for run in shop[2:]:
        done = desk.reenact("replay", run["id"], environ=desk.bare())
        assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    done = desk.reenact("replay", shop[1]["id"], environ=desk.bare())
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n"
    assert "wrote as recorded: shop.db" in done.stderr

    desk.write("shop.py", SHOP.replace("(item, number))\n", "(item, number + 1))\n"))
    done = desk.reenact("replay", shop[1]["id"], environ=desk.bare())
    assert "diverged: run: wrote shop.db" in done.stderr


LOCKED = """
import fcntl
import os
import sqlite3
import subprocess
import sys

import reenact

OTHER = '''
import fcntl, os, sqlite3
try:
    sqlite3.connect("shop.db", timeout=0).execute("BEGIN IMMEDIATE")
    print("shop.db is free")
except sqlite3.OperationalError:
    pass
for name in ("lockf", "record", "os"):
    with open(name + ".lock", "r+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            print(name, "is free")
        except OSError:
            pass
'''

database = sqlite3.connect("shop.db", isolation_level=None)
database.execute("CREATE TABLE orders (item)")
locks = {name: open(name + ".lock", "w") for name in ("lockf", "record", "os")}
fcntl.lockf(locks["lockf"], fcntl.LOCK_EX)
fcntl.fcntl(locks["record"], fcntl.F_SETLK, __import__("struct").pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))
os.lockf(locks["os"].fileno(), os.F_LOCK, 0)
database.execute("BEGIN IMMEDIATE")
database.execute("INSERT INTO orders VALUES ('tea')")

@reenact.tool
def probe():
    return subprocess.run([sys.executable, "-I", "-c", OTHER], capture_output=True, text=True).stdout

@reenact.unit
def order():
    return database.execute("SELECT * FROM orders").fetchall()

if __name__ == "__main__":
    for _ in range(3):
        order()
        print("unit", probe())
    with reenact.run("report"):
        for name, file in locks.items():
            file.write("held")
            file.flush()
        sqlite3.connect("shop.db").close()
    print("run", probe())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no record locks")
@pytest.mark.always
def test_a_recording_leaves_the_program_its_locks_on_the_files_that_it_reads(desk: Desk) -> None:
    live = desk.reenact("run", "-q", "--", "python", desk.write("locked.py", LOCKED))
    assert live.returncode == 0, live.stderr
    assert [line.strip() for line in live.stdout.splitlines() if line.strip()] == ["unit", "unit", "unit", "run"]


def verdicts(desk: Desk) -> list[str]:
    """Give the verdicts of the orders, in the order in which they came in."""
    listed = json.loads(desk.reenact("ls", "--json").stdout)["runs"]
    return [run["verdict"] for run in reversed(listed) if run["name"] == "order"]


CLOSING = """
import os
import sqlite3
import threading
import reenact

sqlite3.connect("shop.db").execute("CREATE TABLE IF NOT EXISTS orders (item)")
opened, closed = threading.Event(), threading.Event()
begun, begins = os.pipe()

@reenact.tool
def wait_for(name):
    if name == "opened":
        os.write(begins, b"1")  # from here on the other one comes in, and finds this one waiting
    return globals()[name].wait(30)

@reenact.tool
def answer(item):
    return item

@reenact.unit
def order(item):
    database = sqlite3.connect("shop.db")
    if item == "pan":
        opened.set()
        wait_for("closed")
    (number,) = database.execute("SELECT count(*) FROM orders").fetchone()
    database.execute("INSERT INTO orders VALUES (?)", (answer(item),))
    database.commit()
    if item == "tea":  # the one that comes in meanwhile has the database open, and waits
        wait_for("opened")
    database.close()
    return number

def follow():
    os.read(begun, 1)
    order("pan")

if __name__ == "__main__":
    following = threading.Thread(target=follow)
    following.start()
    order("tea")
    closed.set()
    following.join()
"""


@pytest.mark.always
def test_units_that_overlap_while_nobody_changes_the_database_read_what_each_would_alone(desk: Desk) -> None:
    live = desk.reenact("run", "-q", "--", "python", desk.write("closing.py", CLOSING))
    assert live.returncode == 0, live.stderr
    assert verdicts(desk) == ["exact", "exact"], desk.reenact("doctor").stdout


WORKERS = """
import os
import sqlite3
import sys
import reenact

@reenact.tool
def answer(item):
    return item

@reenact.unit
def order(item):
    database = sqlite3.connect("shop.db")
    database.execute("CREATE TABLE IF NOT EXISTS orders (item)")
    (number,) = database.execute("SELECT count(*) FROM orders").fetchone()
    database.execute("INSERT INTO orders VALUES (?)", (answer(item),))
    database.commit()
    database.close()
    return number

def work():
    order("tea")

if __name__ == "__main__":
    ends = [os.pipe() for _ in range(int(sys.argv[1]))]
    pids = []
    for reading, writing in ends:
        if not (pid := os.fork()):
            for _, each in ends:
                os.close(each)
            os.read(reading, 1)
            work()
            os.read(reading, 1)
            sys.exit(0)
        pids.append(pid)
    for pid, (_, writing) in zip(pids, ends):
        os.write(writing, b"g")
        __import__("time").sleep(1.0)
    for pid, (_, writing) in zip(pids, ends):
        os.close(writing)
        os.waitpid(pid, 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.always
@pytest.mark.parametrize(("workers", "asked"), [(1, 0), (2, 3)])
def test_a_server_of_one_worker_has_nobody_beside_it(desk: Desk, workers: int, asked: int) -> None:
    with sqlite3.connect(desk.folder / "shop.db") as database:
        database.execute("CREATE TABLE orders (item)")
    live = desk.reenact("run", "-q", "--", "python", desk.write("workers.py", WORKERS), str(workers))
    assert live.returncode == 0, live.stderr
    assert verdicts(desk) == ["exact"] * workers
    for run in json.loads(desk.reenact("ls", "--json").stdout)["runs"]:
        assert desk.reenact("show", run["id"]).stdout.count("database ") == asked
        done = desk.reenact("replay", run["id"], environ=desk.bare())
        assert "same: " in done.stderr


BESIDE = """
import sqlite3
import sys
import threading
import reenact

ready, stop = threading.Event(), threading.Event()

@reenact.tool
def answer(item):
    return item

@reenact.unit
def order(item):
    database = sqlite3.connect("shop.db")
    (number,) = database.execute("SELECT count(*) FROM orders").fetchone()
    database.execute("INSERT INTO orders VALUES (?)", (answer(item),))
    database.commit()
    database.close()
    return number

def beat():
    database = sqlite3.connect("shop.db")
    if sys.argv[1] == "once":
        database.close()
    ready.set()
    stop.wait()

if __name__ == "__main__":
    beating = threading.Thread(target=beat)
    beating.start()
    ready.wait()
    if sys.argv[1] == "once":
        stop.set()
        beating.join()
    order("tea")
    stop.set()
    beating.join()
"""


@pytest.mark.always
@pytest.mark.parametrize(("beat", "verdict"), [("once", "exact"), ("on", "partial")])
def test_a_thread_of_the_program_s_that_keeps_a_connection_may_change_the_database(
    desk: Desk, beat: str, verdict: str
) -> None:
    with sqlite3.connect(desk.folder / "shop.db") as database:
        database.execute("CREATE TABLE orders (item)")
    live = desk.reenact("run", "-q", "--", "python", desk.write("beside.py", BESIDE), beat)
    assert live.returncode == 0, live.stderr
    assert verdicts(desk) == [verdict]
