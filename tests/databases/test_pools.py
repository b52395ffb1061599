"""Pools of connections under more tasks than they hold: who has one when comes again, as a program prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from databases.places import servers
from desk import Desk

pytestmark = pytest.mark.slow

POOLS = {
    "asyncpg": """
import asyncpg

async def main():
    pool = await asyncpg.create_pool(host="127.0.0.1", port=PORT, user="u", database="postgres", min_size=1, max_size=5)
    async def work(number):
        async with pool.acquire() as connection:
            print("has one", number)
            print("got", number, await connection.fetchval("select $1::int * 2", number))
    await asyncio.gather(*map(work, range(20)))
    await pool.close()
""",
    "psycopg_pool": """
from psycopg_pool import AsyncConnectionPool

async def main():
    about = f"host=127.0.0.1 port={PORT} user=u dbname=postgres"
    async with AsyncConnectionPool(about, min_size=1, max_size=5, open=False) as pool:
        async def work(number):
            async with pool.connection() as connection:
                print("has one", number)
                cursor = await connection.execute("select %s::int * 2", (number,))
                print("got", number, await cursor.fetchone())
        await asyncio.gather(*map(work, range(20)))
""",
    "sqlalchemy": """
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

async def main():
    engine = create_async_engine(f"postgresql+asyncpg://u@127.0.0.1:{PORT}/postgres", pool_size=3, max_overflow=0)
    async def work(number):
        async with engine.connect() as connection:
            print("has one", number)
            result = await connection.execute(text("select cast(:number as int) * 2"), {"number": number})
            print("got", number, result.scalar())
    await asyncio.gather(*map(work, range(12)))
    await engine.dispose()
""",
}
HEAD = 'import asyncio, os\n\nPORT = int(os.environ["PG_PORT"])\n'
REPLAYS = 3


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    """Give the port of a Postgres."""
    with servers() as places:
        if "PG_PORT" not in places.environ:
            pytest.skip("no Postgres is installed here")
        yield places.environ["PG_PORT"]


@pytest.mark.parametrize("library", POOLS)
def test_who_has_a_connection_comes_again(tmp_path: Path, port: str, library: str) -> None:
    pytest.importorskip(library)
    desk = Desk(tmp_path)
    desk.write("agent.py", HEAD + POOLS[library] + "\nasyncio.run(main())\n")
    desk.environ["PG_PORT"] = port
    live = desk.reenact("run", "--", sys.executable, "agent.py")
    assert live.returncode == 0, live.stderr
    assert "replayable: exact" in live.stderr
    for _ in range(REPLAYS):
        done = desk.reenact("replay", "last")
        assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
