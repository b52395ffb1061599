"""A supervisor that is killed leaves no program behind, whatever it supervised the program for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LONGEST_S = 60.0


def environ() -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_"))}
    return {**plain, "PYTHONPATH": str(HERE.parents[1] / "src")}


def reenact(*words: str) -> list[str]:
    return [sys.executable, "-m", "reenact", *words]


def agent(tmp_path: Path, *words: str) -> list[str]:
    return [sys.executable, str(HERE / "lasting.py"), str(tmp_path / "pids"), *words]


@contextmanager
def supervised(command: Sequence[str], tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a supervisor, and give it with the process id of its program once that is at work."""
    process = subprocess.Popen(command, env=environ(), cwd=tmp_path, start_new_session=True)
    pid = 0
    try:
        until = time.monotonic() + LONGEST_S
        while not pid and process.poll() is None and time.monotonic() < until:
            pid = next(at_work(tmp_path), 0)
            time.sleep(0.02)
        assert pid, f"its program did not start; it ended with {process.returncode}"
        yield process, pid
    finally:
        process.kill()
        process.wait()
        for pid in at_work(tmp_path):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def at_work(tmp_path: Path) -> Iterator[int]:
    """Find the process that took the name of the program at work."""
    name = f"work-{zlib.crc32(str(tmp_path / 'pids').encode()):08x}\n"
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            if path.read_text() == name:
                yield int(path.parent.name)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def ends(pid: int) -> bool:
    """Tell that a process ends, and does not go on as somebody else's."""
    until = time.monotonic() + 15
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a run that is over at once, and whose replay lasts."""
    folder = tmp_path / ".reenact"
    done = subprocess.run(
        reenact("run", "-q", "--store", str(folder), "--", *agent(tmp_path, "short")), env=environ(), check=False
    )
    assert done.returncode == 0
    return folder


def test_reenact_run(tmp_path: Path) -> None:
    with supervised(reenact("run", "--store", str(tmp_path / ".reenact"), "--", *agent(tmp_path)), tmp_path) as (
        by,
        pid,
    ):
        by.kill()
        assert ends(pid)


def test_reenact_run_with_a_collector_beside_it(tmp_path: Path) -> None:
    command = reenact("run", "--collect", "--store", str(tmp_path / ".reenact"), "--", *agent(tmp_path))
    with supervised(command, tmp_path) as (by, pid):
        by.kill()
        assert ends(pid)


@pytest.mark.slow
def test_reenact_replay(tmp_path: Path, store: Path) -> None:
    with supervised(reenact("replay", "last", "--store", str(store)), tmp_path) as (by, pid):
        by.kill()
        assert ends(pid)


@pytest.mark.slow
def test_reenact_fork(tmp_path: Path, store: Path) -> None:
    command = reenact("fork", "last", "--at", "#2", "--set", 'raised="TimeoutError: late"', "--store", str(store))
    with supervised(command, tmp_path) as (by, pid):
        by.kill()
        assert ends(pid)


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["suite", "worker"])
def test_a_suite(tmp_path: Path, store: Path, whom: str) -> None:
    with supervised(reenact("replay", "--all", str(store), "--jobs", "1"), tmp_path) as (by, pid):
        worker = parent(pid)
        while parent(worker) not in {by.pid, 1}:  # those between it and the program make the program's world
            worker = parent(worker)
        assert worker != by.pid
        os.kill(by.pid if whom == "suite" else worker, signal.SIGKILL)
        assert ends(pid)
        assert ends(worker)


@pytest.mark.slow
def test_fuzzing(tmp_path: Path, store: Path) -> None:
    with supervised(reenact("fuzz", "last", "--store", str(store)), tmp_path) as (by, pid):
        by.kill()
        assert ends(pid)


@pytest.mark.slow
def test_the_collector_takes_its_keeper_along(tmp_path: Path) -> None:
    command = reenact("collect", "--store", str(tmp_path / ".reenact"), "--http-port", "0", "--grpc-port", "0")
    process = subprocess.Popen(command, env=environ(), cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        until, keeper = time.monotonic() + LONGEST_S, ""
        while not keeper and time.monotonic() < until:
            time.sleep(0.05)
            keeper = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().strip()
        process.kill()
        assert all(ends(int(pid)) for pid in keeper.split())
        assert keeper
    finally:
        process.kill()
        process.wait()
