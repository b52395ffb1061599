"""A service with a pool, an engine and a cache, opened at start-up: recorded once, each request replayed by itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError

import pytest

from databases.places import servers
from escapes.servers import free_port, meets

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).resolve().parent.parent / "golden" / "databases" / "service"
USERS = [*((f"user{number}", number) for number in range(6)), ("eve", 13)]


@pytest.mark.skipif(
    not all(map(find_spec, ("fastapi", "sqlalchemy", "asyncpg", "redis", "uvloop"))), reason="a library is not here"
)
def test_each_request_of_a_service_is_replayed_while_its_servers_are_stopped(tmp_path: Path) -> None:
    with servers() as places:
        if {"PG_PORT", "REDIS_PORT"} - places.environ.keys():
            pytest.skip("no Postgres, or no Redis, is here")
        environ = {**os.environ, **places.environ, "REENACT_STORE": str(tmp_path / "store")}
        port = free_port()
        words = ["run", "-q", "--", sys.executable, "-m", "uvicorn", "app:app", "--port", str(port), "--loop", "uvloop"]
        served = subprocess.Popen([sys.executable, "-m", "reenact", *words], env=environ, cwd=FOLDER, process_group=0)
        try:
            assert meets(("127.0.0.1", port))

            def ask(user: tuple[str, int]) -> None:
                with suppress(HTTPError), urllib.request.urlopen(f"http://127.0.0.1:{port}/order/{user[0]}/{user[1]}"):
                    pass

            with ThreadPoolExecutor(len(USERS)) as pool:
                list(pool.map(ask, USERS))
        finally:
            os.killpg(served.pid, signal.SIGINT)
            served.wait(60)
        places.stop()
    listed = subprocess.run(
        [sys.executable, "-m", "reenact", "ls", "--json"], env=environ, capture_output=True, text=True, check=True
    )
    units = [run for run in json.loads(listed.stdout)["runs"] if run["name"].startswith("GET ")]
    assert [run["verdict"] for run in units] == ["exact"] * len(USERS)
    for run in units:
        command = [sys.executable, "-m", "reenact", "replay", run["id"], "--json"]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, cwd=FOLDER, check=False)
        told = json.loads(done.stdout)
        assert (told["result"], told["divergences"], told["live"]) == ("same", [], 0), done.stderr
