"""A database of SQLite's that a script uses is answered in its replay, where its file is too large to be kept."""

from __future__ import annotations

import hashlib
import sqlite3

import pytest

from desk import Desk

_BEGIN = """
import asyncio, hashlib, os, secrets, shutil, sqlite3, sys, threading
import reenact

@reenact.tool
def weigh(item):
    return len(item)

"""
SCRIPTS = {
    "reads and writes": """
if not os.path.exists("shop.db"):
    sys.exit("there is no shop")
database = sqlite3.connect("shop.db")
database.row_factory = sqlite3.Row
database.execute("PRAGMA foreign_keys = on")
row = database.execute("SELECT id, item FROM orders WHERE id = ?", (7,)).fetchone()
with database:
    made = database.execute("INSERT INTO lines VALUES (?, ?)", (row["item"], weigh(row["item"])))
print(row["id"], row["item"][:6], made.rowcount, database.total_changes, database.in_transaction)
try:
    database.execute("INSERT INTO orders(item) VALUES (?)", (row["item"],))
except sqlite3.IntegrityError as error:
    print(error)
database.rollback()
print(database.execute("SELECT count(*) FROM lines").fetchone()[0])
""",
    "what the file holds": """
database = sqlite3.connect("shop.db")
if database.execute("PRAGMA user_version").fetchone()[0] < 1:
    database.execute("ALTER TABLE lines ADD COLUMN note TEXT DEFAULT 'none'")
    database.execute("PRAGMA main.user_version = 1")
    database.commit()
database.execute("INSERT INTO lines(item) VALUES ('cup')")
database.commit()
print([row[1] for row in database.execute("PRAGMA table_info(lines)")], weigh("cup"))
print(database.execute("SELECT note FROM lines").fetchall())
""",
    "what is set up": """
database = sqlite3.connect("shop.db")
database.execute("CREATE TABLE IF NOT EXISTS notes(note TEXT)")
database.execute("CREATE INDEX IF NOT EXISTS by_item ON orders(item)")
database.executescript("CREATE VIEW IF NOT EXISTS dear AS SELECT * FROM orders WHERE price > 3;"
                       "CREATE TRIGGER IF NOT EXISTS made AFTER INSERT ON lines BEGIN SELECT 1; END")
print(database.execute("SELECT count(*) FROM dear").fetchone()[0] > 0, weigh("cup"))
""",
    "only read": """
database = sqlite3.connect("file:" + os.getcwd() + "/sh%6fp.db?mode=ro", uri=True)
print(database.execute("SELECT sum(price) FROM orders").fetchone()[0], weigh("cup"))
try:
    database.execute("DELETE FROM orders")
except sqlite3.OperationalError as error:
    print(error)
""",
    "tasks over one connection": """
from concurrent.futures import ThreadPoolExecutor
database, one = sqlite3.connect("shop.db", check_same_thread=False), ThreadPoolExecutor(1)
async def order(number):
    run = asyncio.get_running_loop().run_in_executor
    await run(one, database.execute, "INSERT INTO lines VALUES (?, 1)", (number,))
    await run(one, database.commit)
    return weigh("x" * number)
async def main():
    return await asyncio.gather(*map(order, range(4)))
print(asyncio.run(main()), database.execute("SELECT count(*) FROM lines").fetchone()[0])
""",
    "threads": """
sums = {}
def work(number):
    database = sqlite3.connect("shop.db", timeout=60)
    with database:
        database.execute("INSERT INTO lines VALUES ('thread', ?)", (number,))
    sums[number] = database.execute("SELECT sum(price) FROM orders WHERE id % 3 = ?", (number,)).fetchone()[0]
    database.close()
threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(sorted(sums.items()), weigh("cup"))
""",
    "a library's own names": """
import savepoints
database = sqlite3.connect("shop.db", isolation_level=None)
database.execute("BEGIN")
with savepoints.savepoint(database):
    database.execute("INSERT INTO lines VALUES ('cup', 1)")
database.execute("COMMIT")
print(weigh("cup"), database.execute("SELECT count(*) FROM lines").fetchone()[0])
""",
}
_LIBRARY = """
import contextlib, secrets

@contextlib.contextmanager
def savepoint(database):
    name = "s" + secrets.token_hex(16)
    database.execute("SAVEPOINT " + name)
    yield
    database.execute("RELEASE " + name)
"""


def _shop(desk: Desk, price: int) -> None:
    database = sqlite3.connect(desk.folder / "shop.db")
    database.executescript("""
        DROP TABLE IF EXISTS orders; DROP TABLE IF EXISTS lines;
        CREATE TABLE orders (id INTEGER PRIMARY KEY, item UNIQUE, price); CREATE TABLE lines (item, number);
    """)
    rows = [(hashlib.sha256(b"%d" % number).hexdigest(), price) for number in range(4000)]
    database.executemany("INSERT INTO orders(item, price) VALUES (?, ?)", rows)
    database.commit()
    database.close()


def _verdict(desk: Desk) -> str:
    return desk.reenact("ls").stdout.splitlines()[1].split()[-1]


def _digest(desk: Desk) -> str:
    return hashlib.sha256((desk.folder / "shop.db").read_bytes()).hexdigest()


def _record(desk: Desk, program: str) -> str:
    """Record a script over a shop, and give what it printed."""
    _shop(desk, 3)
    desk.cold = "import savepoints" in program  # a warm interpreter knew its packages before
    installed = desk.folder / "site-packages"
    installed.mkdir()
    (installed / "savepoints.py").write_text(_LIBRARY)
    desk.environ["PYTHONPATH"] = str(installed)
    live = desk.reenact("run", "-q", "--", "python", desk.write("script.py", _BEGIN + program))
    assert live.returncode == 0, live.stderr
    return live.stdout


@pytest.mark.always
@pytest.mark.parametrize("program", SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_over_a_large_database_is_answered(desk: Desk, program: str) -> None:
    printed = _record(desk, program)
    assert _verdict(desk) == "exact"
    _shop(desk, 5)
    before = _digest(desk)
    around = desk.bare() | {"PYTHONPATH": desk.environ["PYTHONPATH"]}
    done = desk.reenact("replay", "last", environ=around)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert _digest(desk) == before
    (desk.folder / "shop.db").unlink()
    done = desk.reenact("replay", "last", environ=around)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert not (desk.folder / "shop.db").exists()


CHANGES = {
    "another question": ("id = ?", "id < ?", "SELECT orders"),
    "another value": ("weigh(row", "1 + weigh(row", "INSERT lines"),
    "no transaction": ("with database:", "if True:", "COMMIT shop.db"),
    "a commit in place of a rollback": ("database.rollback()", "database.commit()", "ROLLBACK shop.db"),
    "an answer that is passed over": ("database.rollback()", "sys.exit()", "ROLLBACK shop.db"),
}


@pytest.mark.parametrize(("old", "new", "place"), CHANGES.values(), ids=CHANGES)
def test_a_change_of_the_script_diverges_at_its_place(desk: Desk, old: str, new: str, place: str) -> None:
    _record(desk, SCRIPTS["reads and writes"])
    script = desk.folder / "script.py"
    assert old in script.read_text()
    script.write_text(script.read_text().replace(old, new))
    done = desk.reenact("replay", "last", environ=desk.bare())
    assert done.returncode == 1, done.stderr
    assert place in done.stderr.partition("diverged: ")[2].partition("\n")[0]


IN_A_SCRIPT = """
database = sqlite3.connect("shop.db", isolation_level=None)
database.executescript("SELECT 1; BEGIN; INSERT INTO lines VALUES ('cup', 1);")
print(database.in_transaction, weigh("cup"))
database.commit()
"""


def test_a_transaction_that_a_script_of_sql_opens_is_to_be_ended(desk: Desk) -> None:
    _record(desk, IN_A_SCRIPT)
    assert _verdict(desk) == "exact"
    done = desk.reenact("replay", "last", environ=desk.bare())
    assert done.returncode == 0, done.stderr
    script = desk.folder / "script.py"
    script.write_text(script.read_text().replace("database.commit()", ""))
    done = desk.reenact("replay", "last", environ=desk.bare())
    assert done.returncode == 1, done.stderr
    assert "COMMIT shop.db" in done.stderr.partition("diverged: ")[2].partition("\n")[0]


PAST = {
    "a copy of its file": """
shutil.copy("shop.db", "shop.bak")
database = sqlite3.connect("shop.db")
print(database.execute("SELECT sum(price) FROM orders").fetchone(), weigh("cup"))
""",
    "its bytes": """
database = sqlite3.connect("shop.db")
print(database.execute("SELECT sum(price) FROM orders").fetchone(), weigh("cup"))
print(hashlib.sha256(open("shop.db", "rb").read()).hexdigest())
""",
    "another connection's eyes": """
database = sqlite3.connect(":memory:")
database.execute("ATTACH DATABASE ? AS shop", ("shop.db",))
print(database.execute("SELECT sum(price) FROM shop.orders").fetchone(), weigh("cup"))
""",
    "more than is kept": """
database = sqlite3.connect("shop.db")
print(len(database.execute("SELECT hex(zeroblob(1200000))").fetchone()[0]), weigh("cup"))
""",
}


@pytest.mark.parametrize("program", PAST.values(), ids=PAST)
def test_what_comes_to_the_file_otherwise_is_not_exact(desk: Desk, program: str) -> None:
    _record(desk, program)
    assert _verdict(desk) == "partial"


@pytest.mark.always
def test_a_small_database_that_is_only_read_is_put_back(desk: Desk) -> None:
    with sqlite3.connect(desk.folder / "shop.db") as database:
        database.executescript("CREATE TABLE orders (price); INSERT INTO orders VALUES (7);")
    database.close()
    live = desk.reenact("run", "-q", "--", "python", desk.write("script.py", _BEGIN + SCRIPTS["only read"]))
    assert (live.returncode, live.stdout.split()[0]) == (0, "7"), live.stderr
    assert _verdict(desk) == "exact"
    (desk.folder / "shop.db").unlink()
    done = desk.reenact("replay", "last", environ=desk.bare())
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
    assert "wrote" not in desk.reenact("show", "last").stdout
