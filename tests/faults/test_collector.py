"""Collectors that are slow, down, wrong, full or gone: nothing is lost, nothing is sent twice that was answered.

Each row is a real agent process that records and sends, a real collector process that decodes what it gets, and after
the agent's end `reenact status` and `reenact status --send`. What both sides counted is held together.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import in_process
import warm_python
from reenact.keep.catalog import runs_of
from reenact.keep.leftovers import leftovers
from reenact.keep.status import status_of
from reenact.stores.directory import DirectoryStore

_HERE = Path(__file__).parent
_FEW = (300, 8000)
_MANY = (20_000, 8000)
_SMALL_BATCHES = {"REENACT_EXPORT_BATCH_BYTES": "400000"}
_GIANT = 3_000_000


@contextlib.contextmanager
def collector(
    folder: Path, kind: str, behaviour: str, number: float = 0, port: int = 0, *, keep: bool = False
) -> Generator[str]:
    """Run a collector for a while, and give its address."""
    folder.mkdir(exist_ok=True)
    (folder / "address").unlink(missing_ok=True)
    if keep:
        (folder / "requests").mkdir(exist_ok=True)
    argv = [sys.executable, str(_HERE / "collector.py"), kind, str(folder), behaviour, str(number), str(port)]
    process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    try:
        while not (folder / "address").exists():
            assert process.poll() is None
            time.sleep(0.02)
        yield (folder / "address").read_text()
    finally:
        process.kill()
        process.wait()


def environment(**further: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "REENACT_"))}
    return {**kept, **further}


@dataclass(frozen=True)
class Ended:
    """How an agent went."""

    exit_s: float
    """From its last work to its end."""
    rss_mb: int
    err: str


def agent(store: Path, load: tuple[int, int], environ: Mapping[str, str], program: str = "sending.py") -> Ended:
    argv = [sys.executable, str(_HERE / program), *map(str, load), str(store)]
    process = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    told = json.loads(process.stdout.readline())
    rss_kb = 0
    while process.poll() is None:
        rss_kb = _most_resident(process.pid) or rss_kb
        time.sleep(0.005)
    gone = time.time()
    err = process.stderr.read()
    assert process.returncode == 0, err
    assert rss_kb, "it was gone before it could be measured"
    return Ended(gone - told["done"], rss_kb // 1024, err)


def _most_resident(pid: int) -> int:
    """Kilobytes; 0 once it is gone. `wait4` would say no less than what the process had that forked it."""
    with contextlib.suppress(OSError):
        found = re.search(r"^VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        return int(found[1]) if found else 0
    return 0


def sent(store: Path, load: tuple[int, int], environ: Mapping[str, str]) -> None:
    """Have the same agent send, and leave out how it went."""
    argv = [sys.executable, str(_HERE / "sending.py"), *map(str, load), str(store)]
    done = warm_python.completed(argv, _HERE, environ, programs=())
    assert done.returncode == 0, done.stderr


def command(*words: str, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return in_process.run(words, Path.cwd(), environ)


def account(store: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Ask how things stand with the only backend, and hold the sums together."""
    (backend,) = status_of(DirectoryStore(store), [environ["REENACT_EXPORT"]]).backends
    told = asdict(backend)
    conserved(told)
    return told


def conserved(backend: Mapping[str, Any]) -> None:
    assert backend["created"] == backend["exported"] + backend["waiting"] + sum(backend["dropped"].values()), backend


def send(store: Path, environ: Mapping[str, str], within: float = 60) -> subprocess.CompletedProcess[str]:
    return command("status", "--send", "--within", str(within), "--store", str(store), environ=environ)


def accepted(folder: Path) -> list[bytes]:
    """The ids of the spans that a collector accepted, as often as it did."""
    data = (folder / "accepted").read_bytes() if (folder / "accepted").exists() else b""
    return [data[at : at + 16] for at in range(0, len(data), 16)]


def stored(store: Path) -> int:
    held = DirectoryStore(store)
    return sum(len({span.span_id for span in held.spans(trace_id)}) for trace_id in held.trace_ids())


@dataclass(frozen=True)
class Row:
    """One collector, and what is to be of it in the end."""

    behaviour: str
    number: float = 0
    cured: str = ""
    """As what it comes back, on the same port."""
    settled: bool = True
    """All is exported or dropped by the first collector already, given time."""
    doubles: bool = False
    """It takes what it never answers for, so that nobody can know."""


_ROWS = {
    "slow 0.2 s": Row("slow", 0.2),
    "slow 2 s": Row("slow", 2),
    "refused": Row("", cured="healthy", settled=False),
    "503, then back": Row("503", 5),
    "400": Row("400"),
    "413 over n bytes": Row("413", 100_000),
    "302": Row("302", cured="healthy", settled=False),
    "partial_success": Row("partial"),
    "200 HTML": Row("html", cured="healthy", settled=False),
    "hang": Row("hang", cured="healthy", settled=False),
    "close after store": Row("close", doubles=True),
    "quota": Row("quota"),
}
_OF_HTTP_ALONE = {"302", "200 HTML"}


def held_together(
    tmp_path: Path, kind: str, name: str, load: tuple[int, int], further: Mapping[str, str], *, measured: bool = True
) -> tuple[str, Ended]:
    """Do a row, check it, and give a line of the table with how the agent went, where that is measured."""
    row, created, store, folder = _ROWS[name], load[0] + 2, tmp_path / "store", tmp_path / "collector"
    if row.behaviour == "413" and load == _MANY:
        row = replace(row, number=10 * row.number)
    if row.behaviour == "503" and load == _MANY:
        row = replace(row, number=60)
    with contextlib.ExitStack() as running:
        if row.behaviour:
            address = running.enter_context(collector(folder, kind, row.behaviour, row.number, keep=row.doubles))
        else:
            address = nobody(kind)
        environ = environment(REENACT_EXPORT=address, **further)
        ended = agent(store, load, environ) if measured else Ended(0.0, 0, "")
        if not measured:
            sent(store, load, environ)
        between = account(store, environ)
        assert between["created"] == created
        if row.settled:
            send(store, environ, 250)
    if row.cured:
        left = account(store, environ)
        assert (left["exported"], left["waiting"], left["dropped"]) == (0, created, {})
        port = int(address.rpartition(":")[2].partition("/")[0])
        with collector(folder, kind, row.cured, port=port):
            said = send(store, environ, 250)
            assert said.returncode == 0, said.stderr
    backend, got = account(store, environ), accepted(folder)
    assert backend["created"] == created
    assert backend["waiting"] == 0, backend
    assert backend["exported"] == len(set(got)), "what was exported is what arrived"
    assert row.doubles or len(got) - len(set(got)) <= 512, "sent twice, though an answer was known"
    assert stored(store) == created
    outcome(name, backend, folder, created)
    if row.doubles:
        doubled(tmp_path, folder, created)
    dropped = ", ".join(f"{spans} {reason}" for reason, spans in backend["dropped"].items()) or "0"
    figures = f"{ended.exit_s:9.2f} {ended.rss_mb:8d} {len(got) - len(set(got)):8d}"
    first = f"{between['exported']:6d} + {between['waiting']:6d} + {sum(between['dropped'].values()):6d}"
    return f"{kind:5s} {name:18s} {created:8d} = {first}  {backend['exported']:8d} {figures}   {dropped}", ended


def outcome(name: str, backend: Mapping[str, Any], folder: Path, created: int) -> None:
    requests = len((folder / "asked").read_text().splitlines())
    match name:
        case "400":
            assert list(backend["dropped"].values()) == [created]
            (reason,) = backend["dropped"]
            assert "400" in reason or "INVALID_ARGUMENT" in reason
            assert requests < created // 4, "the one bad span is looked for, but not for ever"
        case "partial_success":
            rejected = backend["dropped"].pop("rejected: partial success")
            assert backend["dropped"] == {}
            got = accepted(folder)  # a request whose answer came too late for its sender is made once more
            assert rejected == requests or (rejected < requests and len(set(got)) < len(got))
        case _:
            assert backend["dropped"] == {}
            assert backend["exported"] == created


def doubled(tmp_path: Path, folder: Path, created: int) -> None:
    """Take everything that the collector kept into a store of ours: there every span is once."""
    other = tmp_path / "other"
    files = [str(path) for path in sorted((folder / "requests").iterdir())]
    for at in range(0, len(files), 500):
        said = command("import", "--store", str(other), *files[at : at + 500], environ=environment())
        assert said.returncode == 0, said.stderr
    held = DirectoryStore(other)
    (trace,) = held.trace_ids()
    (run,) = runs_of(held, trace)
    assert len(run.nodes) == created
    assert len({node.id for node in run.nodes}) == created


def nobody(kind: str) -> str:
    """Give an address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    return f"grpc://127.0.0.1:{port}" if kind == "grpc" else f"http://127.0.0.1:{port}/v1/traces"


def bound_s() -> float:
    """How much longer than without a backend an agent may take to go: a second of a machine that has the time."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """How the same agent goes after many calls where no backend is configured."""
    return agent(tmp_path_factory.mktemp("alone") / "store", _MANY, environment())


@pytest.fixture(scope="module")
def alone_s(tmp_path_factory: pytest.TempPathFactory) -> float:
    """How long the same agent takes to go where no backend is configured."""
    return agent(tmp_path_factory.mktemp("alone") / "store", _FEW, environment()).exit_s


_FEW_AT_ONCE = {"REENACT_EXPORT_BATCH_SPANS": "5"}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [8, 100])
def test_a_sender_that_is_killed_between_sending_and_noting_loses_nothing(
    tmp_path: Path, kills: int, capsys: pytest.CaptureFixture[str]
) -> None:
    store, folder = tmp_path / "store", tmp_path / "collector"
    agent(store, (kills * 12, 300), environment(REENACT_EXPORT=nobody("http")))
    leftovers(DirectoryStore(store), send=False)
    created = kills * 12 + 2  # with the root, and what was printed behind the run
    with collector(folder, "http", "killer", 0.02, keep=True) as address:
        renamed(store, address)
        environ = environment(REENACT_EXPORT=address, **_FEW_AT_ONCE)
        argv = [sys.executable, str(_HERE / "sending_on.py"), str(store), str(folder / "victim"), str(kills)]
        did = subprocess.run(argv, env=environ, check=True, capture_output=True, text=True, timeout=500)
        killed = int(did.stdout.split()[-1])
    between = account(store, environ)
    with collector(folder, "http", "healthy", port=int(address.rpartition(":")[2].partition("/")[0]), keep=True):
        assert send(store, environ).returncode == 0
    backend, got = account(store, environ), accepted(folder)
    assert killed == kills
    assert (backend["created"], backend["exported"], backend["waiting"], backend["dropped"]) == (
        created,
        created,
        0,
        {},
    )
    assert len(set(got)) == created, "a span was lost"
    assert len(got) - len(set(got)) <= 5 * kills, "more than the request under way was sent again"
    doubled(tmp_path, folder, created)
    with capsys.disabled():
        print(  # noqa: T201 - figures
            f"\n{killed} kills: {created} created, {between['exported']} exported and {between['waiting']} waiting "
            f"after the last; in the end {len(set(got))} arrived, {len(got) - len(set(got))} of them twice, 0 lost"
        )


def renamed(store: Path, address: str) -> None:
    """Owe to `address` what is owed to the only backend."""
    with contextlib.closing(sqlite3.connect(store / "outbox" / "outbox.sqlite")) as database, database:
        database.execute("UPDATE backends SET name = ?, next_try = 0", (address,))


_IN_SHORT = ("refused", "400", "413 over n bytes", "302", "partial_success", "hang", "close after store")


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", _IN_SHORT)
def test_no_collector_costs_a_span(tmp_path: Path, name: str) -> None:
    held_together(tmp_path, "http", name, _FEW, _SMALL_BATCHES, measured=False)


@pytest.mark.parametrize("name", ["413 over n bytes", pytest.param("quota", marks=pytest.mark.slow)])
def test_no_collector_costs_a_span_over_grpc(tmp_path: Path, name: str) -> None:
    pytest.importorskip("grpc", reason="grpcio is not installed")
    held_together(tmp_path, "grpc", name, _FEW, _SMALL_BATCHES, measured=False)


@pytest.mark.bench
@pytest.mark.parametrize("kind", ["http", "grpc"])
@pytest.mark.parametrize("name", [name for name in _ROWS if name not in _OF_HTTP_ALONE])
def test_no_collector_keeps_an_agent_from_its_end(tmp_path: Path, kind: str, name: str, alone_s: float) -> None:
    line, ended = held_together(tmp_path, kind, name, _FEW, _SMALL_BATCHES)
    assert ended.exit_s - alone_s <= bound_s(), line


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", _ROWS)
def test_no_collector_costs_a_span_of_many(
    tmp_path: Path, name: str, alone: Ended, capsys: pytest.CaptureFixture[str]
) -> None:
    line, ended = held_together(tmp_path, "http", name, _MANY, {})
    with capsys.disabled():
        print(f"\n{line}   alone: {alone.exit_s:.2f} s, {alone.rss_mb} MB")  # noqa: T201 - figures
    assert ended.rss_mb - alone.rss_mb <= 100, "memory is bounded, however the backend is"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [name for name in _ROWS if name not in _OF_HTTP_ALONE])
def test_no_collector_costs_a_span_of_many_over_grpc(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("grpc", reason="grpcio is not installed")
    line, _ = held_together(tmp_path, "grpc", name, (2000, 8000), {})
    with capsys.disabled():
        print(f"\n{line}")  # noqa: T201 - figures
