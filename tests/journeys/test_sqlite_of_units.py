"""A database of SQLite's that a unit of work shares with others is answered in its replay, statement by statement."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from desk import Desk

SHOP = """
import decimal, hashlib, json, sqlite3, sys, threading
import reenact

sqlite3.register_adapter(decimal.Decimal, str)
sqlite3.register_adapter(list, json.dumps)
sqlite3.register_converter("money", lambda text: decimal.Decimal(text.decode()))
both = threading.Barrier(2)
local = threading.local()

def named(cursor, row):
    return {column[0]: value for column, value in zip(cursor.description, row)}

def connection(factory=None):
    database = sqlite3.connect("shop.db", timeout=30, detect_types=sqlite3.PARSE_DECLTYPES)
    database.execute("PRAGMA foreign_keys = on")
    database.row_factory = factory
    return database

@reenact.tool
def meet(alone):
    return alone or both.wait(30) >= 0

@reenact.unit
def order(item, alone=False):
    said = {}
    database = connection(named)
    said["before"] = database.execute("SELECT count(*) AS n FROM orders").fetchone()
    meet(alone)
    with database:
        made = database.execute("INSERT INTO orders(item, price, tags) VALUES (:item, :price, :tags)",
                                {"item": item, "price": decimal.Decimal("1.50"), "tags": [item, 1]})
    said["made"] = [made.rowcount, made.lastrowid > 0, database.in_transaction]
    several = database.executemany("INSERT INTO lines VALUES (?, ?)", ((item, bytes([n])) for n in range(3)))
    said["several"] = [several.rowcount, database.in_transaction, database.total_changes]
    database.commit()
    try:
        database.execute("INSERT INTO orders(item) VALUES (?)", (item,))
    except sqlite3.IntegrityError as error:
        said["error"] = [str(error), error.sqlite_errorname, type(error).__name__]
    database.rollback()
    try:
        database.execute("SELECT nothing FROM nowhere")
    except sqlite3.OperationalError as error:
        said["typo"] = str(error)
    meet(alone)
    cursor = database.cursor()
    cursor.execute("SELECT * FROM lines WHERE item = ? ORDER BY n", (item,))
    said["columns"] = [column[0] for column in cursor.description]
    said["first"] = [row["n"].hex() for row in (cursor.fetchone(), *cursor.fetchmany(1), *cursor)]
    said["after"] = cursor.fetchone()
    plain = connection(sqlite3.Row)
    row = plain.execute("SELECT id, item, price, at FROM orders ORDER BY price, id").fetchall()[-1]
    said["last"] = [row.keys(), type(row["price"]).__name__, str(row["price"]), type(row).__name__]
    said["all"] = sorted(each[0] for each in plain.execute("SELECT item FROM orders"))
    said["one"] = next(iter(plain.execute("SELECT id FROM orders")))[0] > 0
    plain.executescript("CREATE TABLE IF NOT EXISTS seen (item); INSERT INTO seen VALUES ('" + item + "');")
    meet(alone)
    return json.dumps(said, default=str)

if __name__ == "__main__":
    database = connection()
    database.executescript('''
        CREATE TABLE orders (id INTEGER PRIMARY KEY, item UNIQUE, price money, tags, at DEFAULT current_timestamp);
        CREATE TABLE lines (item, n); CREATE TABLE padding (text);
    ''')
    if len(sys.argv) > 1:
        padding = [(hashlib.sha256(b"%d" % n).hexdigest(),) for n in range(6000)]
        database.executemany("INSERT INTO padding VALUES (?)", padding)
    database.commit()
    database.close()
    if len(sys.argv) > 1:
        order("pan", True)
    else:
        together = [threading.Thread(target=order, args=(item,)) for item in ("cup", "jar")]
        for each in together:
            each.start()
        for each in together:
            each.join()
"""


def _orders(desk: Desk) -> list[dict[str, Any]]:
    listed = json.loads(desk.reenact("ls", "--json").stdout)["runs"]
    return [run for run in reversed(listed) if run["name"] == "order"]


def _state(desk: Desk) -> dict[str, str]:
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in desk.folder.glob("shop.db*")}


@pytest.fixture
def shop(desk: Desk, request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    arguments = getattr(request, "param", ())
    live = desk.reenact("run", "-q", "--", "python", desk.write("shop.py", SHOP), *arguments)
    assert live.returncode == 0, live.stderr
    return _orders(desk)


@pytest.mark.always
def test_each_is_answered_as_it_was_recorded(desk: Desk, shop: list[dict[str, Any]]) -> None:
    assert [run["verdict"] for run in shop] == ["exact", "exact"]
    before = _state(desk)
    for run in shop:
        told = desk.reenact("show", run["id"]).stdout
        assert "database INSERT orders" in told
        assert "database COMMIT shop.db" in told
        assert "PRAGMA" not in told
        done = desk.reenact("replay", run["id"], environ=desk.bare())
        assert done.returncode == 0, done.stderr
        assert "same: 13 database, 3 tool calls answered" in done.stderr
    assert _state(desk) == before


@pytest.mark.parametrize("shop", [("large",)], indirect=True)
def test_what_its_process_asks_at_its_start_is_asked_of_the_copy(desk: Desk, shop: list[dict[str, Any]]) -> None:
    changed = desk.folder / "shop.py"
    lines = (
        'database = sqlite3.connect("shop.db")\nassert database.execute("SELECT count(*) FROM padding").fetchone()[0]'
    )
    changed.write_text(changed.read_text().replace("\n@reenact.tool", f"\n{lines}\n\n@reenact.tool"))
    done = desk.reenact("replay", shop[0]["id"], environ=desk.bare())
    assert done.returncode == 0, done.stderr
    assert "same: 13 database, 3 tool calls answered" in done.stderr


@pytest.mark.always
@pytest.mark.parametrize("shop", [("large",)], indirect=True)
def test_a_database_that_is_too_large_to_be_kept_is_answered(desk: Desk, shop: list[dict[str, Any]]) -> None:
    assert [run["verdict"] for run in shop] == ["exact"]
    (desk.folder / "shop.db").unlink()
    done = desk.reenact("replay", shop[0]["id"], environ=desk.bare())
    assert done.returncode == 0, done.stderr
    assert "same: 13 database, 3 tool calls answered" in done.stderr


CHANGES = {
    "another value": ('Decimal("1.50")', 'Decimal("2.50")', "INSERT orders"),
    "another question": ("ORDER BY n", "ORDER BY n DESC", "SELECT lines"),
    "one row less": ("range(3)", "range(2)", "INSERT lines"),
    "no commit": ("    database.commit()\n    try", "    try", "COMMIT shop.db"),
    "no transaction": ("    with database:\n", "    if True:\n", "COMMIT shop.db"),
    "a commit in place of a rollback": ("database.rollback()", "database.commit()", "ROLLBACK shop.db"),
    "rows that were not read": (
        'next(iter(plain.execute("SELECT id FROM orders")))[0]',
        'len(plain.execute("SELECT id FROM orders").fetchall())',
        "SELECT orders",
    ),
    "another answer": ('said["one"]', 'said["two"]', "result"),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_what_it_asks_otherwise_is_a_divergence(desk: Desk, shop: list[dict[str, Any]], change: str) -> None:
    before, after, place = CHANGES[change]
    assert SHOP.count(before) == 1
    desk.write("shop.py", SHOP.replace(before, after))
    state = _state(desk)
    done = desk.reenact("replay", shop[0]["id"], environ=desk.bare())
    assert done.returncode == 1, done.stderr
    assert place in done.stderr.partition("diverged: ")[2].partition("\n")[0]
    assert _state(desk) == state


PAST = """
import sqlite3, sys, threading
import reenact

both = threading.Barrier(2)

@reenact.tool
def meet():
    return both.wait(30) >= 0

@reenact.unit
def order(item):
    database = sqlite3.connect("shop.db", timeout=30)
    number = database.execute("SELECT count(*) FROM orders").fetchone()
    meet()
    database.execute("INSERT INTO orders VALUES (?)", (item,))
    database.commit()
    if sys.argv[1] == "backup":
        with sqlite3.connect(":memory:") as copy:
            database.backup(copy)
            number = copy.execute("SELECT count(*) FROM orders").fetchone()
    elif sys.argv[1] == "attach":
        database.execute("ATTACH 'other.db' AS other")
        number = database.execute("SELECT count(*) FROM other.orders").fetchone()
    elif sys.argv[1] == "much":
        number = len(database.execute("SELECT item, hex(zeroblob(2000000)) FROM orders").fetchall())
    meet()
    return number

if __name__ == "__main__":
    for name in ("shop.db", "other.db"):
        with sqlite3.connect(name) as database:
            database.execute("CREATE TABLE orders (item)")
    together = [threading.Thread(target=order, args=(item,)) for item in ("cup", "jar")]
    for each in together:
        each.start()
    for each in together:
        each.join()
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["backup", "attach", "much"])
def test_what_is_not_known_whole_is_partial(desk: Desk, way: str) -> None:
    live = desk.reenact("run", "-q", "--", "python", desk.write("past.py", PAST), way)
    assert live.returncode == 0, live.stderr
    orders = _orders(desk)
    assert [run["verdict"] for run in orders] == ["partial", "partial"]
    told = desk.reenact("doctor", orders[0]["id"]).stdout
    assert "run: files: shop.db as it was whenever it was read: others may have changed it meanwhile" in told


STREAM = """
import sqlite3, sys, threading
import reenact

both = threading.Barrier(2)
drawn = 0

def rows(count, item):
    global drawn
    for number in range(count):
        drawn += 1
        yield (item, number)

class Named(dict):
    def __missing__(self, name):
        return name

@reenact.tool
def meet():
    return both.wait(60) >= 0

@reenact.unit
def order(item, folder):
    database = sqlite3.connect(folder + "/shop.db", timeout=60)
    before = database.execute("SELECT count(*) FROM lines").fetchone()
    meet()
    with database:
        database.executemany("INSERT INTO lines VALUES (?, ?)", rows(3, item))
        database.execute("INSERT INTO lines VALUES (:item, :number)", Named(item=item, number=7))
    meet()
    own = sqlite3.connect(item + "/shop.db")
    own.execute("INSERT INTO lines VALUES (?, 1)", (item,))
    own.commit()
    return before, own.execute("SELECT * FROM lines").fetchall()

if __name__ == "__main__":
    import os
    for folder in ("all", "cup", "jar"):
        os.makedirs(folder, exist_ok=True)
        with sqlite3.connect(folder + "/shop.db") as database:
            database.execute("CREATE TABLE lines (item, number)")
        database.close()
    database = sqlite3.connect("all/shop.db")
    with database:
        marks = []
        def told():
            for row in rows(100_000, "many"):
                marks.append(database.total_changes)
                yield row
        database.executemany("INSERT INTO lines VALUES (?, ?)", told())
        print("as they come", marks[-1] > 90_000)
        database.execute("DELETE FROM lines")
    database.close()
    together = [threading.Thread(target=order, args=(item, "all")) for item in ("cup", "jar")]
    for each in together:
        each.start()
    for each in together:
        each.join()
"""


@pytest.mark.always
def test_files_of_one_name_are_told_apart_and_rows_are_taken_as_they_come(desk: Desk) -> None:
    """The database that both orders write is answered, the one that each has to itself is copied."""
    live = desk.reenact("run", "-q", "--", "python", desk.write("stream.py", STREAM))
    assert (live.returncode, live.stdout) == (0, "as they come True\n"), live.stderr
    orders = _orders(desk)
    assert [run["verdict"] for run in orders] == ["exact", "exact"]
    for run in orders:
        done = desk.reenact("replay", run["id"], environ=desk.bare())
        assert done.returncode == 0, done.stderr
        assert "same: 4 database, 2 tool calls answered" in done.stderr
        assert "/shop.db" in done.stderr.partition("wrote as recorded: ")[2]


LARGE = """
import hashlib, sqlite3
import reenact

@reenact.tool
def weight(item):
    return len(item)

@reenact.unit
def order(item):
    database = sqlite3.connect("shop.db")
    database.execute("SELECT hex(zeroblob(2000000))").fetchone()  # more than is kept
    database.execute("INSERT INTO orders VALUES (?, ?)", (item, weight(item)))
    database.commit()

if __name__ == "__main__":
    with sqlite3.connect("shop.db") as database:
        database.execute("CREATE TABLE orders (item, weight)")
        rows = [(hashlib.sha256(b"%d" % n).hexdigest(), n) for n in range(4000)]
        database.executemany("INSERT INTO orders VALUES (?, ?)", rows)
    database.close()
    with open("shop.db", "rb") as source, open("before.db", "wb") as target:
        target.write(source.read())
    order("cup")
"""


@pytest.mark.always
def test_a_file_is_compared_where_its_statements_are_not_known(desk: Desk) -> None:
    desk.write("large.py", LARGE)
    live = desk.reenact("run", "-q", "--", "python", "large.py")
    assert live.returncode == 0, live.stderr
    (run,) = _orders(desk)
    assert run["verdict"] == "partial"
    (desk.folder / "before.db").replace(desk.folder / "shop.db")
    changed = desk.folder / "large.py"
    changed.write_text(changed.read_text().replace("(item, weight(item))", '("jar", weight(item))'))
    done = desk.reenact("replay", run["id"], environ=desk.bare())
    assert done.returncode == 1, done.stderr
    assert "wrote shop.db" in done.stderr.partition("diverged: ")[2]
