"""Disks that are full, broken or read-only: the agent does what it does, the loss is counted and told once."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import warm_python
from disks import small_disk
from reenact.graph.verdict import judge
from reenact.keep.recovering import Recovered, recover
from reenact.stores.directory import DirectoryStore
from reenact.values.call import FunctionCall, Returned, Streamed, Unfinished
from reenact.values.run import Run

HERE = Path(__file__).parent
BOOTSTRAP = HERE.parents[1] / "src" / "reenact" / "bootstrap"
CALLS = 36


def live(store: Path | None, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "OTEL_"))}
    if store is not None:
        plain |= {"REENACT_RECORD": "1", "REENACT_STORE": str(store), "PYTHONPATH": str(BOOTSTRAP)}
    command = [sys.executable, str(HERE / "filling.py"), *arguments]
    return warm_python.completed(command, HERE, plain | environ, programs=())


@cache
def alone() -> subprocess.CompletedProcess[str]:
    """Give what the agent does when nothing records it."""
    done = live(None)
    assert done.returncode == 5
    return done


def undisturbed(done: subprocess.CompletedProcess[str]) -> str:
    """See that the agent did what it does alone, and give what was told on stderr."""
    assert (done.returncode, done.stdout) == (alone().returncode, alone().stdout), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def recovered(store: Path, elsewhere: Path) -> Recovered:
    """Recover where there is room."""
    shutil.copytree(store / "journal", elsewhere / "journal")
    return recover(DirectoryStore(elsewhere))


def conserved(found: Recovered, said: str) -> Run:
    """Every call is there whole, or named as lacking something, or counted among what is not there at all."""
    (run,) = found.runs
    (journal,) = found.journals
    assert run.root is not None
    assert not any(node.orphan for node in run.nodes)
    calls = [node for node in run.nodes if isinstance(node.call.request, FunctionCall) and node is not run.root]
    whole = [node for node in calls if isinstance(node.outcome, Returned | Streamed)]
    for node in calls:
        if isinstance(node.outcome, Unfinished):
            held = node.span.attributes
            assert held.get("reenact.incomplete") or json.loads(str(held["reenact.lost"]))
    told = re.search(r"(\d+) records of this process could not be written", said)
    counted = journal.dropped or (int(told[1]) if told else 0)
    assert len(whole) + counted >= CALLS, "what is not whole is counted"
    for node in whole:
        if node.call.name == "slight" and isinstance(node.outcome, Returned):
            assert isinstance(node.call.request, FunctionCall)
            assert node.call.request.arguments == {"number": node.outcome.payload.json}  # type: ignore[union-attr]
    return run


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[Path]:
    with small_disk(request.param) as folder:
        yield folder


@pytest.mark.parametrize("disk", ["size=64k", "size=128k", "size=200k"], indirect=True)
def test_a_full_disk(disk: Path, tmp_path: Path) -> None:
    said = undisturbed(live(disk))
    assert said.count("the program goes on unrecorded") == 1
    assert "No space left" in said
    found = recovered(disk, tmp_path / "store")
    run = conserved(found, said)
    assert found.damaged == (), "what was cut is passed over, and nothing is damaged"
    assert found.journals[0].dropped, "the count is in the journal, however full the disk"
    reasons = [reason for reason in judge(run).reasons if reason.call == "run"]
    assert any(reason.field == "records" for reason in reasons)
    if run.root is not None and run.root.span.attributes.get("reenact.incomplete"):
        (end,) = [reason for reason in reasons if reason.field == "end"]
        assert "no more could be written (No space left on device)" in end.lost
        assert "killed" not in " ".join(reason.lost for reason in judge(run).reasons)
        assert "process ended" not in " ".join(reason.lost for reason in judge(run).reasons)


@pytest.mark.parametrize("disk", ["size=64k"], indirect=True)
def test_a_run_that_a_full_disk_cut_says_so_though_its_process_is_killed_later(disk: Path, tmp_path: Path) -> None:
    done = live(disk, "--killed")
    assert done.returncode == -9
    found = recovered(disk, tmp_path / "store")
    (run,) = found.runs
    assert run.root is not None
    assert run.root.span.attributes["reenact.cut"] == "No space left on device"
    assert found.journals[0].dropped
    assert any("No space left on device" in reason.lost for reason in judge(run).reasons)


@pytest.mark.parametrize("disk", ["ro"], indirect=True)
def test_a_read_only_folder(disk: Path) -> None:
    said = undisturbed(live(disk))
    assert said.count("the program goes on unrecorded") == 1
    assert "Read-only" in said
    assert "records of this process could not be written" in said


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    said = undisturbed(live(tmp_path / "store", str(60_000)))
    assert said.count("the program goes on unrecorded") == 1
    found = recover(DirectoryStore(tmp_path / "store"))
    conserved(found, said)
    assert found.runs[0].root is not None


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that stands before `write`."""
    built = tmp_path_factory.mktemp("failing") / "failing.so"
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here, so no failing write can be made")
    command = [compiler, "-shared", "-fPIC", "-o", str(built), str(HERE / "failing_write.c"), "-ldl"]
    subprocess.run(command, check=True)
    return built


def test_short_writes_cost_nothing(failing: Path, tmp_path: Path) -> None:
    said = undisturbed(live(tmp_path / "store", LD_PRELOAD=str(failing), FAILING_WRITE="short"))
    assert said == ""
    found = recover(DirectoryStore(tmp_path / "store"))
    assert [len(run.nodes) for run in found.runs] == [CALLS + 1]
    assert not any(isinstance(node.outcome, Unfinished) for node in found.runs[0].nodes[1:])
    assert found.damaged == ()


def test_writes_that_fail_now_and_then(failing: Path, tmp_path: Path) -> None:
    said = undisturbed(live(tmp_path / "store", LD_PRELOAD=str(failing), FAILING_WRITE="eio"))
    assert said.count("the program goes on unrecorded") == 1
    assert "Input/output error" in said
    found = recover(DirectoryStore(tmp_path / "store"))
    run = conserved(found, said)
    assert run.root is not None
    assert not run.root.span.attributes.get("reenact.incomplete"), "a root's frames are tried again"
    assert found.journals[0].dropped > 0
    assert [reason.lost for reason in judge(run).reasons if reason.field == "records"]


def test_a_disk_that_dies(failing: Path, tmp_path: Path) -> None:
    said = undisturbed(live(tmp_path / "store", LD_PRELOAD=str(failing), FAILING_WRITE="dead"))
    assert said.count("the program goes on unrecorded") == 1
    assert "records of this process could not be written" in said, "there is nowhere else to say it"
    found = recover(DirectoryStore(tmp_path / "store"))
    assert found.runs[0].root is not None
    assert found.damaged == ()


def test_a_failing_fsync_is_told_and_costs_nothing(failing: Path, tmp_path: Path) -> None:
    done = live(tmp_path / "store", LD_PRELOAD=str(failing), FAILING_SYNC="1", REENACT_JOURNAL_FSYNC="always")
    said = undisturbed(done)
    assert said.count("reenact: ") == 1
    found = recover(DirectoryStore(tmp_path / "store"))
    assert [len(run.nodes) for run in found.runs] == [CALLS + 1]


@pytest.mark.parametrize("most", ["64k", "128k"])
def test_at_its_bound_a_journal_keeps_structure_before_payload(tmp_path: Path, most: str) -> None:
    said = undisturbed(live(tmp_path / "store", REENACT_JOURNAL_MAX=most))
    assert said.count("REENACT_JOURNAL_MAX") == 1
    size = sum(path.stat().st_size for path in (tmp_path / "store" / "journal").iterdir())
    assert size <= int(most.removesuffix("k")) * 1024 + 16_384, "roots may go past it, by what they are long"
    found = recover(DirectoryStore(tmp_path / "store"))
    run = conserved(found, said)
    assert run.root is not None
    assert not run.root.span.attributes.get("reenact.incomplete")
    assert run.root.span.attributes["reenact.dropped"] == found.journals[0].dropped > 0
    (reason,) = [reason for reason in judge(run).reasons if reason.field == "records"]
    assert reason.lost.startswith(f"{found.journals[0].dropped} records")
    assert found.damaged == ()
