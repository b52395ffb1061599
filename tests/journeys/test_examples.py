"""Each example: recorded with no change to it, then replayed with nothing to talk to."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from desk import EXAMPLES, Desk
from reenact.demo.provider import StandIn

pytestmark = pytest.mark.sample(2)


def _slow(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.slow)


AGENTS = {
    "cleanup_agent": ["--data", "files"],
    "order_desk": [],
    "price_agent": [],
    "trader_agent": ["--orders", "files/orders.jsonl"],
}
Count = Callable[[list[str], dict[str, str]], tuple[subprocess.CompletedProcess[str], int]]


def record(desk: Desk, name: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    (desk.folder / "files").mkdir(exist_ok=True)
    desk.environ.update(environ or {})
    done = desk.reenact("run", "--", "python", str(EXAMPLES / f"{name}.py"), *AGENTS[name])
    assert done.returncode == 0, done.stderr
    return done


def files(desk: Desk) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted((desk.folder / "files").rglob("*")) if path.is_file()}


def declared(desk: Desk, environ: dict[str, str]) -> dict[str, int]:
    """Count the recorded calls that a replay owes an answer, by kind."""
    run = json.loads(desk.reenact("ls", "--json", environ=environ).stdout)["runs"][0]
    return {kind: number for kind, number in run["calls"].items() if kind not in {"agent", "chain"}}


ONE_AND_ALL = ["cleanup_agent", *(_slow(each) for each in AGENTS if each != "cleanup_agent")]


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", AGENTS)
def test_an_example_replays_offline(desk: Desk, name: str) -> None:
    with StandIn(slip=1.0) as provider:
        live = record(desk, name, provider.environment)
    before = files(desk)
    done = desk.reenact("replay", "last", "--json", environ=desk.bare())
    assert done.returncode == 0, done.stderr
    assert live.stdout in done.stderr  # with --json the program's stdout goes there
    assert files(desk) == before
    told = json.loads(done.stdout)
    assert (told["result"], told["live"], told["answered"]) == ("same", 0, declared(desk, desk.bare()))


@pytest.mark.parametrize("name", ONE_AND_ALL)
def test_an_example_replays_with_nothing_around_it(desk: Desk, sockets: Count, name: str) -> None:
    with StandIn(slip=1.0) as provider:
        live = record(desk, name, provider.environment)
    before = files(desk)
    done, inet = sockets([sys.executable, "-m", "reenact", "replay", "last"], desk.bare())
    assert done.returncode == 0, done.stderr
    assert done.stdout == live.stdout
    assert inet == 0
    assert files(desk) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_AND_ALL)
def test_an_example_replays_from_its_file_alone(desk: Desk, name: str, receiver: tuple[str, Path]) -> None:
    endpoint, received = receiver
    with StandIn(slip=1.0) as provider:
        live = record(desk, name, {**provider.environment, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint})
    desk.environ.clear()
    exported = desk.reenact("export", "last", "-o", "incident.jsonl")
    assert exported.returncode == 0, exported.stderr
    shutil.rmtree(desk.folder / ".reenact")
    before = files(desk)
    for source in ("incident.jsonl", str(received)):
        done = desk.reenact("replay", "--trust", source, environ=desk.bare())
        assert done.returncode == 0, (source, done.stderr)
        assert done.stdout == live.stdout
        assert files(desk) == before


def test_the_fix_meets_the_incident(desk: Desk) -> None:
    with StandIn(slip=1.0) as provider:
        record(desk, "cleanup_agent", provider.environment)
    before = files(desk)
    desk.environ.clear()
    done = desk.reenact(
        "replay", "last", "--", "python", str(EXAMPLES / "cleanup_agent.py"), "--guarded", *AGENTS["cleanup_agent"]
    )
    assert done.returncode == 1
    assert "REFUSED" in done.stdout
    first = done.stderr.splitlines()[0]
    assert "tool delete_accounts" in first
    assert "production" in first
    assert files(desk) == before


@pytest.mark.slow
def test_live_runs_of_the_matrix_program_differ_and_its_replays_do_not(desk: Desk) -> None:
    with StandIn() as provider:
        desk.environ.update(provider.environment)
        live = [desk.reenact("run", "-q", "--", "python", str(EXAMPLES / "everything.py")) for _ in range(2)]
    assert [done.returncode for done in live] == [0, 0]
    assert live[0].stdout != live[1].stdout
    desk.environ.clear()
    for _ in range(3):
        done = desk.reenact("replay", "last", "--json")
        told = json.loads(done.stdout)
        assert done.returncode == 0, done.stderr[-2000:]
        assert (told["misses"], told["unconsumed"], told["released_out_of_order"]) == ([], [], [])
        assert live[1].stdout in done.stderr  # with --json the program's stdout goes there
    shown = json.loads(desk.reenact("show", "last", "--json").stdout)
    assert not any(call["orphan"] for call in shown["calls"])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_matrix_program_replays_the_same_fifty_times(desk: Desk) -> None:
    with StandIn() as provider:
        desk.environ.update(provider.environment)
        live = desk.reenact("run", "-q", "--", "python", str(EXAMPLES / "everything.py"))
    desk.environ.clear()
    outputs = set()
    for _ in range(50):
        done = desk.reenact("replay", "last")
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
    assert outputs == {live.stdout}
