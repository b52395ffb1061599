"""Services that declare nothing, recorded once: one of fifty orders is replayed with every server stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from databases.places import Places, servers
from escapes.servers import free_port, meets

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(find_spec, ("fastapi", "sqlalchemy", "asyncpg", "redis", "uvloop"))), reason="a library is not here"
    ),
]

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "databases"
UNLUCKY = 17
BUG = "if cents < 1000 else cents * rate "


def reenact(environ: dict[str, str], *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reenact", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environ, cwd=cwd, check=False, timeout=180)


def sql(places: Places, statement: str) -> str:
    where = f"host=127.0.0.1 port={places.environ['PG_PORT']} user=u dbname=postgres"
    return subprocess.run(["psql", "-qAt", where, "-c", statement], capture_output=True, text=True, check=True).stdout


def commanded(places: Places, *lines: str) -> bytes:
    with socket.create_connection(("127.0.0.1", places.redis_port)) as met:
        met.sendall("".join(f"{line}\r\n" for line in lines).encode())
        time.sleep(0.2)
        return met.recv(65536)


def needed(places: Places) -> None:
    if {"PG_PORT", "REDIS_PORT"} - places.environ.keys():
        pytest.skip("no Postgres, or no Redis, is here")


def ask_at_once(port: int) -> list[dict[str, Any]]:
    def ask(number: int) -> dict[str, Any]:
        cents = 1300 if number == UNLUCKY else 100 + number
        url = f"http://127.0.0.1:{port}/orders/u{number}?cents={cents}"
        asked = urllib.request.Request(url, method="POST", headers={"x-user": f"u{number}"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)

    with ThreadPoolExecutor(50) as pool:
        return list(pool.map(ask, range(50)))


def test_a_web_service_replays_the_order_of_the_one_who_met_the_bug(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(GOLDEN / "shop", project)
    with servers() as places:
        needed(places)
        settings = {"REENACT_STORE": str(project / ".reenact"), "REENACT_USER_HEADER": "x-user"}
        environ, port = {**os.environ, **places.environ, **settings}, free_port()
        words = ["uvicorn", "shop:app", "--port", str(port), "--loop", "uvloop", "--log-level", "warning"]
        command = [sys.executable, "-m", "reenact", "run", "-q", "--", sys.executable, "-m", *words]
        served = subprocess.Popen(command, env=environ, cwd=project, process_group=0)
        try:
            assert any(meets(("127.0.0.1", port)) for _ in range(3))
            seen = ask_at_once(port)
        finally:
            os.killpg(served.pid, signal.SIGINT)
            served.wait(60)
        assert sql(places, "SELECT count(*) FROM orders").strip() == "50"
        listed = json.loads(reenact(environ, "ls", "--json", "-n", "0", cwd=project).stdout)["runs"]
        verdicts = Counter((run["name"].startswith("POST "), run["verdict"]) for run in listed)
        assert verdicts == {(True, "exact"): 50, (False, "partial"): 1}
        [hers] = json.loads(reenact(environ, "ls", "--json", "--user", f"u{UNLUCKY}", cwd=project).stdout)["runs"]
        before = places.done()
        up = reenact(environ, "replay", hers["id"], cwd=project)
        assert up.returncode == 0, up.stderr
        own = {"connections": 1, "commands": 1}  # of asking
        assert {
            name: count - before[name] - own.get(name, 0) for name, count in places.done().items()
        } == dict.fromkeys(before, 0)
        places.stop()
    done = reenact(environ, "replay", hers["id"], cwd=project)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.partition("\n\n")[2].splitlines()[0]) == seen[UNLUCKY]
    code = (project / "shop.py").read_text()
    assert code.count(BUG) == 1
    (project / "shop.py").write_text(code.replace(BUG, "if cents < 1000 else cents * rate // 100 "))
    fixed = reenact(environ, "replay", hers["id"], cwd=project)
    assert fixed.returncode == 1
    assert "diverged" in fixed.stderr


def test_a_queue_is_worked_through_again(tmp_path: Path) -> None:
    with servers() as places:
        needed(places)
        environ = {**os.environ, **places.environ, "REENACT_STORE": str(tmp_path / "store")}
        jobs = [json.dumps({"who": f"u{number % 7}", "cents": number}) for number in range(50)]
        commanded(places, *(f"RPUSH jobs '{job}'" for job in jobs))
        program = str(GOLDEN / "jobs" / "program.py")
        recorded = reenact(environ, "run", "--", sys.executable, program, cwd=tmp_path)
        assert recorded.returncode == 0, recorded.stderr
        assert "replayable: exact" in recorded.stderr
        assert len(recorded.stdout.splitlines()) == 50
        up = reenact(environ, "replay", "last", cwd=tmp_path)
        assert (sql(places, "SELECT count(*) FROM jobs").strip(), commanded(places, "LLEN done")) == ("50", b":50\r\n")
        places.stop()
    stopped = reenact(environ, "replay", "last", cwd=tmp_path)
    for done in (up, stopped):
        assert done.returncode == 0, done.stderr
        assert done.stdout == recorded.stdout
        assert done.stderr.startswith("same: ")
