"""Units that call nobody and change what later ones read: kept, delivered first, and compared by their answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from desk import Desk

SHOP = """
import httpx, reenact
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

CART, LOOKS = [], 0

@reenact.tool
def priced(items):
    return len(items) * 7

async def health(request):
    return JSONResponse({"ok": True})

async def look(request):
    return JSONResponse({"cart": CART})

async def add(request):
    CART.append(request.query_params["item"])
    return JSONResponse({"size": len(CART)})

async def checkout(request):
    total = priced([*CART])
    CART.clear()
    return JSONResponse({"total": total})

app = Starlette(routes=[Route(f"/{each.__name__}", each) for each in (health, look, add, checkout)])
"""
DRIVER = """
import asyncio, sys
import httpx, shop

async def main():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(shop.app), base_url="http://shop") as client:
        for path in sys.argv[1:]:
            await client.get(path)

asyncio.run(main())
"""


def recorded(desk: Desk, *paths: str, source: str = SHOP) -> list[dict[str, Any]]:
    """Have the shop asked, and give its runs, the oldest first."""
    desk.write("shop.py", source)
    desk.write("driver.py", DRIVER)
    done = desk.reenact("run", "--", "python", "driver.py", *paths)
    assert done.returncode == 0, done.stderr
    listed = json.loads(desk.reenact("ls", "--json", "-n", "0").stdout)["runs"]
    return [each for each in reversed(listed) if each["name"].startswith("GET")]


def replayed(desk: Desk, run: str) -> dict[str, Any]:
    return json.loads(desk.reenact("replay", run, "--json").stdout)


@pytest.mark.always
def test_a_unit_stands_on_those_that_called_nobody(desk: Desk) -> None:
    runs = recorded(desk, "/health", "/add?item=tea", "/look", "/add?item=milk", "/checkout", "/look")
    assert [(each["name"], each["verdict"]) for each in runs] == [
        ("GET /add", "exact"),
        ("GET /add", "exact"),
        ("GET /checkout", "exact"),
    ], "what changes nothing and calls nobody is no run"
    tea, milk, checkout = (each["id"] for each in runs)
    told = replayed(desk, checkout)
    assert told["result"] == "same"
    assert [(each["run"], each["result"]) for each in told["earlier"]] == [(tea, "same"), (milk, "same")]
    assert replayed(desk, milk)["result"] == "same"

    desk.write("shop.py", SHOP.replace('.query_params["item"])', '.query_params["item"].upper())'))
    told = replayed(desk, checkout)
    assert told["result"] == "diverged"
    assert told["divergences"][0]["call"] == "tool priced #2"

    desk.write("shop.py", SHOP.replace('"size": len(CART)', '"size": len(CART) + 1'))
    told = replayed(desk, milk)
    assert told["result"] == "diverged"
    assert replayed(desk, checkout)["result"] == "diverged", "an earlier unit answers something else"


def test_nothing_is_said_where_nothing_is_compared(desk: Desk) -> None:
    (add,) = recorded(desk, "/add?item=tea")
    done = desk.reenact("replay", add["id"], "--json", "--outcome", "ignore")
    assert json.loads(done.stdout)["result"] == "unjudged"


def test_a_fix_that_changes_nothing_any_more_is_seen(desk: Desk) -> None:
    (add,) = recorded(desk, "/add?item=tea")
    desk.write("shop.py", SHOP.replace('    CART.append(request.query_params["item"])\n', ""))
    assert replayed(desk, add["id"])["result"] == "diverged"


def test_no_more_of_them_are_kept_than_are_delivered(desk: Desk) -> None:
    runs = recorded(desk, *(f"/add?item={number}" for number in range(60)))
    assert len(runs) == 50


def test_the_cached_function_of_a_library_is_no_state(desk: Desk) -> None:
    source = SHOP.replace("import httpx", "from urllib.parse import urlsplit\nimport httpx")
    source = source.replace(
        '    return JSONResponse({"cart": CART})',
        '    urlsplit(f"http://shop/{request.query_params}")\n    return JSONResponse({"cart": CART})',
    )
    runs = recorded(desk, "/look?a", "/look?b", "/add?item=tea", source=source)
    assert [each["name"] for each in runs] == ["GET /add"]
