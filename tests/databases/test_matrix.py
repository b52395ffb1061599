"""Programs of every client, recorded against real servers and replayed with them up, and with them stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from databases.places import Places, servers

pytestmark = pytest.mark.slow

ROWS = {
    "psycopg": ("psycopg", "PG_PORT", ()),
    "psycopg_pools": ("psycopg_pool", "PG_PORT", ()),
    "psycopg_pools, uvloop": ("psycopg_pool uvloop", "PG_PORT", ("uv",)),
    "psycopg2": ("psycopg2", "PG_PORT", ()),
    "asyncpg": ("asyncpg", "PG_PORT", ()),
    "asyncpg, uvloop": ("asyncpg uvloop", "PG_PORT", ("uv",)),
    "pymysql": ("pymysql", "MYSQL_PORT", ()),
    "aiomysql": ("aiomysql", "MYSQL_PORT", ()),
    "aiomysql, uvloop": ("aiomysql uvloop", "MYSQL_PORT", ("uv",)),
    "redis": ("redis", "REDIS_PORT", ()),
    "redis, uvloop": ("redis uvloop", "REDIS_PORT", ("uv",)),
    "pymongo": ("pymongo nx_27017", "MONGO_PORT", ()),
    "elasticsearch": ("elasticsearch aiohttp requests", "ELASTIC_PORT", ()),
    "opensearch": ("opensearchpy aiohttp", "ELASTIC_PORT", ()),
    "chromadb": ("chromadb", "CHROMA_PORT", ()),
    "qdrant": ("qdrant_client", "QDRANT_PORT", ()),
    "sqlalchemy, psycopg": ("sqlalchemy psycopg", "PG_PORT", ("psycopg",)),
    "sqlalchemy, psycopg2": ("sqlalchemy psycopg2", "PG_PORT", ("psycopg2",)),
    "sqlalchemy_mysql, pymysql": ("sqlalchemy pymysql", "MYSQL_PORT", ("pymysql",)),
    "sqlalchemy_mysql, aiomysql": ("sqlalchemy aiomysql", "MYSQL_PORT", ("aiomysql",)),
}
"""What a row of the matrix needs, the server it asks, and the words of its program."""
GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "databases"


@dataclass
class Recorded:
    """A recording, and what was printed."""

    environ: dict[str, str]
    printed: str
    grade: str
    queries: int


def reenact(environ: dict[str, str], *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reenact", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environ, cwd=cwd, check=False, timeout=180)


def record(name: str, places: Places, folder: Path) -> Recorded:
    environ = {**os.environ, **places.environ, "REENACT_STORE": str(folder / name.replace(", ", "-"))}
    program = str(GOLDEN / name.split(",", maxsplit=1)[0] / "program.py")
    done = reenact(environ, "run", "--", sys.executable, program, *ROWS[name][2], cwd=folder)
    assert done.returncode == 0, done.stderr
    run = json.loads(reenact(environ, "show", "last", "--json").stdout)
    queries = sum(call["kind"] in {"database", "retriever"} for call in run["calls"])
    return Recorded(environ, done.stdout, run["run"]["verdict"]["grade"], queries)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Recorded], Places]]:
    folder = tmp_path_factory.mktemp("databases")
    with servers() as places:
        found: dict[str, Recorded] = {}
        for name, (needs, server, _) in ROWS.items():
            if server in places.environ and all(map(find_spec, needs.split())):
                found[name] = record(name, places, folder)
        yield found, places


def replayed(row: Recorded) -> str:
    """Give the word of a replay; its program has to print what it printed, to the byte."""
    done = reenact({**row.environ, "PYTHONUNBUFFERED": "1"}, "replay", "last")
    assert done.stdout == row.printed, done.stderr
    return done.stderr.partition(":")[0]


def test_the_matrix(recorded: tuple[dict[str, Recorded], Places]) -> None:
    rows, places = recorded
    if not rows:
        pytest.skip("no server of Postgres, MariaDB or Redis, or none of their clients, is here")
    assert {name: row.grade for name, row in rows.items()} == dict.fromkeys(rows, "exact")
    assert [name for name, row in rows.items() if row.queries < 30] == []
    before = places.done()
    up = {name: replayed(row) for name, row in rows.items()}
    after = places.done()
    own = {"connections": 1, "commands": 1}  # of asking
    assert {name: count - before[name] - own.get(name, 0) for name, count in after.items()} == dict.fromkeys(before, 0)
    places.stop()
    stopped = {name: replayed(row) for name, row in rows.items()}
    assert [up, stopped] == [dict.fromkeys(rows, "same")] * 2
