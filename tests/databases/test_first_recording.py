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
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
SETS = '    cursor.execute("SET statement_timeout = 5000")\n'
FACTOR = "if cents < 1000 else cents + cents * 500"


def reenact(environ: dict[str, str], *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reenact", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environ, cwd=cwd, check=False, timeout=180)


def code_of_suite(environ: dict[str, str], project: Path) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "tests"]
    return subprocess.run(command, capture_output=True, env=environ, cwd=project, check=False, timeout=180).returncode


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


def ask_at_once(url: str, bodies: list[Any]) -> list[dict[str, Any]]:
    """Have as many users as there are bodies ask at the same time, each for itself: `§` in the URL is the user."""

    def ask(number: int) -> dict[str, Any]:
        headers = {"x-user": f"u{number}", "content-type": "application/json"}
        body = json.dumps(bodies[number]).encode()
        asked = urllib.request.Request(url.replace("§", f"u{number}"), data=body, method="POST", headers=headers)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.load(answer)

    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(ask, range(len(bodies))))


@contextmanager
def recorded(environ: dict[str, str], *words: str, cwd: Path, stops: int = signal.SIGTERM) -> Generator[None]:
    """Have a program of Python's recorded while the block runs."""
    command = [sys.executable, "-m", "reenact", "run", "-q", "--", sys.executable, "-m", *words]
    served = subprocess.Popen(command, env=environ, cwd=cwd, process_group=0)
    try:
        yield
    finally:
        os.killpg(served.pid, signal.SIGINT) if stops == signal.SIGINT else os.kill(served.pid, stops)
        served.wait(60)


def verdicts_of(environ: dict[str, str], cwd: Path) -> Counter[tuple[str, str]]:
    listed = json.loads(reenact(environ, "ls", "--json", "-n", "0", cwd=cwd).stdout)["runs"]
    return Counter((run["name"].partition(" ")[0], run["verdict"]) for run in listed)


def runs_of(environ: dict[str, str], cwd: Path, *words: str) -> list[dict[str, Any]]:
    return json.loads(reenact(environ, "ls", "--json", *words, cwd=cwd).stdout)["runs"]


def test_a_web_service_replays_the_order_of_the_one_who_met_the_bug(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(GOLDEN / "shop", project)
    with servers() as places:
        needed(places)
        settings = {"REENACT_STORE": str(project / ".reenact"), "REENACT_USER_HEADER": "x-user"}
        environ, port = {**os.environ, **places.environ, **settings}, free_port()
        words = ["uvicorn", "shop:app", "--port", str(port), "--loop", "uvloop", "--log-level", "warning"]
        cents = [1300 if number == UNLUCKY else 100 + number for number in range(50)]
        with recorded(environ, *words, cwd=project, stops=signal.SIGINT):
            assert any(meets(("127.0.0.1", port)) for _ in range(3))
            seen = ask_at_once(f"http://127.0.0.1:{port}/orders/§", cents)
        assert sql(places, "SELECT count(*) FROM orders").strip() == "50"
        assert verdicts_of(environ, project) == {("POST", "exact"): 50, ("__main__.py", "partial"): 1}
        [hers] = runs_of(environ, project, "--user", f"u{UNLUCKY}")
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


@pytest.mark.skipif(not all(map(find_spec, ("django", "celery", "gunicorn"))), reason="a library is not here")
def test_a_web_site_and_its_worker_replay_the_bill_of_the_one_who_met_the_bug(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(GOLDEN / "billing", project)
    with servers() as places:
        needed(places)
        sql(places, "CREATE TABLE invoices (id bigserial PRIMARY KEY, who text, cents int, at timestamptz, paid bool)")
        settings = {"REENACT_STORE": str(project / ".reenact"), "REENACT_USER_HEADER": "x-user"}
        environ, port = {**os.environ, **places.environ, **settings}, free_port()
        site = ["gunicorn", "billing:application", "-b", f"127.0.0.1:{port}", "-k", "gthread", "--threads", "8"]
        worker = ["celery", "-A", "billing:celery", "worker", "--pool", "prefork", "-c", "2", "--loglevel", "warning"]
        cents = [{"cents": 1300 if number == UNLUCKY else 100 + number} for number in range(50)]
        with recorded(environ, *site, cwd=project), recorded(environ, *worker, cwd=project):
            assert any(meets(("127.0.0.1", port)) for _ in range(6))
            seen = ask_at_once(f"http://127.0.0.1:{port}/bill/§", cents)
            for _ in range(200):
                time.sleep(0.2)
                if sql(places, "SELECT count(*) FROM invoices WHERE paid").strip() == "50":
                    break
        verdicts = verdicts_of(environ, project)
        assert {each: verdicts[each] for each in (("POST", "exact"), ("collect", "exact"))} == dict.fromkeys(
            (("POST", "exact"), ("collect", "exact")), 50
        )
        [hers] = runs_of(environ, project, "--user", f"u{UNLUCKY}")
        before = places.done()["statements"]
        assert reenact(environ, "replay", hers["id"], cwd=project).returncode == 0
        assert places.done()["statements"] == before
        places.stop()
    done = reenact(environ, "replay", hers["id"], cwd=project)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.partition("\n\n")[2].splitlines()[0]) == seen[UNLUCKY]
    for each in [run for run in runs_of(environ, project, "-n", "0") if run["name"] == "collect"][:5]:
        collected = reenact(environ, "replay", each["id"], cwd=project)
        assert collected.returncode == 0, collected.stderr
        assert collected.stdout.startswith("collected u")
    promoted = reenact(environ, "promote", hers["id"], "-o", "tests", cwd=project)
    assert promoted.returncode == 0, promoted.stderr
    assert code_of_suite(environ, project) == 0
    code = (project / "billing.py").read_text()
    assert code.count(FACTOR) == 1
    (project / "billing.py").write_text(code.replace(FACTOR, "if cents < 1000 else cents + cents // 2"))
    fixed = reenact(environ, "replay", hers["id"], cwd=project)
    assert fixed.returncode == 1
    assert "diverged: database INSERT invoices" in fixed.stderr
    assert code_of_suite(environ, project) == 1


@pytest.mark.parametrize(
    ("name", "driver"),
    [("counter", "psycopg2"), ("counter", "psycopg"), ("ledger", "psycopg"), ("ledger", "asyncpg")],
)
@pytest.mark.skipif(not all(map(find_spec, ("flask", "gunicorn"))), reason="a library is not here")
def test_whoever_finds_a_connection_replays_as_whoever_made_it(name: str, driver: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(GOLDEN / name, project)
    with servers() as places:
        needed(places)
        sql(places, "CREATE TABLE sales (id serial PRIMARY KEY, who text, cents int, at timestamptz)")
        store = {"REENACT_STORE": str(project / ".reenact"), "DRIVER": driver}
        environ, port = {**os.environ, **places.environ, **store}, free_port()
        site = {
            "counter": ["gunicorn", "counter:app", "-b", f"127.0.0.1:{port}", "-k", "gthread", "--threads", "6"],
            "ledger": ["uvicorn", "ledger:app", "--port", str(port), "--log-level", "warning"],
        }[name]
        with recorded(environ, *site, cwd=project, stops=signal.SIGINT if name == "ledger" else signal.SIGTERM):
            assert any(meets(("127.0.0.1", port)) for _ in range(6))
            ask_at_once(f"http://127.0.0.1:{port}/sales/§", [{"cents": number} for number in range(20)])
        places.stop()
    assert verdicts_of(environ, project)["POST", "exact"] == 20
    units = [run for run in runs_of(environ, project, "-n", "0") if run["name"].startswith("POST")]
    for each in [*units[::3], units[-1]]:
        done = reenact(environ, "replay", each["id"], cwd=project)
        assert done.returncode == 0, done.stderr
        assert done.stderr.lstrip().startswith("same: ")
    if name == "counter":  # whoever connected first has to set the connection up again
        code = (project / "counter.py").read_text()
        assert code.count(SETS) == 1
        (project / "counter.py").write_text(code.replace(SETS, ""))
        changed = reenact(environ, "replay", units[-1]["id"], cwd=project)
        assert changed.returncode == 1
        assert "SET statement_timeout" in changed.stderr


@pytest.mark.skipif(find_spec("chromadb") is None, reason="a library is not here")
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
