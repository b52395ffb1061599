"""A database of SQLite's that units of one process share: over a connection that stays open, and at the same time."""

from __future__ import annotations

import json
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
def test_each_begins_with_the_database_as_it_found_it_and_what_others_changed_meanwhile_is_said(
    desk: Desk, shop: list[dict[str, Any]]
) -> None:
    assert [run["verdict"] for run in shop] == ["exact", "exact", "partial", "partial"]
    told = desk.reenact("doctor", shop[2]["id"]).stdout
    assert "run: files: shop.db as it was whenever it was read: others may have changed it meanwhile" in told
    done = desk.reenact("replay", shop[1]["id"], environ=desk.bare())
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n"
    assert "wrote as recorded: shop.db" in done.stderr

    desk.write("shop.py", SHOP.replace("(item, number))\n", "(item, number + 1))\n"))
    done = desk.reenact("replay", shop[1]["id"], environ=desk.bare())
    assert "diverged: run: wrote shop.db" in done.stderr
