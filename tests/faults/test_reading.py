"""Reading never needs to write: a store on a read-only or full disk is read as any other, and left as it is."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from disks import small_disk
from reenact.cli.main import reenact
from reenact.disk import frames
from reenact.disk.frame_index import Placed
from reenact.stores.frames import FrameStore

pytestmark = pytest.mark.sample(2)

HERE = Path(__file__).parent


def environ() -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_"))}
    return {**plain, "PYTHONPATH": str(HERE.parents[1] / "src")}


def recorded(store: Path, *words: str) -> None:
    program = [sys.executable, str(HERE / "left.py"), *words]
    command = [sys.executable, "-m", "reenact", "run", "-q", "--store", str(store), "--", *program]
    subprocess.run(command, env=environ(), capture_output=True, check=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run that is over, and one whose journal was left over by a killed supervisor."""
    store = tmp_path_factory.mktemp("made") / "store"
    recorded(store, "whole")
    recorded(store, "killed")
    assert list((store / "journal").glob("*.rnj")), "it was left over"
    return store


def digest(folder: Path) -> dict[str, str]:
    """Say what a folder holds, names and bytes, but for what SQLite keeps beside a database that is open."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith(("-wal", "-shm"))
    }


def read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


def full(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


@pytest.fixture
def disk() -> Iterator[Path]:
    with small_disk("size=4m") as folder:
        yield folder


FATES: tuple[Callable[[Path], None], ...] = (read_only, full)


@pytest.fixture(params=FATES, ids=lambda fate: fate.__name__)
def store(disk: Path, made: Path, request: pytest.FixtureRequest) -> Path:
    shutil.copytree(made, disk / "store")
    if getattr(request.cls, "without_an_index", False):
        for path in (disk / "store").glob("index-*"):
            path.unlink()
    request.param(disk)
    return disk / "store"


def command(store: Path, *words: str) -> Result:
    return CliRunner().invoke(reenact, [*words, "--store", str(store)])


READ = (
    ("ls", "--json"),
    ("show", "last", "--json"),
    ("show", "last", "--full"),
    ("doctor", "last"),
    ("step", "last", "--json"),
    ("cold",),
)


class TestAStoreWithItsIndex:
    without_an_index = False

    @pytest.mark.parametrize("words", READ, ids=" ".join)
    def test_it_is_read_as_where_it_can_be_written(
        self, store: Path, made: Path, tmp_path: Path, words: tuple[str, ...]
    ) -> None:
        before = digest(store)
        shutil.copytree(made, tmp_path / "writable")
        there, here = command(tmp_path / "writable", *words), command(store, *words)
        assert here.exit_code == there.exit_code == 0, here.output
        assert here.stdout == there.stdout.replace(str(tmp_path / "writable"), str(store))
        assert here.stdout, "it says something"
        assert here.stderr.count("cannot be written") == 1
        assert digest(store) == before

    def test_it_is_exported(self, store: Path, made: Path, tmp_path: Path) -> None:
        shutil.copytree(made, tmp_path / "writable")
        for place, name in ((tmp_path / "writable", "there.jsonl"), (store, "here.jsonl")):
            assert command(place, "export", "last", "-o", str(tmp_path / name)).exit_code == 0
        assert (tmp_path / "here.jsonl").read_bytes() == (tmp_path / "there.jsonl").read_bytes()

    def test_the_run_that_was_left_over_is_among_them(self, store: Path) -> None:
        runs = json.loads(command(store, "ls", "--json").stdout)["runs"]
        assert [run["status"] for run in runs] == ["interrupted", "ok"]

    def test_a_replay_is_the_same_and_is_not_kept(self, store: Path) -> None:
        before = digest(store)
        whole = json.loads(command(store, "ls", "--json").stdout)["runs"][1]["id"]
        words = [sys.executable, "-m", "reenact", "replay", whole, "--store", str(store), "--json", "--trust"]
        done = subprocess.run(words, env=environ(), capture_output=True, text=True, check=False)
        assert json.loads(done.stdout)["result"] == "same", done.stderr
        assert done.returncode == 0
        assert "the run that this replay makes is not kept" in done.stderr
        assert digest(store) == before


@pytest.mark.slow
class TestAStoreWithoutAnIndex(TestAStoreWithItsIndex):
    without_an_index = True

    def test_a_replay_is_the_same_and_is_not_kept(self, store: Path) -> None:
        """It makes no difference to a replay."""
        del store


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("fate", FATES)
def test_what_a_collector_took_in_is_read(
    disk: Path, tmp_path: Path, fate: Callable[[Path], None], *, indexed: bool
) -> None:
    taken_in(disk / "store")
    if not indexed:
        FrameStore(disk / "store").forget_index()
    shutil.copytree(disk / "store", tmp_path / "writable")
    fate(disk)
    before = digest(disk / "store")
    there, here = (command(place, "ls", "-n", "0", "--json") for place in (tmp_path / "writable", disk / "store"))
    assert here.stdout == there.stdout.replace(str(tmp_path / "writable"), str(disk / "store"))
    assert len(json.loads(here.stdout)["runs"]) == 80
    shown = json.loads(command(disk / "store", "show", f"{1:032x}", "--json").stdout)
    assert shown["run"]["name"] == "asked 1"
    assert digest(disk / "store") == before


def taken_in(store: Path) -> None:
    """Have a store hold 80 traces as a collector takes them in: nobody noted them in the index of runs yet."""
    message = ExportTraceServiceRequest()
    spans = message.resource_spans.add().scope_spans.add().spans
    ids = [number.to_bytes(16) for number in range(1, 81)]
    for number, trace_id in enumerate(ids, 1):
        span = spans.add(trace_id=trace_id, span_id=bytes(7) + b"1", name=f"asked {number}")
        span.start_time_unix_nano = span.end_time_unix_nano = 10**18 + number
    frame = frames.framed(frames.SPANS, message.SerializeToString(), ids, records=80, time_ns=time.time_ns())
    held = FrameStore(store)
    appender = held.appender()
    (at,) = appender.append([frame])
    held.note([Placed(segment=appender.number, at=at, size=len(frame), frame=frames.head(frame))])
    appender.close()
    held.close()


def test_a_store_that_can_be_written_is_not_spoken_of(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "writable")
    assert command(tmp_path / "writable", "ls").stderr == ""
